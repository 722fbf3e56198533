"""The table of a suite: who counts, as what; all of it read from files."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_harness.core import registry
from rag_harness.core.errors import DataError, PrerequisiteError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.types import GOLDEN, Case, Evidence
from rag_harness.evaluation.measures import Measure, RankingMeasure, RowMeasure, Score, default_measures, measure_named
from rag_harness.evaluation.measures.metamorphic import METAMORPHIC
from rag_harness.records.manifest import read_manifest, write_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.gates import judge, parse_gate
from rag_harness.tables.reader import read_tables
from rag_harness.tables.requested_measures import WantedMeasures
from rag_harness.tables.suite_table import CaseState, SuiteTable
from tests.unit.rows import make_chunk, make_row
from tests.unit.suite_tables import case, golden_row, table_of, tables_of, write_run

DIRECT, HOP, NEGATIVE = ({"query_type": name} for name in ("direct", "multi_hop", "negative"))
FOUND, SECOND = case("q1", "a"), case("q2", "a", **HOP)
NO_GOLD = case("q3", **NEGATIVE, answerable=False)
RAISED, LOST = case("q4", "a"), case("q5", "a", **HOP)
ERROR = {"status": "error", "error": {"stage": "retrieve", "type": "OSError", "message": "gone"}}
OTHERS = [case("other0"), case("other1")]


def answer(case_id: str, *ranked: str, **changes: Any) -> ExperimentResult:
    """Return a row whose ranking is ``ranked``."""
    return make_row(query_id=case_id, **({"ranking": ranked, "llm_answer": "yes", "retrieved_chunks": []} | changes))


ROWS = [answer("q1", "a", "b"), answer("q2", "b", "a"), answer("q3", "b"), answer("q4", "a", **ERROR)]


def table(rows: list[ExperimentResult], *cases: Case, others: int = 0, **more: Any) -> SuiteTable:
    selected = {"e3": [each.query.query_id for each in cases]}
    return table_of(rows, [*cases, *OTHERS[:others]], selected=selected, **more)


def test_rankings_are_scored_over_the_cases_with_gold_and_a_failure_counts_0() -> None:
    suite = table(ROWS, FOUND, SECOND, NO_GOLD, RAISED, LOST, measures=["mrr@5"])
    assert suite.values("mrr@5", {}) == {"q1": 1.0, "q2": 0.5, "q4": 0.0, "q5": 0.0}
    assert suite.values("mrr@5", HOP) == {"q2": 0.5, "q5": 0.0}
    assert suite.values("recall@1", NEGATIVE) == {}
    assert suite.values("mrr@5", {"query_type": "direct", "difficulty": "hard"}) == {}
    assert suite.absent("recall@1", {}) == {"no relevant document": 1}


def test_cases_are_counted_by_slice() -> None:
    suite = table(ROWS[:2], FOUND, SECOND, LOST, others=2)
    assert (suite.total_of({}), suite.selected_of({}), suite.lost_of({})) == (5, 3, 1)
    assert (suite.total_of(HOP), suite.selected_of(HOP), suite.lost_of(HOP)) == (2, 2, 1)
    assert (suite.total_of(DIRECT), suite.selected_of(DIRECT), suite.lost_of(DIRECT)) == (3, 1, 0)


def test_aggregates_and_breakdown() -> None:
    suite = table(ROWS[:3], FOUND, SECOND, NO_GOLD, measures=["mrr@5"])
    expected = {"mrr@5": 0.75, "recall@1": 0.5, "token_f1": None}
    assert suite.aggregate(["mrr@5", "recall@1", "token_f1"]) == expected
    assert suite.by("query_type", ["mrr@5"]) == {
        "direct": {"mrr@5": 1.0},
        "multi_hop": {"mrr@5": 0.5},
        "negative": {"mrr@5": None},
    }
    assert suite.by("difficulty", ["mrr@5"]) == {}
    assert table(ROWS[:1], FOUND, others=1).slices() == {"query_type": {"direct"}}


def test_graded_gold_counts_by_its_grade() -> None:
    graded = case("q1", qrels={"a": 2, "b": 1})
    assert table([answer("q1", "b", "a")], graded).values("ndcg@10", {})["q1"] == pytest.approx(0.8597, abs=1e-4)


def test_errors_are_counted_with_and_without_rows() -> None:
    assert table(ROWS, FOUND, SECOND, RAISED, LOST).aggregate(["error_rate"]) == {"error_rate": 0.5}


def test_answers_count_the_worst_where_there_is_none() -> None:
    quote = (Evidence("a", "quote"),)
    gold: dict[str, Any] = {"evidence": quote, "ground_truth": "yes"}
    cases = [case(name, "a", **gold) for name in ("q1", "q2", "q3")]
    lost_negative = case("q4", **NEGATIVE, answerable=False)
    # A chunk with the evidence reached the prompt and then the model failed: no answer came of it.
    chunk = make_chunk("a#0", text="quote")
    rows = [answer("q1", citations=[]), answer("q2", retrieved_chunks=[chunk], **ERROR)]
    suite = table(rows, *cases, lost_negative)
    assert suite.values("token_f1", {}) == {"q1": 1.0, "q2": 0.0, "q3": 0.0}
    assert suite.values("evidence_recall", {}) == {"q1": 0.0, "q2": 0.0, "q3": 0.0}
    assert suite.values("citation_recall", {}) == {"q1": 0.0, "q2": 0.0, "q3": 0.0}
    assert suite.values("false_abstention_rate", {}) == {"q1": 0.0, "q2": 1.0, "q3": 1.0}
    assert suite.values("abstention_rate", {}) == {"q1": 0.0, "q2": 0.0, "q3": 0.0, "q4": 0.0}


def test_an_experiment_that_does_not_retrieve_has_no_recall() -> None:
    gold = case("q1", "a", evidence=(Evidence("a", "quote"),), ground_truth="yes")
    measures = ["recall@5", "citation_recall", "evidence_recall"]
    nothing: dict[str, Any] = {"ranking": None, "candidates": []}
    closed_book = table([answer("q1", retrieval_time_ms=None, **nothing)], gold)
    nothing_found = table([answer("q1", retrieval_time_ms=1, citations=[], **nothing)], gold)
    assert closed_book.aggregate(measures) == dict.fromkeys(measures)
    assert closed_book.absent("recall@5", {}) == {"no retrieval": 1}
    assert nothing_found.aggregate(measures) == dict.fromkeys(measures, 0.0)
    assert closed_book.aggregate(["token_f1"]) == {"token_f1": 1.0}


def test_the_retrieval_suite_has_no_answers_whatever_became_of_it() -> None:
    for rows in ([golden_row("q1", ["a"])], [golden_row("q1", [], **ERROR)], []):
        suite = table_of(rows, [FOUND], measures=["token_f1", "abstention_rate"], selected={GOLDEN: ["q1"]})
        assert suite.aggregate(["token_f1", "abstention_rate"]) == {"token_f1": None, "abstention_rate": None}
        assert suite.absent("abstention_rate", {}) == {"no answer": 1}
        assert suite.values("recall@5", {}) == {"q1": float(bool(rows and rows[0].ok))}


def test_what_a_trial_took_leaves_out_what_has_no_answer() -> None:
    suite = table(ROWS, FOUND, SECOND, RAISED, LOST, measures=["total_ms", "cost_usd"])
    assert suite.values("total_ms", {}) == {"q1": 8.0, "q2": 8.0}
    assert suite.absent("total_ms", {}) == {"no answer": 1, "no row": 1}
    assert suite.absent("cost_usd", {}) == {"no answer": 1, "no row": 1, "no known price": 2}
    assert (suite.unmeasured("total_ms", {}), suite.unmeasured("cost_usd", {})) == (0, 2)


def test_a_table_is_what_gates_judge() -> None:
    suites = {"golden": table(ROWS[:3], FOUND, SECOND, NO_GOLD, measures=["mrr@5"])}
    suites["e3"] = table(ROWS[:1], FOUND, others=1)
    found = judge(parse_gate("mrr@k >= 0.75", 5), suites)
    assert (found.state, found.value, found.n) == ("passed", 0.75, 2)
    assert judge(parse_gate("e3: recall@1 >= 0", 5), suites).reason == (
        "1 of 2 cases selected; --rag-gate-partial judges these"
    )


def test_what_was_not_run_is_left_out_and_not_lost() -> None:
    suite = table(ROWS[:1], FOUND, SECOND, not_run={"e3": ["q2"]})
    assert (suite.selected_of({}), suite.lost_of({}), suite.total_of({})) == (1, 0, 2)
    assert suite.values("recall@5", {}) == {"q1": 1.0}


def test_rows_of_other_runs_and_other_queries_in_the_file_do_not_count(tmp_path: Path) -> None:
    write_run(tmp_path, ROWS[:1], [FOUND, SECOND, RAISED], selected={"e3": ["q1", "q2"]})
    with (tmp_path / "e3.jsonl").open("a") as file:
        file.write(answer("q2", "a", fingerprint="of-another-run").line())
        file.write(answer("q4", "a").line() + "torn")
    suite = read_tables(tmp_path, lambda _: default_measures(False, 10))["e3"]
    assert [suite.state_of(n) for n in range(3)] == ["ok", "lost", "left out"]
    assert suite.totals.rows == 1


def test_the_same_suites_share_a_file_of_cases_and_each_has_its_own_table() -> None:
    rows = [*ROWS[:2], answer("q1", "b", experiment="e4", fingerprint="other")]
    suites = tables_of(rows, [FOUND, SECOND], selected={"e3": ["q1", "q2"], "e4": ["q1"]})
    assert {name: suite.aggregate(["recall@1"])["recall@1"] for name, suite in suites.items()} == {"e3": 0.5, "e4": 0}
    assert suites["e3"].ids is suites["e4"].ids


def test_how_deep_an_experiment_looks() -> None:
    assert table(ROWS[:2], FOUND, SECOND).depth == 2
    assert table([answer("q1", ranking=None, candidates=[], retrieval_time_ms=None)], FOUND).depth is None


def test_a_row_of_an_earlier_release_reads(tmp_path: Path) -> None:
    write_run(tmp_path, ROWS[:1], [FOUND])
    old = json.loads(answer("q1").line())
    for name in ("stages", "decisions", "confidence", "ranking", "answerable", "inputs", "schema_version"):
        del old[name]
    old["candidates"] = [{"chunk_id": "a#chunk_0", "score": 1.0, "rerank_score": None}]
    (tmp_path / "e3.jsonl").write_text(json.dumps(old) + "\n")
    suite = read_tables(tmp_path, lambda _: default_measures(False, 10))["e3"]
    assert suite.values("recall@1", {}) == {"q1": 1.0}


@pytest.mark.parametrize("name", ["run.json", "cases/queries.jsonl"])
def test_a_missing_or_damaged_file_is_named(name: str, tmp_path: Path) -> None:
    write_run(tmp_path, ROWS[:1], [FOUND])
    (tmp_path / name).write_text("{}\n")
    with pytest.raises(DataError, match=f"{name}.*Run pytest"):
        read_tables(tmp_path, lambda _: [])
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=f"{name}.*Run pytest"):
        read_tables(tmp_path, lambda _: [])


class Brevity(RowMeasure):
    called, unit, better, worst = "brevity", "count", "lower", 99.0

    def score(self, case: Case, row: ExperimentResult) -> Score:
        return Score(float(len(row.llm_answer) / (len(row.ranking or ()) - 1)))


class LastRank(RankingMeasure):
    called, unit, better, worst = "last", "count", "lower", 100.0

    def batch(self, found: Any) -> Any:
        return np.full(found.n, 7.0)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register two measures as another package would."""
    point = {made.called: EntryPoint(made.called, f"{__name__}:{made.__name__}", "") for made in (Brevity, LastRank)}
    found = {**registry.registered("measures"), **point}
    monkeypatch.setattr("rag_harness.evaluation.measures.registered", lambda _: found)
    monkeypatch.setattr("rag_harness.core.registry.registered", lambda _: found)


