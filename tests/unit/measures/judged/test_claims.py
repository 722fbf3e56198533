"""Measures of claims by one source at a time: faithfulness, factuality, context recall, correctness."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.judged import JudgedMeasure, supported_share
from rag_harness.evaluation.measures.opinion import Claim, Material, Support, Verdict, Verdicts
from tests.unit.measures.judged.opinions import FULL, Told, score, verdicts

SHARES = {
    "faithfulness": Support("answer", "contexts"),
    "factuality": Support("answer", "gold_pages"),
    "context_recall": Support("ground_truth", "contexts"),
}
PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def correctness(said: Verdicts, wanted: Verdicts) -> Score:
    asked = {Support("answer", "ground_truth"): said, Support("ground_truth", "answer"): wanted}
    return score("answer_correctness", Told(asked))


@pytest.mark.parametrize(("name", "ask"), SHARES.items())
def test_a_share_is_supported_claims_by_claims(name: str, ask: Support) -> None:
    assert score(name, Told({ask: verdicts(1, 0, 1, 1)})).value == 0.75
    assert score(name, Told({ask: verdicts(0.5, 0.25)})).value == 0.375
    assert score(name, Told({ask: verdicts(1, 0, share=0.9)})).value == 0.9


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (verdicts(), "no claim in the answer"),
        (verdicts(1, None, 0, None), "2 of 4 claims without a verdict: cut off"),
        (verdicts(1, None, share=0.9), "1 of 2 claims without a verdict: cut off"),
        (verdicts(1, 2), "1 of 2 claims without a verdict: 2 is not in [0, 1]"),
        (verdicts(-1.0), "1 of 1 claims without a verdict: -1 is not in [0, 1]"),
        (verdicts(1, float("nan")), "1 of 2 claims without a verdict: nan is not in [0, 1]"),
        (verdicts(1, share=1.5), "share 1.5 is not in [0, 1]"),
        (verdicts(1, share=float("nan")), "share nan is not in [0, 1]"),
    ],
)
def test_a_denominator_never_shrinks(found: Verdicts, reason: str) -> None:
    said = supported_share(found, "answer")
    assert (said.value, said.reason, said.undefined) == (None, reason, False)
    assert len(said.detail["claims"]) == len(found.each)


def test_where_a_claim_stands_is_told_of_those_that_stand_in_the_text() -> None:
    found = [Verdict(Claim("a", 0, 1), 1.0), Verdict(Claim("b", 4, 5), 1.0), Verdict(Claim("in its own words"), 1.0)]
    told = supported_share(Verdicts(tuple(found)), "answer").detail["claims"]
    assert [(claim.get("start"), claim.get("end")) for claim in told] == [(0, 1), (4, 5), (None, None)]
    assert (found[2].claim.start, found[2].claim.end) == (-1, -1)


def test_a_measure_that_cannot_judge_is_none() -> None:
    class Half(JudgedMeasure):
        called = "half"

        def undefined(self, material: Material) -> str:
            return ""

    with pytest.raises(TypeError, match="judge"):
        Half()  # type: ignore[abstract]


def test_five_thousand_claims_are_5000_claims() -> None:
    assert supported_share(verdicts(*[1.0] * 4999, 0.0), "answer").value == pytest.approx(4999 / 5000)


@given(PROBABILITIES, st.data())
def test_more_support_is_never_less_score(values: list[float], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    raised = [*values[:place], 1.0, *values[place + 1 :]]
    before, after = (supported_share(verdicts(*said), "answer").value for said in (values, raised))
    assert before is not None
    assert after is not None
    assert 0 <= before <= after + 1e-12 <= 1 + 1e-12


def test_correctness_is_f1_of_both_directions() -> None:
    said = correctness(verdicts(1, 0), verdicts(1, 1, 0, 1))
    assert said.value == pytest.approx(2 * 0.5 * 0.75 / 1.25)
    assert (said.detail["precision"], said.detail["recall"]) == (0.5, 0.75)
    assert [len(said.detail[claims]) for claims in ("claims", "ground_truth")] == [2, 4]
    assert correctness(verdicts(0, 0), verdicts(0)).value == 0.0
    assert correctness(verdicts(1), verdicts(1)).value == 1.0


def test_correctness_needs_both_directions() -> None:
    assert correctness(verdicts(), verdicts(1)).reason == "no claim in the answer"
    assert correctness(verdicts(1), verdicts()).reason == "no claim in the ground truth"
    half = correctness(verdicts(1, None), verdicts(1))
    assert (half.value, half.reason) == (None, "1 of 2 claims without a verdict: cut off")
    assert (half.detail["precision"], half.detail["recall"]) == (None, 1.0)


@given(PROBABILITIES, PROBABILITIES)
def test_f1_lies_between_its_halves(said: list[float], wanted: list[float]) -> None:
    found = correctness(verdicts(*said), verdicts(*wanted))
    halves = sorted((found.detail["precision"], found.detail["recall"]))
    assert found.value is not None
    assert halves[0] - 1e-9 <= found.value <= halves[1] + 1e-9


@pytest.mark.parametrize("changed", [{"abstained": True}, {"answer": ""}])
def test_who_says_nothing_says_nothing_right(changed: dict[str, object]) -> None:
    assert score("answer_correctness", Told(), replace(FULL, **changed)).value == 0.0  # type: ignore[arg-type]
