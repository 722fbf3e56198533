"""Filling of a collection on a Qdrant server from surveyed windows. The workers send the points themselves.

Only this process holds the lease of the collection. It makes the collection, reports progress, and waits until all
points can be read. It holds only the start and the result of each window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from rag_harness.retrieval.bulk.bulk_messages import DocumentWindow
from rag_harness.retrieval.bulk.crew import Crew
from rag_harness.retrieval.bulk.slots import SentChunks, Slot, changed
from rag_harness.retrieval.bulk.survey import Survey, Windows
from rag_harness.retrieval.indexes.server.claiming import CollectionClaim, check_server
from rag_harness.retrieval.indexes.server.connection import speaking
from rag_harness.retrieval.indexes.server.filling import make_room
from rag_harness.retrieval.indexes.server.health import wait_until_ready
from rag_harness.retrieval.indexes.server.lease import Clock, Lease
from rag_harness.retrieval.indexes.server.ledger import CollectionLedger
from rag_harness.retrieval.indexes.server.server_collection import CollectionContent, ServerCollection, collection_for
from rag_harness.settings import Settings
from rag_harness.types import Vector
from rag_harness.work.reporting import report


@dataclass
class Filled:
    """The result of filling.

    Attributes:
        collection: the name of the collection.
        chunks: number of its chunks; ``sent`` of them are new.
        embedded: number of new chunks without a stored vector.
    """

    collection: str
    chunks: int
    sent: int = 0
    embedded: int = 0
    last: tuple[str, Vector] | None = field(default=None, repr=False)

    def add(self, window: SentChunks) -> None:
        """Add the next window."""
        self.sent += window.sent
        self.embedded += window.embedded
        self.last = window.last or self.last


def check(settings: Settings) -> None:
    """Check the server of the settings before anything is read.

    Raises:
        SettingsError: the URL is invalid, the key would be sent in clear, or an option has a wrong value.
        CriticalError: the server cannot be reached, is too old, or has too few nodes.
    """
    target = collection_for(settings, "")
    with _speaking(target):
        check_server(target)
    target.client.close()


def fill_by(
    crew: Crew, windows: Windows, surveyed: Survey, model: str, settings: Settings, clock: Clock | None = None
) -> Filled:
    """Fill the collection of the surveyed chunks, and wait until all points can be read.

    Args:
        crew: embeds and sends.
        windows: the surveyed windows.
        surveyed: the survey; it has at least one chunk.
        model: model and revision.
        settings: settings with the server.
        clock: the clock for waits.

    Raises:
        CriticalError: another run is changing the collection, it has other content, or the server refuses points.
        DataError: documents were changed meanwhile.
    """
    content = CollectionContent(surveyed.digest.hexdigest(), model, surveyed.points)
    target = collection_for(settings, content.digest)
    ledger = CollectionLedger(target.client, target.cluster.replicas)
    claim = CollectionClaim(target, content, ledger, settings.overwrite, clock or Clock())
    with _speaking(target):
        lease = claim.acquired()
    if lease is None:
        return Filled(target.name, surveyed.chunks)
    try:
        return _filled(claim, lease, crew, windows, surveyed)
    finally:
        lease.give_back()
        target.client.close()


def _filled(claim: CollectionClaim, lease: Lease, crew: Crew, windows: Windows, surveyed: Survey) -> Filled:
    [width] = crew.ordered("width", [(surveyed.first,)])
    target, content = claim.collection, replace(claim.content, dimension=width)
    with _speaking(target):
        resumes = make_room(target, content, claim.overwrite)
    made = Filled(target.name, surveyed.chunks)
    slots = _slots(windows, surveyed, target.name, resumes)
    for done, sent in _counted(crew.ordered("send", slots), surveyed.chunks):
        made.add(sent)
        lease.check()
        lease.progress(done)
    with _speaking(target):
        wait_until_ready(target, content.chunks, made.last, claim.clock)
    return made


def _slots(windows: Windows, surveyed: Survey, collection: str, resumes: bool) -> Iterator[tuple[DocumentWindow, Slot]]:
    """Yield the windows that have chunks, each with its place. Raise if they are not the windows of the survey."""
    ends = [first for first, _ in surveyed.places[1:]] + [surveyed.chunks]
    number = -1
    for number, window in enumerate(windows()):
        if number == len(ends):
            raise changed()
        first, digest = surveyed.places[number]
        if first < ends[number]:
            yield window, Slot(collection, first, digest, resumes)
    if number + 1 < len(ends):
        raise changed()


def _counted(windows: Iterator[Any], total: int) -> Iterator[tuple[int, SentChunks]]:
    """Yield the result of each window and the number of chunks done, and report the progress."""
    done = 0
    report("sending", done, total, "chunks")
    for window in windows:
        done += window.chunks
        yield done, window
        report("sending", done, total, "chunks")


def _speaking(target: ServerCollection) -> Any:
    return speaking("cannot be filled", target.url)
