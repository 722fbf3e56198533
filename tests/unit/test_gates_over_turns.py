"""What a gate asks of whole conversations: read, written again, and refused where it does not combine."""

from __future__ import annotations

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.runs.gates import KnownNames, Verdict, check_gate, parse_gate
from rag_harness.runs.gates.configuration import unit_of
from rag_harness.runs.gates.early_stopping import why_not
from rag_harness.runs.gates.grammar import OverTurns


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
        ("conversation(all(x==1))", "is no comparison"),
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
