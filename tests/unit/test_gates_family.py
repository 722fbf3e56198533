"""Gates that are judged together: Holm's steps, checked against Holm's p-values."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from rag_harness.runs.gates import judge, parse_gate
from rag_harness.runs.gates.evidence import judged_together
from rag_harness.stats import holm
from rag_harness.stats.distributions import binomial_distribution
from tests.unit.test_gates import Scores, of

N = 60


def p_of(right: int, threshold: float) -> float:
    """Return the smaller of both one-sided p-values, that of a gate on a share that passes or fails."""
    at_most = binomial_distribution(N, threshold)
    above = 1 - at_most[right - 1] if right else 1.0
    return min(float(above), float(at_most[right]))


@pytest.fixture
def without_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out how many cases more would settle a gate: no verdict hangs on it, and it is most of the time."""
    monkeypatch.setattr("rag_harness.runs.gates.evidence._needed", lambda *_: None)


@pytest.mark.usefixtures("without_forecast")
@pytest.mark.parametrize("seed", range(5))
def test_what_is_decided_is_what_holm_rejects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rights = rng.binomial(N, 0.8, 12)
    suites = {f"s{n}": of(*[1] * right, *[0] * (N - right)) for n, right in enumerate(rights)}
    gates = [parse_gate(f"s{n}: recall@5 >= 0.65 @95%", 5) for n in range(12)]
    adjusted = holm([p_of(int(right), 0.65) for right in rights])
    found = judged_together(gates, 0.95, lambda gate: judge(gate, suites))
    assert [verdict.state != "undecided" for verdict in found] == [p <= 0.05 for p in adjusted]
    assert all(verdict.gate == gate for verdict, gate in zip(found, gates, strict=True))
    assert {verdict.family for verdict in found} == {12}


def test_one_gate_is_judged_as_by_itself() -> None:
    suites = {"e3": of(*[1] * 36, *[0] * 4)}
    gate = parse_gate("e3: recall@5 >= 0.75 @95%", 5)
    (found,) = judged_together([gate], 0.95, lambda each: judge(each, suites))
    assert replace(found, family=0) == judge(gate, suites)


def test_what_asks_for_no_evidence_or_is_not_in_the_run_takes_no_part() -> None:
    suites = {"e3": of(*[1] * 36, *[0] * 4), "e4": of(*[1] * 38, *[0] * 2)}
    texts = (
        "e3: recall@5 >= 0.75 @99%",
        "e3: recall@5 >= 0.9",
        "e9: recall@5 >= 0.9 @95%",
        "e4: recall@5 >= 0.75 @95%",
    )
    found = judged_together([parse_gate(text, 5) for text in texts], 0.95, lambda gate: judge(gate, suites))
    assert [(verdict.state, verdict.family) for verdict in found] == [
        ("passed", 2),
        ("passed", 0),
        ("not judged", 0),
        ("passed", 2),
    ]
    assert str(found[0].gate) == "e3: recall@5 >= 0.75 @95%"
    assert found[0].reason == "at least 0.763 for cases like these, together with 1 other gate"
    assert found[3].reason.startswith("at least 0.831 for cases like these")


def test_the_interval_beside_a_gate_is_no_narrower_than_its_bounds() -> None:
    suites: dict[str, Scores] = {f"s{n}": of(*[1] * 45, *[0] * 15) for n in range(8)}
    gates = [parse_gate(f"s{n}: recall@5 >= 0.7 @95%", 5) for n in range(8)]
    for verdict in judged_together(gates, 0.95, lambda gate: judge(gate, suites)):
        assert verdict.state == "undecided"
        assert verdict.interval == verdict.bounds
        assert verdict.reason.endswith("would settle it, together with 7 other gates")


@pytest.mark.usefixtures("without_forecast")
def test_ten_gates_at_their_thresholds_are_rarely_wrong_together() -> None:
    """By themselves one of them is decided in about half of the runs (docs/dev/results/verdicts.md, many gates)."""
    rng, wrong = np.random.default_rng(0), {"alone": 0, "together": 0}
    gates = [parse_gate(f"s{n}: recall@5 >= 0.8 @95%", 5) for n in range(10)]

    for _ in range(12):
        suites = {f"s{n}": of(*(rng.random(100) < 0.8).astype(float)) for n in range(10)}
        judged = cache(partial(judge, suites=suites))
        wrong["alone"] += any(judged(gate).state != "undecided" for gate in gates)
        wrong["together"] += any(each.state != "undecided" for each in judged_together(gates, 0.95, judged))
    assert wrong["alone"] >= 4
    assert wrong["together"] <= 1
