"""The models of a dry run: those that are recorded, else those that answer in this process, else the mock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rag_harness.models.local_weights import embedder_lacks, reranker_lacks
from rag_harness.models.model_names import chat_name, embedder_name
from rag_harness.models.recording.store import ArrayStore, key_of
from rag_harness.registry.installed import install
from rag_harness.settings import Settings
from rag_harness.settings.profiles import BASELINE_READER, BUILT_IN_PROFILES, EMBEDDED_URL, Profile

_ASKED_ELSEWHERE = ("writer_model", "writer_base_url", "rewrite_model", "rewrite_base_url", "user_model")
"""Options of models besides those of a profile. Without them the profile's chat model does the work, or a rule."""


def of_dry_run(settings: Settings) -> Settings:
    """Return the settings with models that a dry run has; any other run's as they are.

    Nothing is called over a network, so what is not recorded has to be answered here. ``stands_in`` says so.
    """
    if not settings.dry_run or _is_recorded(settings):
        return settings
    settings = replace(settings, qdrant_url="")
    if _answers_here(settings):
        return settings
    where = settings.folder_said("cassettes")
    why = f"DRY_RUN: profile {settings.profile!r} has no recordings of these questions in {where}/, so"
    for reads in _readers(settings):
        if not embedder_lacks(reads):
            return replace(reads, stands_in=f"{why} {BASELINE_READER} answers")
    return replace(
        _with_models(settings, "mock"),
        stands_in=f"{why} all answers and their sources are MOCK, placeholders, and no gate on them is judged. With an "
        f"embedder installed {BASELINE_READER} answers: {install('local-light')}",
    )


def _is_recorded(settings: Settings) -> bool:
    """Return whether answers of the profile are recorded; where questions have vectors, some of these questions."""
    recordings = settings.folder("cassettes")
    vectors = list((recordings / (settings.stores_of or settings.profile) / "vectors").glob("*/"))
    keys = [key_of("query", text) for text in _questions(settings.queries_path)]
    if vectors and keys:
        return any(found is not None for each in vectors for found in ArrayStore([each]).get(keys))
    return any(each.is_file() for each in (recordings / settings.profile).rglob("*"))


def _questions(file: Path) -> Iterator[str]:
    """Yield the questions of a file of lines; none of any other file. What is wrong in it is said by its reader."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines() if file.suffix == ".jsonl" else []
    except (OSError, ValueError):
        return
    for line in lines:
        with suppress(ValueError, TypeError, KeyError):
            yield str(json.loads(line)["query"])


def _answers_here(settings: Settings) -> bool:
    """Return whether every model of the pipelines answers in this process, and can be loaded."""
    is_remote = chat_name(settings) == "openai" and settings.chat_base_url != EMBEDDED_URL
    return not (
        is_remote or embedder_name(settings) == "openai" or embedder_lacks(settings) or reranker_lacks(settings)
    )


def _readers(settings: Settings) -> Iterator[Settings]:
    """Yield the settings of the package's reader, with each backend that may be installed."""
    for backend in dict.fromkeys((settings.embed_backend, "onnx-int8", "torch")):
        yield replace(_with_models(settings, "embedded"), embed_backend=backend)


def _with_models(settings: Settings, profile: str) -> Settings:
    """Return the settings with all models of a profile, whatever was set by options of their own."""
    chosen = BUILT_IN_PROFILES[profile]
    models: dict[str, Any] = {each.name: getattr(chosen, each.name) for each in fields(Profile)}
    others: dict[str, Any] = dict.fromkeys((*_ASKED_ELSEWHERE, "judge", "panel"), "")
    return replace(settings, profile=profile, **(others | models))
