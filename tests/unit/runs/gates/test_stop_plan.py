"""The gates of an experiment are checked only in the random order, and a missing measurement settles nothing."""

from __future__ import annotations

import pytest

from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures import Score
from rag_harness.frontends.pytest_plugin.stop_plan import Watch, Watched, refusal, why_drafts_count
from rag_harness.runs.gates import parse_gate

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
