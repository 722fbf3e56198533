"""The run in brief on a terminal: it fits, it is short, and it makes sense whatever there is to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from rag_harness.records.manifest import RunManifest, SuiteRecord
from rag_harness.records.scores import CauseLine
from rag_harness.runs.gates import Gate, parse_gate
from rag_harness.tables.brief import Brief, Shortfall, brief_of, shortfalls
from rag_harness.tables.brief_lines import Line, brief_lines, quiet_lines
from rag_harness.tables.brief_sentences import first_sentences
from rag_harness.tables.suite_table import CaseState, SuiteTable
from rag_harness.tables.wording import beginning_that_fits, end_that_fits
from tests.unit.tables.standing_tables import Values, kinds, table

RNG = np.random.default_rng(9)
LONG = "an-experiment-with-a-very-long-name-" * 4
HEBREW = "שאלה על החזרות של מנורות"


def values(n: int, mean: float) -> Values:
    return [float(each) for each in np.clip(RNG.normal(mean, 0.2, n), 0, 1)]


def make(
    tables: dict[str, SuiteTable], gates: Sequence[dict[str, Any]] = (), causes: Sequence[CauseLine] = (), **more: Any
) -> Brief:
    records = {
        name: SuiteRecord(
            data=more.get("data", {}).get(name, "queries"),
            file="",
            fingerprints=[],
            total=len(found.ids),
            selected="all",
            authors=more.get("judges", []),
            asks_model=dict.fromkeys((judge for judge, _, _ in more.get("judges", [])), True),
        )
        for name, found in tables.items()
    }
    for found in tables.values():
        found.totals.rows = len(found.ids)
    settings = {"attribute": more.get("attribute", True), "k": more.get("k", 10), "headline": more.get("headline", [])}
    return brief_of(tables, RunManifest(date="2026-01-01", settings=settings, suites=records), gates, causes)


def later(*args: Any, **more: Any) -> Callable[[], Brief]:
    """Make a brief when a test first asks for it: many experiments take time, and every worker collects this."""
    return cache(partial(make, *args, **more))


def cause(name: str, n: int, kind: str = "Retrieval Miss", detail: str = "not found") -> CauseLine:
    return CauseLine(
        experiment=name,
        query_id=f"q{n:03}",
        query=HEBREW,
        cause=kind,
        detail=detail,
        evidence=f"page-{n}.md is in the index, but not among the candidates: “{HEBREW}”",
        remedy="hybrid retrieval, a better embedder, or more candidates: --rag-candidates",
    )


def gate(text: str, state: str, **fields: Any) -> dict[str, Any]:
    return {"gate": text, "state": state, "value": 0.5, "threshold": 0.4, "interval": [0.45, 0.55], "n": 40, **fields}


def whole(name: str, n: int = 40, mean: float = 0.5) -> SuiteTable:
    measured = {each: values(n, mean) for each in ("recall_at_5", "evidence_recall", "token_f1", "faithfulness")}
    return table(kinds(any=n), **measured, answer_relevancy=values(n, mean))


ONE = {"e3": whole("e3")}
FOUR = {name: whole(name, mean=0.3 + 0.1 * place) for place, name in enumerate(("e1", "e2", "e3", "e4"))}
MANY = {f"e{n}-{LONG}" if n % 3 else f"e{n}": whole("", mean=0.5) for n in range(40)}
for name in [*MANY][17:]:  # twice what is shown; to set 40 against each other takes seconds
    del MANY[name]
BROKEN = {"e1": whole("e1", 5)}
BROKEN["e1"].states[:] = CaseState.ERROR
BROKEN["e1"].totals.errors = 5
GATES = [
    gate("e3: recall@5 >= 0.4", "passed"),
    gate("e3: token_f1 >= 0.4 @95%", "undecided", confidence=0.95, bounds=[0.39, 0.61]),
    gate(f"e3[query_type={HEBREW}]: token_f1 >= 0.6", "failed"),
    gate("e9: token_f1 >= 0.4", "not judged", value=None, threshold=None, interval=None),
]
BAD_INPUT = {
    "one": later(ONE, GATES, [cause("e3", n) for n in range(20)]),
    "four": later(FOUR, GATES, [cause(name, n) for name in FOUR for n in range(20)]),
    "many": later(MANY, [*GATES, *[gate(f"{name}: token_f1 >= 0.6", "failed") for name in MANY]]),
    "no gates, no causes": later(ONE, attribute=False),
    "no failures": later(ONE, GATES[:1]),
    "no gold, no judge": later({"e1": table(kinds(any=3)), "e2": table(kinds(any=3))}),
    "all failed": later(BROKEN, GATES[:1]),
    "nothing answered": later({}, GATES[3:]),
    "one case each": later({"e1": whole("", 1), "e2": whole("", 1)}),
    "two cases": later({"e1": whole("", 2), "e2": whole("", 2)}),
    "five kinds, one case each": later({"e1": table(kinds(a=1, b=1, c=1, d=1, e=1), token_f1=values(5, 0.4))}),
    "long names": later({LONG: whole("", 40), f"{LONG}2": whole("", 40, 0.9)}, GATES, [cause(LONG, 1)]),
    "no judge": later({"e1": whole("")}, judges=[]),
}


def text(lines: Sequence[Line]) -> str:
    return "\n".join(line.text for line in lines)


def faults_of(lines: Sequence[Line], width: int) -> Iterator[str]:
    # Commands are to be copied: they are never cut.
    yield from (line.text for line in lines if len(line.text) > width and "rag-harness" not in line.text)
    yield from (line.text for line in lines if "nan" in line.text.lower().replace("nantes", ""))
    yield from ("an empty line" for line in lines if not line.text.strip())


def test_every_line_fits() -> None:
    notes = [Line(f"error e3-q{n}: " + "the service said no " * 9, "red") for n in range(2)]
    faults = [
        f"{name}, {width} columns: {fault}"
        for name, made in BAD_INPUT.items()
        for width in (60, 80, 120)
        for fault in faults_of(brief_lines(made(), "output", width, notes=notes), width)
    ]
    assert not faults, "\n".join(faults)


AGAIN = "Ask again: --rag-mode=record --rag-rerecord"
RECORD = "Record it: pytest 'tests/test_app.py::test_answers' --rag-mode=record"


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("times", [1, 4, 40])
def test_a_long_message_is_shown_to_its_end_which_says_what_to_do(width: int, times: int) -> None:
    old = gate(
        "e3: token_f1 >= 0.6", "stale", reason=f"{'the oldest answer is 40 days old; ' * times}{AGAIN}", threshold=0.6
    )
    none = {"value": None, "threshold": None, "interval": None}
    unjudged = gate(f"e3: {'a' * 90} >= 0.6", "failed", reason=f"{'no case has a value; ' * times}{AGAIN}", **none)
    note = Line(f"error e3-q1: {'POST http://127.0.0.1/v1 is not recorded; ' * times}{RECORD}", "red")
    lines = brief_lines(make(ONE, [old, unjudged]), "output", width, notes=[note])
    shown = " ".join(text(lines).split())
    assert shown.count(AGAIN) == 2
    assert RECORD in shown
    assert "error e3-q1: POST" in shown
    assert len(lines) <= 26, "however long a message is"


PARTS = st.text("ab1", min_size=1, max_size=6)
BRACKETED = (
    st.lists(PARTS, min_size=1, max_size=4)
    .map(", ".join)
    .flatmap(lambda inner: st.sampled_from([f"({inner})", f"[{inner}]", f"“{inner}”"]))
)
TEXTS = st.lists(
    st.tuples(PARTS | BRACKETED, st.sampled_from(["", "", ",", ";", "."])).map("".join), min_size=1, max_size=40
).map(" ".join)


@given(TEXTS, st.integers(5, 60))
def test_a_text_is_cut_outside_of_brackets_and_fits(said: str, room: int) -> None:
    def fits(text: str) -> bool:
        return len(text) <= room

    for cut, whole in ((beginning_that_fits(said, fits), said.startswith), (end_that_fits(said, fits), said.endswith)):
        left = cut.removesuffix(" …").removeprefix("… ")
        assert len(cut) <= room
        assert whole(left)
        assert all(left.count(first) == left.count(last) for first, last in ("()", "[]", "“”"))
        assert (cut == said) == (len(said) <= room) or not cut


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("3 wrong, 4 declined (a1, a2 and 12 more)", "3 wrong, 4 declined …"),
        ("3 wrong (a1, a2, a3 and 12 more in an earlier run)", "3 wrong …"),
        ("three are wrong; Each is best at something else", "three are wrong …"),
        ("no clause of this long text ends soon", "no clause of this long …"),
        ("e1, no other clause of this long text ends soon", "e1, no other clause of …"),
        ("Set a gate, e.g. recall@5 >= 0.8, or more", "Set a gate …"),
        ("(all that is said is in brackets)", ""),
    ],
)
def test_a_text_is_cut_behind_a_clause_unless_little_is_left_of_it(said: str, shown: str) -> None:
    assert beginning_that_fits(said, lambda text: len(text) <= 25) == shown


def test_a_long_hostile_text_is_cut_fast_enough_to_be_printed() -> None:
    for hostile in ("(" * 200_000, "(a, " * 50_000, "a, b " * 50_000, "[“(" * 50_000, " " * 200_000):
        assert len(brief_lines(make(ONE, GATES[:1]), "output", notes=[Line(hostile)])) < 20


def test_sentences_have_no_figure_that_is_none() -> None:
    said = [(name, each.text) for name, made in BAD_INPUT.items() for each in first_sentences(made())]
    assert [each for each in said if "nan" in each[1].lower() or "None" in each[1]] == []


def test_one_experiment_takes_15_lines_and_four_23() -> None:
    passing, causes = GATES[:1] + GATES[3:], [cause(name, n) for name in FOUR for n in range(20)]
    # The head of the section is a line, too. What a gate is expected to fail has up to two lines more.
    assert len(brief_lines(make(ONE, passing, [cause("e3", n) for n in range(20)]), "output")) <= 14
    assert len(brief_lines(make(FOUR, passing, causes), "output")) <= 22


def test_quiet_is_quiet_lines_and_gates_and_answers_may_take_two() -> None:
    assert {name: lines for name, made in BAD_INPUT.items() if len(lines := quiet_lines(made(), "output")) > 5} == {}
    known = [gate("e3: token_f1 >= 0.9", "xfailed"), *GATES[:1]]
    said = text(quiet_lines(make(ONE, known), "output"))
    assert "1 failed as expected" in said
    assert "nearest to failing" not in said
    assert "failed as expected: " not in said


def test_quiet_begins_with_where_answers_come_from_then_notes() -> None:
    said = quiet_lines(make(ONE, GATES[:1]), "output", origins=[Line("answers: old")], notes=[Line("lost", "yellow")])
    assert [line.text.split()[0] for line in said] == ["answers:", "note", "gates", "rag", "next"]


def test_experiments_that_differ_only_in_other_measures_are_not_called_without_values() -> None:
    alike = {
        name: table(kinds(any=3), token_f1=[0.5] * 3, mrr_at_10=[place] * 3)
        for place, name in ((0.1, "e1"), (0.2, "e2"))
    }
    said = text(brief_lines(make(alike), "output"))
    assert "best     the measures below do not tell the experiments apart" in said
    assert "all the same: token_f1 0.500" in said


RIGHT = table(kinds(any=4), correct=[1.0] * 4, token_f1=[0.9] * 4)
WRONG_ONES = table(kinds(any=4), correct=[0.0, 0.0, 1.0, 1.0], token_f1=[0.9] * 4)


@pytest.mark.parametrize(
    ("made", "explains"),
    [
        (later({"e1": RIGHT}, attribute=False), False),
        (later({"e1": RIGHT}), False),
        (later({"e1": WRONG_ONES}, attribute=False), True),
        (later({"e1": RIGHT, "e2": WRONG_ONES}), True),
        (later({"e1": RIGHT}, [gate("e1: token_f1 >= 0.95", "failed")]), True),
        (BAD_INPUT["no gold, no judge"], False),
        (BAD_INPUT["no gates, no causes"], True),
        (BAD_INPUT["all failed"], False),
    ],
)
def test_the_next_command_explains_only_where_something_may_be_wrong(made: Callable[[], Brief], explains: bool) -> None:
    command = "rag-harness explain output"
    assert (command in text(brief_lines(made(), "output"))) == explains
    assert (command in text(quiet_lines(made(), "output"))) == explains
    assert quiet_lines(made(), "output")[-1].text.startswith("next     rag-harness ")


def test_the_experiment_of_which_causes_are_told_is_named_with_the_reason() -> None:
    both = {"e1": RIGHT, "e2": WRONG_ONES}

    def why(tables: dict[str, SuiteTable], *names: str) -> str:
        said = text(brief_lines(make(tables, GATES[:1], [cause(name, 0) for name in names]), "output", 120))
        return next(line for line in said.splitlines() if line.startswith("why"))

    assert why({"e2": WRONG_ONES}, "e2") == "why      2 wrong: 1 retrieval miss, 1 without a cause"
    assert why(both, "e2").startswith("why      e2, the first with causes: 2 wrong")
    fewer = {"e1": WRONG_ONES, "e2": table(kinds(any=4), correct=[0.0] * 4, token_f1=[0.9] * 4)}
    assert why(fewer, "e1").startswith("why      e1, fewest wrong answers: 2 wrong")
    assert why(fewer, "e1", "e2").startswith("why      e1, fewest wrong answers (e2: -v): 2 wrong")
    assert why(FOUR, "e4").startswith("why      e4, best in ")


def test_heads_of_columns_that_do_not_speak_for_themselves_have_a_legend() -> None:
    found = {
        name: table(kinds(any=9), evidence_recall=values(9, mean), hri=values(9, mean), g_mean=values(9, mean))
        for name, mean in (("e1", 0.2), ("e2", 0.6))
    }
    said = " ".join(text(brief_lines(make(found), "output")).split())
    assert (
        "evidence: quotes of evidence that were retrieved; risk: hallucination risk, lower is better; g_mean:" in said
    )
    plain = {name: table(kinds(any=9), recall_at_5=values(9, mean)) for name, mean in (("e1", 0.2), ("e2", 0.6))}
    assert "lower is better" not in text(brief_lines(make(plain), "output"))


def test_intervals_of_comparisons_are_told_apart_from_those_of_gates() -> None:
    said = text(brief_lines(BAD_INPUT["four"](), "output"))
    assert "Intervals by Holm, unlike a gate's." in said
    assert "Holm" not in text(brief_lines(BAD_INPUT["one"](), "output"))


def test_quiet_says_who_is_ahead_on_which_data() -> None:
    tables = {name: table([{}] * 60, recall_at_5=values(60, mean)) for name, mean in (("e1", 0.2), ("e2", 0.9))}
    alone = quiet_lines(make(tables), "output", 100)[1].text
    assert alone.endswith("answered; e2 is best")
    book = {name: table([{}] * 60, recall_at_5=values(60, mean)) for name, mean in (("t1", 0.2), ("t2", 0.9))}
    both = quiet_lines(make({**tables, **book}, data={"t1": "book", "t2": "book"}), "output", 100)[1].text
    assert "book: t2 is best" in both
    assert "queries: e2 is best" in both


def test_failed_gates_come_first_in_red_and_undecided_ones_in_yellow() -> None:
    lines = brief_lines(BAD_INPUT["one"](), "output")
    assert lines[0].text.startswith("FAILED")
    assert lines[0].colour == "red"
    (open_gate,) = [line for line in lines if line.text.startswith("UNDECIDED e3: token_f1 >= 0.4 @95%")]
    assert open_gate.colour == "yellow"
    (counts,) = [line.text for line in lines if line.text.startswith("gates")]
    assert "1 undecided" in counts
    assert "unsure" not in text(lines).lower()
    assert not any(line.colour == "green" for line in lines if line.text.startswith("gates"))


def test_many_failed_gates_are_counted() -> None:
    lines = text(brief_lines(BAD_INPUT["many"](), "output"))
    assert "and 15 failed gates more: -v" in lines
    assert "… and 9 more: -v" in lines


def test_no_gate_is_said_to_stop_nothing_and_an_interrupted_run_to_be_unjudged() -> None:
    bare = BAD_INPUT["no gates, no causes"]()
    assert "nothing stops a release" in text(brief_lines(bare, "output"))
    assert "not judged: the run ended early" in text(brief_lines(bare, "output", is_open=True))
    assert "nothing stops" not in text(brief_lines(bare, "output", is_open=True))


def test_errors_are_said_in_the_first_line_in_red() -> None:
    first = brief_lines(BAD_INPUT["all failed"](), "output")[0]
    assert first.text.startswith("rag      0 of 5 answered; 5 errors")
    assert first.colour == "red"


def test_who_is_no_llm_is_said() -> None:
    found = whole("e3")
    found.totals.models["embedded/extractive"] = 40
    brief = make({"e3": found}, judges=[("fused", "gpt-5", "1")])
    said = text(brief_lines(brief, "output"))
    assert "by embedded/extractive, NOT an LLM; judged by gpt-5 (an LLM, method fused)" in " ".join(said.split())


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["one", "four", "no gold, no judge", "all failed", "long names"])
def test_what_a_person_sees(name: str, width: int, snapshot: SnapshotAssertion) -> None:
    assert text(brief_lines(BAD_INPUT[name](), "output", width)) == snapshot
    assert "\n".join(f"{each.topic}: {each.text}" for each in first_sentences(BAD_INPUT[name]())) == snapshot


@pytest.mark.parametrize(
    ("ranks", "line", "commands"),
    [
        ([1, 2, 9], "golden   2 of 3 found an expected document among the first 3 hits, 1 missed", 2),
        ([1, 2, 3], "golden   3 of 3 found an expected document among the first 3 hits", 1),
    ],
)
def test_a_run_of_the_golden_suite_alone_speaks_of_its_questions(ranks: list[int], line: str, commands: int) -> None:
    values = [1 / rank if rank <= 3 else 0.0 for rank in ranks]
    found = table(kinds(any=len(ranks)), mrr_at_3=values, recall_at_3=[float(rank <= 3) for rank in ranks])
    brief = make({"golden": found}, [gate("golden: recall@3 >= 0.4", "passed")], k=3)
    lines = [each.text for each in brief_lines(brief, "output")]
    assert lines[0] == line
    explained = "rag-harness explain output"
    assert [explained in each for each in lines[-commands:]] == [True, False][-commands:]
    assert "answered" not in "".join(lines)
    gates, golden, following = (each.text for each in quiet_lines(brief, "output"))
    assert (gates.split()[0], golden) == ("gates", line)
    assert following == f"next     {explained if commands > 1 else 'rag-harness report output -o report.html'}"


@pytest.mark.parametrize("names", [["e1"], ["e1", "e2"]])
def test_a_measure_of_the_headline_without_a_value_is_named_on_the_first_screen(names: list[str]) -> None:
    said = "rag_headline names hri and g_mean, of which no experiment has a value"
    brief = make({name: whole(name) for name in names}, headline=["faithfulness, hri", "g_mean"])
    assert said in " ".join(line.text.strip() for line in brief_lines(brief, "output"))
    assert any(f"{said}." in sentence.text for sentence in first_sentences(brief) if sentence.topic == "best")
    brief = make({name: whole(name) for name in names}, headline=["faithfulness"])
    assert "rag_headline" not in " ".join(line.text for line in brief_lines(brief, "output"))


# How many answers are wrong, and how many more are below a failed gate.

N, WRONG = 40, 6
LABELS = kinds(any=N)


def line(n: int, cause: str = "Logic Failure") -> CauseLine:
    return CauseLine(experiment="e1", query_id=f"q{n:03}", cause=cause, remedy="a stronger model")


def of_e1(causes: list[CauseLine], *gates: Gate, checked: bool = True) -> Shortfall:
    correct = {"correct": [0.0] * WRONG + [1.0] * (N - WRONG)} if checked else {}
    found = table(LABELS, token_f1=[0.1] * 10 + [0.9] * (N - 10), **correct)
    return shortfalls({"e1": found}, causes, gates)["e1"]


def test_a_threshold_moves_no_count_of_wrong_answers() -> None:
    without = of_e1([line(n) for n in range(WRONG)])
    gated = of_e1([line(n) for n in range(10)], parse_gate("e1: token_f1 >= 0.5", 10))
    assert (without.n, without.below, without.below_said) == (WRONG, 0, "")
    assert (gated.n, gated.below, gated.below_said) == (WRONG, 4, "4 more below a failed gate")
    assert without.causes == gated.causes == {"Logic Failure": WRONG}


def test_gates_of_others_over_repeats_or_on_differences_count_no_answers() -> None:
    texts = ("e2: token_f1 >= 0.5", "e1: p50(token_f1) >= 0.95", "e1: token_f1 > e2")
    assert of_e1([line(0)], *(parse_gate(text, 10) for text in texts)).below == 0


def test_right_answers_that_were_looked_into_are_not_counted() -> None:
    found = of_e1([line(0), line(30, "Judge Doubtful")])
    assert (found.n, found.causes, found.is_sample) == (WRONG, {"Logic Failure": 1}, False)


def test_where_nothing_was_checked_the_worst_are_a_sample() -> None:
    found = of_e1([line(n) for n in range(10)], checked=False)
    assert (found.n, found.is_sample) == (10, True)
