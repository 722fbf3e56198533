"""A result file in pieces that stay what they are while it grows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SEGMENT = 32 << 20
"""Bytes after which a piece ends with the line."""


def segments(file: Path, size: int = SEGMENT) -> Iterator[bytes]:
    """Yield the pieces of ``file``: each ends with the first line that fills ``size``, the last one with the file."""
    if not file.is_file():
        return
    with file.open("rb", buffering=1 << 20) as stream:
        while piece := stream.read(size):
            yield piece if piece.endswith(b"\n") else piece + stream.readline()
