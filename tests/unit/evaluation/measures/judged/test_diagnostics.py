"""RAGChecker's diagnostics: of yes and no exactly the counts, of probabilities their expected values."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelOutputError
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.opinion import Support, Verdicts
from tests.unit.evaluation.measures.judged.opinions import FULL, Told, score, verdicts

NAMES = ("noise_sensitivity", "self_knowledge")
PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=10)


def of_answer(name: str, right: Verdicts, found: Verdicts) -> Score:
    return score(name, Told({Support("answer", "ground_truth"): right, Support("answer", "contexts"): found}))


def utilisation(found: Verdicts, said: Verdicts, **changed: bool) -> Score:
    told = Told({Support("ground_truth", "contexts"): found, Support("ground_truth", "answer"): said})
    return score("context_utilisation", told, replace(FULL, **changed))  # type: ignore[arg-type]


def test_the_four_kinds_of_claims() -> None:
    right, found = verdicts(1, 1, 0, 0, 0), verdicts(1, 0, 1, 1, 0)
    assert of_answer("noise_sensitivity", right, found).value == pytest.approx(2 / 5)
    assert of_answer("self_knowledge", right, found).value == pytest.approx(1 / 5)
    assert utilisation(verdicts(1, 1, 1, 0), verdicts(1, 0, 1, 1)).value == pytest.approx(2 / 3)


@given(PAIRS)
def test_of_yes_and_no_they_are_counts(pairs: list[tuple[int, int]]) -> None:
    first, second = (verdicts(*column) for column in zip(*pairs, strict=True))
    assert of_answer("noise_sensitivity", first, second).value == pytest.approx(pairs.count((0, 1)) / len(pairs))
    assert of_answer("self_knowledge", first, second).value == pytest.approx(pairs.count((1, 0)) / len(pairs))
    there = pairs.count((1, 0)) + pairs.count((1, 1))
    expected = pairs.count((1, 1)) / there if there else None
    assert utilisation(first, second).value == pytest.approx(expected or 0.0)


def test_of_probabilities_they_are_expected_values() -> None:
    right, found = (0.3, 0.9), (0.6, 0.2)
    worlds = list(product((0, 1), repeat=4))
    chances = [_chance(world, (*right, *found)) for world in worlds]
    noise = sum(p * ((1 - a) * c + (1 - b) * d) / 2 for p, (a, b, c, d) in zip(chances, worlds, strict=True))
    assert of_answer("noise_sensitivity", verdicts(*right), verdicts(*found)).value == pytest.approx(noise)
    own = sum(p * (a * (1 - c) + b * (1 - d)) / 2 for p, (a, b, c, d) in zip(chances, worlds, strict=True))
    assert of_answer("self_knowledge", verdicts(*right), verdicts(*found)).value == pytest.approx(own)


def _chance(world: tuple[int, ...], chances: tuple[float, ...]) -> float:
    chance = 1.0
    for is_so, of_it in zip(world, chances, strict=True):
        chance *= of_it if is_so else 1 - of_it
    return chance


def test_utilisation_of_nothing_is_0() -> None:
    said = utilisation(verdicts(0, 0), verdicts(1, 1))
    assert (said.value, said.reason, said.undefined) == (0.0, "no claim of the ground truth in the context", False)


def test_an_abstention_uses_nothing_of_its_context() -> None:
    assert utilisation(verdicts(1, 1), verdicts(1, 1), abstained=True).value == 0.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", [verdicts(1), verdicts(1, 1, 1), verdicts(1, 1, texts=["c1", "c0"])])
def test_verdicts_on_other_claims_are_named(name: str, other: Verdicts) -> None:
    expected = rf"other claims: 2 and {len(other.each)}"
    with pytest.raises(ModelOutputError, match=f"ground_truth and contexts were judged on {expected}"):
        of_answer(name, verdicts(1, 0), other)
    with pytest.raises(ModelOutputError, match=f"contexts and answer were judged on {expected}"):
        utilisation(verdicts(1, 0), other)


def test_a_claim_without_a_verdict_leaves_no_score() -> None:
    whole, half, none = verdicts(1, 1), verdicts(1, None), verdicts()
    reason = "1 of 2 claims without a verdict: cut off"
    for name in NAMES:
        assert [of_answer(name, *pair).reason for pair in ((whole, half), (half, whole))] == [reason, reason]
        assert of_answer(name, none, none).reason == "no claim in the answer"
    assert [utilisation(*pair).reason for pair in ((whole, half), (half, whole))] == [reason, reason]
    assert utilisation(none, none).reason == "no claim in the ground truth"


def test_the_detail_has_each_claim_with_both_verdicts() -> None:
    claims = of_answer("noise_sensitivity", verdicts(1, 0), verdicts(0, 1)).detail["claims"]
    assert [(claim["ground_truth"]["value"], claim["contexts"]["value"]) for claim in claims] == [(1, 0), (0, 1)]
    assert [claim["text"] for claim in claims] == ["c0", "c1"]
