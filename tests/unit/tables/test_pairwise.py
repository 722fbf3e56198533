"""Every pair of experiments on every judged measure, and what is said where there is nothing to compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from rag_harness.evaluation.judges.calibration.labels import AnswerLabel, in_clusters
from rag_harness.page.content import mean_cell, tail_cell
from rag_harness.records.manifest import RunManifest, SuiteRecord
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.stats import difference_interval, holm, holm_counts
from rag_harness.stats.paired_tests import paired
from rag_harness.tables.abstention import abstentions
from rag_harness.tables.comparison import compare
from rag_harness.tables.comparison_lines import compared_lines
from rag_harness.tables.pairwise import (
    PairDifference,
    compared,
    figures,
    on_measure,
    pairwise,
    pairwise_lines,
    power,
    power_lines,
)
from rag_harness.tables.reader import load_saved_run, save, saved_run
from rag_harness.tables.suite_table import Clusters, SuiteTable
from tests.effort import bounded
from tests.unit.rows import make_row
from tests.unit.suite_tables import tables_of
from tests.unit.tables.standing_tables import table

CP, F, AR, FACTS = NAMES = ("context_precision", "faithfulness", "answer_relevancy", "factuality")
WHO = Author("embedded", "embedded/alignment", "1")
Values = Mapping[str, Mapping[str, Sequence[float]]]


def record(data: str = "queries", judge: str = "embedded") -> SuiteRecord:
    authors = [(judge, "model", "1")]
    return SuiteRecord(data=data, file="", fingerprints=[], total=3, selected="all", authors=authors)


def made(values: Values, bare: Sequence[str] = ()) -> dict[str, SuiteTable]:
    """Return tables with these scores by experiment and measure; those that are ``bare`` never retrieve."""
    nothing: dict[str, Any] = {"retrieved_chunks": [], "candidates": []}
    nothing |= {"retrieval_time_ms": None, "rerank_time_ms": None}
    rows, scores = [], []
    for name, measures in values.items():
        for n in range(len(next(iter(measures.values())))):
            row = make_row(query_id=f"q{n:03}", experiment=name, **(nothing if name in bare else {}))
            rows.append(row)
            scores += [
                ScoreLine(measure, 1, name, row.query_id, row_digest(row), "", WHO, found[n])
                for measure, found in measures.items()
            ]
    # The score file reads only those whose version is the measure's.
    return tables_of(rows, measures=[*NAMES, "g_mean", "hri", "hri_gold"], scores=scores)


@cache
def study(n: int = 40, experiments: tuple[str, ...] = ("e1", "e2", "e3")) -> Mapping[str, SuiteTable]:
    rng = np.random.default_rng(n)
    values = {
        name: {
            measure: np.clip(rng.normal(0.5 + 0.1 * place, 0.2, n), 0, 1).tolist()
            for measure in (NAMES if name != "e1" else (AR, FACTS))
        }
        for place, name in enumerate(experiments)
    }
    return made(values, bare=["e1"])


def found_in(tables: Mapping[str, SuiteTable], **suites: SuiteRecord) -> dict[tuple[str, str, bool], PairDifference]:
    cells = pairwise(tables, {name: record() for name in tables} | suites)
    return {(cell.pair, cell.measure, cell.quantile is not None): cell for cell in cells}


def test_a_cell_is_what_scipy_says_of_the_cases_that_both_have() -> None:
    tables = study()
    cells = found_in(tables)
    cell = cells["e3 - e2", "g_mean", False]
    a, b = (tables[name].values("g_mean", {}) for name in ("e3", "e2"))
    oracle = scipy.stats.ttest_rel(list(a.values()), [b[case] for case in a])
    assert cell.found is not None
    assert cell.found.p_t == pytest.approx(oracle.pvalue)
    assert cell.found.difference == pytest.approx(np.mean([a[case] - b[case] for case in a]))


def test_pairs_with_an_experiment_without_context_use_the_gold_risk_and_say_what_is_not_defined() -> None:
    cells = found_in(study())
    families = {(pair, name): cell.family for (pair, name, tail), cell in cells.items() if not tail}
    assert families["e3 - e2", "hri"] == families["e2 - e1", "hri_gold"] == "study"
    assert families["e3 - e2", "hri_gold"] == families["e2 - e1", FACTS] == "others"
    assert cells["e2 - e1", "hri_gold", False].found is not None
    for name in (CP, F, "g_mean", "hri"):
        cell = cells["e2 - e1", name, False]
        assert (cell.found, cell.p_t, cell.reason) == (None, None, "e1 has no value (no retrieval)")


def test_holm_is_over_each_family_of_its_own() -> None:
    cells = found_in(study())
    for family in ("study", "others"):
        tests = [cell for cell in cells.values() if cell.family == family and cell.p_t is not None]
        raw = [cell.found.p_t for cell in tests if cell.found and cell.found.p_t is not None]
        assert [cell.p_t for cell in tests] == pytest.approx(holm(raw))
    # g_mean of one pair, hri or hri_gold of all three
    assert sum(cell.family == "study" and cell.p_t is not None for cell in cells.values()) == 4


def test_an_interval_has_the_confidence_that_its_p_is_judged_at() -> None:
    tables = study()
    cells = found_in(tables)
    for family in ("study", "others"):
        tests = [cell for cell in cells.values() if cell.family == family and cell.p_t is not None]
        counts = [
            holm_counts([p for cell in tests if cell.found and (p := getattr(cell.found, kind)) is not None])
            for kind in ("p_t", "p_permutation")
        ]
        assert [cell.among for cell in tests] == [max(pair) for pair in zip(*counts, strict=True)]
        for cell in tests:
            assert cell.found
            a, b = (tables[name].values(cell.measure, {}) for name in (cell.first, cell.second))
            differences = [a[case] - b[case] for case in a if case in b]
            assert cell.found.interval == difference_interval(differences, (-1, 1), 1 - 0.05 / cell.among)
            assert cell.as_json()["confidence"] == 1 - 0.05 / cell.among
    tail = cells["e3 - e2", "hri", True]
    assert tail.confidence == 0.95, "it has no test"


def test_the_tail_has_an_interval_and_no_test() -> None:
    cell = found_in(study())["e3 - e2", "hri", True]
    assert cell.found is not None
    assert cell.found.interval is not None
    assert (cell.quantile, cell.p_t, cell.p_permutation, cell.found.p_t) == (0.95, None, None, None)


def test_the_tail_of_few_cases_has_a_reason() -> None:
    cell = found_in(study(12))["e3 - e2", "hri", True]
    assert (cell.found, cell.reason) == (None, "e3 - e2: the 95% quantile of 12 cases is their largest value")


def test_equal_differences_have_a_difference_and_no_p_value() -> None:
    same = {AR: [0.5, 0.7, 0.9], FACTS: [1.0, 1.0, 1.0]}
    cell = found_in(made({"e2": same, "e3": same}))["e3 - e2", AR, False]
    assert cell.found is not None
    assert (cell.found.difference, cell.p_t, cell.reason) == (0.0, None, "e3 - e2: all differences are equal")


def test_one_case_has_no_test() -> None:
    cell = found_in(made({"e2": {AR: [0.5]}, "e3": {AR: [0.6]}}))["e3 - e2", AR, False]
    assert (cell.p_t, cell.reason) == (None, "e3 - e2: one case only")


def test_experiments_of_other_data_or_other_cases_are_no_pair() -> None:
    tables = study()
    assert {pair for pair, _, _ in found_in(tables, e3=record(data="others"))} == {"e2 - e1"}
    assert pairwise({"e2": tables["e2"]}, {"e2": record()}) == []
    assert pairwise({}, {}) == []


def test_scores_of_two_judges_are_not_compared() -> None:
    assert not found_in(study(), e1=record(judge="fused"), e2=record(judge="ragas"))


def test_nothing_judged_is_no_pair() -> None:
    rows = [make_row(experiment=name) for name in ("e2", "e3")]
    assert pairwise(tables_of(rows), {"e2": record(), "e3": record()}) == []


def test_lines_fit_and_show_both_tests_and_what_is_not_defined() -> None:
    tables = study(experiments=("e1", "e2", "e3", "e4"))
    lines = pairwise_lines(list(found_in(tables).values()))
    assert max(map(len, lines)) <= 100
    text = "\n".join(lines)
    assert "p adjusted by Holm for 9 tests" in text  # three pairs on g_mean, six on a risk
    assert any(line.startswith("e4 - e3") and "HRI p95 ↓" in line for line in lines)
    assert any(line.startswith("e3 - e1") and "HRI_gold ↓" in line for line in lines)
    assert "no test of G_mean, HRI, CP, F: e1 has no value (no retrieval)" in text
    (head,) = [line for line in lines if line.startswith("the study's")]
    assert " ".join(head.split()) == "the study's n difference interval d_z p (t) p (perm)"


def test_a_star_needs_both_tests() -> None:
    cells = found_in(study(100))
    cell = cells["e3 - e2", "g_mean", False]
    assert cell.is_significant
    assert not replace(cell, p_t=0.06).is_significant
    assert not replace(cell, p_permutation=0.06).is_significant
    assert not replace(cell, p_t=None).is_significant


def test_many_experiments_are_cut_and_said_so() -> None:
    tables = study(5, tuple(f"x{n}" for n in range(9)))
    lines = pairwise_lines(list(found_in(tables).values()))
    assert lines[-1] == "… and 26 more pairs, in summary.json and in the report"
    assert pairwise_lines([]) == []


def test_as_json_has_no_nan_and_says_what_people_read() -> None:
    for cell in found_in(study()).values():
        kept = json.loads(json.dumps(cell.as_json(), allow_nan=False))
        assert kept["pair"] == [cell.first, cell.second]
        assert (kept["difference"] is None) == (cell.found is None)
        assert kept["p_t_holm"] == cell.p_t
        assert kept["reason"] or kept["quantile"] or kept["p_permutation"] is not None


def test_the_study_is_bounded() -> None:
    with bounded(5):  # 0.18 s on an idle machine, for 30 tests and 9 tails
        found_in(study(200, ("e1", "e2", "e3", "e4")))


# Turns of one conversation count as alike wherever figures are compared, and each line says of how many they are.

RNG = np.random.default_rng(1)
LEVELS = RNG.random(12)


def by_talk(labels: Sequence[Mapping[str, str]]) -> Clusters:
    return Clusters("conversation", [f"conversation {each['conversation']}" for each in labels], is_named=False)


def talks(shift: float = 0.0, **more: Any) -> SuiteTable:
    """Return 12 conversations of 5 turns, whose values are those of their conversation, nearly."""
    labels = [{"conversation": f"c{n}", "turn": str(turn)} for n in range(12) for turn in range(1, 6)]
    noise = np.random.default_rng(2).random(60) * 0.02
    values = np.clip(np.repeat(LEVELS, 5) * 0.6 + shift * np.repeat(RNG.random(12), 5) + noise, 0, 1)
    found = table(labels, token_f1=values.tolist(), **more)
    found.alike = by_talk(labels)
    return found


FIRST, SECOND = talks(), talks(0.3)
MANIFEST = RunManifest(
    date="2026-01-01T00:00:00+00:00",
    settings={},
    digests={"queries": "d"},
    suites={
        name: SuiteRecord(data="queries", file=f"{name}.jsonl", fingerprints=["f"], total=60, selected="all")
        for name in ("c1", "c2")
    },
)
TABLES = {"c1": FIRST, "c2": SECOND}


def test_a_pair_is_tested_by_conversation_and_its_line_says_how_many() -> None:
    (cell,) = on_measure(TABLES, MANIFEST.suites, "token_f1")
    assert cell.found is not None
    assert figures(cell.found, cell.p_t, cell.p_permutation)[0] == "60 in 12"
    assert cell.as_json()["clusters"] == 12
    alone = paired([*SECOND.values("token_f1", {}).values()], [*FIRST.values("token_f1", {}).values()], span=(-1, 1))
    assert cell.found.interval is not None
    assert alone.interval is not None
    # As 60 cases of their own the interval would be less than half as wide.
    width, narrow = (each.high - each.low for each in (cell.found.interval, alone.interval))
    assert width > 2 * narrow
    assert alone.counted == "60"


def test_an_upper_quantile_is_compared_by_drawing_conversations() -> None:
    labels = FIRST.labels
    tables = {}
    for name in ("a", "b"):
        made = table(labels, hri=RNG.random(60).tolist())
        made.alike = FIRST.alike
        tables[name] = made
    records = dict.fromkeys(tables, MANIFEST.suites["c1"])
    tail = [cell for cell in pairwise(tables, records) if cell.quantile]
    (found,) = [cell.found for cell in tail]
    assert found is not None
    assert found.interval is not None
    assert (found.n, found.clusters) == (60, 12)


def test_a_saved_baseline_knows_its_conversations(tmp_path: Path) -> None:
    run = saved_run(MANIFEST, TABLES)
    save(tmp_path / "main.json", run)
    back = load_saved_run(tmp_path / "main.json")
    assert back.clusters == run.clusters
    assert power(back, 0.05) == power(run, 0.05)
    said = power_lines(back, 0.05)
    assert any("60 in 12" in line for line in said)
    assert "n: cases, on so many pages or in so many other clusters" in said


def test_two_saved_runs_are_compared_by_conversation(tmp_path: Path) -> None:
    for name, found in (("before", FIRST), ("now", SECOND)):
        save(tmp_path / f"{name}.json", saved_run(MANIFEST, {"c1": found}))
    before, now = (load_saved_run(tmp_path / f"{name}.json") for name in ("before", "now"))
    (change,) = compare(now, before).changes
    by_hand = compared({"now": SECOND, "before": FIRST}, PairDifference("now", "before", "token_f1", "others"))
    assert by_hand.found is not None
    assert change.interval == by_hand.found.interval
    assert any("60 in 12" in line for line in compared_lines(before, now))


def test_a_saved_run_of_single_questions_has_no_clusters(tmp_path: Path) -> None:
    plain = table([{"topic": "a"}] * 20, token_f1=[0.5, 1.0] * 10)
    save(tmp_path / "main.json", saved_run(MANIFEST, {"c1": plain}))
    back = load_saved_run(tmp_path / "main.json")
    assert back.clusters == {}
    assert power(back, 0.05)[0].cells()[3] == "20"


def test_the_page_has_intervals_of_quantiles_by_conversation() -> None:
    assert (tail_cell(FIRST, "token_f1", 0.95).hint or "").startswith("n = 60 in 12 conversations; 95 % interval")
    alone = talks()
    alone.alike = None
    assert tail_cell(FIRST, "token_f1", 0.5).text != tail_cell(alone, "token_f1", 0.5).text
    assert "±" in mean_cell(FIRST, "token_f1").text or "[" in mean_cell(FIRST, "token_f1").text


def test_a_mean_says_in_how_many_conversations_its_cases_are() -> None:
    assert (mean_cell(FIRST, "token_f1").hint or "").startswith("n = 60 in 12 conversations; 95 % interval")
    assert FIRST.describe_clusters(FIRST.ids[:5]) == " in 1 conversation"


def test_a_stated_confidence_promises_nothing_where_answers_are_alike() -> None:
    stated = talks(confidence=[0.9, 0.2] * 30, correct=[1, 0] * 30)
    (found,) = abstentions({"c1": stated})
    assert found.promise is None
    assert any("its promise is of answers that are independent" in reason for reason in found.reasons)


def test_labels_are_clustered_by_conversation_or_page_unless_they_say_otherwise() -> None:
    told = {"conversation": "c7", "turn": 2}
    rows = {("c1", "c7#2"): make_row(experiment="c1", query_id="c7#2", inputs=told), ("c1", "q1"): make_row()}
    labels = [
        AnswerLabel("c1", "c7#2", 1.0),
        AnswerLabel("c1", "c7#2", 1.0, cluster="own"),
        AnswerLabel("c1", "q1", 1.0),
        AnswerLabel("", "outside", 1.0),
    ]
    assert [each.cluster for each in in_clusters(labels, rows)] == ["conversation c7", "own", "page returns.md", ""]


def test_ranks_on_the_page_are_by_cluster() -> None:
    from rag_harness.page.drawings import _alike, _share

    def found() -> SuiteTable:
        labels = [{"conversation": f"c{n // 5}", "turn": str(n % 5 + 1)} for n in range(60)]
        return table(labels, mrr_at_10=[1] * 30 + [0] * 30)

    plain, turns = found(), found()
    turns.alike = by_talk(turns.labels)
    alone, together = (_share([1] * 30 + [0] * 30, 1, _alike(each)) for each in (plain, turns))
    assert together.low is not None
    assert alone.low is not None
    assert together.low < alone.low
