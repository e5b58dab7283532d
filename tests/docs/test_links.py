"""Every link from one page of this repository to another leads somewhere."""

from __future__ import annotations

import re
import subprocess

from tests.seal.environment import ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def heading_id(line: str) -> str:
    words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
    return words.replace(" ", "-")


def test_every_relative_link_leads_to_a_page_and_a_heading() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    broken = []
    for name in listed.stdout.splitlines():
        page = ROOT / name
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for target in LINK.findall(text):
            path, _, anchor = target.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            there = (page.parent / path) if path else page
            lines = there.read_text().splitlines() if there.is_file() else []
            if not there.exists() or (anchor and anchor not in {heading_id(x) for x in lines if x.startswith("#")}):
                broken.append(f"{name}: {target}")
    assert not broken
