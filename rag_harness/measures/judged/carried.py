"""Claims that an answer carries over from earlier turns: nothing that was retrieved for this turn supports them.

Faithfulness counts them as unsupported, and stays as it is: it is of this turn's contexts alone. Whether an earlier
context supports them needs the rows of earlier turns, so it is worked out when all of them are there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from rag_harness.measures.judged.measure import JudgedMeasure, unusable, verdict_detail
from rag_harness.measures.judged.opinion import Material, Opinion, Support
from rag_harness.measures.judged.reasons import FOUND_NOTHING
from rag_harness.measures.measure import Score
from rag_harness.types import Case

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
        claims: of each quote, what faithfulness said of it: plain JSON.
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
        """Return what a judge is asked about, or the score where it need not be asked.

        Args:
            material: the answer.
            said: its score of the measure that this one builds on.
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
        """Return why there is no earlier turn."""
        return "" if case.query.history else NO_EARLIER

    def undefined(self, material: Material) -> str:  # noqa: ARG002 - ``later`` says so
        return ""

    def later(self, material: Material, said: Score, earlier: EarlierContexts | str) -> Material | Score:
        if said.value is None:
            return Score(None, f"faithfulness: {said.reason}", undefined=said.undefined)
        if said.reason == FOUND_NOTHING:
            return Score(None, "its claims were not looked at, for the turn has no context")
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
