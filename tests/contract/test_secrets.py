"""A corpus of made-up secrets and of what looks like them: what is missed and what is hurt stays within the aims."""

from __future__ import annotations

from bench.redact import FALSE, MISSED, judge
from bench.secrets import PREFIXED, innocents, is_prefixed, secrets
from relay_git.contract.placeholder import Policy
from relay_git.contract.redact import redact


def test_the_corpus_is_as_large_as_it_says() -> None:
    found, harmless = judge(secrets()), judge(innocents())
    assert len(found.total) >= 60
    assert found.total.total() >= 1000
    assert harmless.total.total() >= 600
    assert len(PREFIXED) >= 40


def test_no_secret_with_a_prefix_is_missed_in_any_carrier() -> None:
    found = judge(sample for sample in secrets() if is_prefixed(sample.kind))
    assert [(sample.kind, sample.carrier) for sample in found.examples] == []


def test_of_the_other_kinds_few_are_missed_and_few_look_alikes_are_hurt() -> None:
    assert judge(s for s in secrets() if not is_prefixed(s.kind)).share() < MISSED
    assert judge(innocents()).share() < FALSE


def test_redacting_the_corpus_twice_changes_nothing_more() -> None:
    policy = Policy(b"k" * 32)
    for sample in secrets():
        text, _ = redact(sample.text, policy)
        assert redact(text, policy) == (text, {})
