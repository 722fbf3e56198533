"""Gates over questions that nobody has reviewed: which cases decide, and what is said of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Query, is_in
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.gates import Gate, GateRules, KnownNames, Verdict, check_gate, judge, parse_gate, verdict_lines
from rag_harness.runs.gates.configuration import gates_by_data, measures_by_suite, read_gates, unit_of
from rag_harness.runs.gates.early_stopping import EarlyStop, fails_anyway, why_not
from rag_harness.runs.gates.grammar import OverTurns, Reference
from rag_harness.tables.reader import saved_suite
from tests.unit.rows import make_row
from tests.unit.runs.gates.test_gates import Scores, of
from tests.unit.suite_tables import tables_of

# Gates over questions that nobody has reviewed: which cases decide, and what is said of the others.

FOUND = ["a.md", "b.md", "c.md", "d.md", "e.md"]
MISSED = ["z.md", *FOUND[1:]]


def case(number: int, **metadata: str) -> Case:
    return Case(Query(f"q{number}", "?"), qrels={"a.md": 1}, metadata=metadata)


def rows(cases: Sequence[Case], missed: Sequence[int] = (), experiment: str = "e3") -> list[ExperimentResult]:
    return [
        make_row(experiment=experiment, query_id=each.query.query_id, ranking=MISSED if n in missed else FOUND)
        for n, each in enumerate(cases)
    ]


def judged(
    text: str,
    cases: Sequence[Case],
    missed: Sequence[int] = (),
    rules: GateRules | None = None,
    selected: Mapping[str, Sequence[str]] | None = None,
) -> Verdict:
    return judge(parse_gate(text, 5), tables_of(rows(cases, missed), cases, selected=selected), rules=rules)


DRAFTS = [case(n, reviewed="no") for n in range(4)]
READ = [case(n, reviewed="yes") for n in range(10, 12)]
HAND_WRITTEN = [case(n) for n in range(20, 23)]
PLACEHOLDER = case(30, reviewed="no", placeholder="yes")


@pytest.mark.parametrize("missed", [(), (0, 1, 2, 3)])
def test_drafts_alone_decide_nothing_and_their_value_is_said(missed: Sequence[int]) -> None:
    verdict = judged("e3: recall@5 >= 0.5 else switch", DRAFTS, missed)
    assert (verdict.state, verdict.value, verdict.n, verdict.unreviewed) == ("not judged", float(not missed), 4, 4)
    assert verdict.reason == ("4 of 4 cases are unreviewed drafts: read the questions of e3, and set reviewed to yes")
    assert not verdict.to_do
    assert f"not judged  e3: recall@5 >= 0.5   {1 - len(missed) / 4:.3f} [" in verdict.line()


def test_one_draft_is_one() -> None:
    verdict = judged("e3: recall@5 >= 0.5", DRAFTS[:1])
    assert verdict.reason == "1 of 1 case is an unreviewed draft: read the questions of e3, and set reviewed to yes"
    assert (verdict.state, verdict.unreviewed) == ("not judged", 1)


def test_reviewed_cases_decide_and_drafts_are_counted() -> None:
    verdict = judged("e3: recall@5 >= 0.9", [*DRAFTS, *READ], missed=(0, 1, 2))
    assert (verdict.state, verdict.value, verdict.n, verdict.unreviewed) == ("passed", 1.0, 2, 4)
    assert verdict.reason == "on the 2 reviewed of 6 cases; with the drafts 0.500"
    failed = judged("e3: recall@5 >= 0.9", [*DRAFTS, *READ], missed=(4,))
    assert (failed.state, failed.value) == ("failed", 0.5)
    most = judged("e3: recall@5 >= 0.9", [*DRAFTS[:3], *READ, *HAND_WRITTEN, case(40)], missed=(0, 1, 2))
    assert most.reason.startswith("on the 6 reviewed of 9 cases")


def test_what_people_wrote_without_a_word_of_review_counts_as_reviewed() -> None:
    cases = [*DRAFTS, *HAND_WRITTEN, *READ]
    for text in ("e3: recall@5 >= 0.9", "e3[reviewed=yes]: recall@5 >= 0.9"):
        assert (judged(text, cases, missed=(0, 1)).state, judged(text, cases).n) == ("passed", 5)
    alone = judged("e3[reviewed=yes]: recall@5 >= 0.9", HAND_WRITTEN)
    assert (alone.state, alone.n, alone.reason) == ("passed", 3, "")


def test_who_asks_for_drafts_gets_them_judged() -> None:
    cases = [*DRAFTS, *READ]
    asked = judged("e3[reviewed=no]: recall@5 >= 0.5", cases, missed=(0, 1, 2))
    assert (asked.state, asked.value, asked.n) == ("failed", 0.25, 4)
    counted = judged("e3: recall@5 >= 0.6", cases, missed=(0, 1, 2), rules=GateRules(counts_drafts=True))
    assert (counted.state, counted.value, counted.n, counted.unreviewed) == ("failed", 0.5, 6, 0)


@pytest.mark.parametrize("text", [f"e3{where}: recall@5 >= 0.9" for where in ("", "[reviewed=no]")])
def test_a_placeholder_is_never_judged(text: str) -> None:
    alone = judged(text, [PLACEHOLDER], rules=GateRules(counts_drafts=True))
    assert (alone.state, alone.value) == ("not judged", 1.0)
    assert alone.reason == "its one case is a placeholder: write a question in its place"
    beside = judged(text, [*DRAFTS, PLACEHOLDER], missed=(4,), rules=GateRules(counts_drafts=True))
    assert (beside.state, beside.value, beside.n) == ("passed", 1.0, 4)


@pytest.mark.parametrize("where", ["placeholder=yes", "reviewed=no,placeholder=yes"])
def test_nor_where_placeholders_are_asked_for(where: str) -> None:
    for counts_drafts in (True, False):
        rules = GateRules(counts_drafts=counts_drafts)
        verdict = judged(f"e3[{where}]: recall@5 >= 0.9", [*DRAFTS, *READ, PLACEHOLDER], rules=rules)
        assert (verdict.state, verdict.n) == ("not judged", 1)


def test_reviewed_ones_are_asked_for_and_there_is_none() -> None:
    verdict = judged("e3[reviewed=yes]: recall@5 >= 0.9", DRAFTS)
    assert (verdict.state, verdict.value, verdict.unreviewed) == ("not judged", None, 4)
    assert verdict.reason.startswith("none of 4 cases is reviewed: read ")
    assert judged("e3[reviewed=yes,query_type=negative]: recall@5 >= 0.9", DRAFTS).state == "failed"


def test_drafts_are_asked_for_and_there_is_none() -> None:
    verdict = judged("e3[reviewed=no]: recall@5 >= 0.9", READ)
    assert (verdict.state, verdict.reason) == ("failed", "no case is in e3[reviewed=no]")


def test_reviewed_cases_without_a_value_leave_the_drafts_undecided() -> None:
    negative = [Case(Query("n1", "?"), "negative", answerable=False, metadata={"reviewed": "yes"})]
    verdict = judged("e3: recall@5 >= 0.9", [*DRAFTS, *negative])
    assert (verdict.state, verdict.value) == ("not judged", 1.0)
    assert "4 of 5 cases are unreviewed drafts, and none of the others has a value (1)" in verdict.reason


def test_a_gate_that_cannot_be_judged_at_all_fails_as_without_drafts() -> None:
    negative = [
        Case(Query(f"n{n}", "?"), "negative", answerable=False, metadata={"reviewed": r})
        for n, r in ((1, "no"), (2, "yes"))
    ]
    verdict = judged("e3: recall@5 >= 0.9", negative)
    assert (verdict.state, verdict.unreviewed) == ("failed", 0)
    assert verdict.reason.startswith("no case has a value of recall@5")


def test_a_selection_that_leaves_out_drafts_alone_is_whole() -> None:
    cases = [*DRAFTS, *READ]
    whole = judged("e3: recall@5 >= 0.9", cases, selected={"e3": ["q0", "q10", "q11"]})
    assert (whole.state, whole.n, whole.unreviewed) == ("passed", 2, 1)
    part = judged("e3: recall@5 >= 0.9", cases, selected={"e3": ["q0", "q10"]})
    assert (part.state, part.reason) == (
        "not judged",
        "of the reviewed: 1 of 2 cases selected; --rag-gate-partial judges these",
    )
    assert part.unreviewed == 0
    none = judged("e3: recall@5 >= 0.9", cases, selected={"e3": ["q0"]})
    assert (none.state, none.reason) == ("not judged", "of the reviewed: none of 2 cases selected")


def test_two_experiments_are_compared_on_the_reviewed_cases() -> None:
    cases = [*DRAFTS, *READ]
    tables = tables_of([*rows(cases, missed=(0, 1, 2, 3)), *rows(cases, experiment="e2")], cases)
    verdict = judge(parse_gate("e3: recall@5 >= e2", 5), tables)
    assert (verdict.state, verdict.value, verdict.threshold, verdict.n) == ("passed", 1.0, 1.0, 2)
    assert verdict.reason == "on the 2 reviewed of 6 cases; no case can move: all rows are equal"
    drafts = tables_of([*rows(DRAFTS, missed=(0,)), *rows(DRAFTS, experiment="e2")], DRAFTS)
    assert judge(parse_gate("e3: recall@5 >= e2", 5), drafts).state == "not judged"


def test_the_baseline_is_held_against_the_reviewed_cases() -> None:
    cases = [*DRAFTS, *READ, *HAND_WRITTEN]
    before, now = (tables_of(rows(cases, missed=missed), cases) for missed in ((0, 4), (0, 1, 2)))
    saved = {"e3": saved_suite(before["e3"])}
    verdict = judge(parse_gate("e3: recall@5 >= baseline", 5), now, baseline=saved)
    assert (verdict.state, verdict.value, verdict.threshold, verdict.n) == ("passed", 1.0, 0.8, 5)


def test_a_quantile_is_said_of_the_reviewed_cases_alone() -> None:
    verdict = judged("e3: p95(recall@5) >= 1", [*DRAFTS, *READ], missed=(0, 1, 2, 3))
    assert (verdict.state, verdict.n, verdict.reason) == ("passed", 2, "on the 2 reviewed of 6 cases")


def test_evidence_is_weighed_on_the_reviewed_cases() -> None:
    verdict = judged("e3: recall@5 >= 0.6 @95%", [*DRAFTS, *READ])
    assert (verdict.state, verdict.n) == ("undecided", 2)
    assert "on the 2 reviewed of 6 cases" in verdict.reason


def test_tables_by_review_add_up() -> None:
    cases = [*DRAFTS, *HAND_WRITTEN]
    table = tables_of(rows(cases), cases)["e3"]
    assert table.slices()["reviewed"] == {"yes", "no"}
    assert table.by("reviewed", ["recall@5"]).keys() == {"yes", "no"}
    assert (table.total_of({"reviewed": "yes"}), table.total_of({"reviewed": "no"})) == (3, 4)
    assert "reviewed" not in tables_of(rows(HAND_WRITTEN), HAND_WRITTEN)["e3"].slices()


@pytest.mark.parametrize(
    ("said", "counts_as"),
    [
        ("no", "no"),
        ("False", "no"),
        ("", "no"),
        ("rejected", "no"),
        ("yes", "yes"),
        ("True", "yes"),
        ("2026-01", "yes"),
    ],
)
def test_what_counts_as_reviewed(said: str, counts_as: str) -> None:
    assert is_in({"reviewed": said}, {"reviewed": counts_as})
    assert is_in({"reviewed": said}, {"reviewed": said})
    assert not is_in({"reviewed": said}, {"reviewed": {"yes": "no", "no": "yes"}[counts_as]})


# The action of a gate that does not hold: how it is written, parsed, and shown.

FLOOR = "t1: zero_result_rate <= 0.15"
MRR = Gate("e3", (), "mrr@5", ">=", 0.8)


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("e3: mrr@5 >= 0.8 else use a larger model", replace(MRR, otherwise="use a larger model")),
        ("e3:mrr@k>=.8 else  look   at it ", replace(MRR, otherwise="look at it")),
        ("e3: mrr@5 >= 0.8 @95% else x", replace(MRR, confidence=95.0, otherwise="x")),
        ("e3: mrr@5 >= e2 - 0.1 else x", replace(MRR, right=Reference("e2", -0.1), otherwise="x")),
        ("e3: mrr@5 >= 0.8\n  else one\n  two", replace(MRR, otherwise="one two")),
        ("e3: mrr@5 >= 0.8 else a, or else b: k >= 10 @ 3", replace(MRR, otherwise="a, or else b: k >= 10 @ 3")),
        ("e3: p95(mrr@5) >= 0.8 else y", replace(MRR, quantile=95, otherwise="y")),
        ("e3: mrr@5 >= elsewhere", replace(MRR, right=Reference("elsewhere"))),
        ("e3: mrr@5 >= someelse", replace(MRR, right=Reference("someelse"))),
        ("else: mrr@5 >= 0.8", replace(MRR, suite="else")),
        ("e3[topic=this or else that]: mrr@5 >= 0.8", replace(MRR, slice=(("topic", "this or else that"),))),
    ],
)
def test_what_may_be_written(text: str, gate: Gate) -> None:
    assert parse_gate(text, 5) == gate
    assert parse_gate(str(gate), 5) == gate


def test_the_condition_is_the_gate_without_it() -> None:
    gate = parse_gate(f"{FLOOR} @95% else use a larger model", 5)
    assert str(gate) == f"{FLOOR} @95% else use a larger model"
    assert gate.condition == f"{FLOOR} @95%"
    assert parse_gate(gate.condition, 5) == replace(gate, otherwise="")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{FLOOR} else", "nothing follows 'else'; write 'e3: recall@5 >= 0.8 else switch to e2'"),
        (f"{FLOOR} else  ", "nothing follows 'else'"),
        ("t1: zero_result_rate <= else use t2", "there is no threshold before 'else'; write 'e3: recall@5 >= 0.8 else"),
        ("t1: zero_result_rate <= else", "there is no threshold before 'else'"),
        ("t1: zero_result_rate else use t2", "no comparison in 'zero_result_rate else use t2'"),
        ("else use t2", "no comparison in 'else use t2'"),
        ("t1: zero_result_rate <= 0.15else use t2", "'0.15else use t2' on the right is not a number"),
        (f"{FLOOR} Else use t2", "'0.15 Else use t2' on the right is not a number"),
        (f"{FLOOR} else use t2 @95%", "a confidence stands before 'else'"),
        (f"{FLOOR} else @ 95 %", "a confidence stands before 'else'"),
        (f"{FLOOR} @95 else use t2", "a confidence is in per cent; write @95%"),
    ],
)
def test_a_slip_is_an_error_with_an_example(text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_gate(text, 5)
    assert problem in str(error.value)
    assert f"Gate '{text.strip()}'" in str(error.value)
    assert "Example: 'golden: recall@10 >= 0.95'" in str(error.value)


def test_the_later_of_two_gates_holds_with_what_it_says_or_does_not() -> None:
    def read(*texts: str) -> list[str]:
        return [str(gate) for gate in read_gates(texts, 5, ["e3"], lambda _: {})]

    first, second = "e3: recall@5 >= 0.5 else do this", "e3: recall@5 >= 0.6 else do that"
    assert read(first, second) == [second]
    assert read(first, "e3: recall@5 >= 0.6") == ["e3: recall@5 >= 0.6"]
    assert read("e3: recall@5 >= 0.6", first) == [first]
    assert measures_by_suite([first], 5) == {"e3": ["recall@5"]}


def verdict(text: str, scores: Scores, rules: GateRules | None = None, partial: bool = False) -> Verdict:
    return judge(parse_gate(text, 5), {"e3": scores}, partial, rules=rules)


def test_what_to_do_has_a_line_of_its_own_where_the_gate_failed() -> None:
    fails = "e3: recall@5 >= 0.9 else switch to e2"
    assert verdict(fails, of(1, 0)).line().split("\n") == [
        "failed      e3: recall@5 >= 0.9   0.500 [0.01, 0.99]  n=2",
        "            what to do: switch to e2",
    ]


def test_what_would_be_to_do_where_nothing_is_decided() -> None:
    *_, last = verdict("e3: recall@5 >= 0.9 @95% else switch to e2", of(1, 1)).line().split("\n")
    assert last == "            undecided; if it does not hold: switch to e2"


def test_there_is_nothing_to_do_where_it_holds_or_was_not_judged() -> None:
    for found in (
        verdict("e3: recall@5 >= 0.9 else x", of(1, 1)),
        verdict("e3: recall@5 >= 0.9 else x", of(0, 0, total=3)),
        verdict("e3: recall@5 >= 0.9 else x", of(total=3)),
        verdict("e3: recall@5 >= 0.9", of(0)),
    ):
        assert found.to_do == ""
        assert "\n" not in found.line()


@pytest.mark.parametrize(
    "scores",
    [
        *(of(None, None), of(1, 1, lost=1), of(1, float("nan"))),
        *(replace(of(value, None), not_measured=1) for value in (1, 0)),
    ],
    ids=["no value", "lost", "nan", "unmeasured", "unmeasured, and low"],
)
def test_a_gate_that_failed_for_want_of_values_decides_nothing(scores: Scores) -> None:
    found = verdict("e3: recall@5 >= 0.9 else x", scores, GateRules(max_unmeasured=0.1))
    assert (found.state, found.to_do) == ("failed", "undecided; if it does not hold: x")


def test_a_gate_that_was_settled_early_is_found_by_its_equal() -> None:
    text = "e3: recall@5 >= 0.9 @95% else switch to e2"
    rules = GateRules(settled={parse_gate(text, 5): ("failed", "settled after 2 of 9 cases")})
    found = verdict(text, of(0, 0, total=9), rules)
    assert (found.state, found.reason, found.to_do) == (
        "failed",
        "settled after 2 of 9 cases",
        "what to do: switch to e2",
    )
    assert verdict(text.replace("e2", "e1"), of(0, 0, total=9), rules).state == "not judged"


def test_lines_are_aligned_by_the_conditions_alone() -> None:
    long = "look at " + "every " * 20 + "https://example.org/" + "a-long-way/" * 9
    lines = verdict_lines(
        [verdict(f"e3: recall@5 >= 0.9 else {long}", of(0)), verdict("e3: mrr@10 > 0.1", of(1))],
    )
    assert [line.split("\n")[0].index("[") for line in lines] == [len("failed      e3: recall@5 >= 0.9   0.000 ")] * 2
    said = lines[0].split("\n")[1:]
    assert " ".join(" ".join(said).split()) == f"what to do: {long}"
    assert all(len(line) <= 100 for line in said[:-1])
    assert said[-1].strip().startswith("https://"), "an address is not cut"


def test_what_cannot_be_settled_early_names_the_condition_alone() -> None:
    with pytest.raises(SettingsError, match=r"^Gate 'e3: mrr@5 >= 0\.8' cannot be settled early"):
        EarlyStop(parse_gate("e3: mrr@5 >= 0.8 else x", 5), 20)


# What a gate asks of whole conversations: read, written again, and refused where it does not combine.


@pytest.mark.parametrize(
    ("text", "turns", "measure"),
    [
        ("c1: conversation(all(expectations)) >= 0.8 @95%", OverTurns("all"), "expectations"),
        ("c1[turn>=3]: conversation(all(token_f1>=0.5)) >= 0.8", OverTurns("all", (">=", 0.5)), "token_f1"),
        ("c1: conversation( mean( recall@k ) ) >= c2 - 0.1", OverTurns("mean"), "recall@5"),
        ("xfail c1: conversation(worst(faithfulness)) >= .3 -- weak", OverTurns("worst"), "faithfulness"),
        ("c1: drift(recall@5) >= -0.05 @95% else look", OverTurns("drift"), "recall@5"),
        ("c1: pass^3(conversation(all(token_f1>=0.5))) >= 0.9", OverTurns("all", (">=", 0.5)), "token_f1"),
        ("c1: pass^3(conversation(mean(token_f1))>=0.5) >= 0.9", OverTurns("mean"), "token_f1"),
        ("c1: worst_of_3(conversation(mean(token_f1))) >= 0.9", OverTurns("mean"), "token_f1"),
    ],
)
def test_a_gate_is_read_and_written_again(text: str, turns: OverTurns, measure: str) -> None:
    gate = parse_gate(text, 5)
    assert (gate.turns, gate.measure) == (turns, measure)
    assert parse_gate(str(gate), 5) == gate
    assert gate.counts == "conversations"


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("conversation(expectations)", "is nothing that is asked of conversations"),
        ("conversation(median(x))", "is nothing that is asked of conversations"),
        ("conversation(all(x)", "is nothing that is asked of conversations"),
        ("conversation(mean(x))~calibrated", "is nothing that is asked of conversations"),
        ("conversation(pass^3(x))", "repeats stand around a conversation"),
        ("conversation(mean(pass^3(x)))", "repeats stand around a conversation"),
        ("pass^3(drift(x))", "has no repeats"),
        ("conversation(mean(x~calibrated))", "people's labels are of single answers"),
        ("p95(conversation(worst(x)))", "conversations have no quantile here"),
        ("conversation(worst(p95(x)))", "a conversation has no quantile"),
        ("conversation(mean(x>=2))", "only conversation\\(all\\(…\\)\\) takes a condition"),
        ("drift(x>=1)", "only conversation\\(all\\(…\\)\\) takes a condition"),
        ("conversation(all(x==1))", "is not a comparison"),
        ("worst_of_3(conversation(all(x))>=0.5)", "takes the values themselves"),
    ],
)
def test_what_does_not_combine_is_refused(what: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        parse_gate(f"c1: {what} >= 1", 5)


def test_a_baseline_has_no_conversations() -> None:
    with pytest.raises(SettingsError, match="a baseline does not keep why a turn has no value"):
        parse_gate("c1: conversation(mean(x)) >= baseline", 5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("c1: conversation(mean(token_f1)) >= 3", r"conversation\(mean\(token_f1\)\) lies between 0 and 1"),
        ("c1: conversation(all(total_ms<=9)) >= 3", "lies between 0 and 1"),
        ("c1: conversation(all(token_f1>=50)) >= 0.3", "token_f1 lies between 0 and 1; 50 does not"),
        ("c1: drift(token_f1) >= -5", "a share changes by 1 a turn at most"),
    ],
)
def test_a_threshold_that_cannot_be_is_refused(text: str, problem: str) -> None:
    known = KnownNames({"c1"}, {}, lambda _: None, lambda name: name == "token_f1")
    with pytest.raises(SettingsError, match=problem):
        check_gate(parse_gate(text, 5), known)


@pytest.mark.parametrize(
    ("n", "counted"), [(0, "n=0 conversations"), (1, "n=1 conversation"), (2, "n=2 conversations")]
)
def test_conversations_are_counted(n: int, counted: str) -> None:
    gate = parse_gate("c1: conversation(all(token_f1)) >= 0.5", 5)
    assert Verdict(gate, "passed", n=n).counted == counted


def test_units_and_stop_rules() -> None:
    units = {what: unit_of(parse_gate(f"c1: {what} >= 0", 5)) for what in ("conversation(all(total_ms<=9))",)}
    assert units == {"conversation(all(total_ms<=9))": "share"}
    assert unit_of(parse_gate("c1: drift(token_f1) >= 0", 5)) == "score"
    assert unit_of(parse_gate("c1: conversation(worst(total_ms)) <= 9", 5)) == "ms"
    stopping = parse_gate("c1: conversation(all(token_f1)) >= 0.5 @95%", 5)
    assert why_not(stopping, "share") == "a gate over whole conversations has no stop rule"


# A gate of a run that was stopped fails only where no other answers could save it.


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


# Gates of an ini file are about the data that it names.

E3, GOLDEN = "e3: recall@5 >= 0.5", "recall@k >= 0.5"
INI = {"kb_dir": "data/kb", "golden": "golden.json", "gate": [E3, GOLDEN]}


def elsewhere(ini: dict[str, Any], **changes: Any) -> dict[str, str]:
    settings = replace(Settings(), rootdir="/repo", gate=tuple(ini.get("gate", ())), **changes)
    ours, others = gates_by_data(settings, ini)
    assert sorted([*ours, *(text for text, _ in others)]) == sorted(settings.gate)
    return dict(others)


@pytest.mark.parametrize(
    "changes",
    [{}, {"kb_dir": "/repo/data/kb"}, {"kb_dir": "/repo/../repo/data/kb/"}, {"queries": "/repo/data/kb/queries.jsonl"}],
)
def test_the_same_place_by_another_name_is_the_same_data(changes: dict[str, str]) -> None:
    assert elsewhere(INI, **changes) == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"kb_dir": "docs"}, dict.fromkeys([E3, GOLDEN], "set for data/kb, this run is on docs")),
        ({"kb_dir": "/mine"}, dict.fromkeys([E3, GOLDEN], f"set for data/kb, this run is on {Path('/mine')}")),
        ({"queries": "q.jsonl"}, {E3: "set for data/kb/queries.jsonl, this run is on q.jsonl"}),
        ({"golden": "other.csv"}, {GOLDEN: "set for golden.json, this run is on other.csv"}),
        (
            {"dataset": "beir:nf"},
            {E3: "set for data/kb, this run is on beir:nf", GOLDEN: "set for golden.json, this run is on beir:nf"},
        ),
    ],
)
def test_other_data_are_named(changes: dict[str, str], expected: dict[str, str]) -> None:
    assert elsewhere(INI, **changes) == expected


def test_an_ini_file_that_names_no_data_claims_none() -> None:
    assert elsewhere({"gate": [E3, GOLDEN]}, kb_dir="docs", golden="other.csv") == {}


def test_a_collection_of_the_ini_file_is_its_data() -> None:
    ini = {"dataset": "beir:nf", "gate": [GOLDEN]}
    assert elsewhere(ini, dataset="beir:/repo/nf") == {}
    assert elsewhere(ini, dataset="beir:/repo/other") == {GOLDEN: "set for beir:nf, this run is on beir:/repo/other"}


def test_a_collection_with_questions_is_the_data_of_experiments_too() -> None:
    assert elsewhere({**INI, "gate": [E3]}, dataset="mtrag:mt/fiqa") == {
        E3: "set for data/kb, this run is on mtrag:mt/fiqa"
    }
    ini = {"kb_dir": "data/kb", "dataset": "mtrag:mt/fiqa", "gate": [E3]}
    assert elsewhere(ini, kb_dir="data/kb", dataset="mtrag:/repo/mt/fiqa") == {}
    assert elsewhere(ini, dataset="mtrag:mt/govt") == {E3: "set for mtrag:mt/fiqa, this run is on mtrag:mt/govt"}


def test_gates_of_the_environment_replace_those_of_the_file_and_are_judged() -> None:
    settings = replace(Settings(), gate=(E3,), kb_dir="docs")
    assert gates_by_data(settings, INI) == ((E3,), ())
