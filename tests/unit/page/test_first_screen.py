"""The first screen: gates, who answered and judged, and the scorecard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest

from rag_harness.core.types import GOLDEN
from rag_harness.page.content import Cell, Prose, Table, Topics
from rag_harness.page.sections.first_screen import first_screen
from rag_harness.page.sections.method import about_run
from rag_harness.page.sections.scorecard import measures_shown, scorecard
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import SCORES, CauseLine, write_causes
from rag_harness.runs.gates import judge, parse_gate
from rag_harness.stats.paired_tests import Paired
from rag_harness.tables.pairwise import PairDifference
from rag_harness.tables.standings import best_of
from tests.unit.page.runs import (
    AR,
    CP,
    WHO,
    F,
    amend,
    blocks_in,
    cell_in,
    facts_in,
    gate,
    prose_in,
    read,
    rows_of,
    scored,
    summarise,
    table_in,
    write_study,
)
from tests.unit.rows import failed_row
from tests.unit.suite_tables import golden_row, tables_of, write_run

# The first screen and what a run was: gates, who answered and judged, what could not be measured.


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


# The scorecard: means with intervals, the best by test, kinds of answers, what it took.


def judged(output: Path, experiment: str, measure: str) -> list[float]:
    """Read judged values as anybody could: JSON lines."""
    lines = (output / SCORES / f"{experiment}.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [line["value"] for line in found if line["measure"] == measure and line["value"] is not None]


def test_means_are_those_of_the_files_in_the_study_s_order(study: Path) -> None:
    table = table_in(scorecard(read(study)), "scorecard")
    names = [row[0].text for row in table.rows]
    start = ["context_precision (CP) ↑", "faithfulness (F) ↑", "answer_relevancy (AR) ↑", "g_mean ↑", "hri ↓"]
    assert names[:8] == [*start, "hri, p95 ↓", "recall@5 ↑", "mrr@10 ↑"]
    for experiment in ("e2", "e3"):
        for measure, name in zip((CP, F, AR), start, strict=False):
            cell, values = cell_in(table, name, experiment), judged(study, experiment, measure)
            assert cell.text.startswith(f"{np.mean(values):.3f} ")
            assert f"n = {len(values)};" in cell.hint
        g_mean = np.cbrt(np.prod([judged(study, "e2", measure) for measure in (CP, F, AR)], axis=0)).mean()
    assert cell_in(table, "g_mean ↑", "e2").text.startswith(f"{g_mean:.3f}")


def test_the_half_width_is_that_of_the_interval_that_gates_show(study: Path) -> None:
    run, table = read(study)[0], table_in(scorecard(read(study)), "scorecard")
    low, high = run.tables["e2"].interval("g_mean") or (nan, nan)
    cell = cell_in(table, "g_mean ↑", "e2")
    assert cell.text.endswith(f"±{(high - low) / 2:.3f}")
    assert cell.hint == f"n = 12; 95 % interval [{low:.3f}, {high:.3f}]"


def test_near_the_end_of_a_range_the_interval_itself_is_shown(study: Path) -> None:
    # Clopper and Pearson's of 0 of 12, by hand: 1 - 0.025 ** (1 / 12).
    high = 1 - 0.025 ** (1 / 12)
    table = table_in(scorecard(read(study)), "scorecard")
    assert cell_in(table, "error_rate ↓", "e3").text == f"0.000 [0.000, {high:.3f}]"


def test_the_tail_of_the_risk_has_its_interval_open_where_cases_are_few(study: Path) -> None:
    values = sorted((1 - f) * ar for f, ar in zip(judged(study, "e2", F), judged(study, "e2", AR), strict=True))
    text = cell_in(table_in(scorecard(read(study)), "scorecard"), "hri, p95 ↓", "e2").text
    assert text.startswith(f"{values[-1]:.3f} [")
    assert text.endswith(", …]")


def test_the_best_is_marked_only_where_the_tests_say_so(study: Path) -> None:
    table = table_in(scorecard(read(study)), "scorecard")
    best = {row[0].text: [table.head[n] for n, cell in enumerate(row) if cell.is_best] for row in table.rows}
    assert best["context_precision (CP) ↑"] == ["e3"]
    assert best["answer_relevancy (AR) ↑"] == ["e2"]
    assert best["hri ↓"] == ["e3"]  # lower is better
    assert best["recall@5 ↑"] == ["e3"]  # no judge gives it
    for even in ("faithfulness (F) ↑", "g_mean ↑", "token_f1 ↑", "error_rate ↓", "abstention_rate"):
        assert best[even] == []


def pair(first: str, second: str, difference: float, p: float) -> PairDifference:
    return PairDifference(first, second, "token_f1", "others", Paired(9, difference), p_t=p, p_permutation=p)


@pytest.mark.parametrize(
    ("cells", "best"),
    [
        ([pair("e2", "e1", 0.1, 0.01), pair("e3", "e1", 0.3, 0.01), pair("e3", "e2", 0.2, 0.05)], "e3"),
        ([pair("e2", "e1", 0.1, 0.01), pair("e3", "e1", 0.3, 0.01), pair("e3", "e2", 0.2, 0.06)], ""),
        ([pair("e2", "e1", -0.1, 0.01), pair("e3", "e1", -0.3, 0.01)], "e1"),
        ([pair("e3", "e1", 0.3, 0.01)], ""),
        ([], ""),
    ],
)
def test_the_best_is_better_than_every_other(cells: Sequence[PairDifference], best: str) -> None:
    tables = tables_of([row for name in ("e1", "e2", "e3") for row in rows_of(name, 3, 3)])
    assert best_of("token_f1", tables, cells) == set(filter(None, [best]))


def test_experiments_that_tie_on_every_case_are_one_winner_or_none() -> None:
    tables = tables_of([row for name in ("e1", "e2", "e3") for row in rows_of(name, 3, 3)])
    tie = replace(pair("e2", "e3", 0.0, 1.0), p_t=None, p_permutation=None)
    beaten = [pair("e1", "e2", -0.3, 0.01), pair("e1", "e3", -0.3, 0.01)]
    assert best_of("token_f1", tables, [tie, *beaten]) == {"e2", "e3"}
    assert best_of("token_f1", tables, [tie, beaten[0], pair("e1", "e3", -0.3, 0.5)]) == set()
    ahead = [pair("e1", "e2", 0.3, 0.01), pair("e1", "e3", 0.3, 0.01)]
    assert best_of("token_f1", tables, [tie, *ahead]) == {"e1"}
    level = [replace(tie, first="e1", second=other) for other in ("e2", "e3")]
    assert best_of("token_f1", tables, [tie, *level]) == set()


def test_one_experiment_is_the_best_of_none(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3", 3, 3))
    table = table_in(scorecard(read(tmp_path)), "scorecard")
    assert not any(cell.is_best for row in table.rows for cell in row)
    assert table.notes[0].startswith("One experiment: there is nothing to compare it with")


def test_one_trial_bounds_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3", 1, 1))
    table = table_in(scorecard(read(tmp_path)), "scorecard")
    assert cell_in(table, "recall@5 ↑", "e3").text == "1.000 (1 case)"


def test_rows_without_scores_say_what_to_name(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3", 3, 3))
    section = scorecard(read(tmp_path))
    assert prose_in(section) == ["No answer was judged: name measures with --rag-measures, or in a gate."]
    assert table_in(section, "scorecard").rows[0][0].text == "recall@5 ↑"


def test_a_measure_that_nobody_could_measure_says_why(tmp_path: Path) -> None:
    rows = rows_of("e3", 3, 3)
    write_run(tmp_path, rows, scores=scored(rows, {CP: [None] * 3, F: [0.5] * 3}))
    table = table_in(scorecard(read(tmp_path)), "scorecard")
    cell = cell_in(table, "context_precision (CP) ↑", "e3")
    assert (cell.text, cell.tone, cell.hint) == ("–", "mute", "3 of 3 have no verdict: silence")
    assert "e3 has no context_precision: 3 of 3 have no verdict: silence." in table.notes


def test_an_experiment_without_retrieval_has_no_measures_of_it(study: Path) -> None:
    notes = table_in(scorecard(read(study)), "scorecard").notes
    assert any(note.startswith("e1 has no context_precision, ") and "no retrieval" in note for note in notes)


def test_kinds_of_answers_are_shares_of_the_answers(study: Path) -> None:
    table = table_in(scorecard(read(study)), "categories")
    assert cell_in(table, "Retrieval Failure", "e2").text == "100.0%"
    assert cell_in(table, "Irrelevant", "e3").text == f"{11 / 12:.1%}"
    assert cell_in(table, "Unmeasured", "e3").text == f"{1 / 12:.1%}"
    assert [cell.text for cell in table.rows[-1]] == ["answers", "–", "12", "12"]


def test_the_study_s_five_kinds_are_printed_where_none_is_one(study: Path) -> None:
    table = table_in(scorecard(read(study)), "categories")
    five = ["Clean Pass", "Hallucination", "Retrieval Failure", "Irrelevant", "Total Failure"]
    assert [row[0].text for row in table.rows] == [*five, "Unmeasured", "answers"]
    assert cell_in(table, "Hallucination", "e3").text == "0.0%"


def test_costs_are_sums_of_the_rows(tmp_path: Path) -> None:
    rows = [row for n, cost in (("e2", None), ("e3", 0.25)) for row in rows_of(n, 5, 5, cost_usd=cost)]
    write_run(tmp_path, rows)
    table = table_in(scorecard(read(tmp_path)), "costs")
    column = {row[0].text: row[2].text for row in table.rows}
    assert column == {
        **{"answers": "5", "model calls": "5", "tokens in": "500", "tokens out": "50", "tokens, all": "550"},
        **{"cost": "$1.25", "cost a trial": "$0.2500"},
    }
    assert cell_in(table, "cost", "e2").text == "–"
    assert table.notes[-1] == "–: no price is known of the model."


def test_latency_by_stage(tmp_path: Path) -> None:
    times = [10.0, 20.0, 1000.0]
    rows = [row.model_copy(update={"ttft_ms": ms}) for row, ms in zip(rows_of("e3", 3, 3), times, strict=True)]
    write_run(tmp_path, rows)
    table = table_in(scorecard(read(tmp_path)), "times")
    cell = cell_in(table, "first token", "e3")
    assert (cell.text, cell.hint) == ("20.0 / 1,000 / 1,000", "n = 3")
    assert cell_in(table, "rerank", "e3").text == "1.0 / 1.0 / 1.0"


def test_the_golden_suite_alone_has_no_scorecard_and_nothing_at_all_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, [golden_row("g1", ["returns.md"])])
    assert scorecard(read(tmp_path)) is None
    write_run(tmp_path / "none", rows_of("e3", 3, 3), selected={"e3": ["none"]})
    assert prose_in(scorecard(read(tmp_path / "none"))) == ["No trial was selected: there is nothing to score."]


def test_what_is_shown_has_values_or_was_asked_for(study: Path) -> None:
    names = [measure.name for measure in measures_shown(read(study)[0])]
    assert "confidence" not in names  # no pipeline states one
    assert len(names) == len(set(names))


@pytest.mark.parametrize("measure", ["error_rate", "recall@5", "g_mean", "answer_relevancy", "token_f1"])
def test_tables_and_gates_have_the_same_interval(study: Path, measure: str) -> None:
    tables = read(study)[0].tables
    verdict = judge(parse_gate(f"e2: {measure} >= 0", 10), tables, unit=tables["e2"].columns[measure].measure.unit)
    assert verdict.interval == tables["e2"].interval(measure)
