"""A run is explained: what is run again, what is kept and found again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.cache import write_kept
from rag_harness.core.errors import BudgetError, CriticalError, DataError, RecordingMissError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Expectation, Hit, PipelineOutput, Query
from rag_harness.diagnosis import kept_causes as module
from rag_harness.diagnosis.explainer import REPLAYED, Explainer
from rag_harness.diagnosis.failures import tables_of
from rag_harness.diagnosis.kept_causes import KeptCauses
from rag_harness.diagnosis.reruns import running
from rag_harness.pipelines.experiments import result_path
from rag_harness.records.files import PromptFiles
from rag_harness.records.manifest import read_manifest
from rag_harness.records.row import RowCall, RowStage, rows_in
from rag_harness.records.scores import CAUSES, CauseLine, read_causes
from rag_harness.records.validation import check_results
from rag_harness.runs.journal import JOURNALS, Journal, adopt_journals
from tests.unit.diagnosis.made_up import (
    CASES,
    DONT_KNOW,
    PAGES,
    Pipeline,
    chunks_of,
    experiment,
    explained,
    explainer,
    parts,
)
from tests.unit.diagnosis.test_planted_faults import rows_of
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import write_run

# A run is explained: what is run again, what is kept of it, and what is said where nothing can be.

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


# Causes of earlier replays: which are found, which are looked for anew, and what comes back with them.

ROWS = rows_of(experiment(Pipeline(chunks_of(PAGES), says=lambda _: DONT_KNOW)))
IDENTITY = ("x1", "aaaa", "documents")


def refusing_causes() -> Pipeline:
    return Pipeline(chunks_of(PAGES), says=lambda _: DONT_KNOW)


def left(output: Path, rows: Any = ROWS, cases: Any = CASES, gates: Any = ()) -> Path:
    """Leave a run in ``output``."""
    write_run(output, rows, cases)
    verdicts = [{"gate": gate, "state": "failed"} for gate in gates]
    (output / "summary.json").write_text(json.dumps({"gates": verdicts}))
    return output


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    recordings = tmp_path / "cassettes" / "mock"
    recordings.mkdir(parents=True)
    (recordings / "a.yaml").write_text("said: yes")
    return tmp_path


def kept_in(cache: Path, output: Path, **options: Any) -> KeptCauses:
    given = {"mode": "replay", "rootdir": str(cache), "cache_dir": "cache"}
    return KeptCauses(Settings(**(given | options)), output, PromptFiles(output).keep_file)


def key(cache: Path, output: Path, identity: Any = IDENTITY, **options: Any) -> str:
    manifest = read_manifest(output)
    table = tables_of(output, manifest)["x1"]
    return kept_in(cache, output, **options).key(manifest.suites["x1"], table, identity)


def explain(cache: Path, output: Path, pipeline: Pipeline, **options: Any) -> tuple[list[CauseLine], Explainer]:
    """Explain a run as a replay does: from what is kept, or anew."""
    kept, name = kept_in(cache, output, **options), key(cache, output, **options)
    found = kept.find("x1", name)
    with running(output, parts(output)) as runs:
        explaining = explainer(output, experiment(pipeline), runs)
        lines = explaining.every({} if found is None else {"x1": found})
    if found is None and not explaining.unsure:
        kept.keep("x1", name, lines)
    return lines, explaining


def files(output: Path) -> dict[str, Any]:
    """Return the rows of a run's derived trials but for their times, and its prompts."""
    rows: dict[str, Any] = {}
    for file in sorted((output / "derived").glob("*.jsonl")):
        rows[file.name] = [module._TIMES.sub(b"", line) for line in file.read_bytes().splitlines()]
    return rows | {file.name: file.read_bytes() for file in (output / "prompts").glob("*")}


def test_the_same_is_not_run_again_and_leaves_the_same(cache: Path) -> None:
    first, again = refusing_causes(), refusing_causes()
    lines, _ = explain(cache, left(cache / "one"), first)
    same, _ = explain(cache, left(cache / "two"), again)
    assert first.calls
    assert not again.calls
    assert same == lines
    assert files(cache / "two") == files(cache / "one")
    assert (cache / "two" / "causes.jsonl").read_bytes() == (cache / "one" / "causes.jsonl").read_bytes()


def test_times_do_not_count(cache: Path) -> None:
    later = [row.model_copy(update={"finished_at": "2030-01-01", "total_time_ms": 9.5e-05}) for row in ROWS]
    assert key(cache, left(cache / "one")) == key(cache, left(cache / "two", later))


def test_the_order_in_which_workers_write_does_not_count(cache: Path) -> None:
    assert key(cache, left(cache / "one")) == key(cache, left(cache / "two", [*reversed(ROWS)]))


