"""Causes as a person reads them, which trials failed, and what trials show together."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from rag_harness.__main__ import main
from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, Document
from rag_harness.diagnosis import failures
from rag_harness.diagnosis.cause_lines import NOTHING_TO_EXPLAIN, cause_in_full, cause_lines, review, review_agreement
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.explainer import Explainer
from rag_harness.diagnosis.failures import (
    TOP_LEVEL,
    badness_of,
    failed_gates,
    possible_failures,
    rows_of,
    suspects,
    tables_of,
    worst_first,
)
from rag_harness.diagnosis.symptoms import AcrossTrials, WordSearch, drawn_from
from rag_harness.records.manifest import read_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, CauseLine, ScoreLine, read_causes, row_digest, write_causes
from rag_harness.runs.gates import parse_gate
from rag_harness.tables.suite_table import SuiteTable
from tests.browser.talks import Talks, hostile_talk, long_talk
from tests.unit.core.escaping.active import on_terminal
from tests.unit.diagnosis.made_up import CASES, explainer
from tests.unit.rows import make_chunk, make_row
from tests.unit.suite_tables import write_run

# Causes as a person reads them.


def line(n: int, **changes: object) -> CauseLine:
    usual = {
        "experiment": "e3",
        "query_id": f"q_direct_{n:03}",
        "query": "How long may I return a lamp that I bought in a sale, if the box is gone and so is the receipt? " * 2,
        "hri": 0.5,
        "cause": "Retrieval Miss",
        "detail": "not found",
        "evidence": f"page-{n}.md is in the index, but not among the candidates: “Sale items: 14 days to return.” " * 2,
        "remedy": "hybrid retrieval",
        "repaired_by": "+gold_context",
        "answers": {"+gold_context": {"answer": "14 days", "right": True, "value": 1.0}},
    }
    return CauseLine.model_validate(usual | changes)


def test_the_section_counts_shows_the_worst_ten_and_fits_100_columns() -> None:
    causes = [line(n) for n in range(12)]
    causes.append(line(1, experiment="e1", cause="Noise", detail="right when asked again", repaired_by="+twice"))
    wrong = {"e3": {each.query_id for each in causes[:9]} | {"unexplained"}, "e1": set[str]()}
    text = cause_lines(causes, "output", answers={"e3": 1200, "e1": 40}, wrong=wrong)
    assert text[:5] == [
        "why they failed           e3       e1",
        "Retrieval Miss            12        0",
        "Noise                      0        1",
        "explained        12 of 1,200  1 of 40",
        "of wrong ones        9 of 10        0",
    ]
    assert "e3: the worst 10 of 12: wrong ones first, then by hallucination risk (HRI)" in text
    assert "    Retrieval Miss: not found; +gold_context repairs it" in text
    assert text[-2:] == ["all 13: output/causes.jsonl", f"one whole: rag-harness explain output {causes[0].trial}"]
    assert max(map(len, text)) <= 100


def test_one_cause_of_all_is_said_once() -> None:
    nothing = {"detail": "no retriever", "evidence": "its rows have no context", "hri": None}
    text = cause_lines([line(n, **nothing) for n in range(10)], "output")
    start = text.index(
        "e3: all 10 for one cause; the worst, by words of the ground truth that the answer lacks: e3-q_direct_000"
    )
    assert text[start + 1 :] == [
        "    Retrieval Miss: no retriever; +gold_context repairs it",
        "    its rows have no context",
        "    -> hybrid retrieval",
        "",
        *text[-2:],
    ]


def test_what_would_not_repair_it_is_said_too() -> None:
    vain = {"+gold_context": {"answer": "?", "right": False, "value": 0.0}}
    assert "    Retrieval Miss: not found; +gold_context does not repair it" in cause_lines(
        [line(1, repaired_by="", answers=vain)], "output"
    )


def test_what_is_from_rows_alone_is_marked_with_the_reason() -> None:
    text = cause_lines([line(1, observational=True, limits="no recording", answers={}, repaired_by="")], "output")
    assert "e3: 1 of 1 causes are from rows and gold alone (observational): no recording" in text


def test_without_failures_it_says_so() -> None:
    assert cause_lines([], "output") == [NOTHING_TO_EXPLAIN]


def test_one_cause_whole() -> None:
    answers = {"+twice": {"answer": "", "why": "replayed"}, **line(1).answers}
    text = cause_in_full(line(1, answers=answers, reviewed_cause="Noise", reviewed_by="ada", category="Hallucination"))
    joined = "\n".join(text)
    assert max(map(len, text)) <= 100
    for said in (
        "trial        e3-q_direct_001",
        "cause        Retrieval Miss: not found",
        "repaired by  +gold_context",
        "reviewed     Noise, by ada",
        "tried        +twice: replayed",
        "tried        +gold_context: correct: 14 days",
    ):
        assert said in joined


@pytest.mark.parametrize(("words", "rows"), [(44, 1), (45, 2), (4 * 44, 4), (4 * 44 + 1, 4)])
def test_what_fits_100_columns_is_not_broken(words: int, rows: int) -> None:
    """The label takes 13 of them; four rows at most."""
    text = cause_in_full(line(1, evidence=" ".join("a" * words)))
    first = next(n for n, each in enumerate(text) if each.startswith("evidence"))
    last = next(n for n, each in enumerate(text) if each.startswith("repaired by"))
    assert last - first == rows
    assert len(text[first]) == 100
    assert text[last - 1].endswith(" …") is (words > 4 * 44)
    assert all(each.startswith(" " * 13 + "a") for each in text[first + 1 : last])


def test_what_was_tried_takes_few_rows() -> None:
    answers = {"+twice": {"answer": "", "why": "because " * 60}, "+no_context": {"answer": "so " * 200, "right": False}}
    text = cause_in_full(line(1, answers=answers))
    first, second = (n for n, each in enumerate(text) if each.startswith("tried"))
    assert (second - first, len(text) - second) == (2, 3)
    assert text[second].startswith("tried        +no_context: not correct: so so")


def test_of_many_experiments_forty_failures_are_shown_in_all() -> None:
    causes = [line(number, experiment=f"x{place}") for place in range(10) for number in range(6)]
    text = cause_lines(causes, "output")
    assert sum("the worst 4 of 6" in each for each in text) == 10
    assert sum(each.startswith("  x") for each in text) == 40


def test_a_category_never_stands_beside_a_cause() -> None:
    """It is the study's table by scores; of one trial the cause says what went wrong, by evidence."""
    told = line(1, category="Retrieval Failure", cause="Logic Failure", detail="misread")
    for text in (cause_lines([told], "output"), cause_in_full(told)):
        assert "Retrieval Failure" not in "\n".join(text)


