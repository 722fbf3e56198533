"""Finds gold that belongs to another question, e.g. where rows of a file have shifted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag_harness.measures.ground_truth import Rightness, carries, plain_terms
from rag_harness.types import Case
from rag_harness.words.terms import written_numbers

_LEAST_TERMS = 3
"""Least number of words and figures that distinguish a ground truth from others."""
_MORE, _MOSTLY = 1, 0.6
"""How many more words of the question the other gold must have; and its least share of the answer's words."""


@dataclass(frozen=True, slots=True)
class _Known:
    case: Case
    terms: frozenset[str]
    figures: frozenset[str]


class Golds:
    """The gold of all cases, to find the one by which an answer is right.

    Args:
        cases: cases of the suite; each answerable one is a candidate.
    """

    def __init__(self, cases: Iterable[Case]) -> None:
        self._known = [_known(case) for case in cases if case.answerable and _is_told(case.ground_truth)]

    def other(self, case: Case, answer: str, right: Rightness) -> str:
        """Return why the gold of ``case`` belongs to another question; empty where nothing says so.

        The answer is wrong by its own gold, has the ground truth of another case and hardly more, and the question
        shares more words with that gold than with its own. The last condition is needed because a pipeline may mistake
        the question for another: then the answer has another ground truth, too.
        """
        if right.right or right.value is None or not case.answerable:
            return ""
        asked, said, figures = plain_terms(case.query.text), plain_terms(answer), written_numbers(answer)
        mine = len(asked & _gold_terms(case))
        for other in self._known:
            is_near = len(asked & other.terms) >= mine + _MORE and len(said & other.terms) >= _MOSTLY * len(said)
            is_like = is_near and (not other.figures or bool(figures & other.figures))
            if is_like and other.case.query != case.query and carries(answer, other.case.ground_truth):
                return f"the answer is the ground truth of {other.case.query.query_id}, which fits the question better"
        return ""

    def answered(self, case: Case, answer: str) -> str:
        """Return the question of which an answer has the ground truth, and hardly more; empty where it is none's."""
        said, figures = plain_terms(answer), written_numbers(answer)
        for other in self._known:
            is_other = other.case.query != case.query and not carries(other.case.ground_truth, case.ground_truth)
            is_like = len(said & other.terms) >= _MOSTLY * len(said) and (not other.figures or figures & other.figures)
            if said and is_other and is_like and carries(answer, other.case.ground_truth):
                return other.case.query.query_id
        return ""


def _is_told(text: str) -> bool:
    return len(plain_terms(text) | written_numbers(text)) >= _LEAST_TERMS


def _known(case: Case) -> _Known:
    return _Known(case, _gold_terms(case), written_numbers(case.ground_truth))


def _gold_terms(case: Case) -> frozenset[str]:
    quotes: Sequence[str] = [one.quote for one in case.evidence]
    return plain_terms(" ".join([case.ground_truth, *quotes]))
