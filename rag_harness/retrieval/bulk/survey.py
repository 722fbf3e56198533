"""What all windows are cut into: no process holds all chunks, and at the end it is known what an index is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rag_harness.retrieval.bulk.about import About
from rag_harness.retrieval.bulk.crew import Crew
from rag_harness.retrieval.bulk.slots import Surveyed
from rag_harness.retrieval.bulk.values import Kept, Window
from rag_harness.retrieval.content import ContentDigest
from rag_harness.work.reporting import report

Windows = Callable[[], Iterable[Window]]
"""All windows, each time from the first."""


@dataclass
class Survey:
    """What all windows were cut into.

    Attributes:
        digest: of all chunks, as an index of them has it.
        places: of each window, the position of its first chunk and the digest of what is said of its chunks.
        chunks: how many there are; ``points`` of them have an id of their own.
        first: text of the first.
        about: all documents.
        parsed: documents that were parsed for it.
        failed: a line for each that is none.
    """

    digest: ContentDigest
    places: list[tuple[int, bytes]] = field(default_factory=list)
    chunks: int = 0
    points: int = 0
    first: str = ""
    about: About = field(default_factory=About)
    parsed: int = 0
    failed: list[str] = field(default_factory=list)

    def add(self, window: Surveyed) -> None:
        """Take the next window."""
        self.digest.add(window.said)
        self.places.append((self.chunks, window.digest))
        self.chunks += window.chunks
        self.points += window.points
        self.first = self.first or window.first
        self.about += window.about
        self.parsed += window.parsed
        self.failed += window.failed


def survey(
    windows: Windows,
    total: int,
    unit: str,
    crew: Crew,
    made_by: tuple[str, str],
    keep: Callable[[Kept], None] = lambda _: None,
) -> Survey:
    """Have all windows read and cut, to see what all chunks are.

    Args:
        windows: of ``total`` files or rows, called ``unit``.
        total: how many of these.
        unit: what they are.
        crew: does the work.
        made_by: embedding model and revision.
        keep: is given cuts that no store had, window by window.
    """
    found, asked = Survey(ContentDigest(*made_by)), 0
    report("reading", asked, total, unit)
    for window in crew.ordered("survey", ((each,) for each in windows())):
        assert isinstance(window, Surveyed)
        found.add(window)
        keep(window.kept)
        asked += window.asked
        report("reading", min(asked, total), total, unit)
    report("reading", total, total, unit)
    return found
