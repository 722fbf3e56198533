"""``rag-harness index``: this package's collections on a Qdrant server."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rag_harness.commands import FOUND
from rag_harness.errors import SettingsError
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.retrieval.indexes.server.status import CollectionState

_COLUMNS = ("collection", "points", "shards", "status", "vectors", "bytes", "model", "digest")
_UNITS = ("B", "kB", "MB", "GB", "TB")


def index_status_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``index status``."""
    about = "the server's URL, or names of collections; default: all collections of the server in RAG_QDRANT_URL"
    parser.add_argument("asked", nargs="*", metavar="URL|NAME", help=about)


def run_index_status(chosen: argparse.Namespace) -> int:
    """Print the collections. The exit status is 1 if a run could not use all of them."""
    from rag_harness.retrieval.indexes.server.status import states

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
    from rag_harness.retrieval.indexes.server.status import drop

    if chosen.wait is not None:
        raise SettingsError("--wait is no option: nothing locks a collection, so index drop removes it at once.")
    url, names = _parted(chosen.asked)
    if not names:
        raise SettingsError("Name the collection to remove: rag-harness index status lists them.")
    with _server(url) as (client, server):
        for name in names:
            drop(client, name)
            say(f"Collection {name} at {server} is gone; the next run that needs it makes it anew.")
    return 0


def _parted(asked: Sequence[str]) -> tuple[str, list[str]]:
    """Return the URL, empty if none was given, and the names."""
    urls = [each for each in asked if "://" in each]
    if len(urls) > 1:
        raise SettingsError(f"{' and '.join(urls)} are two servers: name one.")
    return "".join(urls), [each for each in asked if each not in urls]


@contextmanager
def _server(url: str) -> Iterator[tuple[Any, str]]:
    from rag_harness.retrieval.indexes.server.connection import check_version, connect, speaking
    from rag_harness.settings.loading import load_settings

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
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g} {_UNITS[unit]}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
