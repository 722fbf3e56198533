"""Agreement of a judge with itself over repeats."""

from __future__ import annotations

import pytest

from rag_harness.evaluation.judges.calibration.agreement import Repeatability, repeatability


def test_a_judge_that_wavers() -> None:
    found = repeatability({"a": [1.0, 1.0, 0.0], "b": [0.2, 0.3, 0.1], "c": [0.9, None, 0.8], "d": [None, 1.0, None]})
    assert found.flips == pytest.approx((2 / 3 + 0 + 0) / 3)
    assert (found.n, found.missing) == (3, 3)
    assert found.alpha is not None
    assert (
        found.line() == f"judged again: 22.2% of verdicts flip, α {found.alpha:.2f}  n=3, 3 judgements without a score"
    )


def test_a_judge_of_one_mind() -> None:
    assert repeatability({"a": [1.0, 1.0], "b": [0.0, 0.0]}) == Repeatability(0.0, 1.0, 2, 0)
    assert repeatability({"a": [1.0, 1.0]}).line() == (
        "judged again: 0.0% of verdicts flip, α not defined: everybody says 1 of everything  n=1"
    )


@pytest.mark.parametrize("scores", [{}, {"a": [1.0]}, {"a": [None, None]}])
def test_nothing_to_compare(scores: dict[str, list[float | None]]) -> None:
    found = repeatability(scores)  # type: ignore[arg-type]
    assert (found.flips, found.alpha, found.n) == (None, None, 0)
    assert found.line().startswith("judged again: nothing to compare, no item has two values")


def test_two_judgements_that_disagree_always() -> None:
    found = repeatability({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    assert found.flips == 1
    assert found.alpha is not None
    assert found.alpha < 0
