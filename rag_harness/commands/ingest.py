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
    "mode": "auto, replay, record or live",
    "cache_dir": "folder of what was parsed, cut, embedded and indexed",
    "qdrant_url": "Qdrant server or cluster that gets the index; default: an index in the cache folder",
    "embed_model": "embedding model; default: the profile's",
    "device": "where a local model runs: cpu, or cuda or mps, a GPU that torch knows",
    "chunker": "how documents are cut",
    "chunk_size": "longest chunk in tokens",
    "chunk_overlap": "tokens repeated between pieces of a long section",
    "charset": "charset of text and HTML files that are not UTF-8 and name none, e.g. cp1252; default: the likeliest",
    "near_duplicates": "leave out chunks that share so much of their words with one of an earlier document",
    "engine": "local, or ray: documents are read, cut and embedded on the machines of a Ray cluster",
    "ray_address": "Ray cluster: auto, HOST:PORT or ray://HOST:PORT; default: one that is started on this machine",
    "ray_workers": "worker processes on the Ray cluster; default: one a node",
    "ray_gpus": "GPUs that each Ray worker gets, or a part of one",
}


def ingest_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ingest``."""
    about = (
        "a folder, as --rag-kb takes it; files and folders, which become one collection; or Parquet files of documents "
        "by path, URL or quoted pattern, with columns id and text, and title and metadata where there are some"
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help=about)
    out = "write chunks and vectors as Parquet files into this folder, or below this URL, and make no index"
    parser.add_argument("--to", default="", metavar="FOLDER", help=out)
    add_settings(parser, _OPTIONS, ("rag-", ""))


def run_ingest(chosen: argparse.Namespace) -> int:
    """Update an index to the documents, and report the result."""
    from rag_harness.commands.ingest_bulk import asked_for, by_crew, by_nodes, to_index, to_parquet
    from rag_harness.commands.ingested import summary_lines
    from rag_harness.dataset.data import keeping_of
    from rag_harness.dataset.ingest import other_files
    from rag_harness.dataset.named_files import read_paths
    from rag_harness.settings.loading import load_settings
    from rag_harness.work.garbage import uncollected

    began = monotonic()
    # A bad document never stops the command. The summary names documents that cannot be read or exceed a limit.
    settings = replace(load_settings(settings_said(chosen, _OPTIONS)), unreadable="skip")
    if chosen.to:
        with _progress():
            lines, is_whole = to_parquet(asked_for(chosen.paths), chosen.to, settings)
        say(*lines, f"seconds   {monotonic() - began:.1f}")
        return 0 if is_whole else FOUND
    if by_crew(chosen.paths, settings) and by_nodes(settings):
        return _to_server(chosen.paths, settings)
    with _progress(), uncollected():
        if by_crew(chosen.paths, settings):
            library, retrieval = to_index(asked_for(chosen.paths), settings)
        else:
            library = read_paths([Path(path) for path in chosen.paths], keeping_of(settings))
            retrieval = _indexed(library, settings) if library.documents else None
    passed_over = sum((other_files(Path(path)) for path in chosen.paths), Counter[str]())
    say(*summary_lines(library, retrieval, passed_over, monotonic() - began))
    return FOUND if library.unread or (retrieval and retrieval.refused) else 0


def _to_server(paths: Sequence[str], settings: Settings) -> int:
    from rag_harness.commands.ingest_bulk import asked_for, to_server
    from rag_harness.commands.ingested import sent_lines

    began = monotonic()
    with _progress():
        found, filled = to_server(asked_for(paths), settings)
    say(*sent_lines(found, filled, monotonic() - began))
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
