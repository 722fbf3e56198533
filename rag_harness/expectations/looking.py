"""Looks at an answer with the expectations of its case, and makes one figure of what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.expectations.kind import LONGEST, AnswerSeen, Finding
from rag_harness.expectations.reading import kind_of
from rag_harness.types import Expectation


@dataclass(frozen=True)
class Kept:
    """An expectation and whether the answer keeps to it; None where that could not be checked.

    ``said`` is what stands in the answer, or why it could not be checked. ``start`` and ``end`` are its place.
    """

    expectation: Expectation
    kept: bool | None
    said: str = ""
    start: int = -1
    end: int = -1


def looked_at(expectations: Sequence[Expectation], answer: AnswerSeen) -> list[Kept]:
    """Return each expectation with what was found in an answer."""
    return [_looked(each, answer) for each in expectations]


def as_found(expectation: Expectation, found: Finding) -> Kept:
    """Return an expectation with what was found. What could not be told is kept by neither direction of "not"."""
    kept = None if found.does is None else found.does != expectation.negated
    return Kept(expectation, kept, found.said, found.start, found.end)


def _looked(expectation: Expectation, answer: AnswerSeen) -> Kept:
    if len(answer.text) > LONGEST:
        found = Finding(None, f"the answer has {len(answer.text):,} characters; {LONGEST:,} are looked at")
    else:
        found = kind_of(expectation.kind).look(answer, expectation)
    return as_found(expectation, found)


def kept_share(found: Sequence[Kept]) -> tuple[float | None, str]:
    """Return the weighted share of expectations that are kept, and what is said of those that are not.

    It is None where one could not be checked: the others must not stand for it, and a figure over the cases that happen
    to be decided would be of other cases. Else it is 0 where one that must be kept is not.
    """
    broken = [each for each in found if each.kept is False]
    unchecked = [each for each in found if each.kept is None]
    if unchecked:
        # It is counted over cases by its words, so it has no number in it.
        return None, f"an unchecked expectation: {unchecked[0].expectation}: {unchecked[0].said}"
    for each in broken:
        if each.expectation.must:
            return 0.0, f"must {each.expectation}: {each.said}"
    total = sum(each.expectation.weight for each in found)
    share = sum(each.expectation.weight for each in found if each.kept) / total
    return share, "; ".join(f"{each.expectation}: {each.said}" for each in broken)
