"""A folder of parts. Each is written atomically under a name made from its content, so a second run continues."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError, RecordingWriteError
from rag_harness.files.atomic import write_atomically
from rag_harness.retrieval.bulk.arrow_files import file_place_of
from rag_harness.retrieval.bulk.bulk_messages import WindowPart
from rag_harness.retrieval.bulk.part_file import about_part

COMPLETE = "_complete.json"
"""File that is written last. Readers of Parquet folders skip names that begin with an underscore."""
_NAME = re.compile(r"part-(\d{6,})-([0-9a-f]{16})\.parquet")


class PartsFolder:
    """Parts in a local folder, or below a URL.

    Args:
        said: path or URL.

    Raises:
        DataError: this is a file, or the folder has Parquet files of other origin.
    """

    def __init__(self, said: str) -> None:
        self.said, self._place = said, file_place_of(said.rstrip("/"))
        self._names = self._found()
        self._wanted: set[str] = set()

    @property
    def held(self) -> frozenset[str]:
        """Digests of the complete parts in the folder."""
        return frozenset(self._names)

    def take(self, part: WindowPart) -> int:
        """Store a part under its number and return its number of chunks."""
        name = f"part-{part.number:06}-{part.digest}.parquet"
        if part.held:
            chunks = self._move(part.digest, name)
        else:
            chunks = part.chunks
            if part.content:
                self._write(name, part.content)
        if chunks:
            self._wanted.add(name)
        return chunks

    def finish(self, summary: dict[str, Any]) -> int:
        """Remove parts of deleted documents, mark the folder as complete, and return the number of removed parts."""
        stale = [name for name in self._listed() if _NAME.fullmatch(name) and name not in self._wanted]
        for name in stale:
            self._place.system.delete_file(self._path(name))
        self._write(COMPLETE, json.dumps(summary, sort_keys=True, indent=1, default=str).encode() + b"\n")
        return len(stale)

    def begin(self) -> None:
        """Mark the folder as incomplete."""
        if COMPLETE in self._listed():
            self._place.system.delete_file(self._path(COMPLETE))

    def _found(self) -> dict[str, str]:
        names = self._listed()
        others = [name for name in names if not _NAME.fullmatch(name) and name.endswith(".parquet")]
        if others:
            raise DataError(f"{self.said} holds {others[0]}, which is no part of an ingest. Name another folder.")
        return {match[2]: name for name in names if (match := _NAME.fullmatch(name))}

    def _listed(self) -> list[str]:
        from pyarrow import fs

        about = self._place.system.get_file_info(self._place.path)
        if about.type == fs.FileType.File:
            raise DataError(f"{self.said} is a file. --to names a folder, which gets a file for each part.")
        selector = fs.FileSelector(self._place.path, allow_not_found=True)
        return sorted(each.base_name for each in self._place.system.get_file_info(selector))

    def _move(self, digest: str, name: str) -> int:
        """Give an existing part the name of its place. The name changes when files are added before it."""
        old = self._names[digest]
        if old != name:
            self._place.system.move(self._path(old), self._path(name))
            self._names[digest] = name
        with self._place.system.open_input_file(self._path(name)) as stream:
            about = about_part(stream)
        if about is None:
            raise DataError(f"{self.said}/{name} is damaged. Delete it: it is made again.")
        return about[0]

    def _write(self, name: str, content: bytes) -> None:
        try:
            if isinstance(self._place.system, _local()):
                write_atomically(Path(self._path(name)), content)
            else:
                # An object exists only after its stream is closed.
                with self._place.system.open_output_stream(self._path(name)) as stream:
                    stream.write(content)
        except OSError as error:
            raise RecordingWriteError(
                f"{self.said}/{name} cannot be written: {error.strerror or error}. What is there is whole: make room, "
                f"and run it again."
            ) from error

    def _path(self, name: str) -> str:
        return f"{self._place.path}/{name}"


def _local() -> type:
    from pyarrow import fs

    kind: type = fs.LocalFileSystem
    return kind