@pytest.mark.usefixtures("registered")
def test_measures_of_others_are_kept_and_what_they_cannot_measure_is_said() -> None:
    suite = table([*ROWS[:2], answer("q3", "b"), ROWS[3]], FOUND, SECOND, NO_GOLD, RAISED, LOST)
    assert suite.values("brevity", {}) == {"q1": 3.0, "q2": 3.0, "q4": 99.0, "q5": 99.0}
    (reason,) = suite.absent("brevity", {})
    assert reason.startswith("no value, because the measure raised ZeroDivisionError")
    assert suite.unmeasured("brevity", {}) == 1
    assert suite.values("last@5", {}) == {"q1": 7.0, "q2": 7.0, "q4": 100.0, "q5": 100.0}
    assert CaseState(suite.states[4]) == CaseState.LOST


def test_of_two_rows_of_a_case_the_first_counts_and_of_another_run_none(tmp_path: Path) -> None:
    of_old = answer("q2", fingerprint="old", **ERROR)
    rows = [of_old, answer("q1", "a", cost_usd=1.0), answer("q1", "b", cost_usd=2.0), answer("q2", "a", **ERROR)]
    write_run(tmp_path, rows, [FOUND, SECOND])
    manifest = read_manifest(tmp_path)
    suites = {"e3": manifest.suites["e3"].model_copy(update={"fingerprints": ["aaaa"]})}
    write_manifest(tmp_path, manifest.model_copy(update={"suites": suites}))
    suite = read_tables(tmp_path, lambda _: default_measures(False, 10))["e3"]
    totals = suite.totals
    assert (totals.rows, totals.errors, totals.cost_usd) == (2, 1, 1.0)
    assert suite.values("recall@1", {}) == {"q1": 1.0, "q2": 0.0}
    assert totals.first_errors == [("e3-q2", "retrieve: OSError: gone")]


