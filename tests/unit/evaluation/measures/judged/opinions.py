"""A judge that returns the opinions of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.evaluation.measures import Score, measure_named
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.opinion import (
    Claim,
    ClaimedText,
    Material,
    Relevancy,
    Support,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
)

FULL = Material(
    question="What does it cost?",
    answer="It costs 5 euros.",
    contexts=("The price is 5 euros.", "Ships in 2 days."),
    ground_truth="5 euros.",
    gold_pages=("The price is 5 euros.",),
    quotes=("The price is 5 euros.",),
)


def verdicts(*values: float | None, share: float | None = None, texts: Sequence[str] = ()) -> Verdicts:
    """Return verdicts on claims c0, c1, …, or on ``texts``."""
    named = texts or [f"c{place}" for place in range(len(values))]
    said = zip(named, values, strict=True)
    return Verdicts(
        tuple(Verdict(Claim(text), v, reason="" if v is not None else "cut off") for text, v in said), share
    )


@dataclass
class Told:
    """An opinion; a question that no test has answered raises KeyError, for it was not to be put."""

    claims: Mapping[Support, Verdicts] = field(default_factory=dict)
    useful: Sequence[float | None] = ()
    relevant: Relevancy | None = None

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        await asyncio.sleep(0)
        return self.claims[Support(claims, source)]

    async def usefulness(self) -> Sequence[Usefulness]:
        return [Usefulness(value, "" if value is not None else "cut off") for value in self.useful]

    async def relevancy(self) -> Relevancy:
        if self.relevant is None:
            raise KeyError("relevancy")
        return self.relevant


def judged_measure(name: str) -> JudgedMeasure:
    measure: object = measure_named(name)
    assert isinstance(measure, JudgedMeasure)
    return measure


def score(name: str, told: Told, material: Material = FULL) -> Score:
    """Return the score of a measure that is defined for ``material``."""
    measure = judged_measure(name)
    assert measure.undefined(material) == ""
    return asyncio.run(measure.judge(material, told))