def test_the_same_run_in_the_same_folder_is_not_explained_anew(cache: Path) -> None:
    lines, _ = explain(cache, left(cache / "one"), refusing_causes())
    rows = files(cache / "one")
    again = refusing_causes()
    assert explain(cache, cache / "one", again)[0] == lines
    assert not again.calls
    assert files(cache / "one") == rows


def test_other_rows_in_the_folder_are_kept(cache: Path) -> None:
    explain(cache, left(cache / "one"), refusing_causes())
    explain(cache, left(cache / "two"), refusing_causes())
    for file in (cache / "two" / "derived").glob("*.jsonl"):
        file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    assert kept_in(cache, cache / "two").find("x1", key(cache, cache / "two")) is None


def test_a_text_that_looks_like_a_time_counts(cache: Path) -> None:
    said = [[row.model_copy(update={"llm_answer": f'"ms":{ms}, "finished_at":"{ms}"'}) for row in ROWS] for ms in "12"]
    assert key(cache, left(cache / "one", said[0])) != key(cache, left(cache / "two", said[1]))


def _rows(**update: Any) -> Callable[[Path], dict[str, Any]]:
    return lambda _: {"rows": [ROWS[0].model_copy(update=update), *ROWS[1:]]}


def _chunk(_: Path) -> dict[str, Any]:
    first, *others = ROWS[0].retrieved_chunks
    return _rows(retrieved_chunks=(replace(first, text="Other words."), *others))(_)


def _case(**changes: Any) -> Callable[[Path], dict[str, Any]]:
    return lambda _: {"cases": [replace(CASES[0], **changes), *CASES[1:]]}


def _recorded(cache: Path) -> dict[str, Any]:
    (cache / "cassettes" / "mock" / "a.yaml").write_text("said: no!")
    return {}


def _one_more(cache: Path) -> dict[str, Any]:
    (cache / "cassettes" / "mock" / "b.yaml").write_text("said: yes")
    return {}


CHANGED: dict[str, Callable[[Path], dict[str, Any]]] = {
    "answer": _rows(llm_answer="No idea."),
    "contexts": _chunk,
    "fingerprint of a row": lambda _: {"rows": [row.model_copy(update={"fingerprint": "b"}) for row in ROWS]},
    "ground truth": _case(ground_truth="Within 32 days."),
    "evidence": _case(evidence=()),
    "what an answer owes": _case(expect=(Expectation("contains", "31 days"),)),
    "failed gate": lambda _: {"gates": ["x1: token_f1 >= 0.9"]},
    "recording": _recorded,
    "one more recording": _one_more,
}


@pytest.mark.parametrize("what", CHANGED)
def test_what_has_changed_is_explained_anew(cache: Path, what: str) -> None:
    before = key(cache, left(cache / "one"))
    assert key(cache, left(cache / "two", **CHANGED[what](cache))) != before, what


@pytest.mark.parametrize("identity", [("x1", "bbbb", "documents"), ("x1", "aaaa", "other documents")])
def test_another_experiment_and_other_documents_are_explained_anew(cache: Path, identity: Any) -> None:
    output = left(cache / "one")
    assert key(cache, output, identity) != key(cache, output)


@pytest.mark.parametrize("option", [{"top_k": 6}, {"judge": "encoder"}, {"chat_model": "other"}, {"k": 5}])
def test_other_options_are_explained_anew(cache: Path, option: dict[str, Any]) -> None:
    output = left(cache / "one")
    assert key(cache, output, **option) != key(cache, output)


OTHERS = {"package_digest": lambda: "other", "library_versions": lambda: {"numpy": "0.0.0"}}


@pytest.mark.parametrize(("name", "other"), OTHERS.items())
def test_other_rules_and_versions_explain_anew(
    cache: Path, monkeypatch: pytest.MonkeyPatch, name: str, other: Any
) -> None:
    before = key(cache, left(cache / "one"))
    monkeypatch.setattr(module, name, other)
    assert key(cache, cache / "one") != before


def test_with_a_kind_of_expectation_of_ones_own_nothing_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = EntryPoint("polite", "my_project.kinds:Polite", "rag_harness.expectations")
    monkeypatch.setattr(module, "registered", lambda _: {"polite": own})
    assert key(cache, left(cache / "one")) == ""


def test_other_scores_explain_anew(cache: Path) -> None:
    output = left(cache / "one")
    manifest, kept = read_manifest(output), kept_in(cache, output)
    table = tables_of(output, manifest)["x1"]
    before = kept.key(manifest.suites["x1"], table, IDENTITY)
    next(iter(table.columns.values())).values[0] += 0.25
    assert kept.key(manifest.suites["x1"], table, IDENTITY) != before


