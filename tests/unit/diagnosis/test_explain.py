"""A run is explained: what is run again, what is kept of it, and what is said where nothing can be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import BudgetError, CriticalError, DataError, RecordingMissError
from rag_harness.core.types import Hit, PipelineOutput, Query
from rag_harness.diagnosis.explainer import REPLAYED, Explainer
from rag_harness.pipelines.experiments import result_path
from rag_harness.records.files import check_results
from rag_harness.records.row import rows_in
from rag_harness.records.scores import CAUSES, CauseLine, read_causes
from rag_harness.runs.journal import JOURNALS, Journal, adopt_journals
from tests.unit.diagnosis.made_up import CASES, DONT_KNOW, PAGES, Pipeline, chunks_of, experiment, explained, explainer
from tests.unit.diagnosis.test_planted_faults import rows_of
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import write_run

CHUNKS = chunks_of(PAGES)


def refusing() -> Pipeline:
    return Pipeline(CHUNKS, says=lambda _: DONT_KNOW)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose reader refuses everything."""
    write_run(tmp_path, rows_of(experiment(refusing())), CASES)
    return tmp_path


def test_derived_trials_are_rows_of_their_own_and_are_not_run_twice(run: Path) -> None:
    first, again = refusing(), refusing()
    lines = explained(run, experiment(first))
    kept = list(rows_in(run / "derived" / "x1+no_context.jsonl"))
    assert [row.experiment for row in kept] == ["x1+no_context"] * 6
    assert all(not row.retrieved_chunks for row in kept)
    assert len(first.calls) == 6 * 3 + sum(len(line.answers) - 3 for line in lines)
    assert explained(run, experiment(again)) == lines == read_causes(run)
    assert again.calls == []
    assert all(not check.problems for check in check_results(run))


def test_an_altered_context_that_has_changed_is_run_again(run: Path) -> None:
    explained(run, experiment(refusing()))
    file = result_path(run, "x1+gold_at_both_ends")
    stored = list(rows_in(file))
    assert stored
    file.write_text("".join(row.model_copy(update={"retrieved_chunks": ()}).line() for row in stored))
    again = refusing()
    explained(run, experiment(again))
    assert sorted(again.calls) == sorted(row.query_id for row in stored)


def test_what_a_killed_run_left_in_its_journal_is_taken_over(run: Path) -> None:
    explained(run, experiment(refusing()))
    file = result_path(run, "x1+twice")
    lines = file.read_bytes()
    file.unlink()
    journal = Journal(run / JOURNALS, "killed")
    journal._write(lines)
    journal.close()
    assert adopt_journals(run).rows == 6
    assert file.read_bytes() == lines


def test_a_black_box_is_explained_from_rows_and_gold_and_asked_again_only(run: Path) -> None:
    pipeline = refusing()
    lines = explained(run, experiment(pipeline, answer_from=None, chunks=None))
    assert {line.limits for line in lines} == {
        "the pipeline does not say how to answer from other sources (Experiment.answer_from)"
    }
    assert all(set(line.answers) == {"+twice", "+thrice", "+a_fourth_time"} for line in lines)
    assert {line.cause for line in lines} == {"Logic Failure"}


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (RecordingMissError("Nobody recorded this.", []), "generate: RecordingMissError: Nobody recorded this."),
        (BudgetError("0.9 of 1 USD are spent."), "not run: budget: 0.9 of 1 USD are spent."),
    ],
)
def test_what_may_not_be_asked_leaves_rows_and_gold_and_says_so(run: Path, error: Exception, why: str) -> None:
    async def refused(_: Query, __: Sequence[Hit] = ()) -> PipelineOutput:
        raise error

    pipeline = refusing()
    pipeline.answer = refused  # type: ignore[method-assign, assignment]
    lines = explained(run, experiment(pipeline, answer_from=refused))
    assert all(line.observational for line in lines)
    assert {line.limits for line in lines} == {why.replace("generate:", "pipeline:")}
    assert {(line.cause, line.detail) for line in lines} == {("Logic Failure", "wrong refusal")}
    assert not (run / "derived").exists()


