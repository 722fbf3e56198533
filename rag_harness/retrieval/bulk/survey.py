"""The survey: all windows are read and cut first, because the digest of all chunks names the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rag_harness.retrieval.bulk.about import About
from rag_harness.retrieval.bulk.bulk_messages import DocumentWindow, KeptArrays
from rag_harness.retrieval.bulk.crew import Crew
from rag_harness.retrieval.bulk.slots import Surveyed
from rag_harness.retrieval.content_digest import ContentDigest
from rag_harness.work.reporting import report

Windows = Callable[[], Iterable[DocumentWindow]]
"""Returns all windows, each time from the first."""


@dataclass
class Survey:
    """The result of cutting all windows.

    Attributes:
        digest: digest of all chunks, as in their index.
        places: for each window, the position of its first chunk and the digest of ``said_of`` of its chunks.
        chunks: number of chunks; ``points`` of them have different ids.
        first: text of the first chunk.
        about: the summary of all documents.
        parsed: number of documents that were parsed.
        failed: a line for each file or row that is no document.
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
        """Add the next window."""
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
    keep: Callable[[KeptArrays], None] = lambda _: None,
) -> Survey:
    """Let the crew read and cut all windows, and return the survey of all chunks.

    Args:
        windows: windows of files or rows.
        total: number of files or rows.
        unit: what these are called.
        crew: does the work.
        made_by: embedding model and revision.
        keep: takes the new cuts of each window.
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
