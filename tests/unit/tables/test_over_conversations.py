"""A suite as a gate over whole conversations counts it: one value a conversation, and none where a turn lacks its own.

The aggregates are worked out a second time here, turn by turn, in plain Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.runs.gates import GateRules, Verdict, judge, parse_gate
from rag_harness.runs.gates.configuration import check_promises, check_turns, unit_of
from rag_harness.stats import clopper_pearson
from rag_harness.tables.conversations import FEW_TURNS_EACH, over_conversations, rules_over_conversations
from rag_harness.tables.suite_table import CaseState, Clusters, SuiteTable
from tests.unit.tables.standing_tables import table

Turns = Sequence[float | None]
NULL = -1.0
"""Stands for a turn that could have had a value and has none; None for one that the measure does not apply to."""


def labels(*lengths: int, **more: str) -> list[dict[str, str]]:
    return [
        {"conversation": f"c{n}", "turn": str(turn), **more}
        for n, length in enumerate(lengths)
        for turn in range(1, length + 1)
    ]


def suite(*conversations: Turns, measure: str = "token_f1", **more: str) -> SuiteTable:
    values = [value for each in conversations for value in each]
    plain = [None if value == NULL else value for value in values]
    found = table(labels(*map(len, conversations), **more), **{measure: plain})
    name = next(iter(found.columns))
    column = found.columns[name]
    absent = np.array([2 if value == NULL else int(value is None) for value in values], np.uint8)
    lacking = replace(column, absent=absent, reasons=["", "no ground truth", "no verdict"], unmeasured=frozenset({2}))
    found.columns = {name: lacking}
    return found


def values(what: str, found: SuiteTable, where: Mapping[str, str] | None = None) -> dict[str, float]:
    gate = parse_gate(f"c1: {what} >= 0", 5)
    return dict(over_conversations(gate, {"c1": found})["c1"].values(gate.measure, where or {}))


def verdict(text: str, rules: GateRules | None = None, **tables: SuiteTable) -> Verdict:
    gate = parse_gate(text, 5)
    counted = over_conversations(gate, tables)
    return judge(gate, counted, unit=unit_of(gate), rules=rules_over_conversations(rules or GateRules(), counted))


def test_each_kind_by_hand() -> None:
    found = suite([1, 0.5, 1], [1, 1], [0.2])
    assert values("conversation(all(token_f1))", found) == {"c0": 0, "c1": 1, "c2": 0}
    assert values("conversation(all(token_f1>=0.5))", found) == {"c0": 1, "c1": 1, "c2": 0}
    assert values("conversation(mean(token_f1))", found) == pytest.approx({"c0": 2.5 / 3, "c1": 1, "c2": 0.2})
    assert values("conversation(worst(token_f1))", found) == {"c0": 0.5, "c1": 1, "c2": 0.2}


def test_where_lower_is_better_the_worst_is_the_highest_and_all_right_is_0() -> None:
    found = suite([0, 1], [0, 0], measure="error_rate")
    assert values("conversation(all(error_rate))", found) == {"c0": 0, "c1": 1}
    assert values("conversation(worst(error_rate))", found) == {"c0": 1, "c1": 0}


def test_a_turn_without_a_value_leaves_its_conversation_without_one_and_says_why() -> None:
    found = suite([1, NULL], [1, None], [None, None], [1, 1])
    gate = parse_gate("c1: conversation(mean(token_f1)) >= 0", 5)
    counted = over_conversations(gate, {"c1": found})["c1"]
    assert values("conversation(mean(token_f1))", found) == {"c1": 1, "c3": 1}
    assert counted.absent("token_f1", {}) == {"a turn without a value (no verdict)": 1, "no ground truth": 1}
    assert counted.unmeasured("token_f1", {}) == 1
    # The missing turn may be the bad one: a quarter of the conversations is too much.
    missing = verdict("c1: conversation(mean(token_f1)) >= 0.5", GateRules(max_unmeasured=0.05), c1=found)
    assert missing.state == "failed"
    assert "33.3% of 3 conversations could not be measured" in missing.reason


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, None, NULL]), min_size=1, max_size=5), min_size=1, max_size=6
    ),
    st.sampled_from(["all(token_f1)", "all(token_f1>=0.5)", "mean(token_f1)", "worst(token_f1)"]),
    st.integers(1, 4),
)
def test_aggregates_are_those_that_are_worked_out_turn_by_turn(
    conversations: list[list[float | None]], what: str, first: int
) -> None:
    expected: dict[str, float] = {}
    for n, turns in enumerate(conversations):
        those = turns[first - 1 :]
        there = [value for value in those if value is not None]
        if not there or NULL in there:
            continue
        expected[f"c{n}"] = {
            "all(token_f1)": float(all(value == 1 for value in there)),
            "all(token_f1>=0.5)": float(all(value >= 0.5 for value in there)),
            "mean(token_f1)": fmean(there),
            "worst(token_f1)": min(there),
        }[what]
    found = values(f"conversation({what})", suite(*conversations), {"turn": f">={first}"})
    assert found == pytest.approx(expected)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=2), min_size=1, max_size=5))
def test_the_order_of_cases_in_the_data_changes_nothing(conversations: list[list[float]]) -> None:
    plain = suite(*conversations)
    back = suite(*conversations)
    order = np.arange(len(back.ids))[::-1]
    column = next(iter(back.columns.values()))
    back.columns = {"token_f1": replace(column, values=column.values[order], absent=column.absent[order])}
    back.labels = [back.labels[place] for place in order]
    for what in ("conversation(worst(token_f1))", "drift(token_f1)"):
        assert values(what, back) == pytest.approx(values(what, plain))


def test_n_is_conversations_and_the_bounds_are_those_of_so_many() -> None:
    found = suite(*[[1, 1, 1]] * 27, *[[1, 0.4, 1]] * 3)
    said = verdict("c1: conversation(all(token_f1>=0.5)) >= 0.75 @95%", c1=found)
    assert (said.state, said.n, said.value) == ("passed", 30, 0.9)
    low, high = clopper_pearson(27, 30)
    assert said.interval == pytest.approx((low, high), abs=1e-9)
    assert "n=30 conversations" in said.line()
    assert "for conversations like these" in said.line()


def test_two_suites_are_compared_conversation_by_conversation() -> None:
    first, second = suite([1, 1], [1, 0], [1, 1]), suite([1, 0], [1, 0], [NULL, 1])
    said = verdict("c1: conversation(mean(token_f1)) >= c2", c1=first, c2=second)
    assert (said.n, said.value, said.threshold) == (2, 0.75, 0.5)


def test_a_conversation_counts_only_where_all_its_turns_were_selected() -> None:
    found = suite([1, 1], [1, 1])
    found.states = np.array([CaseState.OK, CaseState.LEFT_OUT, CaseState.OK, CaseState.OK], np.uint8)
    said = verdict("c1: conversation(all(token_f1)) >= 0.5", c1=found)
    assert (said.state, said.reason) == (
        "not judged",
        "1 of 2 conversations selected; --rag-gate-partial judges these",
    )
    found.states = np.array([CaseState.OK, CaseState.LOST, CaseState.OK, CaseState.OK], np.uint8)
    lost = verdict("c1: conversation(all(token_f1)) >= 0.5", c1=found)
    assert lost.state == "failed"
    assert "1 conversation lost to a crash, so it cannot pass" in lost.reason


def test_a_draft_among_its_turns_sets_a_conversation_apart() -> None:
    found = suite([1, 1], [0, 0])
    found.labels = [*found.labels[:2], {**found.labels[2], "reviewed": "no"}, found.labels[3]]
    said = verdict("c1: conversation(all(token_f1)) >= 0.9", c1=found)
    assert (said.state, said.n, said.unreviewed) == ("passed", 1, 1)
    assert "on the 1 reviewed of 2 conversations" in said.reason


def test_cases_that_are_no_turns_are_in_no_conversation() -> None:
    found = suite([1, 1], [0, 0])
    found.labels = [{}, *found.labels[1:]]
    assert values("conversation(mean(token_f1))", found) == {"c0": 1, "c1": 0}


def test_conversations_may_be_alike_by_another_label() -> None:
    found = suite(*[[1, 1], [0, 0]] * 20)
    found.alike = Clusters("topic", ["even" if n % 4 < 2 else "odd" for n in range(80)], is_named=True)
    rules = GateRules(cluster="topic", clusters=lambda _: found.cluster_by_case)
    said = verdict("c1: conversation(all(token_f1)) >= 0.1 @95%", rules, c1=found)
    assert said.alike == "in 2 clusters by topic"
    turns = suite(*[[1, 1], [0, 0]] * 20)
    turns.alike = Clusters("conversation", [each["conversation"] for each in turns.labels], is_named=False)
    alone = verdict("c1: conversation(all(token_f1)) >= 0.3 @95%", rules, c1=turns)
    assert alone.state == "passed"
    assert not alone.alike


def test_several_answers_to_a_conversation_are_a_promise_about_it() -> None:
    first, second = suite([1, 1], [1, 1], [1, 0]), suite([1, 1], [0, 1], [1, 0])
    first.later = lambda: [second]
    assert values("pass^2(conversation(all(token_f1)))", first) == {"c0": 1, "c1": 0, "c2": 0}
    assert values("worst_of_2(conversation(mean(token_f1)))", first) == {"c0": 1, "c1": 0.5, "c2": 0.5}
    assert values("pass^2(conversation(mean(token_f1))>=0.5)", first) == {"c0": 1, "c1": 1, "c2": 1}
    assert values("flip_rate(conversation(all(token_f1)))", first) == {"c0": 0, "c1": 1, "c2": 0}
    first.later = lambda: [suite([1, 1], [0, NULL], [1, 0])]
    assert values("pass^2(conversation(all(token_f1)))", first) == {"c0": 1, "c2": 0}


def test_drift_is_the_change_from_one_turn_to_the_next_within_conversations() -> None:
    # Both fall by .1 a turn; that the longer one is worse from its first turn on is no drift.
    found = suite([1.0, 0.9], [0.5, 0.4, 0.3, 0.2])
    said = verdict("c1: drift(token_f1) >= -0.15", c1=found)
    assert said.value == pytest.approx(-0.1)
    assert said.n == 2
    assert values("drift(token_f1)", suite([1], [1, None])) == {}
    gate = parse_gate("c1: drift(token_f1) >= 0", 5)
    assert over_conversations(gate, {"c1": suite([1], [1, None])})["c1"].absent("token_f1", {}) == {FEW_TURNS_EACH: 2}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("e3: conversation(all(token_f1)) >= 0.5", "e3 has no conversations"),
        ("golden: conversation(all(recall@5)) >= 0.5", "golden has no conversations"),
        ("c1: conversation(mean(token_f1)) >= e3", "e3 has no conversations"),
        ("c1: conversation(all(total_ms)) >= 0.5", r"for example conversation\(all\(total_ms<=1\)\)"),
    ],
)
def test_what_cannot_be_judged_is_refused(text: str, problem: str) -> None:
    known: Any = {"c1": {"conversation", "turn"}, "e3": {"topic"}}
    with pytest.raises(SettingsError, match=problem):
        check_turns([parse_gate(text, 5)], known.__getitem__)


def test_a_promise_over_conversations_needs_its_answers() -> None:
    gate = parse_gate("c1: pass^3(conversation(all(total_ms<=9))) >= 0.5", 5)
    with pytest.raises(SettingsError, match="needs 3 answers"):
        check_promises([gate], 1)
    check_promises([gate], 3)
