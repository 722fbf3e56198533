"""Gates that need evidence: neither green nor red on what the cases do not show, with what would settle it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.evaluation.judges.calibration.agreement import (
    CalibrationSubject,
    JudgeScores,
    calibrate,
    save_calibration,
)
from rag_harness.evaluation.judges.calibration.labels import AnswerLabel, read_scored
from rag_harness.evaluation.measures import measure_named
from rag_harness.records.scores import Author, row_digest
from rag_harness.runs.gates import Gate as GatesGate
from rag_harness.runs.gates import GateRules, Verdict, check_gate, judge, parse_gate, verdict_lines
from rag_harness.runs.gates.configuration import read_gates
from rag_harness.runs.gates.evidence import PeoplesMean, corrections, decided, judged_together
from rag_harness.runs.gates.grammar import Gate, Reference
from rag_harness.stats import difference_bounds, holm, mean_bounds, quantile_interval
from rag_harness.stats.distributions import binomial_distribution
from tests.unit.evaluation.judges.calibration.runs import JUDGE, write_judged, write_run_file
from tests.unit.runs.gates.test_gates import KNOWN, Scores, gates, of

SHARES = [0.5, 1.0, 0.75, 1.0, 0.25] * 20


def weigh(text: str, rules: GateRules | None = None, partial: bool = False, **suites: Scores) -> Verdict:
    gate = parse_gate(text, 5)
    return judge(gate, suites, partial, None, measure_named(gate.measure).unit, rules=rules)


@given(gates, st.sampled_from([90.0, 95.0, 97.5, 99.9]))
def test_the_text_of_a_gate_with_confidence_parses_back_to_it(gate: Gate, confidence: float) -> None:
    gate = replace(gate, confidence=confidence, quantile=None)
    assert parse_gate(str(gate), 3) == gate
    for test in ("paired", "robust") if isinstance(gate.right, Reference) else ():
        asked = replace(gate, test=test)
        assert parse_gate(str(asked), 3) == asked


@pytest.mark.parametrize("text", ["e3: recall@5 >= 0.7 @95%", "e3:recall@5>=0.7@95%", "e3: recall@k >= .7 @ 95 %"])
def test_how_a_confidence_is_written(text: str) -> None:
    gate = parse_gate(text, 5)
    assert gate.confidence == 95
    assert str(gate) == "e3: recall@5 >= 0.7 @95%"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("e3: recall@5 >= 0.7 @95", "a confidence is in per cent; write @95%"),
        ("e3: recall@5 >= 0.7 @0.95", "a confidence is in per cent; write @95%"),
        ("e3: recall@5 >= 0.7 @0%", "above 50 % and below 100 %; 0 does not"),
        ("e3: recall@5 >= 0.7 @50%", "above 50 % and below 100 %; 50 does not"),
        ("e3: recall@5 >= 0.7 @100%", "above 50 % and below 100 %; 100 does not"),
        ("e3: recall@5 >= 0.7 @1.2.3%", "'1.2.3' behind '@' is not a confidence"),
        ("e3: p95(total_ms) <= e2 @95%", "a quantile against e2 has no bounds"),
        ("e3: recall@5 >= 0.7 @95% paired", "'paired' compares with another experiment"),
        ("e3: recall@5 >= 0.7 @95% robust", "'robust' compares with another experiment"),
        ("e3: recall@5 > e2 robust", "'e2 robust' on the right is not a number"),
        ("e3: recall@5 > e2 @95% else do it @95% robust", "a confidence stands before 'else'"),
        ("e3: recall@5 >= e2 paired", "'e2 paired' on the right is not a number"),
        ("e3: recall@5 >= e2 @95% else do it @95% paired", "a confidence stands before 'else'"),
    ],
)
def test_a_confidence_that_is_none_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem.replace("(", r"\(")):
        parse_gate(text, 5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("e3: recall@5 >= 1.2 @95%", "lies between 0 and 1; 1.2 does not"),
        ("e3: recall@5 >= e2 - 5 @95%", "differ by 1 at most; 5 is more"),
    ],
)
def test_a_threshold_outside_the_range_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        check_gate(parse_gate(text, 5), KNOWN)


@pytest.mark.parametrize(
    ("op", "bounds", "state"),
    [
        (">=", (0.7, 0.8), "passed"),
        (">", (0.7, 0.8), "undecided"),
        (">=", (0.6, 0.7), "undecided"),
        (">", (0.6, 0.7), "failed"),
        (">=", (0.6, 0.69), "failed"),
        ("<=", (0.6, 0.7), "passed"),
        ("<", (0.6, 0.7), "undecided"),
        ("<=", (0.7, 0.8), "undecided"),
        ("<", (0.7, 0.8), "failed"),
        ("<=", (0.71, 0.8), "failed"),
    ],
)
def test_both_bounds_decide(op: str, bounds: tuple[float, float], state: str) -> None:
    assert decided(bounds, op, 0.7) == state


def test_the_value_alone_does_not_decide() -> None:
    low, high = mean_bounds(SHARES, (0, 1))
    value = sum(SHARES) / len(SHARES)
    scores = of(*SHARES)
    for threshold, state in ((low - 0.01, "passed"), (value - 0.01, "undecided"), (high + 0.01, "failed")):
        found = weigh(f"e3: recall@5 >= {threshold} @95%", e3=scores)
        assert (found.state, found.value, found.bounds) == (state, value, (low, high))
        assert weigh(f"e3: recall@5 >= {threshold}", e3=scores).state == ("failed" if state == "failed" else "passed")


def test_more_confidence_asks_for_more() -> None:
    low, _ = mean_bounds(SHARES, (0, 1))
    assert weigh(f"e3: recall@5 >= {low - 0.001} @95%", e3=of(*SHARES)).state == "passed"
    assert weigh(f"e3: recall@5 >= {low - 0.001} @99.9%", e3=of(*SHARES)).state == "undecided"


def test_the_line_says_what_is_sure_of_what_and_what_would_settle_it() -> None:
    scores = of(*[1] * 36, *[0] * 4)
    assert weigh("e3: recall@5 >= 0.75 @95%", e3=scores).reason == "at least 0.786 for cases like these"
    assert weigh("e3: recall@5 >= 0.99 @95%", e3=scores).reason == "at most 0.965 for cases like these"
    open_ = weigh("e3: recall@5 >= 0.85 @95%", e3=scores)
    assert open_.reason == "0.786 to 0.965 for cases like these; about 256 more would settle it"
    even = weigh("e3: recall@5 >= 0.9 @95%", e3=scores)
    assert even.reason.endswith("; at the threshold no number of cases would settle it")
    lines = "\n".join(verdict_lines([weigh("e3: recall@5 >= 0.75 @95%", e3=scores), open_]))
    assert lines.split("\n") == [
        "passed      e3: recall@5 >= 0.75 @95%   0.900  n=40   at least 0.786 for cases like these",
        "undecided   e3: recall@5 >= 0.85 @95%   0.900  n=40",
        "            0.786 to 0.965 for cases like these; about 256 more would settle it",
    ]


@pytest.mark.parametrize(("right", "threshold"), [(9, 0.7), (1, 0.3)])
def test_how_many_more_hangs_on_the_bound_that_is_beyond_the_threshold(right: int, threshold: float) -> None:
    found = weigh(f"e3: recall@5 >= {threshold} @95%", e3=of(*[1] * right, *[0] * (10 - right)))
    assert found.reason.endswith("; about 23 more would settle it")


def test_not_inferior_is_about_the_paired_differences() -> None:
    rng = np.random.default_rng(0)
    e3 = rng.random(200).round(3)
    e4 = np.clip(e3 + rng.normal(0, 0.02, 200), 0, 1)
    found = weigh("e4: g_mean >= e3 - 0.05 @95%", e3=of(*e3), e4=of(*e4))
    assert found.state == "passed"
    assert found.bounds == mean_bounds(e4 - e3, (-1, 1))
    assert found.reason.startswith("difference at least -0.0")
    assert weigh("e4: g_mean >= e3 @95%", e3=of(*e3), e4=of(*e4)).state == "undecided"
    assert weigh("e4: g_mean >= e3 + 0.05 @95%", e3=of(*e3), e4=of(*e4)).state == "failed"


def test_better_is_asked_of_the_paired_test_and_no_worse_of_bounds_without_assumptions() -> None:
    rng = np.random.default_rng(0)
    e2 = rng.random(100).round(3) / 2
    e3 = (e2 + rng.normal(0.05, 0.05, 100)).clip(0, 1)
    first, second = of(*e2), of(*e3)
    better = weigh("e3: g_mean > e2 @95%", e2=first, e3=second)
    assert (better.state, better.bounds) == ("passed", difference_bounds(e3 - e2, (-1, 1)).interval)
    assert better.reason.startswith("difference at least 0.038")
    assert better.reason.endswith(
        "for cases like these, by the paired t test, if no large difference is rarer than 1 case in 25: 100 cases "
        "could miss it"
    )
    no_worse = weigh("e3: g_mean >= e2 @95%", e2=first, e3=second)
    assert (no_worse.state, no_worse.bounds) == ("passed", mean_bounds(e3 - e2, (-1, 1)))
    assert no_worse.reason.endswith("for cases like these")
    assert weigh("e3: g_mean >= e2 @95% paired", e2=first, e3=second).bounds == better.bounds
    worse = weigh("e2: g_mean < e3 - 0.02 @95%", e2=first, e3=second)
    assert (worse.state, worse.reason[:18]) == ("passed", "difference at most")


def test_what_the_paired_test_assumes_is_counted_in_clusters() -> None:
    rules = GateRules(clusters=lambda _: {f"q{n}": f"page {n // 5}" for n in range(200)})
    e2 = np.random.default_rng(0).random(200).round(3) / 2
    e3 = e2 + np.random.default_rng(1).normal(0.05, 0.05, 200).clip(-0.2, 0.2)
    found = weigh("e3: g_mean > e2 @95%", rules, e2=of(*e2), e3=of(*e3.clip(0, 1)))
    assert found.state == "passed"
    assert "if no large difference is rarer than 1 page in 10: 40 pages could miss it" in found.reason
    whole = replace(rules, population="finite")
    assert "could miss" not in weigh("e3: g_mean > e2 @95%", whole, e2=of(*e2), e3=of(*e3.clip(0, 1))).reason


def test_a_robust_gate_does_not_hold_what_a_rare_break_could_undo() -> None:
    rng = np.random.default_rng(0)
    e2 = rng.random(100).round(3) / 2
    e3 = e2 + rng.normal(0.02, 0.05, 100).clip(-0.1, 0.1)
    first, second = of(*e2), of(*e3.clip(0, 1))
    assert weigh("e3: g_mean > e2 @95%", e2=first, e3=second).state == "passed"
    robust = weigh("e3: g_mean > e2 @95% robust", e2=first, e3=second)
    assert (robust.state, robust.bounds) == ("undecided", mean_bounds(e3.clip(0, 1) - e2, (-1, 1)))
    assert "for cases like these, without assumptions; about" in robust.reason
    assert robust.interval == mean_bounds(e3.clip(0, 1) - e2, (-1, 1), 0.975)
    alike = weigh("e3: g_mean >= e2 @95% robust", e2=first, e3=second)
    assert alike.bounds == weigh("e3: g_mean >= e2 @95%", e2=first, e3=second).bounds


def test_a_robust_gate_on_values_without_a_range_is_undecided_and_says_why() -> None:
    gate = parse_gate("e3: total_ms < e2 @95% robust", 5)
    rng = np.random.default_rng(0)
    e2 = rng.normal(500, 20, 100)
    found = judge(gate, {"e2": of(*e2), "e3": of(*(e2 - rng.normal(50, 5, 100)))}, unit="ms")
    assert (found.state, found.bounds) == ("undecided", None)
    assert found.reason.startswith("total_ms has no range, so nothing is bounded without assumptions")


@pytest.mark.parametrize("word", ["", " robust"])
@pytest.mark.parametrize(
    ("e2", "e3", "said"),
    [
        ([0.1, 0.2], [0.3, 0.5], "only 2 cases differ"),
        ([0.5] * 30, [0.5] * 30, "nothing differs"),
        ([0.5] * 30, [0.5] * 29 + [1.0], "only one case differs"),
        ([0.5] * 30, [0.51] * 29 + [1.0], "one case makes up 99% of the squares"),
        ([0.5], [1.0], "only one case differs"),
    ],
)
def test_too_little_is_undecided_by_either_test(e2: list[float], e3: list[float], said: str, word: str) -> None:
    found = weigh(f"e3: g_mean > e2 @95%{word}", e2=of(*e2), e3=of(*e3))
    assert (found.state, found.bounds) == ("undecided", mean_bounds(np.subtract(e3, e2), (-1, 1)))
    assert "without assumptions" in found.reason
    assert "could miss" not in found.reason
    assert (said in found.reason) is not bool(word)


def test_a_huge_value_of_a_measure_without_a_range_is_not_believed() -> None:
    gate = parse_gate("e3: total_ms < e2 @95%", 5)
    e2, e3 = of(*[500.0] * 39, 1e12), of(*np.linspace(400, 480, 40))
    found = judge(gate, {"e2": e2, "e3": e3}, unit="ms")
    assert "one case makes up 100% of the squares, so with little certainty" in found.reason
    robust = judge(replace(gate, test="robust"), {"e2": e2, "e3": e3}, unit="ms")
    assert (robust.state, robust.interval) == ("undecided", None)


def test_clusters_of_one_case_are_cases_and_pairs_count_where_both_have_a_value() -> None:
    rng = np.random.default_rng(0)
    e2 = rng.random(60).round(3) / 2
    e3 = e2 + rng.normal(0.08, 0.05, 60).clip(-0.1, 0.2)
    first, second = of(*e2[:48], *[None] * 12), of(*[None] * 8, *e3[8:])
    text = "e3: g_mean > e2 @95%"
    found = weigh(text, e2=first, e3=second)
    assert found.n == 40
    assert "rarer than 1 case in 10: 40 cases could miss it" in found.reason
    each = GateRules(clusters=lambda _: {f"q{n}": f"page {n}" for n in range(60)})
    assert weigh(text, each, e2=first, e3=second).reason == found.reason


def test_where_few_cases_differ_better_needs_bounds_without_assumptions_and_the_line_says_so() -> None:
    e2, e3 = of(*[0.5] * 96, *[0.0] * 4), of(*[0.5] * 96, *[1.0] * 4)
    found = weigh("e3: recall@5 > e2 @95%", e2=e2, e3=e3)
    assert (found.state, found.bounds) == ("undecided", mean_bounds([0.0] * 96 + [1.0] * 4, (-1, 1)))
    assert "for cases like these, only 4 cases differ, so without assumptions; about" in found.reason


@pytest.mark.parametrize("text", ["e3: recall@5 >= 0.7", "e3: recall@5 >= 0.7 @95%", "e3: recall@5 >= 0.7 @80%"])
@pytest.mark.parametrize("values", [SHARES, [1.0] * 97 + [0.0] * 3, [0.9] * 150])
def test_the_interval_beside_a_value_contains_the_bounds_that_decide(text: str, values: list[float]) -> None:
    found = weigh(text, e3=of(*values))
    assert found.interval == mean_bounds(values, (0, 1), 0.975)
    assert not found.bounds or found.interval[0] <= found.bounds[0] < found.bounds[1] <= found.interval[1]


def test_the_interval_is_by_cluster_where_cases_are_alike() -> None:
    rules = GateRules(cluster="source_page", clusters=lambda _: {f"q{n}": str(n // 10) for n in range(100)})
    ordered = sorted(SHARES)
    alone, alike = weigh("e3: recall@5 >= 0.6", e3=of(*ordered)), weigh("e3: recall@5 >= 0.6", rules, e3=of(*ordered))
    assert alike.interval == mean_bounds(ordered, (0, 1), 0.975, [str(n // 10) for n in range(100)])
    assert alone.interval
    assert alike.interval
    assert alike.interval[0] < alone.interval[0] - 0.1


def test_costs_that_are_all_nothing_have_no_interval_of_a_share() -> None:
    gate = parse_gate("e3: cost_usd <= 0.01", 5)
    found = judge(gate, {"e3": of(*[0.0] * 120)}, unit="usd")
    assert (found.state, found.interval) == ("passed", None)
    assert "$0.0000  n=120" in found.line()
    some = judge(gate, {"e3": of(*[0.0] * 119, 0.002)}, unit="usd").interval
    assert some
    assert 0 == some[0] < some[1] < 0.001


def test_these_cases_and_no_others_are_known_when_all_were_asked() -> None:
    finite, scores = GateRules(population="finite"), of(*[1] * 36, *[0] * 4)
    found = weigh("e3: recall@5 >= 0.85 @95%", finite, e3=scores)
    assert (found.state, found.bounds) == ("passed", (0.9, 0.9))
    assert found.reason == "at least 0.900 for these 40 cases"
    part = Scores(scores.found, total=60)
    assert weigh("e3: recall@5 >= 0.85 @95%", finite, partial=False, e3=part).state == "not judged"
    some = weigh("e3: recall@5 >= 0.88 @95%", finite, partial=True, e3=part)
    assert some.state == "undecided"
    assert "for these 60 cases; 20 of the other 20 would settle it, 40 of 60 cases selected" in some.reason
    assert weigh("e3: recall@5 >= 0.55 @95%", finite, partial=True, e3=part).state == "passed"
    few = weigh("e3: recall@5 >= 0.5 @95%", finite, partial=True, e3=of(1, 1, 0, 1, total=10))
    assert "of the other 6 would settle it" in few.reason


def test_cases_that_the_measure_does_not_apply_to_are_none_of_these() -> None:
    finite, values = GateRules(population="finite"), [*[1] * 27, *[0] * 3, *[None] * 10]
    whole = weigh("e3: recall@5 >= 0.9 @95%", finite, e3=of(*values))
    assert (whole.state, whole.reason) == ("passed", "at least 0.900 for these 30 cases")
    part = weigh("e3: recall@5 >= 0.88 @95%", finite, partial=True, e3=of(*values, total=60))
    assert part.state == "undecided"
    assert "for these 45 cases; 15 of the other 15 would settle it, 40 of 60 cases selected" in part.reason


def test_cases_that_are_alike_are_said_to_be() -> None:
    rules = GateRules(cluster="source_page", clusters=lambda _: {f"q{n}": str(n // 10) for n in range(100)})
    ordered = sorted(SHARES)
    alone = weigh("e3: recall@5 >= 0.62 @95%", e3=of(*ordered))
    alike = weigh("e3: recall@5 >= 0.62 @95%", rules, e3=of(*ordered))
    assert (alone.state, alike.state) == ("passed", "undecided")
    assert "for cases like these; about" in alike.reason
    assert "more, in clusters of their own, would settle it" in alike.reason
    assert alike.counted == "n=100 in 10 clusters by source_page"
    one = GateRules(cluster="topic", clusters=lambda _: dict.fromkeys((f"q{n}" for n in range(100)), "same"))
    found = weigh("e3: recall@5 >= 0.1 @95%", one, e3=of(*ordered))
    assert (found.state, found.reason) == (
        "undecided",
        "all are in 1 cluster by topic, which bounds nothing: --rag-cluster=none counts each by itself",
    )


def test_a_quantile_has_the_bounds_of_its_order() -> None:
    times = [float(n) for n in range(1, 101)]
    found = weigh("e3: p95(total_ms) <= 99.5 @95%", e3=of(*times))
    assert found.bounds == quantile_interval(times, 0.95, 0.9)
    assert found.state == "passed"
    assert weigh("e3: p95(total_ms) <= 96 @95%", e3=of(*times)).state == "undecided"
    assert weigh("e3: p95(total_ms) <= 80 @95%", e3=of(*times)).state == "failed"
    few = weigh("e3: p95(total_ms) <= 900 @95%", e3=of(*times[:20]))
    assert few.reason == "17 ms to … for cases like these; about 39 more would settle it"
    alone = GateRules(cluster="topic", clusters=lambda _: {})
    assert weigh("e3: p95(total_ms) <= 99.5 @95%", alone, e3=of(*times)).bounds == found.bounds
    alike = GateRules(clusters=lambda _: {f"q{n}": f"page {n // 10}" for n in range(100)})
    by_page = weigh("e3: p95(total_ms) <= 99.5 @95%", alike, e3=of(*times))
    assert by_page.bounds
    assert by_page.bounds[1] - by_page.bounds[0] > 10, "the values of a page are neighbours: it is one case"
    assert "n=100 on 10 pages" in by_page.line()
    finite = GateRules(population="finite")
    assert weigh("e3: p95(total_ms) <= 95 @95%", finite, e3=of(*times)).bounds == (95, 95)


def test_a_quantile_against_another_is_judged_by_its_value_where_all_gates_need_evidence() -> None:
    gate = replace(parse_gate("e3: p95(total_ms) <= e2", 5), confidence=95.0)
    found = judge(gate, {"e3": of(1, 2), "e2": of(3, 4)}, unit="ms")
    assert (found.state, found.reason) == ("passed", "by the value alone: a quantile against another has no bounds")


@pytest.mark.parametrize(
    ("text", "values", "reason"),
    [
        ("e3: total_ms <= 900 @95%", [10], "one case bounds nothing"),
        ("e3: total_ms <= 900 @95%", [10, 10, 10], "all values are equal, so nothing is known of their spread"),
    ],
)
def test_what_bounds_nothing_is_undecided_with_the_reason(text: str, values: list[float], reason: str) -> None:
    found = weigh(text, e3=of(*values))
    assert (found.state, found.reason) == ("undecided", reason)


def test_a_share_of_one_case_is_bounded_by_its_range() -> None:
    found = weigh("e3: recall@5 >= 0.9 @95%", e3=of(1))
    assert found.state == "undecided"
    assert found.bounds == pytest.approx((0.05, 1))


def test_evidence_saves_nothing_that_fails_without_it() -> None:
    assert weigh("e3: recall@5 >= 0.5 @95%", e3=of(*[1] * 40, lost=1)).state == "failed"
    assert weigh("e3: recall@5 >= 0.5 @95%", e3=of(None)).state == "failed"
    assert weigh("e3: recall@5 >= 0.5 @95%", e3=of(1, float("nan"))).state == "failed"
    assert weigh("e3: total_ms <= 5 @95%", e3=of(1, lost=1)).state == "failed"
    assert weigh("e3: recall@5 >= 0.5 @95%", e3=of(1, total=9)).state == "not judged"
    unmeasured = Scores(dict.fromkeys("abcdefgh", 1.0), not_measured=4)
    assert weigh("e3: recall@5 >= 0.9 @95%", GateRules(max_unmeasured=0.05), e3=unmeasured).state == "failed"
    few = weigh(
        "e3: recall@5 >= 0.9", GateRules(max_unmeasured=0.25), e3=Scores({"a": 1, "b": 1, "c": 1}, not_measured=1)
    )
    assert few.state == "passed"


def test_a_calibrated_gate_has_the_bounds_of_its_labels() -> None:
    def correct(gate: Gate, _: Mapping[str, float]) -> PeoplesMean:
        half = 0.1 if gate.confidence is None else 0.08
        return PeoplesMean(0.8, (0.8 - half, 0.8 + half), "calibrated on 50 labels, λ = 0.8")

    def judged(threshold: float) -> Verdict:
        gate = parse_gate(f"e3: faithfulness~calibrated >= {threshold} @95%", 5)
        return judge(gate, {"e3": of(0.5, 0.9)}, correct=correct)

    found = judged(0.75)
    assert found.state == "undecided"
    assert found.bounds == pytest.approx((0.72, 0.88))
    assert found.interval == pytest.approx((0.7, 0.9))
    assert "0.720 to 0.880 for cases like these; more labels would settle it, calibrated on 50 labels" in found.reason
    assert [judged(each).state for each in (0.72, 0.89)] == ["passed", "failed"]


# Gates on what people would say: what may be written, and that none is green without a calibration of that judge.

OURS = "e3: faithfulness~calibrated >= 0.8"


def fixed(value: float) -> PeoplesMean:
    return PeoplesMean(value, (value - 0.1, value + 0.05), "calibrated on 50 labels, λ = 0.83")


def verdict(text: str, values: Mapping[str, float | None], value: float = 0.85, lost: int = 0) -> Verdict:
    suites = {"e3": Scores(values, lost=lost)}
    return judge(parse_gate(text, 5), suites, correct=lambda gate, found: fixed(value))


@pytest.mark.parametrize("text", [OURS, "e3 : faithfulness ~ calibrated>=.8", "e3:faithfulness~calibrated >= 0.80"])
def test_what_may_be_written(text: str) -> None:
    assert parse_gate(text, 5) == GatesGate("e3", (), "faithfulness", ">=", 0.8, calibrated=True)
    assert str(parse_gate(text, 5)) == OURS


@given(gates, st.floats(0, 1))
def test_its_text_parses_back_to_it(gate: GatesGate, right: float) -> None:
    ours = GatesGate(gate.suite, gate.slice, gate.measure, gate.op, right, calibrated=True)
    assert parse_gate(str(ours), 3) == ours


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "e3: faithfulness~corrected >= 0.8",
            "'~corrected' behind 'faithfulness' is unknown; write faithfulness~calib",
        ),
        ("e3: ~calibrated >= 0.8", "is not a measure"),
        ("e3: p95(faithfulness~calibrated) >= 0.8", "is a mean, to be compared with a number"),
        ("e3: faithfulness~calibrated >= e2", "is a mean, to be compared with a number"),
        ("e3: faithfulness~calibrated >= baseline - 0.02", "is a mean, to be compared with a number"),
    ],
)
def test_what_may_not(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_gate(text, 5)


def test_both_values_of_a_measure_may_be_gated() -> None:
    texts = [OURS, "e3: faithfulness >= 0.7", "e3: faithfulness~calibrated >= 0.75"]
    found = read_gates(texts, 5, ["e3"], lambda _: {})
    assert [str(gate) for gate in found] == ["e3: faithfulness~calibrated >= 0.75", "e3: faithfulness >= 0.7"]


@pytest.mark.parametrize(("value", "state"), [(0.85, "passed"), (0.8, "passed"), (0.79, "failed")])
def test_the_corrected_value_decides(value: float, state: str) -> None:
    found = verdict(OURS, {"a": 0.1, "b": 0.2}, value)
    assert (found.state, found.value, found.n) == (state, value, 2)


def test_its_line_says_by_what_it_was_corrected() -> None:
    (line,) = verdict_lines([verdict(OURS, {"a": 0.1, "b": 0.2})])
    assert line == (
        "passed      e3: faithfulness~calibrated >= 0.8   0.850 [0.75, 0.90]  n=2\n"
        "            calibrated on 50 labels, λ = 0.83"
    )


def test_a_lost_case_still_fails_it() -> None:
    found = verdict(OURS, {"a": 0.9}, 0.9, lost=1)
    assert found.state == "failed"
    assert found.reason == "calibrated on 50 labels, λ = 0.83, 1 case lost to a crash, so it cannot pass"


def test_without_calibrations_at_hand_it_fails() -> None:
    found = judge(parse_gate(OURS, 5), {"e3": Scores({"a": 0.9})})
    assert (found.state, found.value) == ("failed", None)
    assert found.reason == "cannot be calibrated: no calibration is at hand here"


def test_it_is_judged_on_all_cases_or_not_at_all() -> None:
    found = judge(parse_gate(OURS, 5), {"e3": Scores({"a": 0.9}, total=2)}, correct=lambda gate, values: fixed(0.9))
    assert found.state == "not judged"


Labelled = Callable[..., dict[str, float]]


def write_labelled(output: Path, judges: Path, author: Author) -> dict[str, float]:
    """Leave a judged run and a calibration by the labels of a third of it; return the run's values."""
    truth = write_judged(output)
    scored = read_scored(output, "faithfulness")
    items = sorted(truth)[::3]
    labels = [AnswerLabel(*item, float(truth[item])) for item in items]
    digests = {item: row_digest(scored.rows[item]) for item in items}
    subject = CalibrationSubject("mine", "faithfulness", 1, author, "2026-01-01")
    save_calibration(judges, calibrate(subject, labels, JudgeScores(scored.scores, digests=digests)))
    return {query: value for (_, query), value in scored.scores.items()}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Author], tuple[Path, dict[str, float]]]:
    """Return what leaves such a run and such a calibration in a folder: calibrating is most of the time."""

    def write(author: Author) -> tuple[Path, dict[str, float]]:
        folder = tmp_path_factory.mktemp("labelled")
        return folder, write_labelled(folder / "output", folder / "judges", author)

    return cache(write)


