"""Where the recordings of a service lie: those of each version apart, and those of each repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from rag_harness.models.anew import seed_shift
from rag_harness.models.recording.cassettes import Cassettes, CleanedRequest, Recorded
from rag_harness.models.recording.scrubbing import Scrub
from rag_harness.pipelines.endpoint.version import folder_of, point_to


class OwnCassettes(Cassettes):
    """The recordings of one service, at any address. Each repeat of a question has its own recording.

    Args:
        folder: the folder of the service.
        version: the version of the service, with recordings of its own; empty where it has none.
        secrets: values that must not reach the disk.
        scrub: removes private text from questions and answers.
        abridges: as in ``Cassettes``.
    """

    def __init__(
        self, folder: Path, version: str, secrets: Iterable[str], scrub: Scrub | None, abridges: bool = False
    ) -> None:
        super().__init__(folder / folder_of(version) if version else folder, secrets, scrub, abridges)
        self._of_service, self._version, self._points = folder, version, False

    def file(self, asked: CleanedRequest) -> Path:
        """Return the file of a request's recording, which need not exist."""
        shift = seed_shift.get()
        return self.folder / f"{asked.digest}{f'+{shift}' if shift else ''}.yaml"

    def begin(self, asked: CleanedRequest, response: Recorded) -> Callable[[], None]:
        """Write a recording, with the version of the service."""
        return super().begin(asked, replace(response, version=self._version))

    def heard(self, what: str, _about: object) -> None:
        """Let later replays use this version, after one of its answers was recorded or used."""
        if self._version and not self._points and what in ("used", "made"):
            self._points = True
            point_to(self._of_service, self._version)