# What the trials of an experiment show together.

THINGS = ("lamp", "kettle", "tent", "desk", "sofa", "scarf", "mirror", "pillow")
PAGES = [
    Document(f"{thing}.md", f"# The {thing}\n\nYou may return the {thing} within {n} days of delivery.", thing, {})
    for n, thing in enumerate(THINGS, 31)
]
SEARCH = WordSearch(CorpusView(None, PAGES))


def asked(n: int, answer: str = "", about: int | None = None, **changes: object) -> ExperimentResult:
    thing = THINGS[n]
    page = PAGES[n if about is None else about]
    said = answer or f"You may return the {thing} within {31 + n} days."
    chunk = make_chunk(f"{page.doc_id}#1", text=page.text)
    usual: dict[str, object] = {
        "query_id": f"q{n}",
        "query": f"How many days for the return of my {thing} after delivery?",
    }
    usual |= {"llm_answer": said, "ground_truth": f"Return the {thing} within {31 + n} days.", "abstained": False}
    return make_row(**(usual | {"retrieved_chunks": [chunk]} | changes))


def across(rows: Sequence[ExperimentResult]) -> AcrossTrials:
    return AcrossTrials(lambda: rows, SEARCH)


@pytest.mark.parametrize(("same", "of", "wanted"), [(3, 5, True), (3, 6, False), (2, 3, False), (8, 8, True)])
def test_one_answer_to_most_questions(same: int, of: int, wanted: bool) -> None:
    rows = [asked(n, "Ask our team." if n < same else "") for n in range(of)]
    assert bool(across(rows).same_answer(rows[0])) == wanted
    assert not across(rows).same_answer(asked(7, "Something else."))


