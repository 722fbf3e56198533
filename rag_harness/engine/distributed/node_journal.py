"""Rows and prompts on a node: in the folder of the results where the node shares it, else in a folder of the node."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

from rag_harness.engine.distributed.run_messages import Opened, RunOpening
from rag_harness.engine.journal import JOURNALS, left_behind
from rag_harness.files.sources import text_digest
from rag_harness.results.prompts import PROMPTS
from rag_harness.results.row import row_or_none


class NodeJournals:
    """Where a worker writes its journal, and the journals of dead workers that it finds there.

    Args:
        opening: names the folder of the results, and a file that the process of the tests has created in it.
    """

    def __init__(self, opening: RunOpening) -> None:
        self._replaces, self._wanted = opening.replaces, opening.wanted
        results = opening.settings.path(opening.settings.output)
        self.is_shared: bool = (results / JOURNALS / opening.token).is_file()
        self.results: Path = results if self.is_shared else _of_this_node(results)
        self.folder: Path = self.results / JOURNALS

    def read(self) -> Opened:
        """Return the rows of the worker that this one replaces; on a disk that is not shared, all journals as well."""
        found = left_behind(self.folder, self._not_ours() if self.is_shared else ())
        before = found.get(self.folder / f"{self._replaces}.jsonl", [])
        return Opened(self._rows(before), {} if self.is_shared else self._whole(sorted(found)))

    def _not_ours(self) -> set[Path]:
        """Return the journals that the process of the tests reads itself: each may be long, and many workers start."""
        return {file for file in self.folder.glob("*.jsonl") if file.stem != self._replaces}

    def _rows(self, lines: Sequence[bytes]) -> list[bytes]:
        """Return the wanted rows only. The process of the tests has the others, and one event loop for all workers."""
        rows = ((line, row_or_none(line)) for line in lines if self._wanted)
        return [line for line, row in rows if row is not None and (row.trial, row.fingerprint) in self._wanted]

    def _whole(self, journals: Sequence[Path]) -> dict[str, bytes]:
        files = [*journals, *sorted((self.results / PROMPTS).glob("*.json"))] if journals else []
        return {file.relative_to(self.results).as_posix(): file.read_bytes() for file in files}

    def remove(self, names: Sequence[str]) -> None:
        """Delete files whose content is safe elsewhere."""
        for file in (self.results / name for name in names):
            file.unlink(missing_ok=True)
            for beside in (".reserve", ".lock"):
                file.with_suffix(beside).unlink(missing_ok=True)

    def clear(self, journal: Path) -> None:
        """Delete this worker's journal where the disk is not shared: the process of the tests has all of it."""
        if not self.is_shared:
            self.remove([journal.relative_to(self.results).as_posix()])
            if not any(self.folder.glob("*.jsonl")):
                shutil.rmtree(self.results, ignore_errors=True)


def _of_this_node(results: Path) -> Path:
    return Path(gettempdir()) / "rag_harness-journals" / text_digest(str(results.absolute()))
