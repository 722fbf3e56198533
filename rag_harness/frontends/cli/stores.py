"""The commands rag-harness index and cache: collections on a Qdrant server, and what the cache holds."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.core.errors import SettingsError
from rag_harness.core.escaping import say
from rag_harness.frontends.cli import FOUND

if TYPE_CHECKING:
    from rag_harness.retrieval.indexes.server_collection import CollectionState


# ``rag-harness cache``: what the cache holds, and removing what was not used for long.

_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZE = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([kmgt]b)\s*", re.IGNORECASE)
_LONG = "30d"


def cache_status_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``cache status``."""
    parser.add_argument(
        "folder", type=Path, nargs="?", help="folder of the cache; default: as the suite in this folder has it"
    )


def run_cache_status(chosen: argparse.Namespace) -> int:
    """Print a line an entry, the least used first."""
    from datetime import datetime

    from rag_harness.core.cache import KINDS, entries_of

    folder = _folder(chosen)
    entries = entries_of(folder)
    for entry in entries:
        used = datetime.fromtimestamp(entry.used).strftime("%d %b %Y %H:%M")
        say(f"{entry.kind:<11}{_shown(entry.bytes):>9}  used {used}  {entry.path.name}")
    for kind in dict.fromkeys(entry.kind for entry in entries):
        say(f"{kind}: {KINDS[kind]}, {_shown(sum(each.bytes for each in entries if each.kind == kind))}")
    say(f"{folder}: {_shown(sum(entry.bytes for entry in entries))}; rag-harness cache prune removes what is not used")
    return 0


def prune_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``cache prune``."""
    cache_status_arguments(parser)
    parser.add_argument(
        "--older",
        default=_LONG,
        metavar="TIME",
        help=f"remove what was not used for so long, in days or hours; default: {_LONG}",
    )
    parser.add_argument("--most", default="", metavar="SIZE", help="also the least used, until so much is left: 2GB")
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and remove nothing")


def run_prune(chosen: argparse.Namespace) -> int:
    """Remove what was not used for long. What a run may be using stays, and so do recordings."""
    from time import time

    from rag_harness.core.cache import entries_of, remove_entry, stale
    from rag_harness.core.settings.loading import seconds_in

    folder, older, most = _folder(chosen), seconds_in(chosen.older, "--older"), _bytes(chosen.most)
    entries_of(folder)
    with _alone(folder):
        entries = entries_of(folder)
        gone = stale(entries, time(), older, most)
        for entry in gone:
            if not chosen.dry_run:
                remove_entry(entry)
            say(f"{'would go' if chosen.dry_run else 'gone'}: {entry.kind} {_shown(entry.bytes)} {entry.path.name}")
    left = sum(entry.bytes for entry in entries) - sum(entry.bytes for entry in gone)
    would = "would be" if chosen.dry_run else "are"
    say(f"{folder}: {len(gone)} of {len(entries)} entries {would} removed, {_shown(left)} left")
    return 0


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    try:
        with FileLock(folder / "building.lock", timeout=0):
            yield
    except Timeout:
        raise SettingsError(f"A run is building in {folder}: prune it when that has ended.") from None


def _folder(chosen: argparse.Namespace) -> Path:
    if chosen.folder is not None:
        return Path(chosen.folder)
    from rag_harness.core.settings.loading import ini_values, load_settings

    settings = load_settings({}, ini_values(Path.cwd()))
    return settings.path(settings.cache_dir)


def _bytes(text: str) -> float:
    if not text:
        return math.inf
    found = _SIZE.fullmatch(text)
    if not found:
        raise SettingsError(f"--most is {text!r}: expected a size, a number with kB, MB, GB or TB behind it: 2GB.")
    return float(found[1]) * _UNITS[found[2].lower()]


def _shown(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


# ``rag-harness index``: this package's collections on a Qdrant server.

_COLUMNS = ("collection", "points", "shards", "status", "vectors", "bytes", "model", "digest")
_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB")


def index_status_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``index status``."""
    about = "the server's URL, or names of collections; default: all collections of the server in RAG_QDRANT_URL"
    parser.add_argument("asked", nargs="*", metavar="URL|NAME", help=about)


def run_index_status(chosen: argparse.Namespace) -> int:
    """Print the collections. The exit status is 1 if a run could not use all of them."""
    from rag_harness.retrieval.indexes.server_collection import states

    url, names = _parted(chosen.asked)
    with _server(url) as (client, server):
        found = list(states(client, names))
    if not found:
        say(f"Qdrant at {server} has no collection of this package's: the first run with this URL makes one.")
        return 0
    say(*_table([_COLUMNS, *map(_row, found)]))
    faulty = [each for each in found if each.faults]
    for each in faulty:
        say(f"{each.name}: {'; '.join(each.faults)}")
    return FOUND if faulty else 0


def drop_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``index drop``."""
    parser.add_argument(
        "asked", nargs="+", metavar="URL|NAME", help="name of the collection; the server's URL before it"
    )
    parser.add_argument("--wait", help=argparse.SUPPRESS)


def run_drop(chosen: argparse.Namespace) -> int:
    """Remove collections."""
    from rag_harness.retrieval.indexes.server_collection import drop

    if chosen.wait is not None:
        raise SettingsError("--wait is not an option: nothing locks a collection, so index drop removes it at once.")
    url, names = _parted(chosen.asked)
    if not names:
        raise SettingsError("Name the collection to remove: rag-harness index status lists them.")
    with _server(url) as (client, server):
        for name in names:
            drop(client, name)
            say(f"Collection {name} at {server} is gone; the next run that needs it makes it again.")
    return 0


def _parted(asked: Sequence[str]) -> tuple[str, list[str]]:
    """Return the URL, empty if none was given, and the names."""
    urls = [each for each in asked if "://" in each]
    if len(urls) > 1:
        raise SettingsError(f"{' and '.join(urls)} are two servers: name one.")
    return "".join(urls), [each for each in asked if each not in urls]


@contextmanager
def _server(url: str) -> Iterator[tuple[Any, str]]:
    from rag_harness.core.settings.loading import load_settings
    from rag_harness.retrieval.indexes.server_connection import check_version, connect, speaking

    settings = load_settings({"qdrant_url": url} if url else {})
    if not settings.qdrant_url:
        raise SettingsError(
            "No Qdrant server is named: rag-harness index status http://127.0.0.1:6333, or RAG_QDRANT_URL."
        )
    client = connect(settings.qdrant_url, settings.qdrant_api_key)
    try:
        check_version(client, settings.qdrant_url)
        with speaking("does not answer", settings.qdrant_url):
            yield client, settings.qdrant_url
    finally:
        client.close()


def _row(state: CollectionState) -> tuple[str, ...]:
    told = state.told
    copies = [copy for copies in state.shards.values() for copy in copies]
    active = sum(status.startswith("Active") for _, status in copies)
    return (
        state.name,
        f"{state.points:,} of {told.chunks:,}" if told else f"{state.points:,}",
        f"{len(state.shards)} x {state.replicas}, {active} of {len(copies)} active",
        state.status,
        f"{told.dimension}, {state.quantize}" if told else "?",
        _size(state.vector_bytes),
        told.model if told else "?",
        told.digest if told else "?",
    )


def _size(count: float) -> str:
    unit = 0
    while count >= 1000 and unit < len(_SIZE_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g} {_SIZE_UNITS[unit]}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