def test_an_answer_that_is_right_for_all_and_a_refusal_are_no_one_answer() -> None:
    rows = [asked(n, "Yes, it may.", ground_truth="Yes, it may.") for n in range(5)]
    assert across(rows).same_answer(rows[0]) == ""
    rows = [asked(n, "I don't know.") for n in range(5)]
    assert across(rows).same_answer(rows[0]) == ""


def test_one_context_for_most_questions() -> None:
    rows = [asked(n, about=0) for n in range(5)]
    assert across(rows).same_context(rows[1]) == "5 of 5 different questions have this context"
    assert across([asked(n) for n in range(5)]).same_context(asked(1)) == ""


def asked_of(n: int, about: int, answer: str) -> ExperimentResult:
    """Ask for one thing; the context is that of another."""
    reference = (PAGES[n].doc_id,)
    return asked(n, answer, about, query=f"Return my {THINGS[n]}?", context_reference=reference)


def test_contexts_of_other_questions_are_seen_together() -> None:
    shifted = [asked_of(n, (n + 1) % 6, asked((n + 1) % 6).llm_answer) for n in range(6)]
    said = across(shifted).strange_context(shifted[0])
    assert said.startswith("kettle.md has the ground truth of q1")
    assert said.endswith("contexts of 6 of 6 questions belong to another")
    assert across([asked(n) for n in range(6)]).strange_context(asked(0)) == ""
    declined = [asked_of(n, (n + 1) % 6, "I don't know.") for n in range(6)]
    assert across(declined).strange_context(declined[0])


@pytest.mark.parametrize(
    "rows",
    [
        [asked_of(n, n + 1 if n < 2 else n, asked(n + 1).llm_answer) for n in range(6)],
        [asked_of(n, 7, asked(7).llm_answer) for n in range(6)],
        [asked_of(n, (n + 1) % 6, f"A {THINGS[n]} goes back within a fortnight, says the shop.") for n in range(6)],
    ],
    ids=["too few", "a page of no question", "the answer is of its own question"],
)
def test_a_context_that_fits_badly_is_a_plain_miss(rows: list[ExperimentResult]) -> None:
    assert across(rows).strange_context(rows[0]) == ""


def test_without_pages_nothing_is_said_of_contexts() -> None:
    rows = [asked(n) for n in range(5)]
    assert AcrossTrials(lambda: rows, None).strange_context(rows[0]) == ""
    assert WordSearch(CorpusView(None, [])).fit("How many days for the return?", ["x"]) is None


def test_the_place_of_a_passage_by_words() -> None:
    quote = "You may return the tent within 33 days of delivery."
    assert SEARCH.place_of("Return the tent within days of delivery?", quote) == 1
    assert SEARCH.place_of("Return the tent?", "It is green.") == 0


@pytest.mark.parametrize(
    ("answer", "above", "is_wrong"),
    [
        ("Tents go back to the shop beside the station.", "Tents go back to the shop beside the station.", True),
        ("Tents go back to the shop beside the station.", "Tents go back by post, or to the shop.", False),
        ("Tents go back by post.", "Tents go back by post, or to the shop.", False),
        ("Within 31 days.", "Send it within 31 days.", True),
        ("Within 33 days.", "Send it within 31 days.", False),
    ],
)
def test_a_page_above_is_the_wrong_one_where_the_answer_is_closer_to_it(
    answer: str, above: str, is_wrong: bool
) -> None:
    right = "Tents go back by post, or to the shop, within 33 days."
    chunks = [make_chunk("lamp.md#1", text=above), make_chunk("tent.md#1", text=right)]
    said = across([]).wrong_above(asked(2, answer, retrieved_chunks=chunks), {"tent.md"}, 2)
    assert said == ("the answer goes with lamp.md at place 1, above tent.md at place 2" if is_wrong else "")


