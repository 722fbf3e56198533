"""What changes a result changes the fingerprint; what does not, does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Set
from dataclasses import Field, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest

from rag_harness.core.concurrency import Lazy
from rag_harness.core.protocols import Experiment, Pipeline
from rag_harness.core.settings import Settings, affecting
from rag_harness.core.settings.profiles import BUILT_IN_PROFILES
from rag_harness.core.settings.table import Affects
from rag_harness.core.types import GOLDEN
from rag_harness.models.recording.cassettes import OWN
from rag_harness.pipelines.experiments import experiment as build
from rag_harness.pipelines.parts import RunParts
from rag_harness.runs.fingerprint import Identities, fingerprint_of

MODELS = vars(BUILT_IN_PROFILES["mock"])
_KINDS: tuple[Affects, ...] = ("retrieval", "reranking", "generation")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


def settings_in(folder: Path) -> Settings:
    (folder / "kb").mkdir()
    (folder / "kb" / "a.md").write_text("# A\n\ntext")
    (folder / "queries.jsonl").write_text('{"query_id": "q1", "query": "?"}')
    return Settings(rootdir=str(folder), kb_dir="kb", queries="queries.jsonl", profile="mock", **MODELS)


def digest(experiment: str, settings: Settings) -> str:
    parts = RunParts(settings)
    return fingerprint_of(build(experiment, parts), settings, parts.data().queries_digest)


@pytest.mark.parametrize("experiment", ["e1", "e3"])
@pytest.mark.parametrize(
    "change",
    [
        *({"chat_model": "other"}, {"chat_base_url": "https://other"}, {"seed": 8}, {"temperature": 0.1}),
        *({"max_output_tokens": 5}, {"mode": "live"}, {"profile": "other"}),
    ],
)
def test_model_sampling_mode_and_profile_count_everywhere(
    settings: Settings, experiment: str, change: dict[str, Any]
) -> None:
    assert digest(experiment, replace(settings, **change)) != digest(experiment, settings)


@pytest.mark.parametrize(
    "change",
    [
        *({"chunk_size": 256}, {"chunk_overlap": 64}, {"top_k": 4}, {"candidates": 10}),
        *({"rerank_model": "mock:other"}, {"near_duplicates": 0.9}),
    ],
)
def test_retrieval_counts_for_e3_and_not_for_e1(settings: Settings, change: dict[str, Any]) -> None:
    changed = replace(settings, **change)
    assert digest("e3", changed) != digest("e3", settings)
    assert digest("e1", changed) == digest("e1", settings)


@pytest.mark.parametrize(
    "change",
    [
        {"concurrency": 3, "rpm": 5.0, "tpm": 5.0, "budget": 1.0, "prices": "x"},
        {"limit": 5},
        {"logs": "x"},
        {"output": "x"},
        {"timeout": 1.0, "deadline": 5.0},
    ],
)
def test_what_changes_no_result_does_not_count(settings: Settings, change: dict[str, Any]) -> None:
    assert digest("e3", replace(settings, **change)) == digest("e3", settings)


def test_one_byte_of_the_knowledge_base_counts_for_e3_and_not_for_e1(settings: Settings) -> None:
    before = digest("e1", settings), digest("e3", settings)
    (settings.path("kb") / "a.md").write_text("# A\n\ntexu")
    after = digest("e1", settings), digest("e3", settings)
    assert after[0] == before[0]
    assert after[1] != before[1]


@pytest.mark.parametrize("experiment", ["e1", "e3"])
def test_the_queries_file_counts(settings: Settings, experiment: str) -> None:
    before = digest(experiment, settings)
    with settings.queries_path.open("a") as stream:
        stream.write("\n")
    assert digest(experiment, settings) != before


def test_a_prompt_counts_for_its_experiment_alone(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "own" / "prompts").mkdir(parents=True)
    (tmp_path / "own" / "prompts" / "e3.system.md").write_text("Be brief.")
    changed = replace(settings, project="own")
    assert digest("e3", changed) != digest("e3", settings)
    assert digest("e1", changed) == digest("e1", settings)


def test_another_process_finds_the_same(settings: Settings) -> None:
    code = (
        "import sys; from tests.unit.runs.test_fingerprint import *; "
        f"settings = Settings(rootdir={settings.rootdir!r}, kb_dir='kb', queries='queries.jsonl', profile='mock', "
        "**MODELS); print(digest('e1', settings), digest('e3', settings))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", code]
    root = Path(__file__).parents[3]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, env=environment)
    assert ran.stdout.split() == [digest("e1", settings), digest("e3", settings)]


def test_a_pipeline_says_itself_what_else_decides(settings: Settings) -> None:
    def own(version: str) -> str:
        return fingerprint_of(Experiment("mine", SimpleNamespace(fingerprint=version)), settings, "q")

    assert own("1") == own("1") != own("2")


def test_what_an_experiment_declares_counts(settings: Settings) -> None:
    def of(**ingredients: Any) -> str:
        return fingerprint_of(Experiment("mine", SimpleNamespace(answer=str), ingredients=ingredients), settings, "q")

    assert of(boost=1, k=2) == of(k=2, boost=1) != of(boost=2, k=2)


def test_every_option_says_what_it_affects() -> None:
    """An option that declares nothing could change results of which old rows know nothing."""
    known = set(get_args(Affects))
    assert [option.name for option in fields(Settings) if option.metadata.get("affects") not in known] == []


@pytest.fixture(scope="module")
def deciding(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Set[str]]:
    """Return the options that decide results: of experiments by their names, and of any, by the empty one."""
    settings = settings_in(tmp_path_factory.mktemp("suite"))
    built = {name: build(name, RunParts(settings)) for name in ("e1", "e2", "e3")}
    return {"": set(affecting(settings, *_KINDS)), **{name: set(each.ingredients) for name, each in built.items()}}


@pytest.mark.parametrize("option", fields(Settings), ids=lambda option: option.name)
def test_an_option_counts_where_it_says_so_and_nowhere_else(
    deciding: Mapping[str, Set[str]], option: Field[Any]
) -> None:
    affects = option.metadata["affects"] if not option.metadata.get("if_set") else "nothing"
    assert (option.name in deciding[""]) == (affects in _KINDS)
    for experiment, own in (("e1", ("generation",)), ("e2", ("retrieval", "generation")), ("e3", _KINDS)):
        assert (option.name in deciding[experiment]) == (affects in own), experiment


def test_an_endpoint_for_embeddings_counts(settings: Settings) -> None:
    changed = replace(settings, embed_base_url="http://127.0.0.1:9/v1")
    assert digest("e2", changed) != digest("e2", settings)
    assert digest("e1", changed) == digest("e1", settings)


def test_a_pipeline_of_ones_own_is_asked_nothing(settings: Settings) -> None:
    class Mine:
        @property
        def retriever(self) -> Any:
            raise AssertionError("it is none of the harness's business")

        reranker = generator = retriever

    assert fingerprint_of(Experiment("mine", cast("Pipeline", Mine())), settings, "q")


# What decides the rows of an experiment.


@pytest.mark.parametrize(("name", "digest"), [("e3", "of e3"), (GOLDEN, "of the golden suite"), ("mine", "of mine")])
def test_the_golden_suite_has_questions_of_its_own(name: str, digest: str) -> None:
    parts: Any = SimpleNamespace(data=lambda data: SimpleNamespace(queries_digest=f"of {data}"))
    golden: Any = SimpleNamespace(digest="of the golden suite")
    experiment: Any = SimpleNamespace(id=name, data=name)
    identities = Identities(Lazy(Settings), Lazy(lambda: parts), Lazy(lambda: golden), lambda _: False)
    assert identities.queries_digest(experiment) == digest


@pytest.mark.parametrize(
    ("mode", "seconds", "may_be"), [("replay", 99, True), ("replay", 100, False), ("live", 99, False)]
)
def test_only_what_a_run_would_replay_and_was_recorded_later_is_another_answer(
    monkeypatch: pytest.MonkeyPatch, mode: Any, seconds: float, may_be: bool
) -> None:
    monkeypatch.setattr("rag_harness.models.recording.cassettes.last_written", lambda _: 100.0)
    nothing: Any = Lazy(object)
    identities = Identities(Lazy(lambda: Settings(mode=mode)), nothing, nothing, lambda _: False)
    assert identities.has_recorded_since("e3", seconds) is may_be
    assert identities.has_recorded_since("e3", 101) is False


@pytest.mark.parametrize(
    ("suite", "traced", "folder"), [("e3", (), "embedded"), ("e3", ("e3",), OWN), (GOLDEN, (), "embedded")]
)
def test_recordings_are_looked_for_where_a_suite_has_them(
    monkeypatch: pytest.MonkeyPatch, suite: str, traced: tuple[str, ...], folder: str
) -> None:
    looked: list[Path] = []

    def last_written(folder: Path) -> float:
        looked.append(folder)
        return 7.0

    monkeypatch.setattr("rag_harness.models.recording.cassettes.last_written", last_written)
    nothing: Any = Lazy(object)
    settings = Settings(rootdir="/suite")
    identities = Identities(Lazy(lambda: settings), nothing, nothing, traced.__contains__)
    assert [identities.recorded_last(suite) for _ in range(2)] == [7.0, 7.0]
    assert looked == [settings.folder("cassettes") / folder]
