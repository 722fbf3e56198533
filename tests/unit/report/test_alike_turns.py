"""Turns of one conversation count as alike wherever figures are compared, and each line says of how many they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag_harness.evaluation.judges.calibration.labels import AnswerLabel, in_clusters
from rag_harness.page.content import mean_cell, tail_cell
from rag_harness.records.manifest import RunManifest, SuiteRecord
from rag_harness.stats.paired_tests import paired
from rag_harness.tables.abstention import abstentions
from rag_harness.tables.baseline import load_saved_run, save, saved_run
from rag_harness.tables.clusters import Clusters
from rag_harness.tables.comparison import compare
from rag_harness.tables.comparison_lines import compared_lines
from rag_harness.tables.pairwise import PairDifference, compared, figures, on_measure, pairwise
from rag_harness.tables.power import power, power_lines
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.report.standing_tables import table
from tests.unit.rows import make_row

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
