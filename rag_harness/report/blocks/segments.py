"""Divides a result file into pieces. A whole piece does not change when the file grows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

SEGMENT = 32 << 20
"""Bytes after which a piece ends, at the end of a line."""
_READ_AT_ONCE = 1 << 20


class Segment(NamedTuple):
    """A piece of a file: bytes ``start`` to ``end``."""

    start: int
    end: int

    def is_whole(self, size: int) -> bool:
        """Whether the piece will not change when the file grows."""
        return self.end - self.start >= size


def segments(file: Path, size: int) -> list[Segment]:
    """Return the pieces of ``file``. Each ends with the line that fills ``size``; the last ends with the file."""
    if not file.is_file():
        return []
    found: list[Segment] = []
    with file.open("rb") as stream:
        length = os.fstat(stream.fileno()).st_size
        start = 0
        while start < length:
            found.append(Segment(start, _end(stream, start + size, length)))
            start = found[-1].end
    return found


def content(file: Path, segment: Segment) -> bytes:
    """Return the bytes of a piece."""
    with file.open("rb") as stream:
        stream.seek(segment.start)
        return stream.read(segment.end - segment.start)


def digests(file: Path, pieces: Sequence[Segment]) -> Iterator[str]:
    """Yield the digest of each piece, in their order. Each core has one reading thread, which reads in small steps."""
    with ThreadPoolExecutor(os.cpu_count() or 1, "rag-digests") as threads:
        waiting = [threads.submit(_digest, file, piece) for piece in pieces]
        try:
            yield from (each.result() for each in waiting)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _digest(file: Path, segment: Segment) -> str:
    state, left = sha256(), segment.end - segment.start
    with file.open("rb", buffering=0) as stream:
        stream.seek(segment.start)
        while left and (read := stream.read(min(left, _READ_AT_ONCE))):
            state.update(read)
            left -= len(read)
    return state.hexdigest()


def _end(stream: BinaryIO, least: int, length: int) -> int:
    if least >= length:
        return length
    stream.seek(least - 1)
    stream.readline()
    return stream.tell()
