"""The scorecard: means with intervals, the best by test, kinds of answers, what it took."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest

from rag_harness.page.sections.scorecard import measures_shown, scorecard
from rag_harness.records.scores import SCORES
from rag_harness.runs.gates import judge, parse_gate
from rag_harness.stats.paired_tests import Paired
from rag_harness.tables.pairwise import PairDifference
from rag_harness.tables.standings import best_of
from tests.unit.page.runs import AR, CP, F, cell_in, prose_in, read, rows_of, scored, table_in, write_study
from tests.unit.suite_tables import golden_row, tables_of, write_run


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path / "out")


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
