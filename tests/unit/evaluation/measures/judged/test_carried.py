"""Claims that earlier contexts support: the formula, what is asked, and what is not known."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from rag_harness.core.types import Case, Query
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.judges.mock import MockJudge
from rag_harness.evaluation.measures import Score, measure_named, parts_of
from rag_harness.evaluation.measures.conversations import LATER, MOST_EARLIER, NO_EARLIER, CarriedMaterial, LateMeasure
from rag_harness.evaluation.measures.opinion import Claim, JudgeQuestion, Material, Verdict, Verdicts

SHORT = Material("?", "A. B. C. D.", ("now",))
SAID = Score(
    0.5,
    detail={"claims": [{"text": text, "value": value} for text, value in zip("ABCD", (1, 0.6, 0.4, 0), strict=True)]},
)


def measure() -> LateMeasure:
    found: Any = measure_named("carried_faithfulness")
    assert isinstance(found, LateMeasure)
    return found


class Told:
    """A judge that supports the claims as it is told, by their texts."""

    name, model, revision = "told", "told", "1"

    def __init__(self, **support: float | None) -> None:
        self._support = support
        self.asked: list[Material] = []

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Told:
        self.asked.append(material)
        return self

    async def supported(self, claims: str, source: str) -> Verdicts:
        assert (claims, source) == ("nuggets", "contexts")
        quotes = self.asked[-1].quotes
        return Verdicts(tuple(Verdict(Claim(each), self._support[each], passage=0, reason="why") for each in quotes))


def score(judge: Any, said: Score = SAID, earlier: Any = ((1, ("before",)),), given: Material = SHORT) -> Score:
    asked = measure().later(given, said, earlier)
    return asked if isinstance(asked, Score) else asyncio.run(judged(asked, [measure()], judge))["carried_faithfulness"]


def test_the_claims_that_are_not_supported_now_count_by_their_support_earlier() -> None:
    judge = Told(C=0.5, D=1)
    found = score(judge)
    # C: (1 - .4) · .5, D: (1 - 0) · 1, of four claims. B is more likely supported than not, and is not asked about.
    assert found.value == pytest.approx((0.6 * 0.5 + 1.0) / 4)
    (asked,) = judge.asked
    assert (asked.quotes, asked.contexts) == (("C", "D"), ("before",))
    assert [each["turn"] for each in found.detail["claims"]] == [1, 1]


def test_a_claim_without_a_verdict_leaves_no_score() -> None:
    found = score(Told(C=None, D=1))
    assert (found.value, found.undefined) == (None, False)
    assert "1 of 2 claims without a verdict: why" in found.reason


@pytest.mark.parametrize(
    ("said", "value", "reason", "undefined"),
    [
        (Score(None, "an abstention", undefined=True), None, "faithfulness: an abstention", True),
        (Score(None, "no verdict"), None, "faithfulness: no verdict", False),
        (Score(1.0, detail={"claims": [{"text": "A", "value": 1.0}]}), 0.0, "", False),
    ],
)
def test_where_nothing_has_to_be_asked(said: Score, value: float | None, reason: str, undefined: bool) -> None:
    found = score(Told(), said)
    assert (found.value, found.reason, found.undefined) == (value, reason, undefined)


def test_earlier_rows_that_are_not_known_are_no_zero() -> None:
    assert score(Told(), earlier="turn 1 has no row in this run") == Score(None, "turn 1 has no row in this run")
    # All was supported now: then nothing can have been carried over.
    assert score(Told(), Score(1.0, detail={"claims": []}), "turn 1 has no row").value == 0.0


def test_contexts_of_this_turn_and_doubles_are_not_asked_about_again() -> None:
    judge = Told(C=0, D=0)
    score(judge, earlier=[(2, ("now", "two")), (1, ("two", "one", " "))])
    (asked,) = judge.asked
    assert isinstance(asked, CarriedMaterial)
    assert (asked.contexts, asked.turns) == (("two", "one"), (2, 1))
    assert score(Told(), earlier=[(1, ("now",))]).value == 0.0


def test_what_is_too_much_to_be_read_leaves_no_score_unless_all_was_found() -> None:
    long = [(2, ("x" * (MOST_EARLIER - 10),)), (1, ("y" * 100,))]
    found = score(Told(C=1, D=0), earlier=long)
    assert found.value is None
    assert "100 characters of earlier contexts are beyond" in found.reason
    assert score(Told(C=1, D=1), earlier=long).value == pytest.approx(1.6 / 4)


def test_the_first_turn_has_none_and_a_row_alone_does_not_tell() -> None:
    assert measure().applies(Case(Query("q", "?"))) == NO_EARLIER
    alone = asyncio.run(judged(SHORT, [measure()], MockJudge()))["carried_faithfulness"]
    assert (alone.value, alone.reason) == (None, LATER)
    assert [each.name for each in parts_of(["carried_faithfulness"])] == ["faithfulness", "carried_faithfulness"]


def test_the_material_of_other_measures_is_not_touched() -> None:
    given = replace(SHORT, quotes=("a quote",))
    assert measure().later(given, SAID, [(1, ("before",))]) != given
    assert given.quotes == ("a quote",)