def test_an_answer_is_drawn_from_the_one_text_with_most_of_its_words() -> None:
    texts = ["Parcels leave at noon.", "You may return the tent within 33 days of delivery by post."]
    assert drawn_from("Return the tent within 33 days of delivery by post.", texts) == 2
    assert drawn_from("Return the tent within 33 days of delivery by post.", [texts[1], texts[1]]) == 0
    assert drawn_from("Noon.", texts) == 0


def test_what_no_answer_is_drawn_from_is_unread() -> None:
    def row(n: int, read: int) -> ExperimentResult:
        chunks = [make_chunk(f"{PAGES[i].doc_id}#1", text=PAGES[i].text) for i in ((n + 1) % 8, n)]
        thing = (n + 1) % 8 if read == 1 else n
        return asked(
            n, f"You may return the {THINGS[thing]} within {31 + thing} days of delivery.", retrieved_chunks=chunks
        )

    first = across([row(n, 1) for n in range(5)])
    assert first.unread(2) == "none of 5 answers is drawn from a chunk behind place 1, and 5 truths are there"
    assert first.unread(1) == ""
    assert across([row(n, 1 + n % 2) for n in range(5)]).unread(2) == ""


# What ``rag-harness explain`` prints of a turn: the chat so far, shortened, above why it failed.


def explained(output: Path, trial: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["explain", str(output), trial, "--rows-only"]) == 0
    return capsys.readouterr().out


def test_the_chat_stands_above_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    Talks().write(tmp_path)
    trials = ("c2-own-lamp#4", "c1-lamp#3", "c2-own-lamp#2", "c1-own-rtl#3", "c1-lamp#1")
    assert "\n".join(f"$ explain {trial}\n{explained(tmp_path, trial, capsys)}" for trial in trials) == snapshot


def test_of_a_long_chat_the_last_turns_are_shown_and_the_others_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Talks(("c1",), long_talk()).write(tmp_path)
    lines = explained(tmp_path, "c1-long#100", capsys).splitlines()
    assert lines[0] == "before       93 turns that are not shown here"
    assert [line.split()[1] for line in lines if line.startswith("turn ")] == ["94", "95", "96", "97", "98", "99"]


def test_a_long_message_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Talks(("c1",), {"long": ["word " * 1000, "and?"]}).write(tmp_path)
    first, second, reply, *_ = explained(tmp_path, "c1-long#2", capsys).splitlines()
    assert first.startswith("turn 1       user: word")
    assert second.endswith("…")
    assert reply == "             reference reply: Reference 1."


def test_hostile_messages_do_nothing_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Talks(("c1-own",), hostile_talk()).write(tmp_path)
    for turn in range(1, 8):
        assert on_terminal(explained(tmp_path, f"c1-own-bad#{turn}", capsys)) == []


# A person confirms or corrects, and both are compared.


def saying(*answers: str) -> Callable[[str], str]:
    each = iter(answers)

    def ask(_: str) -> str:
        try:
            return next(each)
        except StopIteration:
            raise EOFError from None

    return ask


def test_each_answer_is_kept_at_once_and_what_was_reviewed_is_not_asked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_causes(tmp_path, [line(1), line(2), line(3), line(4)])
    noise = str(TOP_LEVEL.index("Noise") + 1)
    assert review(tmp_path, "ada", saying("", "99", noise, "s", "q")) == 0
    found = read_causes(tmp_path)
    assert [each.reviewed_cause for each in found] == ["Retrieval Miss", "Noise", "", ""]
    assert [each.reviewed_by for each in found] == ["ada", "ada", "", ""]
    said = capsys.readouterr().out
    assert "'99' is none of these." in said
    assert "2 reviewed: 50% agree, Cohen's κ 0.00" in said
    assert "  1 × Retrieval Miss -> Noise" in said
    review(tmp_path, "bob", saying("y"))
    assert [each.reviewed_by for each in read_causes(tmp_path)] == ["ada", "ada", "bob", ""]


