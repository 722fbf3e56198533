"""What a run would read, write or load: is it there? Nothing is read whole, loaded or asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from rag_harness.commands.checkup.presence import Presence, PresenceState
from rag_harness.errors import PrerequisiteError
from rag_harness.registry.installed import install, without_torch
from rag_harness.settings import Settings, access_of

_DEFAULTS = Settings()
_START = "rag-harness init writes a suite, or name yours with --rag-kb-dir"
_WRITTEN = ("cache_dir", "output", "logs")


def presences(settings: Settings) -> list[Presence]:
    """Look for documents, questions, folders to write to, weights and keys of a suite."""
    return [
        *_data(settings),
        *(_writable(name, settings.path(getattr(settings, name))) for name in _WRITTEN),
        _embedder(settings),
        *_server(settings),
        _keys(settings),
    ]


def _data(settings: Settings) -> Iterator[Presence]:
    if settings.dataset:
        yield Presence("ok", "documents", f"those of the public collection {settings.dataset}")
    else:
        yield _documents("documents", settings.path(settings.kb_dir), settings.kb_dir != _DEFAULTS.kb_dir)
        yield _questions("questions", settings.queries_path, bool(settings.queries))
        is_named = settings.golden != _DEFAULTS.golden
        yield _questions("golden set", settings.path(settings.golden), is_named)
    for each in settings.data:
        yield _documents(f"documents of {each.name}", settings.path(each.kb), is_asked=True)
        yield _questions(f"questions of {each.name}", settings.path(each.queries), is_asked=bool(each.queries))


def _documents(what: str, folder: Path, is_asked: bool) -> Presence:
    from rag_harness.dataset.ingest import page_files

    number = sum(1 for _ in page_files(folder)) if folder.is_dir() else 0
    if number:
        return Presence("ok", what, f"{number} file{'s' * (number != 1)} in {folder}")
    said = f"no document in {folder}" if folder.is_dir() else f"no folder {folder}"
    return Presence("broken" if is_asked else "absent", what, said, _START)


def _questions(what: str, file: Path, is_asked: bool) -> Presence:
    if file.is_file():
        return Presence("ok", what, f"{file}{_lines_in(file)}")
    remedy = "rag-harness init, or rag-harness kb queries DIR -o queries.jsonl, drafts some"
    return Presence("broken" if is_asked else "absent", what, f"no file {file}", remedy)


def _lines_in(file: Path) -> str:
    if file.suffix != ".jsonl":
        return ""
    try:
        with file.open("rb") as lines:
            number = sum(1 for line in lines if line.strip())
    except OSError as error:
        return f", which cannot be read: {error.strerror}"
    return f", {number} line{'s' * (number != 1)}"


def _writable(name: str, folder: Path) -> Presence:
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return Presence("ok", name, f"{folder} may be written")
    why = "may not be written" if there.is_dir() else "is no folder"
    return Presence("broken", name, f"{there} {why}", f"name another folder: --rag-{name.replace('_', '-')}=DIR")


def _embedder(settings: Settings) -> Presence:
    from rag_harness.models.local_weights import embedder_lacks
    from rag_harness.models.model_names import embedder_name

    model, adapter = settings.embed_model, embedder_name(settings)
    if adapter not in ("sentence-transformers", "onnx"):
        return Presence("ok", "weights", f"none is needed: the embedder {model} is of {adapter}")
    lacking = embedder_lacks(settings)
    if not lacking:
        return Presence("ok", "weights", f"{model} is there, for {settings.embed_backend}")
    # With recordings, or with BM25, a run needs no weights.
    access = access_of(settings)
    state: PresenceState = "absent" if access.reads_recordings and not access.records else "broken"
    return Presence(state, "weights", f"{model}: {lacking}", f"{_remedy(settings)}. BM25 and replay need none")


def _server(settings: Settings) -> Iterator[Presence]:
    if settings.qdrant_url and settings.index == "qdrant":
        is_there = find_spec("qdrant_client") is not None
        said = "its client is installed" if is_there else "the package qdrant-client is not installed"
        yield Presence("ok" if is_there else "broken", "qdrant server", said, "" if is_there else install("qdrant"))


def _remedy(settings: Settings) -> str:
    return (
        f"{install('local')}, or without torch {without_torch()}"
        if settings.embed_backend == "torch"
        else without_torch()
    )


def _keys(settings: Settings) -> Presence:
    from rag_harness.judges.ready import check_judge
    from rag_harness.models.api_keys import check_api_keys

    if not access_of(settings).calls_network:
        return Presence("ok", "keys", f"none is needed: mode {settings.mode} asks no model over a network")
    try:
        check_api_keys(settings)
        if settings.judge:
            check_judge(settings)
    except PrerequisiteError as error:
        return Presence("broken", "keys", str(error))
    return Presence("ok", "keys", f"those that mode {settings.mode} needs are set")
