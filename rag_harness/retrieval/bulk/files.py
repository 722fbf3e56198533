"""Windows of files to read, and probe files that show whether a node has the same files."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rag_harness.dataset.library import SourceFile
from rag_harness.errors import PrerequisiteError
from rag_harness.retrieval.bulk.bulk_messages import DocumentWindow

FILES, BYTES = 64, 4_000_000
"""Limits of a window: files, and bytes after which it gets no more files."""
PROBES = 16
"""Number of probe files that each node checks before the work, including the first and the last file."""


def windows(sources: Sequence[SourceFile], files: int = FILES) -> Iterator[DocumentWindow]:
    """Yield all files in order, in windows."""
    group: list[SourceFile] = []
    number = size = 0
    for source in sources:
        group.append(source)
        size += source.file.stat().st_size if source.file.is_file() else 0
        if len(group) == files or size >= BYTES:
            yield DocumentWindow(number, tuple(group))
            number, group, size = number + 1, [], 0
    if group:
        yield DocumentWindow(number, tuple(group))


def probes(sources: Sequence[SourceFile]) -> dict[str, int]:
    """Return some of the files, evenly spread, with their sizes."""
    step = max(1, (len(sources) - 1) // (PROBES - 1))
    some = [*sources[::step][: PROBES - 1], *sources[-1:]]
    return {str(each.file.absolute()): each.file.stat().st_size for each in some if each.file.is_file()}


def check_sees(probes: Mapping[str, int]) -> None:
    """Check that this node has the files, by path and size in bytes.

    Raises:
        PrerequisiteError: files are missing, or differ in size.
    """
    for name, size in probes.items():
        try:
            with Path(name).open("rb") as file:
                found = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise PrerequisiteError(
                f"Node {socket.gethostname()} cannot read {name}: {error.strerror}. Give every node the folder at the "
                f"same path, or hand in Parquet files: their rows are sent to the nodes."
            ) from error
        if found != size:
            raise PrerequisiteError(
                f"Node {socket.gethostname()} has {found:,} bytes in {name}, not {size:,}: it is another file. Give "
                f"every node the same folder."
            )