def test_kappa_of_machine_and_person() -> None:
    pairs = [("Noise", "Noise"), ("Noise", "Noise"), ("Noise", "Outdated Info"), ("Outdated Info", "Outdated Info")]
    seen = [line(n, cause=cause, reviewed_cause=said) for n, (cause, said) in enumerate(pairs)]
    # By hand: 3 of 4 agree; by chance (3·2 + 1·2) / 16 = 0.5.
    assert review_agreement(seen)[0] == "4 reviewed: 75% agree, Cohen's κ 0.50"
    assert "not defined" in review_agreement([line(1, reviewed_cause="Retrieval Miss")])[0]
    assert review_agreement([line(1)]) == ["nothing reviewed yet"]


def test_without_causes_it_says_how_to_find_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Find them first: rag-harness explain"):
        review(tmp_path)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("1", TOP_LEVEL[0]),
        (str(len(TOP_LEVEL)), TOP_LEVEL[-1]),
        (" YES ", "Retrieval Miss"),
        ("0", ""),
        (str(len(TOP_LEVEL) + 1), ""),
        ("-1", ""),
    ],
)
def test_a_cause_is_named_by_its_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: str, kept: str
) -> None:
    write_causes(tmp_path, [line(1)])
    review(tmp_path, "ada", saying(said))
    assert [each.reviewed_cause for each in read_causes(tmp_path)] == [kept]
    printed = capsys.readouterr().out
    assert (f"{said!r} is none of these." in printed) is (not kept)
    assert ", ".join(f"{n} {cause}" for n, cause in enumerate(TOP_LEVEL, 1)) in printed


def test_without_a_name_who_reviews_is_who_is_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "bert")
    asked: list[str] = []
    write_causes(tmp_path, [line(1), line(2)])
    review(tmp_path, ask=lambda question: asked.append(question) or "")  # type: ignore[func-returns-value]
    assert [each.reviewed_by for each in read_causes(tmp_path)] == ["bert", "bert"]
    assert asked == [f"right? enter: yes; 1-{len(TOP_LEVEL)}: another cause; s: skip; q: stop  "] * 2


def test_what_was_changed_most_comes_first() -> None:
    pairs = [("Noise", "Retrieval Miss"), *[("Noise", "Outdated Info")] * 2, ("Noise", "Noise")]
    seen = [line(n, cause=cause, reviewed_cause=said) for n, (cause, said) in enumerate(pairs)]
    assert review_agreement(seen)[1:] == ["  2 × Noise -> Outdated Info", "  1 × Noise -> Retrieval Miss"]


# Which trials failed, and in which order they are looked at.

AUTHOR = Author("mock", "mock/word-overlap", "1")
GOOD = {case.query.query_id: case.ground_truth for case in CASES}


def row(n: int, answer: str = "", **changes: object) -> ExperimentResult:
    case = CASES[n]
    chunk = make_chunk(f"{case.context_reference[0]}#chunk_2", text=case.evidence[0].quote)
    usual = {"experiment": "x1", "query_id": f"q{n}", "query": case.query.text, "retrieved_chunks": [chunk]}
    return make_row(**(usual | {"llm_answer": answer or GOOD[f"q{n}"], "ground_truth": case.ground_truth} | changes))


def score(of: ExperimentResult, measure: str, value: float) -> ScoreLine:
    return ScoreLine(measure, 1, "x1", of.query_id, row_digest(of), "", AUTHOR, value)


def judged(of: ExperimentResult, precision: float, faithful: float, relevant: float) -> list[ScoreLine]:
    names = ("context_precision", "faithfulness", "answer_relevancy")
    scores = [score(of, name, value) for name, value in zip(names, (precision, faithful, relevant), strict=True)]
    return [*scores, score(of, "nugget_recall", 0.1)]


def table(output: Path) -> SuiteTable:
    return tables_of(output, read_manifest(output))["x1"]


def run(output: Path, rows: list[ExperimentResult], scores: list[ScoreLine]) -> Explainer:
    write_run(output, rows, CASES[: len(rows)], scores=scores)
    return explainer(output, None)


