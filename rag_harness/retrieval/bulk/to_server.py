"""Windows that were surveyed -> a collection on a Qdrant server, to which the workers send their points themselves.

The right to change the collection is this process's alone: it makes the collection, says how far the work is, and waits
until all can be read. Of each window it holds where it begins, and what came of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from rag_harness.retrieval.bulk.crew import Crew
from rag_harness.retrieval.bulk.slots import Sent, Slot, changed
from rag_harness.retrieval.bulk.survey import Survey, Windows
from rag_harness.retrieval.bulk.values import Window
from rag_harness.retrieval.indexes.server.claiming import Claim, check_server
from rag_harness.retrieval.indexes.server.collection import Collection, Content, collection_for
from rag_harness.retrieval.indexes.server.connection import speaking
from rag_harness.retrieval.indexes.server.filling import make_room
from rag_harness.retrieval.indexes.server.health import wait_until_ready
from rag_harness.retrieval.indexes.server.lease import Clock, Lease
from rag_harness.retrieval.indexes.server.ledger import Ledger
from rag_harness.settings import Settings
from rag_harness.types import Vector
from rag_harness.work.reporting import report


@dataclass
class Filled:
    """What came of it.

    Attributes:
        collection: its name.
        chunks: how many it holds; ``sent`` of them were not there before.
        embedded: of these had no vector stored.
    """

    collection: str
    chunks: int
    sent: int = 0
    embedded: int = 0
    last: tuple[str, Vector] | None = field(default=None, repr=False)

    def add(self, window: Sent) -> None:
        """Take the next window."""
        self.sent += window.sent
        self.embedded += window.embedded
        self.last = window.last or self.last


def check(settings: Settings) -> None:
    """Check that the server that the settings name can take what comes, before anything is read.

    Raises:
        SettingsError: the URL is none, the key would be sent in clear, or an option has no such value.
        CriticalError: the server cannot be reached, is too old, or has too few nodes.
    """
    target = collection_for(settings, "")
    with _speaking(target):
        check_server(target)
    target.client.close()


def fill_by(
    crew: Crew, windows: Windows, surveyed: Survey, model: str, settings: Settings, clock: Clock | None = None
) -> Filled:
    """Bring the collection of what was surveyed to what it should hold, and wait until all of it can be read.

    Args:
        crew: embeds and sends.
        windows: those that were surveyed.
        surveyed: what came of it; there is a chunk.
        model: names model and revision.
        settings: name the server.
        clock: of waits.

    Raises:
        CriticalError: another run is changing it, it is another thing, or the server does not take it.
        DataError: documents were changed meanwhile.
    """
    content = Content(surveyed.digest.hexdigest(), model, surveyed.points)
    target = collection_for(settings, content.digest)
    ledger = Ledger(target.client, target.cluster.replicas)
    claim = Claim(target, content, ledger, settings.overwrite, clock or Clock())
    with _speaking(target):
        lease = claim.acquired()
    if lease is None:
        return Filled(target.name, surveyed.chunks)
    try:
        return _filled(claim, lease, crew, windows, surveyed)
    finally:
        lease.give_back()
        target.client.close()


def _filled(claim: Claim, lease: Lease, crew: Crew, windows: Windows, surveyed: Survey) -> Filled:
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


def _slots(windows: Windows, surveyed: Survey, collection: str, resumes: bool) -> Iterator[tuple[Window, Slot]]:
    """Yield windows that have chunks, with the place of each; they are the windows of the survey, or it is said."""
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


def _counted(windows: Iterator[Any], total: int) -> Iterator[tuple[int, Sent]]:
    """Yield what came of each window, with how many chunks are done, and tell whoever listens."""
    done = 0
    report("sending", done, total, "chunks")
    for window in windows:
        done += window.chunks
        yield done, window
        report("sending", done, total, "chunks")


def _speaking(target: Collection) -> Any:
    return speaking("cannot be filled", target.url)