def test_errors_are_named_in_the_order_of_their_rows_and_not_of_other_runs() -> None:
    rows = [answer("q2", **ERROR), answer("q1", **ERROR), answer("other0", **ERROR)]
    assert [name for name, _ in table(rows, FOUND, SECOND, others=1).totals.first_errors] == ["e3-q2", "e3-q1"]


# Which experiments are judged and checked, and on what, by options and gates.


def wanted(**options: Any) -> WantedMeasures:
    return WantedMeasures(lambda: Settings(**options), lambda _: [])


def measures(of: WantedMeasures, experiment: str, *names: str) -> list[str]:
    return [measure.name for measure in of.judged_measures(experiment, names)]


def test_nothing_is_judged_where_nothing_is_named() -> None:
    assert (measures(wanted(), "e2"), list(wanted().judged_names("e2"))) == ([], [])


def test_what_options_name_is_judged_of_every_experiment_and_never_of_the_golden_suite() -> None:
    asked = wanted(measures=("faithfulness, hri", "recall@5"))
    assert measures(asked, "e2") == measures(asked, "e3") == ["faithfulness", "answer_relevancy"]
    assert list(asked.judged_names("e2")) == ["faithfulness", "answer_relevancy", "hri"]
    assert (measures(asked, GOLDEN), list(asked.judged_names(GOLDEN))) == ([], [])
    assert measures(asked, GOLDEN, "faithfulness") == []