def test_a_gate_that_failed_has_those_below_its_threshold_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "WORST", 0)
    rows = [row(n) for n in range(3)]
    scores = [line for n, each in enumerate(rows) for line in judged(each, 0.5, 0.5 + n / 10, 0.5)]
    write_run(tmp_path, rows, CASES[:3], scores=scores)
    verdicts = [
        {"gate": "x1: faithfulness >= 0.55", "state": "failed"},
        {"gate": "x1: faithfulness >= 0.65", "state": "passed"},
        {"gate": "x1: p95(total_ms) <= 1", "state": "failed"},
        {"gate": "x1: faithfulness >= x2", "state": "failed"},
        {"gate": "x1: pass^3(faithfulness) >= 0.9", "state": "failed"},
        {"gate": "x2: faithfulness >= 0.9", "state": "failed"},
    ]
    (tmp_path / "summary.json").write_text(json.dumps({"gates": verdicts}))
    gates = failed_gates(tmp_path, "x1", 10)
    assert [str(gate) for gate in gates] == ["x1: faithfulness >= 0.55"]
    assert list(suspects(table(tmp_path), failed=gates)) == ["q0"]
    assert list(suspects(table(tmp_path))) == []
    (tmp_path / "summary.json").write_text("[]")
    assert failed_gates(tmp_path, "x1", 10) == []


def test_failed_categories_are_all_taken_and_the_worst_beside_them_by_hri(tmp_path: Path) -> None:
    rows = [row(0, "Who knows?"), row(1, "Perhaps."), row(2, "Some day."), row(3)]
    scores = [
        *judged(rows[0], 0.9, 0.1, 0.5),  # Hallucination, HRI 0.45
        *judged(rows[1], 0.2, 0.9, 0.9),  # Retrieval Failure, HRI 0.09
        *judged(rows[2], 0.5, 0.5, 0.9),  # no failed category, HRI 0.45
        *judged(rows[3], 0.9, 0.9, 0.9),
    ]
    lines = run(tmp_path, rows, scores).every()
    assert [(line.query_id, line.category) for line in lines] == [
        ("q0", "Hallucination"),
        ("q2", ""),
        ("q1", "Retrieval Failure"),
    ]
    assert [round(line.hri or 0, 2) for line in lines] == [0.45, 0.45, 0.09]


@pytest.mark.parametrize("worst", [-1, 0, 1, 2, 99])
def test_so_many_of_the_worst_as_are_asked_for_are_looked_at_and_no_others(tmp_path: Path, worst: int) -> None:
    rows = [row(0), row(1, "I don't know.", abstained=True), row(2, "No idea.")]
    write_run(tmp_path, rows, CASES[:3], scores=judged(rows[0], 0.9, 0.1, 0.5))  # Hallucination, yet it is right
    gates = [parse_gate("x1: faithfulness >= 0.9", 10)]
    assert list(suspects(table(tmp_path), worst, gates)) == ["q1", "q2", "q0"][: max(worst, 0)]
    assert list(suspects(table(tmp_path), failed=gates)) == ["q1", "q2", "q0"]


def test_what_has_no_hri_comes_after_what_has_one(tmp_path: Path) -> None:
    rows = [row(0, "I don't know.", abstained=True), row(1, "Perhaps.")]
    lines = run(tmp_path, rows, judged(rows[1], 0.9, 0.3, 0.1)).every()
    assert [(line.query_id, line.category) for line in lines] == [("q1", "Hallucination"), ("q0", "Wrong Abstention")]


def test_a_right_answer_of_a_failed_category_makes_the_judge_doubtful(tmp_path: Path) -> None:
    rows = [row(0)]
    (line,) = run(tmp_path, rows, judged(rows[0], 0.9, 0.1, 0.9)).every()
    assert (line.cause, line.detail) == ("Judge Doubtful", "the answer is right")
    assert line.evidence == "Hallucination, yet the answer carries the gold"


def test_measures_that_contradict_the_category_make_it_doubtful_too(tmp_path: Path) -> None:
    rows = [row(0, "A month and a day.")]
    scores = [each for each in judged(rows[0], 0.9, 0.1, 0.9) if each.measure != "nugget_recall"]
    (line,) = run(tmp_path, rows, [*scores, score(rows[0], "nugget_recall", 0.9)]).every()
    assert line.detail == "measures contradict each other"
    assert "nugget_recall 0.90" in line.evidence


