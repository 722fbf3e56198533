"""Measures of an answer to a turn of a conversation.

Retention, correction, questions back and claims of earlier turns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from rag_harness.core.types import Case
from rag_harness.evaluation.measures.judged import JudgedMeasure, supported_share, unusable, verdict_detail
from rag_harness.evaluation.measures.measure import Need, Score
from rag_harness.evaluation.measures.opinion import (
    ASKS_BACK,
    ASKS_NOTHING_AGAIN,
    CONTRADICTS_NOTHING,
    CORRECTION,
    CORRECTS,
    CRITERIA,
    FOUND_NOTHING,
    NO_GROUND_TRUTH,
    ONLY_ASKS_BACK,
    UNDERSPECIFIED,
    Material,
    MaterialOfTurn,
    Opinion,
    Support,
    criteria_met,
    kinds_of,
    said_before,
    says_nothing,
    score_of,
    with_truth,
)

# Measures of an answer to a turn of a conversation, beside those that any answer has.
#
# The words of the criteria that a judge is asked are in ``opinion``.

_FIRST = "nothing said before"
_NO_CORRECTION = "no wrong premise (turn_kind is not correction)"
_SPECIFIED = "a question that says what it is about (turn_kind is not underspecified)"
_SILENT = "an abstention that asks nothing: it repeats nothing and contradicts nothing"


class TurnMeasure(JudgedMeasure):
    """A measure by criteria about an answer to a turn; 1 where all are met, else 0."""

    asks = (CRITERIA,)

    @abstractmethod
    def criteria(self, material: Material) -> Sequence[str]:
        """Return the criteria that are asked about an answer."""

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        return score_of(await criteria_met(opinion, self.criteria(material)))


class Retention(TurnMeasure):
    """1 if the answer asks for nothing that the user has said, and contradicts nothing said before by either side.

    An answer that openly corrects an earlier message contradicts nothing.
    """

    called = "retention"

    def applies(self, case: Case) -> str:
        """Return why the turn has no earlier messages."""
        return "" if case.query.history else _FIRST

    def undefined(self, material: Material) -> str:
        """Return why earlier messages are missing, or the answer states nothing."""
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


# Claims that an answer carries over from earlier turns: nothing that was retrieved for this turn supports them.
#
# Faithfulness counts them as unsupported, and stays as it is: it is of this turn's contexts alone. Whether an earlier
# context supports them needs the rows of earlier turns, so it is worked out when all of them are there.

MOST_EARLIER = 60_000
"""Most characters of earlier contexts that a judge is given, those of the newest turns first."""
NO_EARLIER = "no earlier turn"
LATER = "it is worked out after the last test, when the rows of earlier turns are there"
_SUPPORTED_FROM = 0.5

EarlierContexts = Sequence[tuple[int, Sequence[str]]]
"""Contexts of earlier turns, each with its number, the newest first."""


@dataclass(frozen=True, slots=True)
class CarriedMaterial(Material):
    """Claims of an answer, as quotes, and contexts of earlier turns.

    Attributes:
        claims: the detail of faithfulness for each quote: plain JSON.
        all_claims: number of all claims of the answer.
        turns: the turn of each context.
        left_out: characters of earlier contexts that were too much to be given.
    """

    claims: tuple[Mapping[str, Any], ...] = ()
    all_claims: int = 0
    turns: tuple[int, ...] = ()
    left_out: int = 0


class LateMeasure(JudgedMeasure):
    """A judged measure whose scores are worked out after the last test, from those of another one and earlier rows."""

    builds_on: ClassVar[str]
    """The judged measure whose scores it needs."""

    @abstractmethod
    def later(self, material: Material, said: Score, earlier: EarlierContexts | str) -> Material | Score:
        """Return the material of a judge, or the score where it need not be asked.

        Args:
            material: the answer.
            said: its score of the measure on which this one is based.
            earlier: contexts of earlier turns, or why they are not known.
        """


class CarriedFaithfulness(LateMeasure):
    """Claims of the answer that this turn's context does not support and an earlier turn's does / claims.

    Σ (1 - p) · q over the claims with p < ½, by their support p now and q earlier. Beside ``faithfulness``, which it
    does not touch.
    """

    called = "carried_faithfulness"
    builds_on = "faithfulness"
    asks = (Support("nuggets", "contexts"),)
    better, worst = "lower", 1.0
    needs = ("answer", "retrieval")

    def applies(self, case: Case) -> str:
        """Return why an earlier turn is missing."""
        return "" if case.query.history else NO_EARLIER

    def undefined(self, material: Material) -> str:  # noqa: ARG002 - ``later`` says so
        return ""

    def later(self, material: Material, said: Score, earlier: EarlierContexts | str) -> Material | Score:
        if said.value is None:
            return Score(None, f"faithfulness: {said.reason}", undefined=said.undefined)
        if said.reason == FOUND_NOTHING:
            return Score(None, "its claims were not looked at, because the turn has no context")
        claims: Sequence[Mapping[str, Any]] = said.detail.get("claims", ())
        missing = [each for each in claims if each["value"] < _SUPPORTED_FROM]
        if not missing:
            return Score(0.0, detail={"claims": []})
        if isinstance(earlier, str):
            return Score(None, earlier)
        turns, texts, left_out = _within(earlier, frozenset(material.contexts))
        if not texts:
            return Score(0.0, detail={"claims": [{**each, "value": 0.0} for each in missing]})
        plain = {each.name: getattr(material, each.name) for each in fields(Material)}
        plain |= {"contexts": texts, "quotes": tuple(each["text"] for each in missing)}
        return CarriedMaterial(**plain, claims=tuple(missing), all_claims=len(claims), turns=turns, left_out=left_out)

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if not isinstance(material, CarriedMaterial):
            return Score(None, LATER)
        found = await opinion.supported("nuggets", "contexts")
        claims = [
            {**verdict_detail(verdict), **_place(claim), **_turn(material, verdict.passage)}
            for claim, verdict in zip(material.claims, found.each, strict=True)
        ]
        if why := unusable(found, "answer"):
            return Score(None, why, {"claims": claims})
        values = [verdict.value or 0.0 for verdict in found.each]
        if material.left_out and min(values) < _SUPPORTED_FROM:
            why = f"{material.left_out:,} characters of earlier contexts are beyond the {MOST_EARLIER:,} that are read"
            return Score(None, why, {"claims": claims})
        carried = sum((1 - claim["value"]) * value for claim, value in zip(material.claims, values, strict=True))
        return Score(carried / material.all_claims, detail={"claims": claims})


def _within(earlier: EarlierContexts, now: frozenset[str]) -> tuple[tuple[int, ...], tuple[str, ...], int]:
    """Return turn and text of each earlier context that this turn does not have, once, and the characters left out."""
    found: dict[str, int] = {}
    for turn, texts in earlier:
        for text in texts:
            if text.strip() and text not in now:
                found.setdefault(text, turn)
    room, kept = MOST_EARLIER, dict[str, int]()
    for text, turn in found.items():
        room -= len(text)
        if room < 0:
            break
        kept[text] = turn
    return tuple(kept.values()), tuple(kept), sum(map(len, found)) - sum(map(len, kept))


def _place(claim: Mapping[str, Any]) -> dict[str, Any]:
    return {name: claim[name] for name in ("start", "end") if name in claim}


def _turn(material: CarriedMaterial, passage: int | None) -> dict[str, int]:
    return {} if passage is None else {"turn": material.turns[passage]}
