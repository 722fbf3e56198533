"""Measures of conversations: by turn, over whole ones, and those that got worse."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
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
from rag_harness.tables.comparison import ConversationChanges, WorseConversation, compare, conversation_changes
from rag_harness.tables.comparison_lines import compared_lines
from rag_harness.tables.conversations import (
    FEW_TURNS,
    FEW_TURNS_EACH,
    by_turn,
    drift_of,
    has_turns,
    over_conversations,
    rules_over_conversations,
    turns_said,
)
from rag_harness.tables.reader import SavedCase, SavedRun, SavedSuite
from rag_harness.tables.run_diff import run_diff, sentences
from rag_harness.tables.suite_table import CaseState, Clusters, SuiteTable
from rag_harness.tables.summary import write_summary_file
from tests.unit.tables.standing_tables import kinds, table
from tests.unit.tables.test_run_diff import e3, run

# A suite as a gate over whole conversations counts it: one value a conversation, and none where a turn lacks its own.
#
# The aggregates are worked out a second time here, turn by turn, in plain Python.

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


# Measures by turn, and their drift, against numbers worked out by hand.


def talks(*conversations: list[float | None]) -> SuiteTable:
    labels = [
        {"conversation": f"c{n}", "turn": str(turn)}
        for n, each in enumerate(conversations)
        for turn in range(1, len(each) + 1)
    ]
    found = table(labels, token_f1=[value for each in conversations for value in each])
    found.alike = Clusters("conversation", [f"conversation {each['conversation']}" for each in labels], is_named=False)
    return found


FALLS = talks([1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 1], [1, 1, 1], [0, None])


def test_each_turn_has_its_mean_and_the_interval_of_its_cases() -> None:
    found = by_turn(FALLS, "token_f1")
    assert [(each.turn, each.value, each.n) for each in found] == [
        ("1", 0.75, 4),
        ("2", pytest.approx(2 / 3), 3),
        ("3", pytest.approx(1 / 3), 3),
        ("4", 0.0, 2),
        ("5", 0.5, 2),
        ("6", 0.0, 1),
    ]
    assert found[0].interval == pytest.approx(clopper_pearson(3, 4), abs=1e-9)


def test_later_turns_share_the_last_place_with_conversations_as_clusters() -> None:
    found = by_turn(FALLS, "token_f1", FEW_TURNS)
    assert turns_said(found) == "1 .75  2 .67  3 .33  4+ .20"
    # Five cases of two conversations: an interval of five independent ones would be narrower.
    assert (found[-1].turn, found[-1].n) == ("4+", 5)
    low, high = found[-1].interval or (np.nan, np.nan)
    alone = clopper_pearson(1, 5)
    assert high - low > alone[1] - alone[0]


def test_turns_without_a_value_are_left_out() -> None:
    assert [each.turn for each in by_turn(talks([1, None], [1, None]), "token_f1")] == ["1"]


def test_drift_is_the_slope_within_conversations() -> None:
    found = drift_of(talks([1.0, 0.8], [0.9, 0.7], [0.5, 0.2]), "token_f1")
    assert found is not None
    assert found.slope == pytest.approx(-0.7 / 3)
    assert found.conversations == 3
    low, high = found.interval or (0, 0)
    assert low < found.slope < high
    assert drift_of(talks([1], [0]), "token_f1") is None


def test_a_suite_of_single_questions_has_no_turns() -> None:
    assert has_turns(FALLS)
    assert not has_turns(table(kinds(a=2), token_f1=[1, 0]))
    assert not has_turns(talks([1], [0]))


def test_summary_has_them(tmp_path: Path) -> None:
    write_summary_file(tmp_path, {"c1": FALLS}, [], {"profile": "mock", "mode": "auto"})
    said = json.loads((tmp_path / "summary.json").read_text())["c1"]
    assert said["by_turn"]["token_f1"]["1"] == {
        "value": 0.75,
        "n": 4,
        "interval": pytest.approx([*clopper_pearson(3, 4)], abs=1e-9),
    }
    assert said["drift"]["token_f1"]["conversations"] == 3


# Conversations that got worse between two runs, named with the first turn that did, in numbers worked out by hand.

Values = Mapping[str, Sequence[float | None]]
BEFORE: Values = {"a": [1, 1, 1, 1], "b": [1, 0.5, 0.5], "c": [0, 0], "d": [0.5, 0.5], "e": [1, 1]}
NOW: Values = {"a": [1, 1, 0.5, 0], "b": [1, 0.5, 0.4], "c": [1, 0], "d": [1, 0], "e": [1, None]}


def worse_suite(talks: Values, measure: str = "token_f1") -> SavedSuite:
    return SavedSuite(
        cases={
            f"{name}#{turn}": SavedCase(
                slices={"conversation": name, "turn": str(turn)}, values={} if value is None else {measure: value}
            )
            for name, values in talks.items()
            for turn, value in enumerate(values, 1)
        }
    )


def changes(now: Values, before: Values, better: str = "higher") -> ConversationChanges | None:
    new, old = worse_suite(now), worse_suite(before)
    return conversation_changes(new, new.values("token_f1", {}), old.values("token_f1", {}), better)  # type: ignore[arg-type]


def said(now: SavedRun, before: SavedRun) -> list[str]:
    return [sentence.text for sentence in sentences(run_diff(compare(now, before))) if "conversation" in sentence.text]


def test_the_worst_is_first_and_each_has_its_first_turn_that_fell() -> None:
    found = changes(NOW, BEFORE)
    assert found is not None
    assert [(each.conversation, each.turn, each.case) for each in found.worse] == [("a", 3, "a#3"), ("b", 3, "b#3")]
    assert [round(each.by, 6) for each in found.worse] == [0.375, round(0.1 / 3, 6)]
    # d lost as much as it gained, and of e one turn is compared, which is the same.
    assert (found.total, found.better) == (5, 1)


def test_of_a_measure_that_is_better_low_what_rose_is_worse() -> None:
    found = changes(BEFORE, NOW, better="lower")
    assert found is not None
    assert [each.conversation for each in found.worse] == ["a", "b"]
    assert changes(NOW, BEFORE, better="") is None


def test_where_the_measure_rose_surely_the_few_that_got_worse_are_no_bad_news() -> None:
    names = [f"conv_{n:02}" for n in range(20)]
    old = {name: [0.5 if name == names[0] else 0.0, 0.0] for name in names}
    new = {name: [0.0, 0.0 if name == names[0] else 1.0] for name in names}
    now, before = worse_suite(new), worse_suite(old)
    diff = run_diff(compare(run(2, {"c1": now}), run(1, {"c1": before})))
    assert [change.direction for change in diff.answers] == ["better"]
    (found,) = [sentence for sentence in sentences(diff) if "conversation" in sentence.text]
    assert found.text == "1 of 20 conversations of c1 got worse in token_f1: conv_00 from turn 1; 19 got better."
    assert found.tone == "unsure"


def test_single_questions_are_no_conversations() -> None:
    alone = SavedSuite(cases={"q1": SavedCase(slices={"conversation": "a"}, values={"token_f1": 1.0})})
    assert conversation_changes(alone, {"q1": 0.0}, {"q1": 1.0}, "higher") is None
    assert said(e3(2, token_f1=[0.0] * 8), e3(1, token_f1=[1.0] * 8)) == []


def test_one_sentence_names_them_for_terminal_page_and_comment() -> None:
    now, before = run(2, {"c1-own": worse_suite(NOW)}), run(1, {"c1-own": worse_suite(BEFORE)})
    text = "2 of 5 conversations of c1-own got worse in token_f1: a from turn 3 and b from turn 3; 1 got better."
    assert said(now, before) == [text]
    assert text in " ".join(" ".join(compared_lines(before, now)).split())


def test_of_many_the_first_are_named_and_the_rest_is_counted() -> None:
    names = [f"conv_{n:02}" for n in range(12)]
    now, before = worse_suite({name: [1, 0] for name in names}), worse_suite({name: [1, 1] for name in names})
    (text,) = said(run(2, {"c1": now}), run(1, {"c1": before}))
    assert text == (
        "12 of 12 conversations of c1 got worse in token_f1: conv_00 from turn 2, conv_01 from turn 2, "
        "conv_02 from turn 2, conv_03 from turn 2 and 8 more."
    )


def test_conversations_that_lost_the_same_are_one_draw_each() -> None:
    now, before = (worse_suite({f"c{n}": [1.0, value] for n in range(3)}) for value in (0.0, 1.0))
    clusters = {"c1": {case: case.partition("#")[0] for case in now.cases}}
    (change,) = compare(run(2, {"c1": now}, clusters=clusters), run(1, {"c1": before})).changes
    assert change.p == 0.25, "2 of the 8 ways to sign three conversations"
    assert not change.is_sure


def test_the_measure_that_surely_fell_is_taken_and_errors_last() -> None:
    names = [f"conv_{n:02}" for n in range(12)]
    old = {name: SavedCase(slices={"conversation": name, "turn": "1"}, values=dict(_GOOD)) for name in names}
    new = {name: case.model_copy(update={"values": {**_GOOD, "recall@5": 0.0}}) for name, case in old.items()}
    new["conv_00"] = old["conv_00"].model_copy(
        update={"values": {"error_rate": 1.0, "expectations": 0.0, "recall@5": 0.0}}
    )
    diff = run_diff(compare(run(2, {"c1": SavedSuite(cases=new)}), run(1, {"c1": SavedSuite(cases=old)})))
    assert [change.measure for change in diff.worse_talks] == ["recall@5"]
    new = {name: case.model_copy(update={"values": {**case.values, "recall@5": 1.0}}) for name, case in new.items()}
    diff = run_diff(compare(run(2, {"c1": SavedSuite(cases=new)}), run(1, {"c1": SavedSuite(cases=old)})))
    assert [change.measure for change in diff.worse_talks] == ["expectations"]
    assert diff.worse_talks[0].conversations == ConversationChanges(
        12, (WorseConversation("conv_00", 1, "conv_00", 1.0),), 0
    )


_GOOD = {"error_rate": 0.0, "expectations": 1.0, "recall@5": 1.0}