def test_without_a_judge_refusals_and_answers_that_share_no_word_come_first(tmp_path: Path) -> None:
    rows = [
        row(0),
        row(1, "I don't know.", abstained=True),
        row(2, "The tent may be returned within 5 days."),
        row(3, "No idea."),
    ]
    assert [line.query_id for line in run(tmp_path, rows, []).every()] == ["q1", "q3", "q2"]


def test_wrong_answers_come_first_then_what_nothing_checks_whatever_a_judge_says(tmp_path: Path) -> None:
    unchecked = row(3, "No idea, perhaps ask them.", ground_truth="")
    rows = [row(0), row(1, "I don't know.", abstained=True), row(2, "No idea."), unchecked]
    cases = [*CASES[:3], Case(CASES[3].query)]
    write_run(tmp_path, rows, cases, scores=judged(rows[0], 0.5, 0.3, 0.9))  # HRI 0.63, yet its answer is right
    found = table(tmp_path)
    assert [found.ids[place] for place in worst_first(found)] == ["q1", "q2", "q3", "q0"]
    assert list(suspects(found, worst=1)) == ["q1"]
    assert [found.ids[place] for place in possible_failures(found)] == ["q1", "q2"]


def test_how_bad_words_are_is_below_every_hri(tmp_path: Path) -> None:
    rows = [row(0), row(1, "I don't know.", abstained=True), row(2, "No idea.")]
    write_run(tmp_path, rows, CASES[:3])
    found = table(tmp_path)
    assert badness_of(found).tolist() == [-2.0, -1.0, -1.0]
    unmeasured = SuiteTable(found.ids, found.labels, found.states, {}, found.totals)
    assert badness_of(unmeasured).tolist() == [-2.0] * 3
    assert possible_failures(unmeasured) == []


def test_who_answers_what_has_no_answer_has_failed(tmp_path: Path) -> None:
    nothing = Case(CASES[0].query, query_type="negative", answerable=False)
    told = row(0, "Surely 31 days.", query_type="negative", answerable=False, ground_truth="")
    write_run(tmp_path, [told], [nothing])
    (line,) = explainer(tmp_path, None).every()
    assert line.detail == "answered what is not in the documents"


def test_who_rightly_refuses_is_none_of_the_worst(tmp_path: Path) -> None:
    negative: dict[str, Any] = {"query_type": "negative", "answerable": False, "ground_truth": ""}
    refuses, invents = row(0, "I don't know.", abstained=True, **negative), row(1, "Surely 31 days.", **negative)
    nothing = [Case(each.query, query_type="negative", answerable=False) for each in CASES[:2]]
    write_run(tmp_path, [refuses, invents, row(2, "The tent may be returned.")], [*nothing, CASES[2]])
    assert list(suspects(table(tmp_path), worst=2)) == ["q1", "q2"]


def test_a_refusal_in_a_case_without_gold_is_undetermined(tmp_path: Path) -> None:
    bare = Case(CASES[0].query)
    write_run(tmp_path, [row(0, "I don't know.", abstained=True, ground_truth="")], [bare])
    (line,) = explainer(tmp_path, None).every()
    assert (line.cause, line.evidence) == ("Undetermined", "the case has neither ground truth nor evidence")
    write_run(tmp_path, [row(0, "Some day.", ground_truth="")], [bare])
    assert explainer(tmp_path, None).every() == []


def test_rows_of_another_fingerprint_are_of_another_run(tmp_path: Path) -> None:
    write_run(tmp_path, [row(0, "No idea.")], CASES[:1])
    with (tmp_path / "x1.jsonl").open("a") as stream:
        stream.write(row(0, "Other.", fingerprint="bbbb").line())
    found = list(rows_of(tmp_path, read_manifest(tmp_path), "x1", lambda row: row.query_id == "q0"))
    assert [each.llm_answer for _, each in found] == ["No idea."]
