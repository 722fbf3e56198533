"""The command rag-harness ingest, and its summary."""

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

from rag_harness.core.errors import PrerequisiteError, SettingsError
from rag_harness.core.escaping import redraw, say
from rag_harness.core.escaping import terminal_line as shown
from rag_harness.core.package import install
from rag_harness.core.progress import LinesOfWork, ProgressText, listening
from rag_harness.data.documents import Library
from rag_harness.frontends.cli import FOUND
from rag_harness.frontends.cli.options import add_settings, settings_said
from rag_harness.retrieval.builder import Retrieval
from rag_harness.retrieval.ingest import NEAR_DUPLICATE_SHARE, IngestSummary, about_documents, duplicates

if TYPE_CHECKING:
    from rag_harness.core.settings import Settings
    from rag_harness.runs.distributed.ingest import Ingested


# ``rag-harness ingest``: parses, cuts, embeds and indexes documents of any kind, and reports the result.

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
    from rag_harness.core.progress import uncollected
    from rag_harness.core.settings.loading import load_settings
    from rag_harness.data.datasets import keeping_of
    from rag_harness.data.documents import other_files, read_paths

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
        from rag_harness.runs.distributed.ingest import ingest
    except ImportError as error:
        raise PrerequisiteError(f"--engine=ray needs Ray with its data library: {install('ray')}") from error
    began = monotonic()
    found = ingest(paths, to, settings)
    say(*spread_lines(found, monotonic() - began))
    return FOUND if found.failed else 0


def _indexed(library: Library, settings: Settings) -> Retrieval:
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.retrieval.builder import Retrieval, spec_of

    parts, spec = RunParts(settings), spec_of(settings)
    made = Retrieval(spec, lambda: library.documents, settings, parts.stores, parts.embedder(spec.embedder))
    made.prepare([])
    return made


@contextmanager
def _progress() -> Iterator[None]:
    """Show progress: on a terminal one line that is rewritten, elsewhere a line now and then."""
    work = ProgressText()
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

    def __init__(self, work: ProgressText) -> None:
        self._work, self._shown_at = work, 0.0

    def __call__(self, what: str, done: int, total: int, unit: str) -> None:
        self._work.hear(what, done, total, unit)
        if monotonic() - self._shown_at >= _EVERY or done in (0, total):
            redraw(self._work.text(), sys.stderr)
            self._shown_at = monotonic()

    def end(self) -> None:
        """End with an empty line, before a message about an error or Ctrl-C."""
        redraw("", sys.stderr)


MOST_SUFFIXES = 8
"""How many suffixes of files that are not documents are named."""
MOST_NAMED = 20
"""How many duplicates are named one by one."""


def summary_lines(
    library: Library, retrieval: Retrieval | None, passed_over: Counter[str], seconds: float
) -> list[str]:
    """Return the summary of an ingest; ``retrieval`` is None without documents.

    ``passed_over`` has the suffixes of files that are not documents.
    """
    cut = retrieval.cut if retrieval else ()
    refused = retrieval.refused if retrieval else {}
    told = about_documents([each for each in library.documents if each.doc_id not in refused], cut)
    failed = [*(each.line for each in library.unread), *(retrieval.refused_lines if retrieval else ())]
    return [
        *_about_files(told, library.parsed, failed),
        *_about_others(passed_over),
        *(_about_chunks(told, retrieval) if retrieval else ()),
        f"seconds   {seconds:.1f}",
    ]


def spread_lines(found: Ingested, seconds: float) -> list[str]:
    """Return the summary of an ingest by a Ray cluster."""
    return [
        *_about_files(found.about, found.parsed, found.failed),
        *(_about_sent(found) if found.place else ("chunks    0: nothing is written",)),
        f"seconds   {seconds:.1f}",
    ]


def _about_files(told: IngestSummary, parsed: int, failed: Sequence[str]) -> Iterator[str]:
    yield f"files     {told.documents + len(failed):,}"
    yield f"read      {told.documents:,} ({parsed:,} parsed now)"
    yield f"failed    {len(failed):,}"
    yield from (f"  {line}" for line in failed)
    yield from told.lines()


def _about_others(passed_over: Counter[str]) -> Iterator[str]:
    if passed_over:
        most = sorted(passed_over.items(), key=lambda each: (-each[1], each[0]))[:MOST_SUFFIXES]
        named = [f"{shown(suffix) or 'no suffix'} {count:,}" for suffix, count in most]
        more = ", …" if len(passed_over) > len(most) else ""
        yield f"others    {passed_over.total():,} files that are not documents: {', '.join(named)}{more}"


def _about_chunks(told: IngestSummary, retrieval: Retrieval) -> Iterator[str]:
    yield f"chunks    {len(retrieval.chunks):,} ({retrieval.embedder.computed:,} embedded now)"
    yield from _about_duplicates(retrieval)
    yield _covered(told)


def _about_sent(found: Ingested) -> Iterator[str]:
    now = "" if found.embedded is None else f" ({found.embedded:,} embedded now)"
    yield f"chunks    {found.chunks:,}{now}"
    yield f"sent      {found.sent:,} to {shown(found.place)}"
    yield _covered(found.about)


def _covered(told: IngestSummary) -> str:
    return f"coverage  {told.coverage:.2%} of the text is in chunks"


def _about_duplicates(retrieval: Retrieval) -> Iterator[str]:
    drops = retrieval.settings.near_duplicates
    with retrieval.building():
        # An index of all chunks already has their digest. Hashing all chunks again takes as long as opening the index.
        digest = retrieval.content_digest if retrieval.indexed is retrieval.cut else ""
        found = duplicates(retrieval.cut, drops or NEAR_DUPLICATE_SHARE, retrieval.stores, digest)
    if drops:
        yield f"dropped   {len(found):,} near-duplicates of chunks of earlier documents"
    elif found:
        yield (
            f"alike     {len(found):,} near-duplicates of chunks of earlier documents, which are kept; "
            f"--rag-near-duplicates={NEAR_DUPLICATE_SHARE:g} drops them"
        )
    for each in found[:MOST_NAMED]:
        yield f"  {shown(each.chunk.chunk_id)} is like {shown(each.like.chunk_id)} ({each.share:.0%})"
    if len(found) > MOST_NAMED:
        yield f"  and {len(found) - MOST_NAMED:,} more"