def test_answers_with_a_limit_of_time_are_explained_each_time(cache: Path) -> None:
    limited = [replace(CASES[0], expect=(Expectation("max_ms", 5),)), *CASES[1:]]
    assert key(cache, left(cache / "one", cases=limited)) == ""
    kept_in(cache, cache / "one").keep("x1", "", [])
    assert not (cache / "cache").exists()


@pytest.mark.parametrize("damage", ["torn", "foreign", "not a cause"])
def test_a_torn_or_foreign_file_is_explained_anew(cache: Path, damage: str) -> None:
    lines, _ = explain(cache, left(cache / "one"), refusing_causes())
    (file,) = (cache / "cache" / "causes").glob("*/*.kept")
    if damage == "not a cause":
        write_kept(file, {"causes": [{"experiment": 1}], "rows": {}, "prompts": {}})
    else:
        file.write_bytes(file.read_bytes()[:-1] if damage == "torn" else b"not ours")
    pipeline = refusing_causes()
    assert explain(cache, left(cache / "two"), pipeline)[0] == lines
    assert pipeline.calls


def test_pruning_between_two_steps_loses_nothing(cache: Path) -> None:
    output = left(cache / "one")
    kept, name = kept_in(cache, output), key(cache, output)
    assert kept.find("x1", name) is None
    shutil.rmtree(cache / "cache", ignore_errors=True)
    lines, _ = explain(cache, output, refusing_causes())
    shutil.rmtree(cache / "cache")
    kept.keep("x1", name, lines)
    again = refusing_causes()
    assert explain(cache, left(cache / "two"), again)[0] == lines
    assert not again.calls


def test_rows_that_are_there_are_not_touched(cache: Path) -> None:
    explain(cache, left(cache / "one"), refusing_causes())
    output, pipeline = left(cache / "two"), refusing_causes()
    (output / "derived").mkdir()
    (output / "derived" / "x1+twice.jsonl").write_text("")
    explain(cache, output, pipeline)
    assert pipeline.calls
    pipeline.calls.clear()
    explain(cache, left(cache / "two"), pipeline, overwrite=True)
    assert not pipeline.calls


def test_what_may_end_otherwise_is_said(cache: Path) -> None:
    output = left(cache / "one")

    def unsure(pipeline: Pipeline, **changes: Any) -> bool:
        with running(output, parts(output)) as runs:
            explaining = explainer(output, experiment(pipeline, **changes), runs)
            explaining.every()
        shutil.rmtree(output / "derived", ignore_errors=True)
        return explaining.unsure == {"x1"}

    def failing(said: str) -> str:
        raise TimeoutError(said)

    def no_chunks() -> Any:
        raise OSError("no index")

    assert unsure(Pipeline(chunks_of(PAGES), says=failing))
    assert unsure(refusing_causes(), chunks=no_chunks)
    assert not unsure(refusing_causes())


@pytest.mark.parametrize("lost", ["derived/x1+twice.jsonl", "derived/x1+no_context.jsonl"])
def test_causes_without_their_rows_are_not_kept(cache: Path, lost: str) -> None:
    output = left(cache / "one")
    lines, _ = explain(cache, output, refusing_causes())
    file = output / lost
    file.write_bytes(file.read_bytes().partition(b"\n")[2])
    kept_in(cache, output).keep("x1", "another", lines)
    assert not list((cache / "cache").glob("**/another.kept"))


def test_causes_without_their_prompts_are_not_kept(cache: Path) -> None:
    output = left(cache / "one")
    lines, _ = explain(cache, output, refusing_causes())
    file = output / "derived" / "x1+twice.jsonl"
    row, *others = rows_in(file)
    stages = (RowStage(name="llm", stage="generate", ms=1.0, calls=(RowCall(role="answer", model="m", prompt="abc"),)),)
    asked = row.model_copy(update={"stages": stages})
    file.write_text("".join(each.line() for each in (asked, *others)))
    kept_in(cache, output).keep("x1", "another", lines)
    assert not list((cache / "cache").glob("**/another.kept"))
    PromptFiles(output).keep_file("abc", "[]")
    kept_in(cache, output).keep("x1", "another", lines)
    assert list((cache / "cache").glob("**/another.kept"))


def test_of_many_explanations_the_last_used_stay(cache: Path) -> None:
    output = left(cache / "one")
    for number in range(2 * module._NEWEST):
        kept_in(cache, output).keep("x1", str(number), [])
    assert len(list((cache / "cache").glob("causes/*/*.kept"))) == module._NEWEST
