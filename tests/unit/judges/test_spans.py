"""The place of a quote in the answer."""

from __future__ import annotations

import pytest

from rag_harness.evaluation.judges.questions import find_quote, placed
from rag_harness.evaluation.measures.opinion import Claim

TEXT = "Returns are free.\n  Refunds (of cash) take\n7 days. Returns are free."


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Returns are free.", TEXT[:17]),
        ("Refunds (of cash) take 7 days.", "Refunds (of cash) take\n7 days."),
        ("Refunds take a week", None),
        ("", None),
        (" \n", None),
    ],
)
def test_a_quote_is_found_letter_by_letter_but_for_its_spaces(words: str, found: str | None) -> None:
    start, end = find_quote(words, TEXT)
    assert (TEXT[start:end] if start >= 0 else None) == found


def test_what_is_said_twice_is_found_at_both_places() -> None:
    free = "Returns are free."
    claims = placed([("R.", free), ("7.", "7 days."), ("R.", free), ("a phrase of its own", "not there")], TEXT)
    starts = [TEXT.index(free), TEXT.index("7 days."), TEXT.rindex(free), -1]
    assert [claim.start for claim in claims] == starts


def test_a_claim_without_a_quote_is_looked_for_itself() -> None:
    assert placed([("7 days.", "no such words"), ("7 days.", "")], TEXT)[0] == Claim("7 days.", 43, 50)