def test_what_a_gate_names_is_judged_of_its_experiments() -> None:
    asked = wanted(gate=("e3: faithfulness >= e2", "e4: hri <= 0.2"))
    assert measures(asked, "e2") == measures(asked, "e3") == ["faithfulness"]
    assert measures(asked, "e4") == ["faithfulness", "answer_relevancy"]
    assert measures(asked, "e1") == []


def test_names_that_a_test_asks_for_stand_for_those_of_the_run() -> None:
    asked = wanted(measures=("faithfulness",))
    assert measures(asked, "e2", "g_mean") == ["context_precision", "faithfulness", "answer_relevancy"]
    assert measures(asked, "e2", "recall@5") == []


def test_names_are_looked_up_once_for_an_experiment_and_not_for_every_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []

    def named(name: str) -> Measure:
        looked_up.append(name)
        return measure_named(name)

    monkeypatch.setattr("rag_harness.evaluation.measures.measure_named", named)
    asked = wanted(measures=("faithfulness",), gate=("e3: factuality >= 0.2",))
    assert measures(asked, "e2") == list(asked.judged_names("e2")) == ["faithfulness"]
    once = len(looked_up)
    assert measures(asked, "e2") == ["faithfulness"]
    assert list(asked.judged_names("e2")) == ["faithfulness"]
    assert len(looked_up) == once
    assert measures(asked, "e3") == ["faithfulness", "factuality"]  # each experiment has its own


def test_a_slip_is_said_before_anything_runs() -> None:
    with pytest.raises(SettingsError, match="Did you mean 'faithfulness'"):
        wanted(measures=("faithfullness",)).check_judge([])
    with pytest.raises(SettingsError, match="Did you mean 'faithfulness'"):
        wanted(gate=("e4: faithfullness >= 0.2",)).check_judge(["e1"])


def test_a_judge_that_is_not_there_is_refused_only_where_it_is_asked() -> None:
    asked = wanted(gate=("e4: faithfulness >= 0.2",), judge="nobody")
    asked.check_judge(["e1", GOLDEN])
    with pytest.raises(PrerequisiteError, match="nobody"):
        asked.check_judge(["e4"])


def test_checks_are_those_named_and_all_where_they_are_asked_for() -> None:
    named = wanted(measures=("metamorphic_typos",), gate=("e3: metamorphic_case >= 0.9",))
    assert named.metamorphic_measures("e2") == ["metamorphic_typos"]
    assert named.metamorphic_measures("e3") == ["metamorphic_case", "metamorphic_typos"]
    every = wanted(metamorphic=True).metamorphic_measures("e2")
    assert every == [name for name in METAMORPHIC if name != "metamorphic_paraphrase"]
    assert wanted(metamorphic=True, writer_model="a/b").metamorphic_measures("e2") == list(METAMORPHIC)


def test_the_headline_is_judged_and_names_measures_alone() -> None:
    assert list(wanted(headline=("factuality, recall@5",)).judged_names("e2")) == ["factuality"]
    with pytest.raises(SettingsError, match="'factuality'"):
        wanted(headline=("factualty",)).check_judge([])
    with pytest.raises(SettingsError, match=r"rag_headline names measures, .* found 'e9: hri'. Write 'hri'."):
        wanted(headline=("e9: hri",)).check_judge([])
