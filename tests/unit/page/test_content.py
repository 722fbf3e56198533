"""Changes between runs: what differs, what moved, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from rag_harness.__main__ import main
from rag_harness.core.types import Case, Query
from rag_harness.page.comment import comment_of
from rag_harness.page.content import LookedUpHit, LookedUpQuestions, More, Prose, Section, Topics
from rag_harness.page.report import write_report
from rag_harness.page.sections import sections_of
from rag_harness.page.sections.comparison import SHOWN_TALKS, ComparedExperiment, diff, moved
from rag_harness.page.sections.first_screen import first_screen, gates_said
from rag_harness.page.sections.method import run_facts
from rag_harness.page.sections.scorecard import MOST_QUESTIONS, retrieval
from rag_harness.records.cases import StoredCase
from rag_harness.records.row import ExperimentResult, RowError
from tests.browser.talks import LAMP, Questions, Talks
from tests.unit.page.runs import amend, cell_in, gate, prose_in, read, rows_of, summarise, table_in
from tests.unit.suite_tables import golden_row, write_run


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """A run that finds 15 of 20 pages, and an older one that finds 5."""
    for name, found in (("new", 15), ("old", 5)):
        write_run(tmp_path / name, rows_of("e3", 20, found))
        amend(tmp_path / name, digests={"queries": "same", "documents": "same"})
    return tmp_path / "new", tmp_path / "old"


def of(*outputs: Path) -> Section:
    section = diff(read(*outputs))
    assert section is not None
    return section


def test_one_run_has_no_changes(two: tuple[Path, Path]) -> None:
    assert diff(read(two[0])) is None


def test_measures_before_and_now_with_the_test(two: tuple[Path, Path]) -> None:
    table = table_in(of(*two), "diff-1-e3")
    new, old = (run.tables["e3"].values("recall@5", {}) for run in read(*two))
    row = {name: cell_in(table, "recall@5 ↑", name) for name in table.head[1:]}
    assert (row["before"].text, row["now"].text) == (
        f"{np.mean([*old.values()]):.3f}",
        f"{np.mean([*new.values()]):.3f}",
    )
    assert (row["n"].text, row["difference"].text, row["difference"].tone) == ("20", "+0.500", "good")
    assert row["interval"].text.startswith("[+0.")
    assert float(row["p (Holm)"].text) <= 0.05  # 10 signs all alike: 2 / 2**10, times the measures
    assert (row["gained"].text, row["lost"].text) == ("10", "0")
    assert not any(cells[0].text.startswith("token_f1") for cells in table.rows), "it is the same in every case"
    assert (
        "5 measures are the same in both: error_rate, correct, token_f1, abstention_rate, false_abstention_rate."
        in prose_in(of(*two))
    )


def test_the_command_takes_before_first_and_now_last(
    two: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, before = two
    assert main(["report", str(before), str(now), "-o", str(tmp_path / "r.md")]) == 0
    assert "Now is better than before: recall@5 of e3 rose from 0.250 to 0.750" in (tmp_path / "r.md").read_text()
    assert capsys.readouterr().out.splitlines()[1] == f"before: {before}; now: {now}"
    assert main(["report", str(now), "-o", str(tmp_path / "r.md")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_same_run_twice_has_one_sentence(two: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(two[0], copy)
    section = of(two[0], copy)
    assert prose_in(section)[0] == "The two runs are the same: both are of 1 Jan 2026 00:00 UTC."
    assert not [block for block in section.blocks if not isinstance(block, Prose)]


def test_what_did_not_change_is_folded(tmp_path: Path) -> None:
    for name in ("new", "old"):
        write_run(tmp_path / name, [*rows_of("e2", 20, 9 if name == "new" else 8), *rows_of("e3", 20, 5)])
        amend(tmp_path / name, digests={"queries": "same"}, commit=name)
    section = of(tmp_path / "new", tmp_path / "old")
    titles = [block.title for block in section.blocks if isinstance(block, More)]
    assert titles[1:] == ["e2: no sure change; 12 of 17 measures differ"]
    assert prose_in(section)[-1] == "The same in every case of both runs: e3."


def test_worse_is_bad(two: tuple[Path, Path]) -> None:
    table = table_in(of(*reversed(two)), "diff-1-e3")
    assert cell_in(table, "recall@5 ↑", "difference").tone == "bad"
    assert cell_in(table, "recall@5 ↑", "lost").text == "10"


def test_queries_that_were_gained_link_both_trials(two: tuple[Path, Path]) -> None:
    table = table_in(of(*two), "moved-1-e3-recall@5-up")
    assert list(table.head) == ["query", "old", "new", "question"]
    assert [row[0].text for row in table.rows] == [f"q{place:02}" for place in range(5, 15)]
    assert [cell.trial for cell in table.rows[0]] == ["new/e3-q05", "old/e3-q05", "new/e3-q05", ""]
    assert [cell.text for cell in table.rows[0]] == ["q05", "0.000", "1.000", "Question 5?"]


def test_what_the_runs_differ_in(two: tuple[Path, Path]) -> None:
    amend(two[0], commit="c0ffee", packages={"numpy": "2"}, settings={"top_k": 9})
    rows = [[cell.text for cell in row] for row in table_in(of(*two), "differing-1").rows]
    assert ["settings.top_k", "nothing → 9"] in rows
    assert ["packages.numpy", "nothing → 2"] in rows
    assert any(name == "commit" and said.endswith("→ c0ffee") for name, said in rows)


def test_where_nothing_differs_that_is_said(two: tuple[Path, Path]) -> None:
    assert (
        "Different between them: nothing that is known; models, settings, packages and commit are the same."
        in prose_in(of(*two))
    )


def test_other_data_are_refused_and_the_others_still_compared(two: tuple[Path, Path], tmp_path: Path) -> None:
    third = tmp_path / "third"
    write_run(third, rows_of("e3", 20, 20))
    amend(third, digests={"queries": "other", "documents": "same"})
    section = of(two[0], third, two[1])
    (refused,) = [block for block in section.blocks if isinstance(block, Prose) and block.tone == "bad"]
    assert "new is not set against third. This run and the one of" in refused.text
    assert "data.queries: other -> same" in refused.text
    assert table_in(section, "diff-2-e3").rows
    with pytest.raises(ValueError, match="not enough values"):
        table_in(section, "diff-1-e3")


def test_what_is_not_known_of_the_documents_is_said(two: tuple[Path, Path]) -> None:
    unknown = "Nobody can tell whether the documents are the same"
    assert not any(unknown in text for text in prose_in(of(*two)))
    amend(two[1], digests={"queries": "same"})
    assert any(unknown in text for text in prose_in(of(*two)))


def test_runs_with_nothing_in_common(two: tuple[Path, Path], tmp_path: Path) -> None:
    write_run(tmp_path / "e1", rows_of("e1", 20, 0))
    amend(tmp_path / "e1", digests={"queries": "same"})
    said = prose_in(of(two[0], tmp_path / "e1"))
    assert said[0] == "Nothing can be compared: no case has a value of the same measure in both runs."


def test_damage_of_a_setting_that_a_run_lacks_is_a_difference(two: tuple[Path, Path]) -> None:
    # Runs of an older version lack settings that came later: they can still be compared.
    amend(two[0], settings={"chat_model": "m"})
    assert any(row[0].text == "models.chat_model" for row in table_in(of(*two), "differing-1").rows)


def test_more_abstentions_are_neither_better_nor_worse(tmp_path: Path) -> None:
    write_run(tmp_path / "new", rows_of("e3", 20, 5, abstained=True))
    write_run(tmp_path / "old", rows_of("e3", 20, 5))
    for name in ("new", "old"):
        amend(tmp_path / name, digests={"queries": "same", "documents": "same"})
    table = table_in(of(tmp_path / "new", tmp_path / "old"), "diff-1-e3")
    assert cell_in(table, "abstention_rate", "p (Holm)").text == "not tested"
    assert cell_in(table, "correct ↑", "p (Holm)").text == "<0.001"
    assert cell_in(table, "abstention_rate", "difference").tone == ""
    assert {cell_in(table, "abstention_rate", name).text for name in ("gained", "lost")} == {"–"}
    assert cell_in(table, "correct ↑", "difference").tone == "bad"
    now, before = (ComparedExperiment(run, "e3", run.name) for run in read(tmp_path / "new", tmp_path / "old"))
    queries = moved("any", now, before, "abstention_rate")
    assert {row[2].tone for row in queries[0].rows} == {""}


# The report of the golden suite: its measures by type, and every question, misses first.

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


# The page's tables of conversations that got worse: which they are, and where each leads.

MANY: Questions = {f"talk{n:02}": ["How?", "And?"] for n in range(SHOWN_TALKS + 2)}


def changed(folder: Path, now: Talks, before: Talks) -> Section:
    section = diff(read(now.write(folder / "now"), before.write(folder / "before")))
    assert section is not None
    return section


def titles(section: Section) -> list[str]:
    return [block.title for block in section.blocks if isinstance(block, More) and "got worse" in block.title]


def test_each_leads_to_its_first_turn_that_got_worse_in_both_runs(tmp_path: Path) -> None:
    section = changed(tmp_path, Talks(worse=[f"{LAMP}#3", f"{LAMP}#4"]), Talks())
    assert titles(section)[1] == "c1-own: conversations that got worse in correct"
    ((name, turn, by),) = table_in(section, "worse-talks-1-c1-own").rows
    assert (name.text, turn.text) == (LAMP, "turn 3")
    assert (turn.trial, turn.beside) == ("now/c1-own-lamp#3", "before/c1-own-lamp#3")
    assert (by.text, by.tone) == ("-0.500", "bad"), "two of four turns, from 1 to 0"


def test_none_got_worse_and_none_is_listed(tmp_path: Path) -> None:
    assert titles(changed(tmp_path, Talks(), Talks(worse=[f"{LAMP}#3"]))) == []


def test_of_many_the_first_are_listed_and_the_rest_is_counted(tmp_path: Path) -> None:
    worse = [f"{name}#2" for name in MANY]
    section = changed(tmp_path, Talks(("c1",), MANY, worse), Talks(("c1",), MANY))
    table = table_in(section, "worse-talks-1-c1")
    assert len(table.rows) == SHOWN_TALKS
    assert table.notes[-1] == "and 2 more"
