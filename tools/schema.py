"""Publish the contract's JSON Schema from the model: `python -m tools.schema` writes it, `--check` only looks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from relay_git.contract.model import Contract

FILE = Path(__file__).parents[1] / "schema" / "contract-1.json"


def schema() -> str:
    """The schema of version 1, as it is published."""
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:git-relay:contract:v1"}
    return json.dumps(made | Contract.model_json_schema(), indent=2) + "\n"


def main() -> int:
    """Write the file, or say whether it is up to date."""
    if "--check" not in sys.argv[1:]:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(schema(), encoding="utf-8")
        return 0
    if FILE.is_file() and FILE.read_text(encoding="utf-8") == schema():
        return 0
    print(f"{FILE} does not fit the model: python -m tools.schema", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
