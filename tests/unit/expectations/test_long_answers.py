"""Long answers: what looks at one lasts no longer than an answer may take, and what did not end is a reason."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from rag_harness.core.processes import checks_within
from rag_harness.core.types import Expectation
from rag_harness.evaluation.expectations.snapshots import renewed
from rag_harness.records import expectations
from rag_harness.records.expectations import (
    AnswerSeen,
    ExpectationKind,
    Finding,
    Source,
    kind_of,
    known_kinds,
    looked_at,
)
from tests.long_answers import LONG_ANSWERS

DEADLINE = 10.0
LATE = "not checked within 1 s. Allow more: --rag-deadline"
SLOW = Expectation("regex", r"[\w\W]{3000}x")
"""A pattern of the linear engine that takes 15 s for 200,000 characters, and holds the interpreter meanwhile."""
WANTED: dict[str, Any] = {
    **dict.fromkeys(("links", "is_json", "declines", "answers", "cited", "valid_citations", "snapshot"), True),
    **dict.fromkeys(("contains", "equals", "starts_with", "ends_with", "context_contains"), "45 zebras"),
    **{kind: ["45 zebras", "one more"] for kind in ("contains_any", "contains_all", "one_of")},
    **dict.fromkeys(("cites", "retrieves"), "d1.md"),
    **{kind: ["d1.md"] for kind in ("cites_any", "cites_all", "cites_only")},
    **dict.fromkeys(("max_words", "min_words", "max_chars", "min_chars", "max_sentences", "max_ms", "max_tokens"), 3),
    **{"rouge_l": "zebra stripes " * 100, "regex": "(a|b)*c[0-9]+$", "language": "en", "json": {"uniqueItems": True}},
    **{"number": 45, "date": "2024-03-12", "decides": "pass", "min_confidence": 0.5, "max_usd": 1, "finishes": "stop"},
    **{"rubric": "It is polite.", "similar": "zebras"},
}
SOURCES = [Source(f"d{number}.md", "The lamp can be returned within 45 days.") for number in range(5)]


def seen(text: str) -> AnswerSeen:
    return AnswerSeen(text, sources=SOURCES, cited=(1, 2, 3, 4, 5))


class Own(ExpectationKind):
    """A kind of a user's own."""

    def __init__(self) -> None:
        self.asked = 0

    def problem(self, demand: Expectation) -> str:
        return ""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        self.asked += 1
        return Finding(True, "it was looked at here")


def test_a_check_that_outlasts_the_time_is_a_reason_and_code_of_a_users_own_stays_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = Own()
    monkeypatch.setattr(expectations, "kind_of", lambda name: own if name == "own" else kind_of(name))
    expected = [Expectation("contains", "ab"), SLOW, Expectation("own", True)]
    with checks_within(1):
        began = time.monotonic()
        first, slow, mine = looked_at(expected, seen("ab" * 100_000))
        took = time.monotonic() - began
        again = looked_at([SLOW], seen("ab" * 100_000))
    assert (first.kept, slow.kept, mine.kept) == (True, None, True)
    assert slow.said == again[0].said == LATE
    assert own.asked == 1
    assert took < 60, "the process takes a while to start where others work"


def test_an_answer_as_long_as_one_may_be_is_looked_at_as_a_short_one() -> None:
    snapshot = Expectation("snapshot", True)
    for text in ("Lamps cost 9.90 €. " * 1_000, "Lamps cost 9.90 €. " * 2_000):
        found = looked_at([Expectation("contains", "9.90"), Expectation("max_words", 5)], seen(text))
        assert [each.kept for each in found] == [True, False]
        assert renewed(snapshot, text).was == text
        assert renewed(replace(snapshot, was=text.lower()), text).was == text.lower()


@pytest.mark.long
def test_no_kind_outlasts_the_deadline_on_any_long_answer() -> None:
    assert WANTED.keys() == set(known_kinds())
    options: dict[str, dict[str, Any]] = {
        "rouge_l": {"at_least": 0.5},
        "similar": {"at_least": 0.5},
        "number": {"unit": "euros"},
    }
    expected = [Expectation(kind, wanted, options.get(kind, {})) for kind, wanted in WANTED.items()]
    with checks_within(DEADLINE):
        looked_at(expected, seen("a" * 20_001))  # the process starts
        for name, text in LONG_ANSWERS.items():
            asked = [replace(each, was=text[:-1]) if each.kind == "snapshot" else each for each in expected]
            began = time.monotonic()
            found = looked_at(asked, seen(text))
            assert time.monotonic() - began < DEADLINE + 1, name
            assert len(found) == len(asked)