@pytest.fixture
def labelled(tmp_path: Path, written: Callable[[Author], tuple[Path, dict[str, float]]]) -> Labelled:
    """Return what copies them into the folder of a test, and returns the run's values."""

    def copy(author: Author = JUDGE) -> dict[str, float]:
        folder, values = written(author)
        copytree(folder, tmp_path, dirs_exist_ok=True)
        return dict(values)

    return copy


def judged(output: Path, judges: Path, values: Mapping[str, float], text: str = OURS) -> Verdict:
    return judge(parse_gate(text, 5), {"e3": Scores(values)}, correct=corrections(judges, output))


def test_a_run_is_corrected_by_the_calibration_of_its_judge(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled()
    found = judged(tmp_path / "output", tmp_path / "judges", values, "e3: faithfulness~calibrated >= 0.5")
    assert found.state == "passed"
    assert found.n == 60
    assert found.reason.startswith("calibrated on 20 labels, λ = ")
    # People say 1 of three quarters, and the judge is too strict.
    assert sum(values.values()) / 60 < 0.61
    assert found.value is not None
    assert 0.68 < found.value < 0.87


def test_each_bound_of_a_gate_with_evidence_holds_by_itself(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled()
    found = judged(tmp_path / "output", tmp_path / "judges", values, "e3: faithfulness~calibrated >= 0.5 @95%")
    assert found.interval is not None
    assert found.bounds is not None
    assert found.interval[0] < found.bounds[0] < found.bounds[1] < found.interval[1]
    surer = judged(tmp_path / "output", tmp_path / "judges", values, "e3: faithfulness~calibrated >= 0.5 @97.5%")
    assert surer.bounds == pytest.approx(surer.interval)


def test_cases_without_an_answer_count_as_they_are(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled()
    whole, with_errors = (
        judged(tmp_path / "output", tmp_path / "judges", more) for more in (values, values | {"failed": 0.0})
    )
    assert whole.value is not None
    assert with_errors.value == pytest.approx(whole.value * 60 / 61)


def test_another_judge_s_calibration_is_refused(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled(Author("embedded", "minilm", "older"))
    found = judged(tmp_path / "output", tmp_path / "judges", values)
    assert found.state == "failed"
    assert "mine.json is of another judge: revision older, here 1a2b" in found.reason
    assert "rag-harness judge calibrate LABELS.jsonl" in found.reason


def test_no_calibration_fails_with_the_command(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled()
    found = judged(tmp_path / "output", tmp_path / "nowhere", values)
    assert found.state == "failed"
    assert "no calibration of faithfulness" in found.reason
    assert all(len(line) <= 100 for line in found.line().splitlines())


@pytest.mark.parametrize(
    ("authors", "message"), [([], "no judge has scored"), ([JUDGE, Author("b", "", "")], "2 judges")]
)
def test_scores_are_of_one_judge_of_this_run(
    tmp_path: Path, labelled: Labelled, authors: list[Author], message: str
) -> None:
    values = labelled()
    scores = tmp_path / "output" / "scores" / "e3.jsonl"
    first = json.loads(scores.read_text().splitlines()[0])
    scores.write_text(scores.read_text() + json.dumps(first | {"judge": "b", "model": "", "revision": ""}) + "\n")
    write_run_file(tmp_path / "output", {"e3": authors})
    found = judged(tmp_path / "output", tmp_path / "judges", values)
    assert found.state == "failed"
    assert message in found.reason


def test_a_damaged_calibration_is_named(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled()
    (tmp_path / "judges" / "bad.json").write_text("{}")
    assert "bad.json: no calibration of a judge" in judged(tmp_path / "output", tmp_path / "judges", values).reason


def test_what_corrects_may_refuse_only_with_a_reason() -> None:
    def refuse(gate: GatesGate, values: Mapping[str, float]) -> PeoplesMean:
        raise DataError("too few labels")

    found = judge(parse_gate(OURS, 5), {"e3": Scores({"a": 0.9})}, correct=refuse)
    assert (found.state, found.reason) == ("failed", "cannot be calibrated: too few labels")


# Gates that are judged together: Holm's steps, checked against Holm's p-values.

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
