"""``rag-harness ingest``: parses, cuts, embeds and indexes documents of any kind, and reports the result."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from rag_harness.commands import FOUND
from rag_harness.commands.with_settings import add_settings, settings_said
from rag_harness.errors import PrerequisiteError, SettingsError
from rag_harness.registry.installed import install
from rag_harness.shown.terminal import redraw, say
from rag_harness.work.lines_of_work import LinesOfWork
from rag_harness.work.reporting import WorkHeard, listening

if TYPE_CHECKING:
    from rag_harness.dataset.library import Library
    from rag_harness.retrieval.retrieval import Retrieval
    from rag_harness.settings import Settings

_EVERY = 0.1
"""Seconds between two drawings of the line of progress."""
_OPTIONS = {
    "profile": "named set of models, as --rag-profile of a test run",
    "mode": "how models are asked: auto, replay, record or live",
    "cache_dir": "folder of what was parsed, cut, embedded and indexed",
    "qdrant_url": "Qdrant server or cluster that gets the index; default: an index in the cache folder",
    "embed_model": "embedding model; default: the profile's",
    "device": "where a local model runs: cpu, or cuda or mps, a GPU that torch knows",
    "chunker": "how documents are cut",
    "chunk_size": "longest chunk in tokens",
    "chunk_overlap": "tokens repeated between pieces of a long section",
    "charset": "charset of text and HTML files that are not UTF-8 and name none, e.g. cp1252; default: the likeliest",
    "near_duplicates": "leave out chunks that share so much of their words with one of an earlier document",
    "engine": "local, or ray: a Ray cluster reads, cuts, embeds, and writes to a Qdrant server or to Parquet",
    "ray_address": "Ray cluster: auto, HOST:PORT or ray://HOST:PORT; default: one that is started on this machine",
    "ray_workers": "worker processes on the Ray cluster; default: one a node",
    "ray_gpus": "GPUs that each Ray worker gets, or a part of one",
}


def ingest_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ingest``."""
    about = (
        "a folder, as --rag-kb takes it; files and folders, which become one collection; or, with --engine=ray, "
        "Parquet files of documents by path or URL, with columns id and text, and title and metadata"
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help=about)
    out = "with --engine=ray: write chunks and vectors as Parquet files into this new folder, and make no index"
    parser.add_argument("--to", default="", metavar="FOLDER", help=out)
    add_settings(parser, _OPTIONS, ("rag-", ""))


def run_ingest(chosen: argparse.Namespace) -> int:
    """Update an index to the documents, and report the result."""
    from rag_harness.commands.ingested import summary_lines
    from rag_harness.dataset.data import keeping_of
    from rag_harness.dataset.ingest import other_files
    from rag_harness.dataset.named_files import read_paths
    from rag_harness.settings.loading import load_settings
    from rag_harness.work.garbage import uncollected

    began = monotonic()
    # A bad document never stops the command. The summary names documents that cannot be read or exceed a limit.
    settings = replace(load_settings(settings_said(chosen, _OPTIONS)), unreadable="skip")
    if settings.engine == "ray":
        return _on_ray(chosen.paths, chosen.to, settings)
    _check_local(chosen.paths, chosen.to)
    with _progress(), uncollected():
        library = read_paths([Path(path) for path in chosen.paths], keeping_of(settings))
        retrieval = _indexed(library, settings) if library.documents else None
    passed_over = sum((other_files(Path(path)) for path in chosen.paths), Counter[str]())
    say(*summary_lines(library, retrieval, passed_over, monotonic() - began))
    return FOUND if library.unread or (retrieval and retrieval.refused) else 0


def _check_local(paths: Sequence[str], to: str) -> None:
    tables = [path for path in paths if path.rstrip("/").lower().endswith(".parquet") or "://" in path]
    if to or tables:
        what = f"--to={to} is written" if to else f"{tables[0]} is read"
        raise SettingsError(f"{what} by Ray Data alone: add --engine=ray, on one machine too.")


def _on_ray(paths: Sequence[str], to: str, settings: Settings) -> int:
    from rag_harness.commands.ingested import spread_lines

    if not to and not settings.qdrant_url:
        raise SettingsError(
            "--engine=ray writes to a Qdrant server or to Parquet: name --qdrant-url or --to. An index in the cache "
            "folder is made by one process: leave --engine out."
        )
    if to and "://" not in to and Path(to).exists():
        raise SettingsError(f"--to={to} is there already: name a new folder, or delete what an earlier ingest left.")
    if settings.near_duplicates:
        raise SettingsError("--near-duplicates compares all documents in one process: leave --engine=ray out.")
    try:
        from rag_harness.engine.distributed.ray_ingest import ingest
    except ImportError as error:
        raise PrerequisiteError(f"--engine=ray needs Ray with its data library: {install('ray')}") from error
    began = monotonic()
    found = ingest(paths, to, settings)
    say(*spread_lines(found, monotonic() - began))
    return FOUND if found.failed else 0


def _indexed(library: Library, settings: Settings) -> Retrieval:
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.retrieval.retrieval import Retrieval, spec_of

    parts, spec = RunParts(settings), spec_of(settings)
    made = Retrieval(spec, lambda: library.documents, settings, parts.stores, parts.embedder(spec.embedder))
    made.prepare([])
    return made


@contextmanager
def _progress() -> Iterator[None]:
    """Show progress: on a terminal one line that is rewritten, elsewhere a line now and then."""
    work = WorkHeard()
    if not sys.stderr.isatty():
        with listening(work.hear), LinesOfWork(work.text, lambda text: say(text, to=sys.stderr)):
            yield
        return
    shown = _LineOfWork(work)
    try:
        with listening(shown):
            yield
    finally:
        shown.end()


class _LineOfWork:
    """The line on a terminal."""

    def __init__(self, work: WorkHeard) -> None:
        self._work, self._shown_at = work, 0.0

    def __call__(self, what: str, done: int, total: int, unit: str) -> None:
        self._work.hear(what, done, total, unit)
        if monotonic() - self._shown_at >= _EVERY or done in (0, total):
            redraw(self._work.text(), sys.stderr)
            self._shown_at = monotonic()

    def end(self) -> None:
        """End with an empty line, before a message about an error or Ctrl-C."""
        redraw("", sys.stderr)
