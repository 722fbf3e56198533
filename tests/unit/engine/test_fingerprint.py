"""What changes a result changes the fingerprint; what does not, does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.engine import fingerprint
from rag_harness.engine.fingerprint import digest_of_parts, experiment_parts, file_digest
from rag_harness.pipelines.e1_baseline import Baseline
from rag_harness.pipelines.e3_filtered_rag import FilteredRag
from rag_harness.pipelines.generation import Generator
from rag_harness.pipelines.parts import RunParts
from rag_harness.settings import Settings
from rag_harness.settings.profiles import BUILT_IN_PROFILES

MODELS = vars(BUILT_IN_PROFILES["mock"])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("# A\n\ntext")
    (tmp_path / "queries.jsonl").write_text('{"query_id": "q1", "query": "?"}')
    return Settings(rootdir=str(tmp_path), kb_dir="kb", queries="queries.jsonl", profile="mock", **MODELS)


def digest(experiment: str, settings: Settings) -> str:
    parts = RunParts(settings)
    unused: Any = None
    generator = Generator(unused, parts.prompts(experiment))
    reranker: Any = SimpleNamespace(model=settings.rerank_model, revision="1")
    pipeline: Any = Baseline(generator)
    if experiment != "e1":
        pipeline = FilteredRag(unused, reranker, generator, settings.candidates, settings.top_k)
    return digest_of_parts(experiment_parts(pipeline, parts, file_digest(settings.queries_path)))


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
        *({"rerank_model": "other"}, {"index": "other"}),
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
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "e3.system.md").write_text("Be brief.")
    changed = replace(settings, prompts="prompts")
    assert digest("e3", changed) != digest("e3", settings)
    assert digest("e1", changed) == digest("e1", settings)


def test_another_process_finds_the_same(settings: Settings) -> None:
    code = (
        "import sys; from tests.unit.engine.test_fingerprint import *; "
        f"settings = Settings(rootdir={settings.rootdir!r}, kb_dir='kb', queries='queries.jsonl', profile='mock', "
        "**MODELS); print(digest('e1', settings), digest('e3', settings))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", code]
    root = Path(__file__).parents[3]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, env=environment)
    assert ran.stdout.split() == [digest("e1", settings), digest("e3", settings)]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a package of somebody's own: ``rag_own.pipeline`` imports its neighbours in every spelling."""
    folder = tmp_path / "rag_own"
    (folder / "deep").mkdir(parents=True)
    (folder / "pipeline.py").write_text(
        "import rag_own.plain\nfrom rag_own import member\nfrom rag_own.absolute import x\nfrom .relative import x\n"
        "from . import sibling\nfrom .deep import inner\nimport json, torch_is_not_here\n"
    )
    names = ("__init__", "plain", "member", "absolute", "relative", "sibling", "unused", "deep/__init__", "deep/inner")
    for name in names:
        (folder / f"{name}.py").write_text("x = 1\n")
    (folder / "sibling.py").write_text("from .indirect import x\n")
    (folder / "indirect.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [each for each in sys.modules if each.startswith("rag_own")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "name", ["pipeline", "plain", "member", "absolute", "relative", "sibling", "indirect", "deep/inner"]
)
def test_the_source_of_a_pipeline_and_of_what_it_imports_counts(package: Path, name: str) -> None:
    before = fingerprint._sources.__wrapped__("rag_own.pipeline")
    with (package / f"{name}.py").open("a") as stream:
        stream.write("y = 2\n")
    assert fingerprint._sources.__wrapped__("rag_own.pipeline") != before


def test_a_module_that_is_not_imported_does_not_count(package: Path) -> None:
    before = fingerprint._sources.__wrapped__("rag_own.pipeline")
    (package / "unused.py").write_text("x = 2\n")
    assert fingerprint._sources.__wrapped__("rag_own.pipeline") == before


def test_a_module_beside_a_conftest_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rag_flat.py").write_text("from rag_flat_prompts import x\n")
    (tmp_path / "rag_flat_prompts.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = fingerprint._sources.__wrapped__("rag_flat")
    (tmp_path / "rag_flat_prompts.py").write_text("x = 2\n")
    assert fingerprint._sources.__wrapped__("rag_flat") != before


def test_the_place_of_a_checkout_does_not_count(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint._sources.__wrapped__("rag_own.pipeline")
    monkeypatch.undo()
    sys.modules.pop("rag_own", None)
    (tmp_path / "elsewhere").mkdir()
    package.rename(tmp_path / "elsewhere" / "rag_own")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    assert fingerprint._sources.__wrapped__("rag_own.pipeline") == before != ""


def test_a_pipeline_says_itself_what_else_decides(settings: Settings) -> None:
    def own(version: str) -> str:
        pipeline = SimpleNamespace(fingerprint=version)
        return digest_of_parts(experiment_parts(pipeline, RunParts(settings), "q"))

    assert own("1") == own("1") != own("2")


@pytest.mark.parametrize("module", ["no_such_module", "no.such.module", "sys", "types", ""])
def test_a_module_that_is_nobodys_file_is_no_error(module: str) -> None:
    assert fingerprint._sources.__wrapped__(module) == ""
