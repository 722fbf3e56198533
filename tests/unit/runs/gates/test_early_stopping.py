"""A gate is settled when it can be, at its level however often one looks, and never on what has no range."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures import Score
from rag_harness.frontends.pytest_plugin.stop_plan import Watch, Watched, refusal, why_drafts_count
from rag_harness.runs.gates import parse_gate
from rag_harness.runs.gates.early_stopping import EarlyStop, random_order, why_not
from rag_harness.stats import sequential
from rag_harness.stats.inputs import Floats
from rag_harness.stats.sequential import MeanTest

GATE = parse_gate("e3: recall@5 >= 0.8 @95%", 5)


def verdicts(right: int, of: int = 200) -> Floats:
    return np.repeat([1.0, 0.0], [right, of - right])


def peeked(population: Floats, rng: np.random.Generator, text: str = "e3: recall@5 >= 0.8 @95%") -> tuple[str, int]:
    """Return the verdict and after how many cases it came, looking after each."""
    stop = EarlyStop(parse_gate(text, 5), len(population))
    for asked, value in enumerate(rng.permutation(population), 1):
        stop.add(float(value))
        if stop.state is not None:
            return stop.state, asked
    raise AssertionError("all cases were asked and nothing was settled")


@given(
    values=st.lists(st.floats(0, 1), min_size=2, max_size=30),
    threshold=st.floats(0.05, 0.95),
    stake=st.floats(0.1, 0.9),
)
def test_the_wealth_is_that_of_the_published_formula(values: list[float], threshold: float, stake: float) -> None:
    """As arrays: prod(1 + lambda (x - m)) with m_t = (N m - S_(t-1)) / (N - t + 1), lambda a part of 1 / m_t."""
    n = len(values) + 5
    x = np.array(values)
    before = np.concatenate(([0.0], np.cumsum(x)[:-1]))
    expected = (n * threshold - before) / (n - np.arange(len(x)))
    inside = (expected > 0) & (expected < 1)
    with np.errstate(divide="ignore", over="ignore"):
        above = np.prod(np.where(inside, 1 + stake / expected * (x - expected), 1))
        below = np.prod(np.where(inside, 1 - stake / (1 - expected) * (x - expected), 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequential, "_STAKES", np.array([stake]))
        test = MeanTest(threshold, n)
        test._above, test._below = np.ones(1), np.ones(1)
        for value in values:
            test.add(value)
    assert (test._above.mean(), test._below.mean()) == pytest.approx((above, below), rel=1e-6)


@pytest.mark.parametrize(("right", "truth"), [(160, "passed"), (159, "failed")])
def test_looking_after_every_case_costs_nothing_of_the_level(right: int, truth: str) -> None:
    rng = np.random.default_rng(0)
    wrong = [peeked(verdicts(right), rng)[0] != truth for _ in range(150)]
    assert np.mean(wrong) <= 0.08


def test_what_is_far_from_the_threshold_is_settled_soon() -> None:
    rng = np.random.default_rng(1)
    found = [peeked(verdicts(190), rng) for _ in range(100)]
    assert {state for state, _ in found} == {"passed"}
    assert np.median([asked for _, asked in found]) <= 30
    bad = [peeked(verdicts(100), rng) for _ in range(50)]
    assert {state for state, _ in bad} == {"failed"}
    assert np.median([asked for _, asked in bad]) <= 30


def test_scores_between_0_and_1_are_settled_too() -> None:
    rng = np.random.default_rng(2)
    state, asked = peeked(np.clip(rng.normal(0.9, 0.05, 300), 0, 1), rng)
    assert (state, asked < 100) == ("passed", True)


@pytest.mark.parametrize(
    ("op", "values", "state"),
    [
        (">=", [1, 1, 1, 1], "passed"),
        (">", [1, 1, 1, 1], None),
        (">=", [0, 0], "failed"),
        ("<=", [1, 0], "passed"),
        ("<=", [1, 1, 1, 1], None),
        ("<", [1, 1, 1, 1], "failed"),
        (">", [1, 0], "failed"),
        ("<", [1, 0], None),
        ("<", [1, 0, 0], "passed"),
    ],
)
def test_arithmetic_settles_what_the_others_cannot_change(op: str, values: list[int], state: str | None) -> None:
    """Five cases, 0.8: four right are enough, two wrong too many; one wrong leaves 0.8 at most."""
    stop = EarlyStop(parse_gate(f"e3: recall@5 {op} 0.8 @95%", 5), 5)
    for value in values:
        stop.add(value)
    assert stop.state == state
    if state:
        assert stop.said == f"settled after {len(values)} of 5 cases, in random order, whatever the others are"


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ([1, 1, 1, None], None),
        ([1, 1, 1, None, None], "passed"),
        ([0, None, None], "failed"),
        ([1, None, None, None], None),
        ([None] * 5, None),
    ],
)
def test_a_case_without_a_value_moves_nothing(values: list[int | None], state: str | None) -> None:
    """Five cases, 0.8: with two of no value, all three others must be right; of no case at all there is no mean."""
    stop = EarlyStop(GATE, 5)
    for value in values:
        stop.leave_out() if value is None else stop.add(value)
    assert stop.state == state


def test_a_verdict_stands() -> None:
    stop = EarlyStop(GATE, 200)
    for _ in range(30):
        stop.add(1)
    assert (stop.state, stop.said) == ("passed", "settled after 18 of 200 cases, in random order, 95 % sure")
    for _ in range(100):
        stop.add(0)
    assert stop.state == "passed"


def test_the_order_is_random_and_a_seed_gives_the_same() -> None:
    ids = [f"q{n}" for n in range(50)]
    rows, turned = {each: [each] for each in ids}, {each: [each] for each in ids[::-1]}
    assert random_order(rows, 7) == random_order(turned, 7)
    assert sorted(random_order(rows, 7)) == sorted(ids)
    assert random_order(rows, 7) != random_order(rows, 8) != ids


def test_cases_of_a_row_stay_together_in_their_order() -> None:
    rows = {f"c{n}": [f"c{n}#{turn}" for turn in range(1, 4)] for n in range(10)}
    order = random_order(rows, 7)
    assert [order[n : n + 3] for n in range(0, 30, 3)] == [
        rows[name] for name in sorted(rows, key=lambda c: order.index(f"{c}#1"))
    ]
    assert order != [each for row in rows.values() for each in row]


@pytest.mark.parametrize("mean", [0.799, 0.8, 0.801])
def test_graded_values_near_the_threshold_are_settled_at_their_level(mean: float) -> None:
    """Wrong in 5 % of runs at most, and two standard errors of 150."""
    values = np.random.default_rng(0).beta(8, 2, 200)
    while abs(values.mean() - mean) > 1e-13:
        values = (values + mean - values.mean()).clip(0, 1)
    rng, runs = np.random.default_rng(1), 150
    truth = "passed" if mean >= 0.8 else "failed"
    wrong = sum(peeked(values, rng)[0] != truth for _ in range(runs))
    assert wrong <= (0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5) * runs


def talked(mean: float, conversations: int, rng: np.random.Generator) -> list[list[float]]:
    """Return the values of conversations of 1 to 6 turns, about as right as each other within a conversation."""
    shares = rng.beta(2 * mean, 2 * (1 - mean), conversations)
    return [(rng.random(rng.integers(1, 7)) < share).astype(float).tolist() for share in shares]


@pytest.mark.parametrize("mean", [0.5, 0.8, 0.95])
def test_conversations_are_settled_at_their_level_however_often_one_looks(mean: float) -> None:
    """The verdict is about the mean over all turns, and conversations come in random order."""
    rng, wrong, runs = np.random.default_rng(5), 0, 150
    for _ in range(runs):
        rows = talked(mean, 60, rng)
        truth = "passed" if np.concatenate(rows).mean() >= 0.8 else "failed"
        stop = EarlyStop(GATE, len(rows), longest=6)
        for place in rng.permutation(len(rows)):
            stop.add_row(rows[place])
            if stop.state is not None:
                break
        wrong += stop.state not in (truth, None)
    assert wrong <= 0.05 * runs


def test_conversations_that_are_right_are_settled_before_all_are_asked() -> None:
    stop = EarlyStop(GATE, 100, longest=3)
    for _ in range(60):
        stop.add_row([1, 1, 1])
    assert stop.state == "passed"
    assert stop.said.startswith("settled after ")
    assert stop.said.endswith(" of 100 conversations, in random order, 95 % sure")


def test_all_conversations_tell_the_mean_of_all_turns() -> None:
    """A long bad conversation outweighs short good ones, as in the mean over turns."""
    rows: list[list[float]] = [[1], [1], [0, 0, 0, 0, 0, 1], [1]]
    passed, failed = EarlyStop(parse_gate("e3: recall@5 >= 0.4 @95%", 5), 4, longest=6), EarlyStop(GATE, 4, longest=6)
    for row in rows:
        passed.add_row(row)
        failed.add_row(row)
    assert (passed.state, failed.state) == ("passed", "failed")


@pytest.mark.parametrize("row", [[1.5], [0.5, nan], [-0.1]])
def test_a_row_of_what_is_no_share_is_refused(row: list[float]) -> None:
    with pytest.raises(ValueError, match="shares lie between 0 and 1"):
        EarlyStop(GATE, 4, longest=6).add_row(row)


@pytest.mark.parametrize(
    ("text", "unit", "why"),
    [
        ("e3: recall@5 >= 0.8", "share", "write @95% behind it"),
        ("e3: total_ms <= 900 @95%", "ms", "total_ms has no range, and a stop rule needs one"),
        ("e3: cost_usd <= 0.1 @95%", "usd", "cost_usd has no range, and a stop rule needs one"),
        ("e3: p95(recall@5) >= 0.8 @95%", "share", "a quantile has no stop rule"),
        ("e3: faithfulness~calibrated >= 0.8 @95%", "share", "a calibrated mean has no stop rule"),
        ("e3: recall@5 >= e2 @95%", "share", "it depends on e2"),
    ],
)
def test_what_cannot_be_settled_early_says_why(text: str, unit: str, why: str) -> None:
    gate = parse_gate(text, 5)
    assert why_not(gate, unit).endswith(why)
    with pytest.raises(SettingsError, match="cannot be settled early"):
        EarlyStop(gate, 10, unit)


@pytest.mark.parametrize("value", [nan, -0.1, 1.1])
def test_a_value_that_is_no_share_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="values lie between 0 and 1"):
        EarlyStop(GATE, 10).add(value)


def test_a_population_ends() -> None:
    stop = EarlyStop(GATE, 1)
    stop.add(1)
    with pytest.raises(ValueError, match="the population has 1 cases only"):
        stop.add(1)


@pytest.mark.parametrize(
    ("threshold", "population", "span", "confidence", "why"),
    [
        (0.5, 0, (0, 1), 0.95, "1 case or more"),
        (1.5, 9, (0, 1), 0.95, "compared with 1.5"),
        (-0.5, 9, (0, 1), 0.95, "compared with -0.5"),
        (0.5, 9, (0, np.inf), 0.95, "two finite ends"),
        (0.5, 9, (1, 0), 0.95, "two finite ends"),
        (0.5, 9, (0, 1), 1.0, "between 0 and 1"),
        (0.5, 9, (0, 1), 0.0, "between 0 and 1"),
    ],
)
def test_a_stop_rule_that_is_none_is_refused(
    threshold: float, population: int, span: tuple[float, float], confidence: float, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        MeanTest(threshold, population, span, confidence)


# The gates of an experiment are checked only in the random order, and a missing measurement settles nothing.

IDS = [f"q{n}" for n in range(20)]
CASES = [Case(Query(query_id, "?"), qrels={"a": 1}) for query_id in IDS]


def watch(most: float = 1.0, *texts: str) -> Watch:
    gates = [parse_gate(text, 5) for text in texts or ("e3: recall@5 >= 0.5 @95%",)]
    return Watch(IDS, [Watched(gate, CASES, most) for gate in gates])


def scores(value: float | None, undefined: bool = False) -> dict[str, Score]:
    return {name: Score(value, undefined=undefined) for name in ("recall@5", "error_rate")}


def taken(of: Watch, ids: list[str], value: float | None = 1.0) -> list[bool]:
    return [of.take(query_id, scores(value)) for query_id in ids]


def test_it_settles_at_the_case_that_settles_it() -> None:
    found = watch()
    assert taken(found, IDS[:5]) == [False, False, False, False, True]
    (verdict,) = found.verdicts.values()
    assert verdict == ("passed", "settled after 5 of 20 cases, in random order, 95 % sure")


def test_a_case_that_came_out_of_turn_waits_for_those_before_it() -> None:
    found = watch()
    assert not any(taken(found, IDS[1:]))
    assert found.verdicts == {}
    assert found.take(IDS[0], scores(1.0))


def test_every_gate_has_to_be_settled() -> None:
    found = watch(1.0, "e3: recall@5 >= 0.5 @95%", "e3: error_rate <= 0.5 @95%")
    assert not any(found.take(query_id, {"recall@5": Score(1.0), "error_rate": Score(0.5)}) for query_id in IDS[:12])
    assert [str(gate) for gate in found.verdicts] == ["e3: recall@5 >= 0.5 @95%"]


@pytest.mark.parametrize("undefined", [True, False])
def test_cases_without_a_value_settle_nothing(undefined: bool) -> None:
    found = watch()
    assert not any(found.take(query_id, scores(None, undefined)) for query_id in IDS)


def test_more_is_asked_while_too_many_could_not_be_measured() -> None:
    found = watch(0.1)
    assert not any([*taken(found, IDS[:1], None), *taken(found, IDS[1:9])])
    assert taken(found, IDS[9:10]) == [True]


def test_what_means_nothing_for_a_case_is_not_unmeasured() -> None:
    found = watch(0.1)
    found.take(IDS[0], scores(None, undefined=True))
    assert any(taken(found, IDS[1:8]))


def test_rounding_is_no_value_beyond_the_range() -> None:
    assert taken(watch(), IDS[:5], 1 + 1e-12)[-1]


def test_a_share_that_is_none_after_all_breaks_the_rule() -> None:
    found = watch()
    found.take(IDS[0], scores(1.5))
    assert not any(taken(found, IDS[1:]))


TURNS = [
    Case(Query(f"c{n}#{turn}", "?", {"conversation": f"c{n}", "turn": turn}), qrels={"a": 1})
    for n in range(30)
    for turn in (1, 2, 3)
]


@pytest.mark.parametrize("text", ["e3: recall@5 >= 0.5 @95%", "e3[turn>=2]: recall@5 >= 0.5 @95%"])
def test_conversations_are_taken_whole(text: str) -> None:
    ids = [case.query.query_id for case in TURNS]
    found = Watch(ids, [Watched(parse_gate(text, 5), TURNS, 1.0)])
    settled = [found.take(query_id, scores(1.0)) for query_id in ids]
    assert settled.index(True) % 3 == 2
    (verdict,) = found.verdicts.values()
    assert verdict == (
        "passed",
        f"settled after {settled.index(True) // 3 + 1} of 30 conversations, in random order, 95 % sure",
    )
    # A whole conversation that is right is one draw, as a single case is.
    alone = Watch(IDS, [Watched(parse_gate("e3: recall@5 >= 0.5 @95%", 5), CASES, 1.0)])
    assert taken(alone, IDS).index(True) <= settled.index(True) // 3


def test_a_turn_without_a_value_moves_nothing_in_its_conversation() -> None:
    ids = [case.query.query_id for case in TURNS]
    found = Watch(ids, [Watched(parse_gate("e3: recall@5 >= 0.5 @95%", 5), TURNS, 1.0)])
    assert not any(found.take(query_id, scores(None)) for query_id in ids)


def test_a_gate_is_about_the_cases_that_its_measure_applies_to() -> None:
    cases = [*CASES[:2], *(Case(Query(query_id, "?")) for query_id in IDS[2:])]
    found = Watch(IDS, [Watched(parse_gate("e3: recall@5 >= 0.5 @95%", 5), cases, 1.0)])
    assert found.take(IDS[0], scores(1.0))
    assert "settled after 1 of 2 cases" in next(iter(found.verdicts.values()))[1]


def test_what_is_checked_after_the_tests_settles_nothing_before() -> None:
    gate = parse_gate("e3: metamorphic_case >= 0.9 @95%", 5)
    assert refusal("e3", [gate], CASES, len(CASES)) == f"gate '{gate}': it is checked after the tests"


def test_why_it_cannot_stop_early_names_the_condition_alone() -> None:
    gates = [parse_gate(text, 5) for text in ("e3: mrr@5 >= 0.5 else x", "e2: mrr@5 >= e3 @95% else y")]
    assert refusal("e3", gates[:1], CASES, 20).startswith("gate 'e3: mrr@5 >= 0.5': ")
    assert refusal("e3", gates, CASES, 20) == "gate 'e2: mrr@5 >= e3 @95%' depends on it"


@pytest.mark.parametrize(
    ("text", "counts_drafts", "said"),
    [
        ("e3: recall@5 >= 0.5 @95%", False, "gate 'e3: recall@5 >= 0.5 @95%': 1 of its cases are unreviewed drafts"),
        ("e3: recall@5 >= 0.5 @95%", True, ""),
        ("e3[reviewed=yes]: recall@5 >= 0.5 @95%", False, ""),
        ("e2: recall@5 >= 0.5 @95%", False, ""),
    ],
)
def test_an_experiment_with_drafts_among_the_cases_of_its_gates_is_asked_in_full(
    text: str, counts_drafts: bool, said: str
) -> None:
    cases = [*CASES, Case(Query("draft", "?"), qrels={"a": 1}, metadata={"reviewed": "no"})]
    assert why_drafts_count("e3", [parse_gate(text, 5)], cases, counts_drafts) == said
