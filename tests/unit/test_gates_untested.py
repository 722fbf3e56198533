"""A gate of a run that was stopped fails only where no other answers could save it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.runs.gates import parse_gate
from rag_harness.runs.gates.early_stopping import fails_anyway


@pytest.mark.parametrize(
    ("text", "values", "left", "fails"),
    [
        ("e3: recall@5 >= 0.8", [0.0], 4, False),
        ("e3: recall@5 >= 0.8", [0.0, 0.0], 4, True),
        ("e3: recall@5 > 0.8", [0.0], 4, True),
        ("e3: error_rate <= 0.2", [1.0], 4, False),
        ("e3: error_rate <= 0.2", [1.0, 1.0], 4, True),
        ("e3: recall@5 >= 0.8", [], 4, False),
        ("e3: recall@5 >= 0.8 @95%", [0.0, 0.0], 4, False),
        ("e3: p50(recall@5) >= 0.8", [0.0, 0.0], 4, False),
        ("e3: recall@5 >= baseline", [0.0, 0.0], 4, False),
    ],
)
def test_by_hand(text: str, values: list[float], left: int, fails: bool) -> None:
    assert fails_anyway(parse_gate(text, 5), values, left, "share") is fails


def test_times_have_no_best_value() -> None:
    assert not fails_anyway(parse_gate("e3: total_ms <= 1", 5), [5.0, 5.0], 1, "ms")


@given(
    st.sampled_from([">=", ">", "<=", "<"]),
    st.floats(0, 1),
    st.lists(st.floats(0, 1), min_size=1, max_size=8),
    st.lists(st.floats(0, 1), max_size=8),
)
def test_what_fails_anyway_fails_with_any_other_answers(
    op: str, limit: float, values: list[float], others: list[float]
) -> None:
    gate = parse_gate(f"e3: recall@5 {op} {limit:.6f}", 5)
    if fails_anyway(gate, values, len(others), "share"):
        mean, bound = sum(values + others) / len(values + others), float(f"{limit:.6f}")
        margin = 1e-9
        assert mean < bound + margin if ">" in op else mean > bound - margin
