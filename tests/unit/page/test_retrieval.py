"""The report of the golden suite: its measures by type, and every question, misses first."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.core.types import Case, Query
from rag_harness.page.comment import comment_of
from rag_harness.page.content import LookedUpHit, LookedUpQuestions, Topics
from rag_harness.page.report import write_report
from rag_harness.page.sections import sections_of
from rag_harness.page.sections.first_screen import first_screen, gates_said
from rag_harness.page.sections.method import run_facts
from rag_harness.page.sections.scorecard import MOST_QUESTIONS, retrieval
from rag_harness.records.cases import StoredCase
from rag_harness.records.row import ExperimentResult, RowError
from tests.unit.page.runs import amend, cell_in, gate, read, rows_of, summarise, table_in
from tests.unit.tables import golden_row, write_run

RANKED = {
    "found": ["a.md", "b.md"],
    "half": ["b.md", "x.md", "c.md"],
    "low": ["x.md", "\0hit 2", "y.md", "a.md"],
    "never": ["x.md"],
    "deep": [f"p{n}.md" for n in range(12)] + ["a.md"],
}
GOLD = {"half": {"b.md": 1, "d.md": 1}}


def kept(name: str, kind: str = "plain") -> StoredCase:
    gold = GOLD.get(name, {"a.md": 1})
    case = Case(Query(name, f"Where is {name}?"), kind, qrels=gold, metadata={"query_type": kind})
    return StoredCase(case, {"query_type": kind}, expected=tuple(gold))


def row(name: str, ranked: list[str]) -> ExperimentResult:
    return golden_row(name, ranked, query=f"Where is {name}?")


def write(output: Path, more: list[ExperimentResult] | None = None) -> Path:
    rows = [row(name, ranked) for name, ranked in RANKED.items()]
    cases = [kept(name, "hard" if name in ("never", "deep") else "plain") for name in RANKED]
    write_run(output, [*rows, *(more or [])], cases)
    amend(output, settings={"k": 3})
    return output


def questions(output: Path) -> LookedUpQuestions:
    section = retrieval(read(output))
    assert section is not None
    (found,) = [block for block in section.blocks if isinstance(block, LookedUpQuestions)]
    return found


def test_misses_come_first_then_what_found_least(tmp_path: Path) -> None:
    shown = questions(write(tmp_path)).shown
    assert [each.ident for each in shown] == ["never", "deep", "low", "half", "found"]
    assert [each.outcome for each in shown] == [
        *("not the only hit", "rank 13, not in the top 3", "rank 4, not in the top 3", "rank 1", "rank 1")
    ]
    assert [each.tone for each in shown] == ["bad", "bad", "bad", "good", "good"]
    assert (shown[3].expected, shown[3].query) == ("b.md, d.md", "Where is half?")
    assert shown[3].figures.startswith("plain · recall@3 0.500 · mrr@3 1.000")


def test_hits_keep_their_ranks_and_what_was_expected_is_shown_however_far_below(tmp_path: Path) -> None:
    by_id = {each.ident: each.hits for each in questions(write(tmp_path)).shown}
    assert by_id["low"] == [LookedUpHit(1, "x.md"), LookedUpHit(3, "y.md"), LookedUpHit(4, "a.md", is_expected=True)]
    assert [hit.rank for hit in by_id["deep"]] == [*range(1, 11), 13]
    assert by_id["deep"][-1].is_expected


def test_measures_have_intervals_by_type_of_question(tmp_path: Path) -> None:
    table = table_in(retrieval(read(write(tmp_path))), "golden")
    assert table.head == ("measure", "all, n = 5", "hard, n = 2", "plain, n = 3")
    assert [each[0].text for each in table.rows][:2] == ["recall@3 ↑", "mrr@3 ↑"]
    assert cell_in(table, "recall@3 ↑", "all, n = 5").text.startswith("0.300 [")
    assert cell_in(table, "recall@3 ↑", "hard, n = 2").text.startswith("0.000 [")
    assert "95 % interval" in cell_in(table, "recall@3 ↑", "plain, n = 3").hint


def test_the_first_screen_says_what_was_found(tmp_path: Path) -> None:
    topics = next(block for block in first_screen(read(write(tmp_path))).blocks if isinstance(block, Topics))
    said = {topic.label: topic.texts[0] for topic in topics.all}
    assert said["What was found"] == (
        "For 2 of 5 questions an expected document is among the first 3 hits; for 3 none is."
    )
    assert said["How sure"].startswith(
        "recall@3 is 0.300, mrr@3 0.400; with other questions like these recall could lie between 0."
    )
    assert said["What to do next"].startswith("Read the misses")


def test_what_nobody_could_look_up_is_said_with_its_error(tmp_path: Path) -> None:
    failed = row("low", []).model_copy(
        update={"status": "error", "error": RowError(stage="retrieve", type="OSError", message="no index")}
    )
    write_run(tmp_path, [row("found", ["a.md"]), failed], [kept("found"), kept("low"), kept("never")])
    first = questions(tmp_path).shown[0]
    assert (first.ident, first.outcome, first.error) == ("low", "nothing was returned", "OSError: no index")
    assert read(tmp_path)[0].brief.golden is not None
    text = comment_of(read(tmp_path))
    assert "❌ 1 error; ❌ 1 without a result" in text
    assert "**Next:** Read the first error" in text


def test_a_page_has_the_first_of_many_questions_and_says_how_many_more(tmp_path: Path) -> None:
    n = MOST_QUESTIONS + 7
    names = [f"q{place:03}" for place in range(n)]
    write_run(tmp_path, [row(name, ["a.md"] if name != "q205" else ["x.md"]) for name in names], [*map(kept, names)])
    found = questions(tmp_path)
    assert (len(found.shown), found.shown[0].ident) == (MOST_QUESTIONS, "q205")
    assert found.title == f"{MOST_QUESTIONS} of {n} questions, misses first"
    assert found.notes[-1] == f"And 7 more questions: rag-harness report {tmp_path} -o report.csv has all."


def test_the_page_is_whole_without_a_script_and_nothing_foreign_is_read_as_html(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    write_run(tmp_path, [golden_row("q1", [f"{evil}.md"], query=evil)], [kept("q1")])
    write_report([tmp_path], tmp_path / "r.html", "html")
    page = (tmp_path / "r.html").read_text()
    assert "<title>RAG evaluation: the retrieval suite, 1 question</title>" in page
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") == 2
    assert "no trial" not in page.lower()


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_run_with_experiments_has_the_same_section(tmp_path: Path, is_alone: bool) -> None:
    sections = sections_of(read(write(tmp_path, [] if is_alone else rows_of("e3", 5, 3))))
    names = [section.ident for section in sections]
    assert "retrieval" in names
    assert ("scorecard" in names) is not is_alone
    write_report([tmp_path], tmp_path / "r.html", "html")
    page = (tmp_path / "r.html").read_text()
    assert ('id="trials"' in page) is not is_alone
    assert all(f"Where is {name}?" in page for name in RANKED)


def test_a_run_without_the_golden_suite_has_no_such_section(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3", 3, 3))
    assert retrieval(read(tmp_path)) is None


def test_the_worst_question_of_a_failed_gate_is_named_without_a_link(tmp_path: Path) -> None:
    summarise(write(tmp_path), gate("golden: recall@3 >= 0.9", "failed", value=0.3, threshold=0.9))
    (run,) = read(tmp_path)
    table = next(block for block in gates_said(run) if getattr(block, "name", "") == "gates")
    cell = table.rows[0][-1]  # type: ignore[union-attr]
    assert (cell.text, cell.trial) == ("golden-deep", "")


def test_the_run_says_which_retriever_was_asked_and_no_judge(tmp_path: Path) -> None:
    facts = next(iter(run_facts(read(write(tmp_path))[0])))
    assert ("retriever", "dense, k = 3") in facts.pairs  # type: ignore[union-attr]
    assert "judged by" not in dict(facts.pairs)  # type: ignore[union-attr]
