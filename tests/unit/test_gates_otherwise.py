"""The action of a gate that does not hold: how it is written, parsed, and shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.runs.gates import Gate, GateRules, Verdict, judge, parse_gate, verdict_lines
from rag_harness.runs.gates.configuration import measures_by_suite, read_gates
from rag_harness.runs.gates.early_stopping import EarlyStop
from rag_harness.runs.gates.grammar import Reference
from tests.unit.test_gates import Scores, of

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
        (f"{FLOOR} else", "nothing stands behind 'else'; write 'e3: recall@5 >= 0.8 else switch to e2'"),
        (f"{FLOOR} else  ", "nothing stands behind 'else'"),
        ("t1: zero_result_rate <= else use t2", "there is no threshold before 'else'; write 'e3: recall@5 >= 0.8 else"),
        ("t1: zero_result_rate <= else", "there is no threshold before 'else'"),
        ("t1: zero_result_rate else use t2", "no comparison in 'zero_result_rate else use t2'"),
        ("else use t2", "no comparison in 'else use t2'"),
        ("t1: zero_result_rate <= 0.15else use t2", "'0.15else use t2' on the right is no number"),
        (f"{FLOOR} Else use t2", "'0.15 Else use t2' on the right is no number"),
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
