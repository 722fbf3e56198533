"""Context precision and recall: values worked by hand, and a library's average precision as the oracle."""

from __future__ import annotations

from dataclasses import replace

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelOutputError
from rag_harness.evaluation.measures.judged import average_precision
from rag_harness.evaluation.measures.opinion import Material, Support
from tests.unit.evaluation.measures.judged.opinions import FULL, Told, score, verdicts

PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def precision(*useful: float | None) -> tuple[float | None, str]:
    said = score("context_precision", Told(useful=useful), replace(FULL, contexts=("chunk",) * len(useful)))
    return said.value, said.reason


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ((1.0,), 1.0),
        ((1.0, 1.0, 1.0), 1.0),
        ((0.0, 0.0), 0.0),
        ((0.0, 1.0), 1 / 2),
        ((1.0, 0.0, 1.0), (1 + 2 / 3) / 2),
        ((0.0, 1.0, 1.0, 0.0, 1.0), (1 / 2 + 2 / 3 + 3 / 5) / 3),
        ((0.5, 0.5), 0.5),
        ((0.8, 0.4), (0.8 * 0.8 + 0.6 * 0.4) / 1.2),
    ],
)
def test_precision_is_ragas_formula(useful: tuple[float, ...], expected: float) -> None:
    value, reason = precision(*useful)
    assert value == pytest.approx(expected, abs=1e-12)
    assert reason == ""


@given(st.lists(st.booleans(), min_size=1, max_size=12).filter(any))
def test_of_yes_and_no_it_is_trec_evals_average_precision(useful: list[bool]) -> None:
    relevant = [ir_measures.Qrel("q", str(place), int(is_useful)) for place, is_useful in enumerate(useful)]
    run = [ir_measures.ScoredDoc("q", str(place), float(-place)) for place in range(len(useful))]
    expected = ir_measures.calc_aggregate([ir_measures.AP], relevant, run)[ir_measures.AP]
    assert average_precision([float(is_useful) for is_useful in useful]) == pytest.approx(expected, abs=1e-6)


@given(PROBABILITIES)
def test_it_is_a_share_and_better_where_the_useful_stand_above(useful: list[float]) -> None:
    best, worst = average_precision(sorted(useful, reverse=True)), average_precision(sorted(useful))
    assert 0 <= worst <= average_precision(useful) + 1e-9
    assert average_precision(useful) <= best + 1e-9 <= 1 + 1e-9


def test_a_chunk_without_a_verdict_leaves_no_score() -> None:
    assert precision(1.0, None, None) == (None, "2 of 3 chunks without a verdict: cut off")
    assert precision(1.0, 2.0) == (None, "1 of 2 chunks without a verdict: 2 is not in [0, 1]")
    assert precision(float("nan")) == (None, "1 of 1 chunks without a verdict: nan is not in [0, 1]")


@pytest.mark.parametrize("useful", [(), (1.0,), (1.0, 1.0, 1.0)])
def test_each_chunk_is_judged_once(useful: tuple[float, ...]) -> None:
    with pytest.raises(ModelOutputError, match=f"{len(useful)} verdicts for 2 chunks"):
        score("context_precision", Told(useful=useful))


def test_an_abstention_does_not_change_what_was_retrieved() -> None:
    away: Material = replace(FULL, abstained=True, answer="")
    assert score("context_precision", Told(useful=(1.0, 0.0)), away).value == 1.0
    assert score("context_recall", Told({Support("ground_truth", "contexts"): verdicts(1, 0)}), away).value == 0.5
