"""What stands beside a gate's value never contradicts its verdict."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.runs.gates import Verdict, judge, parse_gate
from rag_harness.runs.gates.evidence import beside_bounds, decisive_ends, how_sure
from rag_harness.tables.gate_states import gates_state
from rag_harness.tables.summary import verdict_json
from tests.unit.report.standing_tables import kinds, table


def said(text: str, state: str, **fields: Any) -> dict[str, Any]:
    usual = {"value": 0.711, "threshold": 0.5, "interval": [0.47, 0.89], "n": 18, "unit": "share"}
    return {"gate": text, "state": state, **usual, **fields}


def sure(text: str, state: str, **fields: Any) -> str:
    return how_sure(said(text, state, **fields), parse_gate(text, 10))


AT = {"confidence": 0.95}


@pytest.mark.parametrize(
    ("text", "state", "fields", "shown"),
    [
        ("e1: recall@3 >= 0.5", "passed", {}, "[0.47, 0.89]"),
        ("e1: recall@3 >= 0.5 @95%", "passed", {"bounds": [0.502, 0.87], **AT}, "at least 0.502"),
        ("e1: recall@3 >= 0.5 @95%", "failed", {"bounds": [0.1, 0.4996], **AT}, "at most 0.4996"),
        ("e1: recall@3 >= 0.5 @95%", "undecided", {"bounds": [0.45, None], **AT}, "between 0.450 and …"),
        ("e1: error_rate <= 0.5 @95%", "passed", {"bounds": [0.1, 0.4], **AT}, "at most 0.400"),
        ("e1: error_rate <= 0.5 @95%", "failed", {"bounds": [0.6, 0.9], **AT}, "at least 0.600"),
        # Failed because a case was lost, though its bounds would have passed it.
        ("e1: recall@3 >= 0.5 @95%", "failed", {"bounds": [0.502, 0.87], **AT}, "at least 0.502"),
        ("e1: recall@3 >= e2 + 0.01 @95%", "passed", {"bounds": [0.02, 0.3], **AT}, "difference at least 0.020"),
        ("e1: recall@3 >= e2", "passed", {"interval": [-0.1, 0.3]}, "difference [-0.10, +0.30]"),
        # An early stop decides by other means than bounds: the interval could contradict it.
        ("e1: recall@3 >= 0.5 @95%", "passed", {"bounds": None, **AT}, ""),
        ("e1: recall@3 >= 0.5", "not judged", {"interval": None}, ""),
    ],
)
def test_what_stands_beside_a_value(text: str, state: str, fields: dict[str, Any], shown: str) -> None:
    assert sure(text, state, **fields) == shown


LOST = "1 case lost to a crash, so it cannot pass"
STATED = "at least 0.502 for cases like these"


@pytest.mark.parametrize(
    ("reason", "rest"),
    [
        (STATED, ""),
        (f"{STATED}, {LOST}", LOST),
        (f"{STATED}, by the paired t test", "by the paired t test"),
        (f"expected: e1 is small; {STATED}, {LOST}", f"expected: e1 is small; {LOST}"),
        ("at least 0.502 for these 40 cases", "these 40 cases"),
        ("the oldest answer is 40 days old", "the oldest answer is 40 days old"),
    ],
)
def test_bounds_are_said_once(reason: str, rest: str) -> None:
    text = "e1: recall@3 >= 0.5 @95%"
    found = said(text, "passed", bounds=[0.502, 0.87], reason=reason, **AT)
    assert beside_bounds(found, parse_gate(text, 10)) == rest
    assert beside_bounds({**found, "bounds": None}, parse_gate(text, 10)) == reason
    assert beside_bounds(found, None) == reason


@pytest.mark.parametrize(
    ("right", "shown"),
    [
        ("baseline - 0.1", "0.270 against 0.420 (baseline 0.520 - 0.1)"),
        ("e2 + 0.1", "0.270 against 0.420 (e2 0.320 + 0.1)"),
        ("baseline", "0.270 against 0.420"),
    ],
)
def test_a_limit_with_an_offset_says_what_it_is_of(right: str, shown: str) -> None:
    text = f"e1: token_f1 >= {right}"
    interval = (-0.56, 0.27)
    verdict = Verdict(parse_gate(text, 10), "failed", 0.27, 0.42, 8, interval)
    assert " ".join(verdict.line().split()) == f"failed {text} {shown}, difference [-0.56, +0.27] n=8"
    (line,) = gates_state([verdict_json(verdict)], {}, [], 10).failed
    assert line.figures == f"{shown}, difference [-0.56, +0.27]"


def test_what_is_drawn_are_the_bounds_where_they_decide() -> None:
    assert decisive_ends(said("", "passed", bounds=[0.502, None])) == (0.502, float("inf"))
    assert decisive_ends(said("", "passed", bounds=[None, 0.4])) == (float("-inf"), 0.4)
    assert decisive_ends(said("", "passed")) == (0.47, 0.89)


@given(st.integers(1, 60), st.integers(0, 60), st.sampled_from([0.3, 0.5, 0.8]), st.sampled_from([">=", "<="]))
def test_the_figure_of_a_brief_agrees_with_its_verdict(n: int, hits: int, threshold: float, op: str) -> None:
    values = [float(place < hits) for place in range(n)]
    tables = {"e1": table(kinds(any=n), hit_at_5=values)}
    verdict: Verdict = judge(parse_gate(f"e1: hit@5 {op} {threshold} @95%", 10), tables)
    line = gates_state([verdict_json(verdict)], tables, [], 10)
    shown = [*line.failed, *line.undecided, *([line.closest] if line.closest else [])]
    if not shown:
        return  # the interval has an open end, so that no gate is the closest
    figures = shown[0].figures
    assert "[" not in figures
    assert "[" not in verdict.line()
    assert not re.search("at (least|most)|between| to ", shown[0].reason)
    if one := re.search(r"at (least|most) ([\d.]+)$", figures):
        is_above = one[1] == "least"
        assert verdict.state == ("passed" if is_above == (op == ">=") else "failed")
        assert float(one[2]) >= threshold if is_above else float(one[2]) <= threshold
    elif both := re.search(r"between ([\d.]+) and ([\d.]+)$", figures):
        assert verdict.state == "undecided"
        assert float(both[1]) <= threshold <= float(both[2])
    else:
        assert verdict.bounds is None
