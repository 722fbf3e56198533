"""Rows and prompts on a node: where it shares the folder of the results, in that; else in one of its own."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

from rag_harness.distributed.values import Opened, Opening
from rag_harness.engine.journal import JOURNALS, left_behind
from rag_harness.files.sources import text_digest
from rag_harness.results.prompts import PROMPTS


class NodeJournals:
    """Where a worker writes its own, and what it finds of those that have died.

    Args:
        opening: names the folder of the results, and a file that the process of the tests has put there.
    """

    def __init__(self, opening: Opening) -> None:
        self._run = opening.run
        results = opening.settings.path(opening.settings.output)
        self.is_shared = (results / JOURNALS / opening.token).is_file()
        self.results = results if self.is_shared else _of_this_node(results)
        self.folder = self.results / JOURNALS

    def read(self) -> Opened:
        """Return what dead workers have left; what lies on a disk of its own is given away whole."""
        found = left_behind(self.folder, ())
        ours = [line for file, lines in found.items() if file.name.startswith(self._run) for line in lines]
        return Opened(ours, {} if self.is_shared else self._whole(sorted(found)))

    def _whole(self, journals: Sequence[Path]) -> dict[str, bytes]:
        files = [*journals, *sorted((self.results / PROMPTS).glob("*.json"))] if journals else []
        return {file.relative_to(self.results).as_posix(): file.read_bytes() for file in files}

    def remove(self, names: Sequence[str]) -> None:
        """Delete what is safe elsewhere."""
        for file in (self.results / name for name in names):
            file.unlink(missing_ok=True)
            file.with_suffix(".lock").unlink(missing_ok=True)

    def clear(self, journal: Path) -> None:
        """Delete what this worker has kept on a disk of its own: the process of the tests has all of it."""
        if not self.is_shared:
            self.remove([journal.relative_to(self.results).as_posix()])
            if not any(self.folder.glob("*.jsonl")):
                shutil.rmtree(self.results, ignore_errors=True)


def _of_this_node(results: Path) -> Path:
    return Path(gettempdir()) / "rag_harness-journals" / text_digest(str(results.absolute()))
