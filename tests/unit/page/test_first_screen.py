"""The first screen and what a run was: gates, who answered and judged, what could not be measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_harness.core.types import GOLDEN
from rag_harness.page.content import Cell, Prose, Table, Topics
from rag_harness.page.sections.first_screen import first_screen
from rag_harness.page.sections.method import about_run
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import CauseLine, write_causes
from tests.unit.page.runs import (
    WHO,
    amend,
    blocks_in,
    cell_in,
    facts_in,
    gate,
    prose_in,
    read,
    rows_of,
    summarise,
    table_in,
    write_study,
)
from tests.unit.rows import failed_row
from tests.unit.suite_tables import golden_row, write_run


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path / "out")


def first(output: Path) -> Prose:
    """Return the sentence that counts the gates."""
    (found,) = [
        block for block in first_screen(read(output)).blocks if isinstance(block, Prose) and "gate" in block.text
    ]
    return found


def gates(output: Path) -> list[list[Cell]]:
    """Return the rows of all gates, folded ones too."""
    tables = [block for block in blocks_in(first_screen(read(output)).blocks) if isinstance(block, Table)]
    return [list(row) for table in tables if table.name.startswith("gates") for row in table.rows]


def test_questions_that_nobody_has_reviewed_are_counted(study: Path, tmp_path: Path) -> None:
    assert "drafts" not in facts_in(about_run(read(study)))
    rows = [*rows_of("e3", 1, 1, metadata={"reviewed": "yes"}), *rows_of("e3", 3, 3, metadata={"reviewed": "no"})[1:]]
    write_run(tmp_path / "drafted", rows)
    assert facts_in(about_run(read(tmp_path / "drafted")))["drafts"] == "e3: 2 of 3 questions are unreviewed"


def test_gates_are_counted_and_failed_ones_stand_first(study: Path) -> None:
    states = ("passed", "undecided", "stale", "failed", "not judged", "passed", "silent")
    summarise(study, *(gate(f"e3: recall@{n} >= 0.7", state) for n, state in enumerate(states, 1)))
    assert first(study) == Prose("2 gates passed, 1 failed, 1 stale, 1 undecided, 1 not judged.", "bad")
    rows = gates(study)
    assert [row[1].text for row in rows] == ["failed", "stale", "undecided", "passed", "passed", "not judged"]
    assert [row[1].tone for row in rows] == ["bad", "bad", "unsure", "good", "good", "mute"]
    assert [row[0].text for row in rows][3:5] == ["e3: recall@1 >= 0.7", "e3: recall@6 >= 0.7"]


def test_a_gate_that_nobody_could_tell_is_no_pass(study: Path) -> None:
    summarise(study, gate("e3: recall@5 >= 0.7"), gate("e3: mrr@10 >= 0.7", "undecided", reason="70 more cases"))
    assert first(study).tone == "unsure"
    rows = gates(study)
    assert rows[0][-1].text == "70 more cases"
    assert (first(study).text, rows[1][1].tone) == (
        "1 gate passed, 0 failed, 1 undecided, 0 not judged.",
        "good",
    )


def test_value_and_threshold_are_told_apart_with_interval_n_and_unit(study: Path) -> None:
    close = gate("e3: recall@5 >= 0.95", "failed", value=0.94996, threshold=0.95, interval=[0.9, None])
    slow = gate("e3: total_ms <= 30", value=8.0, threshold=30, interval=[7.5, 9.0], unit="ms")
    summarise(study, close, slow)
    rows = [[cell.text for cell in row][2:6] for row in gates(study)]
    assert rows == [["0.94996", "0.95000", "[0.900, …]", "12"], ["8 ms", "30 ms", "[8, 9]", "12"]]


def test_the_interval_of_a_comparison_is_that_of_the_difference(study: Path) -> None:
    strange = gate("e3: what another version writes", interval=[0.1, 0.2])
    summarise(study, gate("e3: recall@5 >= e2 - 0.1", interval=[-0.1, 0.3]), strange)
    rows = gates(study)
    assert [row[4].text for row in rows] == ["difference [-0.100, +0.300]", "[0.100, 0.200]"]
    # What cannot be read cannot be drawn: whether more is better stands in the gate's text.
    assert [bool(row[-2].drawing) for row in rows] == [True, False]


def test_a_gate_without_a_value_says_why(study: Path) -> None:
    nothing = gate("e3: recall@5 >= 0.7", "not judged", value=None, threshold=None, interval=None, n=0, reason="-k")
    summarise(study, nothing)
    assert [cell.text for cell in gates(study)[0]][2:] == ["–", "–", "–", "0", "", "-k"]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (None, "there is no summary.json of this run beside its rows"),
        ({"run": "2020-01-01T00:00:00+00:00"}, "there is no summary.json of this run beside its rows"),
        ({}, r"none is set (--rag-gate, or rag_gate in the ini file)"),
    ],
)
def test_why_no_gate_was_judged(study: Path, written: dict[str, str] | None, why: str) -> None:
    if written is not None:
        summarise(study, *([gate("e3: recall@5 >= 0.7")] if written else []), **written)
    assert first(study).text.startswith(f"No gates were judged: {why}")
    assert first(study).tone == "unsure"


def test_gates_that_are_not_judged_are_no_pass(study: Path) -> None:
    summarise(study, gate("golden: recall@10 >= 0.7", "not judged", reason="golden is not in this run"))
    assert first(study) == Prose("0 gates passed, 0 failed, 0 undecided, 1 not judged.", "unsure")


def test_where_the_answers_come_from_is_said_below_the_about_run(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3", 2, 2, timings_recorded=True, recorded_at="2020-01-01T00:00:00+00:00"))
    assert any("2 replayed, recorded 1 Jan 2020" in said for said in prose_in(about_run(read(tmp_path))))


def test_who_answered_and_judged_is_said_as_what_it_is(study: Path) -> None:
    amend(study, commit="c0ffee", digests={"queries": "abc"}, settings={"kb_dir": "docs"})
    facts = facts_in(about_run(read(study)))
    assert facts["answers"] == "by embedded/extractive (a baseline reader, not an LLM)"
    assert facts["judged by"] == "embedded/alignment (words and vectors compared, no LLM)"
    assert (facts["profile"], facts["mode"], facts["commit"]) == ("mock", "auto", "c0ffee")
    assert (facts["data"], facts["cases"]) == ("queries of docs, digest abc", "12 of 12 selected, of each suite")
    assert "times" not in facts
    assert "run" not in facts


def test_a_judge_of_the_family_that_answered_is_a_warning(tmp_path: Path) -> None:
    write_study(tmp_path, model="openai/gpt-4o")
    authors = [(WHO.judge, "openai/gpt-4o-mini", "1")]
    suites = {name: record.model_dump() | {"authors": authors} for name, record in read(tmp_path)[0].suites.items()}
    amend(tmp_path, suites=suites)
    section = about_run(read(tmp_path))
    assert "The judge openai/gpt-4o-mini and openai/gpt-4o, which answered, are one family" in prose_in(section)[1]
    assert facts_in(section)["judged by"] == "openai/gpt-4o-mini (method embedded)"


def test_what_could_not_be_measured_is_counted_with_its_reason(study: Path) -> None:
    table = table_in(about_run(read(study)), "unmeasured")
    gaps = {(row[0].text, row[1].text): [cell.text for cell in row[2:]] for row in table.rows}
    assert gaps["e3", "faithfulness (F)"] == ["1", "12", "no verdict: silence (1)"]
    assert gaps["e3", "g_mean"] == ["1", "12", "faithfulness: no verdict: silence (1)"]
    assert not [name for experiment, name in gaps if experiment == "e2"]


def test_where_nothing_is_missing_that_is_said(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3", 3, 3))
    assert prose_in(about_run(read(tmp_path)))[-1].startswith("Whatever could be measured was")


def test_without_a_row_nothing_was_measured(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3", 3, 3))
    (tmp_path / "e3_filtered_rag.jsonl").unlink(missing_ok=True)
    (tmp_path / "e3.jsonl").unlink(missing_ok=True)
    assert "Nothing was measured: no trial left a row. Lost trials count as the worst." in prose_in(
        about_run(read(tmp_path))
    )


def test_gates_that_were_judged_on_other_rows_are_said_to_be(study: Path) -> None:
    counted = {name: {"lost": 0} for name in ("e1", "e2", "e3")}
    summarise(study, gate("e3: recall@5 >= 0.7"), **counted)
    assert not [said for said in prose_in(first_screen(read(study))) if "other rows" in said]
    summarise(study, gate("e3: recall@5 >= 0.7"), **{**counted, "e2": {"lost": 3}})
    (said,) = [said for said in prose_in(first_screen(read(study))) if "other rows" in said]
    assert said.startswith("The gates were judged on other rows of e2: 3 trials had no row then, 0 have none now.")


def test_one_answer_that_was_replayed_is_no_all(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3", 1, 1, timings_recorded=True))
    assert facts_in(about_run(read(tmp_path)))["times"] == "of the answer as they were recorded"


def test_what_became_of_the_trials(tmp_path: Path) -> None:
    rows = rows_of("e3", 4, 4)
    rows[1] = failed_row(query_id="q01")
    rows[3] = rows[3].model_copy(update={"timings_recorded": True})
    write_run(tmp_path, [row for row in rows if row.query_id != "q02"], selected={"e3": ["q00", "q01", "q03"]})
    amend(tmp_path, suites={"e3": _record(tmp_path) | {"not_run": ["q03"]}})
    table = table_in(about_run(read(tmp_path)), "trials")
    counts = dict(zip(table.head[1:], (int(cell.text) for cell in table.rows[0][1:]), strict=True))
    assert counts == {
        **{"cases": 3, "selected": 3, "answered": 1, "errors": 1, "lost": 0},
        **{"not run": 1, "not needed": 0, "resumed": 0, "replayed": 0},
    }
    assert cell_in(table, "e3", "errors").tone == "bad"
    assert cell_in(table, "e3", "lost").tone == ""


def _record(output: Path) -> dict[str, object]:
    return read(output)[0].suites["e3"].model_dump()


def test_errors_are_counted_and_the_first_ones_link_their_trials(tmp_path: Path) -> None:
    write_run(tmp_path, [failed_row(query_id=f"q{n}") for n in range(7)])
    table = table_in(about_run(read(tmp_path)), "errors")
    assert table.caption == "7 trials without an answer"
    assert [row[0].trial for row in table.rows] == [f"e3-q{n}" for n in range(5)]
    assert "503" in table.rows[0][1].text
    assert table.notes == ["and 2 more: filter the trials by status"]


def test_trials_of_one_of_several_runs_say_which(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name, [failed_row(query_id="q1")])
    section = about_run(read(tmp_path / "a", tmp_path / "b"))
    assert table_in(section, "errors").rows[0][0].trial == "a/e3-q1"
    assert facts_in(section)["run"] == "a"


def test_a_run_of_nothing_is_said(tmp_path: Path) -> None:
    write_run(tmp_path, [], [], selected={})
    assert first(tmp_path).text == "No gates were judged: no trial was selected in this run."
    assert len(about_run(read(tmp_path)).blocks) == 1


def test_the_golden_suite_has_its_gates_and_counts(tmp_path: Path) -> None:
    write_run(tmp_path, [golden_row("g1", ["a"])])
    summarise(tmp_path, gate("golden: recall@10 >= 0.7"))
    section = about_run(read(tmp_path))
    assert first(tmp_path).tone == "good"
    assert table_in(section, "trials").rows[0][0].text == GOLDEN


def test_the_topics_stand_first_with_the_worst_trial(tmp_path: Path) -> None:
    write_study(tmp_path)
    line = {"experiment": "e3", "query_id": "q07", "query": "Question 7?", "cause": "Judge Doubtful", "detail": ""}
    write_causes(tmp_path, [CauseLine.model_validate({**line, "fingerprint": "aaaa", "remedy": "read the answer"})])
    topics = first_screen(read(tmp_path)).blocks[0]
    assert isinstance(topics, Topics)
    assert [topic.ident for topic in topics.all] == ["wrong", "best", "sure", "why", "next"]
    assert [topic.trial for topic in topics.all] == ["", "", "", "", "e3-q07"]


def test_a_failed_gate_links_its_worst_trial(study: Path) -> None:
    summarise(study, gate("e2: recall@5 >= 0.9", "failed"), gate("e3: recall@5 >= 0.9", "undecided"))
    table = table_in(first_screen(read(study)), "gates")
    assert table.head[-1] == "worst trial"
    assert [row[-1].trial for row in table.rows] == ["e2-q06", ""]


LONG = "retriever_" * 12
BAD_INPUT = {
    "one experiment": lambda: rows_of("e3", 3, 2),
    "one case": lambda: rows_of("e3", 1, 1),
    "no gold": lambda: [
        row for name in ("e2", "e3") for row in rows_of(name, 3, 3, context_reference=[], ground_truth="")
    ],
    "all failed": lambda: [failed_row(experiment=name, query_id=f"q{n}") for name in ("e2", "e3") for n in range(3)],
    "17 experiments": lambda: [row for n in range(17) for row in rows_of(f"x{n:02}", 2, n % 3)],
    "long names": lambda: [row for n in range(3) for row in rows_of(f"{LONG}{n}", 3, n)],
    "right to left": lambda: rows_of("e3", 3, 1, query="\u05de\u05d4 \u05d4\u05de\u05d7\u05d9\u05e8?"),
    "a kind each": lambda: [
        row.model_copy(update={"query_type": f"kind{n}"})
        for e in ("e2", "e3")
        for n, row in enumerate(rows_of(e, 5, 3))
    ],
}


@pytest.mark.parametrize("rows", BAD_INPUT.values(), ids=BAD_INPUT)
def test_whatever_ran_the_first_screen_has_all_topics_and_no_nan(
    tmp_path: Path, rows: Callable[[], list[ExperimentResult]]
) -> None:
    write_run(tmp_path, rows())
    (topics,) = (block for block in first_screen(read(tmp_path)).blocks if isinstance(block, Topics))
    assert [topic.ident for topic in topics.all if topic.ident != "wrong"] == ["best", "sure", "why", "next"]
    said = " ".join(text for topic in topics.all for text in topic.texts)
    assert not re.search(r"\bnan\b|\binf\b|None", said)
    assert len(said) < 1_000


def test_a_run_without_answers_says_what_to_do(tmp_path: Path) -> None:
    write_run(tmp_path, [failed_row(query_id="q1")])
    head, topics = first_screen(read(tmp_path)).blocks[:2]
    assert isinstance(head, Prose)
    assert head.tone == "bad"
    assert head.text.startswith("❌ FAIL: 1 of 1 question failed; ")
    assert isinstance(topics, Topics)
    assert topics.all[-1].texts == ["Read the first error, mend it, and run again."]


def test_what_changed_stands_before_what_is_best(tmp_path: Path) -> None:
    for name in ("after", "before"):
        write_study(tmp_path / name)
    topics = first_screen(read(tmp_path / "after", tmp_path / "before")).blocks[0]
    assert isinstance(topics, Topics)
    assert topics.all[0].ident == "changed"
    assert topics.all[0].texts[0]
