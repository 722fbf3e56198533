"""Measures of an answer to a turn of a conversation, beside those that any answer has.

The words of the criteria that a judge is asked are in ``turn_criteria``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from rag_harness.measures.judged.criteria import CRITERIA, criteria_met
from rag_harness.measures.judged.measure import JudgedMeasure, supported_share
from rag_harness.measures.judged.opinion import Material, Opinion, Support
from rag_harness.measures.judged.reasons import NO_GROUND_TRUTH, says_nothing
from rag_harness.measures.judged.turn_criteria import (
    ASKS_BACK,
    ASKS_NOTHING_AGAIN,
    CONTRADICTS_NOTHING,
    CORRECTS,
    ONLY_ASKS_BACK,
    score_of,
    with_truth,
)
from rag_harness.measures.judged.turn_material import (
    CORRECTION,
    UNDERSPECIFIED,
    MaterialOfTurn,
    kinds_of,
    said_before,
)
from rag_harness.measures.measure import Need, Score
from rag_harness.types import Case

_FIRST = "nothing said before"
_NO_CORRECTION = "no wrong premise (turn_kind is not correction)"
_SPECIFIED = "a question that says what it is about (turn_kind is not underspecified)"
_SILENT = "an abstention that asks nothing: it repeats nothing and contradicts nothing"


class TurnMeasure(JudgedMeasure):
    """A measure by criteria about an answer to a turn; 1 where all are met, else 0."""

    asks = (CRITERIA,)

    @abstractmethod
    def criteria(self, material: Material) -> Sequence[str]:
        """Return what is asked about an answer."""

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        return score_of(await criteria_met(opinion, self.criteria(material)))


class Retention(TurnMeasure):
    """1 if the answer asks for nothing that the user has said, and contradicts nothing said before by either side.

    An answer that says openly that it puts right what was said contradicts nothing.
    """

    called = "retention"

    def applies(self, case: Case) -> str:
        """Return why nothing was said before."""
        return "" if case.query.history else _FIRST

    def undefined(self, material: Material) -> str:
        """Return why there is nothing to keep in mind, or nothing said that could fail to."""
        if not said_before(material):
            return _FIRST
        return _SILENT if material.abstained and "?" not in material.answer else ""

    def criteria(self, material: Material) -> Sequence[str]:
        return () if self.undefined(material) else (ASKS_NOTHING_AGAIN, CONTRADICTS_NOTHING)


class Correction(TurnMeasure):
    """1 if the answer corrects what the turn wrongly takes for granted; the ground truth says what is right.

    An abstention corrects nothing: 0.
    """

    called = "correction"

    def applies(self, case: Case) -> str:
        """Return why there is nothing to correct."""
        return _missing(case, CORRECTION, _NO_CORRECTION)

    def undefined(self, material: Material) -> str:
        """Return the same for an answer."""
        if not _is(material, CORRECTION):
            return _NO_CORRECTION
        return "" if material.ground_truth.strip() else NO_GROUND_TRUTH

    def criteria(self, material: Material) -> Sequence[str]:
        is_asked = not self.undefined(material) and not says_nothing(material)
        return (with_truth(CORRECTS, material.ground_truth),) if is_asked else ()

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if says_nothing(material):
            return Score(0.0, "it says that it does not know, and corrects nothing")
        return await super().judge(material, opinion)


class AsksBack(TurnMeasure):
    """1 if the answer to an underspecified question asks back, or gives all cases."""

    called = "asks_back"

    def applies(self, case: Case) -> str:
        """Return why there is nothing to ask back."""
        return "" if UNDERSPECIFIED in kinds_of(case) else _SPECIFIED

    def undefined(self, material: Material) -> str:
        """Return the same for an answer."""
        return "" if _is(material, UNDERSPECIFIED) else _SPECIFIED

    def criteria(self, material: Material) -> Sequence[str]:
        return () if self.undefined(material) else (with_truth(ASKS_BACK, material.ground_truth),)


class FaithfulnessMtrag(JudgedMeasure):
    """Faithfulness behind MTRAG's gate: 1 or 0 where to decline, or to ask back, is right or wrong.

    Documents have no answer: 1 if it says so, else 0. They have one: 0 if it says that it does not know. Underspecified
    question: 1 if it asks back, else 0; an answer for each case does not count. Else ``faithfulness`` (Katsis et al.
    2025, arXiv 2501.03468, RL_F).
    """

    called = "faithfulness_mtrag"
    asks = (Support("answer", "contexts"), CRITERIA)
    needs: tuple[Need, ...] = ("answer", "retrieval")

    def undefined(self, material: Material) -> str:  # noqa: ARG002
        """Return nothing: each answer has a value."""
        return ""

    def without_context(self, material: Material) -> Score | None:
        """Return 0 where the answer's claims decide, which nothing supports."""
        is_decided = _is(material, UNDERSPECIFIED) or not material.answerable or material.abstained
        return None if is_decided else super().without_context(material)

    def criteria(self, material: Material) -> Sequence[str]:
        return (with_truth(ONLY_ASKS_BACK, material.ground_truth),) if _is(material, UNDERSPECIFIED) else ()

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if asked := self.criteria(material):
            return score_of(await criteria_met(opinion, asked))
        if not material.answerable:
            return Score(float(material.abstained), "" if material.abstained else "it answers what no document has")
        if material.abstained:
            return Score(0.0, "it says that it does not know, and the documents have it")
        return supported_share(await opinion.supported("answer", "contexts"), "answer")


def _is(material: Material, kind: str) -> bool:
    return isinstance(material, MaterialOfTurn) and kind in material.kinds


def _missing(case: Case, kind: str, otherwise: str) -> str:
    if kind not in kinds_of(case):
        return otherwise
    return "" if case.ground_truth.strip() else NO_GROUND_TRUTH
