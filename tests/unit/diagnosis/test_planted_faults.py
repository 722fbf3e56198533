"""Faults planted in a made-up study: nobody tells the diagnosis which, and it names each."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.evaluation.measures.correctness import rightness
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.trial import Trial, run_trial
from tests.unit.diagnosis.made_up import (
    CASES,
    DONT_KNOW,
    OLD,
    PAGES,
    Pipeline,
    chunks_of,
    experiment,
    explained,
    explainer,
    halved,
)
from tests.unit.suite_tables import write_run

CHUNKS = chunks_of(PAGES)


def rows_of(made: Experiment) -> list[ExperimentResult]:
    async def every() -> list[Any]:
        settings = Settings(profile="mock")
        return [(await run_trial(Trial("x1", case), made.pipeline, settings, "aaaa")).row for case in CASES]

    return asyncio.run(every())


def wrong(rows: list[ExperimentResult]) -> set[str]:
    found = zip(CASES, rows, strict=True)
    return {row.query_id for case, row in found if not rightness(case, row.llm_answer, row.abstained).right}


def causes(output: Path, pipeline: Pipeline) -> dict[str, tuple[str, str]]:
    """Return cause and detail of every trial that the fault touched."""
    made = experiment(pipeline)
    rows = rows_of(made)
    lines = explained(output, made, rows)
    assert {line.query_id for line in lines} == wrong(rows) != set()
    assert all(line.remedy and line.evidence and not line.observational for line in lines)
    return {line.query_id: (line.cause, line.detail) for line in lines}


def test_a_healthy_pipeline_gets_no_cause(tmp_path: Path) -> None:
    made = experiment(Pipeline(CHUNKS))
    rows = rows_of(made)
    assert not wrong(rows)
    assert explained(tmp_path, made, rows) == []


def test_a_page_that_was_deleted(tmp_path: Path) -> None:
    left = [chunk for chunk in CHUNKS if chunk.doc_id not in ("tent.md", "sofa.md")]
    found = causes(tmp_path, Pipeline(left))
    assert found == dict.fromkeys(["q2", "q4"], ("Retrieval Miss", "not in the index"))


def test_a_chunk_border_through_the_evidence(tmp_path: Path) -> None:
    cut = [piece for chunk in CHUNKS for piece in (halved(chunk) if "within" in chunk.text else [chunk])]
    found = causes(tmp_path, Pipeline(cut))
    assert found == dict.fromkeys([f"q{n}" for n in range(6)], ("Retrieval Miss", "cut by a chunk border"))


def test_evidence_that_is_ranked_below_the_context(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, k=1, order=lambda chunk: "within" in chunk.text))
    assert set(found.values()) == {("Retrieval Miss", "found but ranked below k")}


def test_a_context_that_is_ignored(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, says=lambda _: "That depends on your order."))
    assert found == dict.fromkeys([f"q{n}" for n in range(6)], ("Logic Failure", "the same answer to every question"))


def test_a_reader_that_refuses(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, says=lambda _: DONT_KNOW))
    assert found == dict.fromkeys([f"q{n}" for n in range(6)], ("Logic Failure", "wrong refusal"))


def test_a_prompt_that_loses_its_last_chunk(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, k=8, order=lambda chunk: "within" in chunk.text, loses=1))
    assert set(found.values()) == {("Logic Failure", "not read where it stood")}


def test_a_prompt_that_loses_its_only_chunk(tmp_path: Path) -> None:
    """Nothing can be put first there: it is given twice."""
    alone = [chunk for chunk in CHUNKS if "within" in chunk.text and chunk.doc_id != OLD]
    found = causes(tmp_path, Pipeline(alone, loses=1))
    assert set(found.values()) == {("Logic Failure", "not read where it stood")}


def test_an_answer_that_stops_early(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, says=lambda said: said[:20]))
    assert found == dict.fromkeys([f"q{n}" for n in range(6)], ("Logic Failure", "cut short"))


def test_chunks_that_a_service_cuts_short(tmp_path: Path) -> None:
    made = Pipeline(CHUNKS, sends=25)
    assert set(causes(tmp_path, made).values()) == {("Retrieval Miss", "the page came without the passage")}


def test_gold_with_a_wrong_figure_is_found_in_answers_that_nobody_called_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_harness.diagnosis.failures.WORST", 0)
    rows = rows_of(experiment(Pipeline(CHUNKS)))
    wrong_gold = [
        replace(case, ground_truth=case.ground_truth.replace(str(31 + n), "77")) for n, case in enumerate(CASES)
    ]
    told = [
        row.model_copy(update={"ground_truth": case.ground_truth}) for row, case in zip(rows, wrong_gold, strict=True)
    ]
    write_run(tmp_path, told, wrong_gold)
    lines = explainer(tmp_path, None).every()
    assert [(line.cause, line.detail) for line in lines] == [
        ("Gold Doubtful", "the answer has the figure of the evidence")
    ] * len(CASES)
    assert "31" in lines[0].evidence
    assert "77" in lines[0].evidence


def test_a_wrong_answer_that_is_not_among_the_worst_is_not_explained_for_its_figures(tmp_path: Path) -> None:
    rows = rows_of(experiment(Pipeline(CHUNKS, says=lambda _: "It takes 5 weeks.")))
    write_run(tmp_path, rows, CASES)
    assert [line.query_id for line in explainer(tmp_path, None, worst=2).every()] == ["q0", "q1"]


def test_an_outdated_page_that_is_ranked_first(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, order=lambda chunk: chunk.doc_id != OLD))
    assert found == {"q0": ("Outdated Info", "says what only an outdated page says")}


def test_noise(tmp_path: Path) -> None:
    rng = random.Random(3)
    found = causes(tmp_path, Pipeline(CHUNKS, says=lambda said: said if rng.random() >= 0.3 else "Ask us."))
    assert set(found.values()) == {("Noise", "right when asked again")}


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.long)])
def test_noise_is_found_in_nine_of_ten_trials(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    made = experiment(Pipeline(CHUNKS, says=lambda said: said if rng.random() >= 0.3 else "Ask us."))
    found: list[str] = []
    for turn in range(12):
        (tmp_path / str(turn)).mkdir()
        found += [line.cause for line in explained(tmp_path / str(turn), made, rows_of(made))]
    assert found.count("Noise") >= 0.9 * len(found) > 9
