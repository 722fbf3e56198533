"""Looks at an answer with the expectations of its case, and makes one figure of what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.expectations.kind import LONGEST, AnswerSeen, ExpectationKind, Finding
from rag_harness.expectations.reading import kind_of
from rag_harness.registry.own_parts import is_own
from rag_harness.types import Expectation
from rag_harness.work.checks_in_time import Unchecked, checked, is_long


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
    """Return each expectation with what was found in an answer. A long one is looked at in the time of an answer."""
    if len(answer.text) > LONGEST:
        too_long = Finding(None, f"the answer has {len(answer.text):,} characters; {LONGEST:,} are looked at")
        return [as_found(each, too_long) for each in expectations]
    kinds = [(kind_of(each.kind), each) for each in expectations]
    if not is_long(answer.text):
        return [as_found(each, kind.look(answer, each)) for kind, each in kinds]
    # Kinds of a user's own stay here: they may hang on what this process has.
    ours = [place for place, (kind, _) in enumerate(kinds) if not is_own(type(kind).__module__)]
    found = dict(zip(ours, checked(_look, [kinds[place] for place in ours], answer, answer.text), strict=True))
    return [
        as_found(each, _finding(found[place]) if place in found else kind.look(answer, each))
        for place, (kind, each) in enumerate(kinds)
    ]


def _look(asked: tuple[ExpectationKind, Expectation], answer: AnswerSeen) -> Finding:
    kind, expectation = asked
    return kind.look(answer, expectation)


def _finding(came: Finding | Unchecked) -> Finding:
    return Finding(None, came.why) if isinstance(came, Unchecked) else came


def as_found(expectation: Expectation, found: Finding) -> Kept:
    """Return an expectation with what was found. What could not be told is kept by neither direction of "not"."""
    kept = None if found.does is None else found.does != expectation.negated
    return Kept(expectation, kept, found.said, found.start, found.end)


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