def test_after_an_error_that_nothing_can_get_past_nothing_more_is_asked(run: Path) -> None:
    asked = []

    async def rejected(query: Query, _: Sequence[Hit] = ()) -> PipelineOutput:
        asked.append(query.query_id)
        raise CriticalError("The key was rejected.")

    pipeline = refusing()
    pipeline.answer = rejected  # type: ignore[method-assign]
    lines = explained(run, experiment(pipeline, answer_from=rejected), concurrency=1)
    assert all(line.observational and "The key was rejected." in line.limits for line in lines)
    assert len(asked) == 1


def test_a_replayed_answer_says_nothing_of_noise(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explained(run, experiment(refusing()))
    file = result_path(run, "x1+twice")
    file.write_text("".join(row.model_copy(update={"timings_recorded": True}).line() for row in list(rows_in(file))))
    lines = explained(run, experiment(refusing()))
    assert {line.answers["+twice"]["why"] for line in lines} == {REPLAYED}
    assert all("+thrice" not in line.answers for line in lines)


def test_an_experiment_that_has_changed_since_is_not_run(run: Path) -> None:
    made = explainer(run, None)
    (line, *_) = made.every()
    assert line.observational
    assert line.limits == "nothing was run again"


def test_without_a_failure_there_is_nothing_to_explain_and_the_file_is_empty(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of(experiment(Pipeline(CHUNKS))), CASES)
    assert explainer(tmp_path, None).every() == []
    assert (tmp_path / CAUSES).read_text() == ""


def test_errors_have_a_cause_already_and_are_left_out(tmp_path: Path) -> None:
    write_run(tmp_path, [failed_row(experiment="x1", query_id="q0")], CASES[:1])
    assert explainer(tmp_path, None).every() == []


def test_a_pipeline_that_retrieves_nothing_says_so(tmp_path: Path) -> None:
    line = looked_up_nothing(tmp_path, stages=[{"name": "generate", "ms": 3.0, "calls": []}])
    assert (line.cause, line.detail) == ("Retrieval Miss", "no retriever")


@pytest.mark.parametrize("role", ["", "service"])
def test_who_does_not_say_what_it_looked_up_is_not_called_one_that_looked_up_nothing(tmp_path: Path, role: str) -> None:
    """A pipeline that returns a text, and a service whose contexts nobody reads."""
    calls = [{"name": "ask", "ms": 3.0, "calls": [{"role": role, "model": "m"}]}] if role else []
    line = looked_up_nothing(tmp_path, stages=calls)
    assert (line.cause, line.detail) == ("Undetermined", "the pipeline does not say what it looked up")
    assert "PipelineOutput" in line.remedy


def looked_up_nothing(output: Path, **changes: Any) -> CauseLine:
    nothing: dict[str, Any] = {"retrieved_chunks": [], "candidates": [], "retrieval_time_ms": None, **changes}
    row = make_row(experiment="x1", query_id="q0", llm_answer="Some days.", **nothing)
    write_run(output, [row], CASES[:1])
    (line,) = explainer(output, None).every()
    return line


def test_one_trial_is_explained_whole_and_the_file_stays(run: Path) -> None:
    found = explainer(run, None).one("x1-q3")
    assert found is not None
    assert found.query_id == "q3"
    assert not (run / CAUSES).exists()


def test_a_trial_that_did_not_fail_has_no_cause(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of(experiment(Pipeline(CHUNKS))), CASES)
    assert explainer(tmp_path, None).one("x1-q3") is None


def test_a_trial_that_is_not_there_is_named_with_the_nearest(run: Path) -> None:
    with pytest.raises(DataError, match=r"no trial 'x1-q33' with an answer. Did you mean x1-q3"):
        explainer(run, None).one("x1-q33")


def test_an_output_folder_without_a_run_or_of_an_older_release_says_what_to_do(run: Path) -> None:
    (run / "cases" / "queries.jsonl").unlink()
    with pytest.raises(DataError, match="Run pytest with --rag-output"):
        explainer(run, None)
    (run / "run.json").unlink()
    with pytest.raises(DataError, match="does not describe a run"):
        explainer(run, None)


def test_rows_of_an_older_release_are_explained(run: Path) -> None:
    file = run / "x1.jsonl"
    old = []
    for line in file.read_text().splitlines():
        said = json.loads(line)
        for key in ("answerable", "stages", "decisions", "confidence", "inputs"):
            said.pop(key)
        old.append(json.dumps(said))
    file.write_text("\n".join(old) + "\n")
    assert len(explainer(run, None).every()) == 6


def test_what_a_person_said_survives_unless_the_row_is_another(run: Path) -> None:
    def reviewed(lines: list[CauseLine]) -> list[CauseLine]:
        said = {"reviewed_cause": "Noise", "reviewed_by": "ada"}
        return [line.model_copy(update=said) if line.query_id in ("q1", "q2") else line for line in lines]

    lines = reviewed(explainer(run, None).every())
    lines = [line.model_copy(update={"fingerprint": "other"}) if line.query_id == "q2" else line for line in lines]
    (run / CAUSES).write_text("".join(f"{line.model_dump_json()}\n" for line in lines))
    again = explainer(run, None).every()
    assert [line.query_id for line in again if line.reviewed_by == "ada"] == ["q1"]


def test_a_damaged_file_of_causes_is_named(run: Path) -> None:
    (run / CAUSES).write_text("no json\n")
    with pytest.raises(DataError, match=r"causes.jsonl:1: .* rag-harness explain"):
        explainer(run, None).every()


def test_only_so_many_as_were_asked_for(run: Path) -> None:
    assert len(explainer(run, None, worst=2).every()) == 2


def test_no_more_rows_are_in_memory_than_are_explained_together(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_harness.diagnosis.explainer._AT_ONCE", 2)
    sizes: list[int] = []
    original = Explainer._diagnosed

    def noted(self: Explainer, batch: Any) -> Any:
        sizes.append(len(batch))
        return original(self, batch)

    monkeypatch.setattr(Explainer, "_diagnosed", noted)
    assert [line.query_id for line in explainer(run, None).every()] == [f"q{n}" for n in range(6)]
    assert sizes == [2, 2, 2]


@pytest.mark.parametrize(
    "told",
    [
        {"retrieval_time_ms": 0.0},
        {"candidates": [{"chunk_id": "a", "score": 1.0}]},
        {"stages": [{"name": "ask", "ms": 3.0, "calls": []}]},
    ],
)
def test_one_sign_of_looking_up_is_enough(tmp_path: Path, told: dict[str, Any]) -> None:
    assert looked_up_nothing(tmp_path, **told).detail != "the pipeline does not say what it looked up"


def test_what_an_intervention_came_to_is_kept(run: Path) -> None:
    line = explained(run, experiment(refusing()))[0]
    assert line.answers["+no_context"] == {"answer": DONT_KNOW, "right": False, "value": 0.0}
    assert list(line.answers)[-2:] == ["+thrice", "+a_fourth_time"]
    assert (line.observational, line.limits, line.fingerprint) == (False, "", "aaaa")


def test_three_of_the_nearest_trials_are_named(run: Path) -> None:
    with pytest.raises(DataError) as caught:
        explainer(run, None).one("x1-q")
    assert str(caught.value).count("x1-q") == 1 + 3
    with pytest.raises(DataError, match=r"with an answer\. A trial is an experiment and a query: x1-q0\."):
        explainer(run, None).one("nothing like it")


def test_how_many_answers_each_experiment_has(run: Path) -> None:
    assert explainer(run, None).answers == {"x1": 6}
