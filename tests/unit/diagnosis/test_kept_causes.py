"""Causes of earlier replays: which are found, which are looked for anew, and what comes back with them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.cache import write_kept
from rag_harness.core.settings import Settings
from rag_harness.core.types import Expectation
from rag_harness.diagnosis import explainer as module
from rag_harness.diagnosis.explainer import Explainer, KeptCauses
from rag_harness.diagnosis.failures import tables_of
from rag_harness.diagnosis.reruns import running
from rag_harness.records.files import PromptFiles
from rag_harness.records.manifest import read_manifest
from rag_harness.records.row import RowCall, RowStage, rows_in
from rag_harness.records.scores import CauseLine
from tests.unit.diagnosis.made_up import CASES, DONT_KNOW, PAGES, Pipeline, chunks_of, experiment, explainer, parts
from tests.unit.diagnosis.test_planted_faults import rows_of
from tests.unit.suite_tables import write_run

ROWS = rows_of(experiment(Pipeline(chunks_of(PAGES), says=lambda _: DONT_KNOW)))
IDENTITY = ("x1", "aaaa", "documents")


def refusing() -> Pipeline:
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
    first, again = refusing(), refusing()
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
    lines, _ = explain(cache, left(cache / "one"), refusing())
    rows = files(cache / "one")
    again = refusing()
    assert explain(cache, cache / "one", again)[0] == lines
    assert not again.calls
    assert files(cache / "one") == rows


def test_other_rows_in_the_folder_are_kept(cache: Path) -> None:
    explain(cache, left(cache / "one"), refusing())
    explain(cache, left(cache / "two"), refusing())
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
    lines, _ = explain(cache, left(cache / "one"), refusing())
    (file,) = (cache / "cache" / "causes").glob("*/*.kept")
    if damage == "not a cause":
        write_kept(file, {"causes": [{"experiment": 1}], "rows": {}, "prompts": {}})
    else:
        file.write_bytes(file.read_bytes()[:-1] if damage == "torn" else b"not ours")
    pipeline = refusing()
    assert explain(cache, left(cache / "two"), pipeline)[0] == lines
    assert pipeline.calls


def test_pruning_between_two_steps_loses_nothing(cache: Path) -> None:
    output = left(cache / "one")
    kept, name = kept_in(cache, output), key(cache, output)
    assert kept.find("x1", name) is None
    shutil.rmtree(cache / "cache", ignore_errors=True)
    lines, _ = explain(cache, output, refusing())
    shutil.rmtree(cache / "cache")
    kept.keep("x1", name, lines)
    again = refusing()
    assert explain(cache, left(cache / "two"), again)[0] == lines
    assert not again.calls


def test_rows_that_are_there_are_not_touched(cache: Path) -> None:
    explain(cache, left(cache / "one"), refusing())
    output, pipeline = left(cache / "two"), refusing()
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
    assert unsure(refusing(), chunks=no_chunks)
    assert not unsure(refusing())


@pytest.mark.parametrize("lost", ["derived/x1+twice.jsonl", "derived/x1+no_context.jsonl"])
def test_causes_without_their_rows_are_not_kept(cache: Path, lost: str) -> None:
    output = left(cache / "one")
    lines, _ = explain(cache, output, refusing())
    file = output / lost
    file.write_bytes(file.read_bytes().partition(b"\n")[2])
    kept_in(cache, output).keep("x1", "another", lines)
    assert not list((cache / "cache").glob("**/another.kept"))


def test_causes_without_their_prompts_are_not_kept(cache: Path) -> None:
    output = left(cache / "one")
    lines, _ = explain(cache, output, refusing())
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
