"""The JSON values of a file, a line each or over several lines, without reading the file as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import BinaryIO, NamedTuple

from rag_harness.errors import DataError
from rag_harness.files.json_text import read_json

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes. A longer value would have to be in memory as a whole."""
MARK = b"\xef\xbb\xbf"
"""A byte order mark."""
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')


class FileValue(NamedTuple):
    """A value of a file, be it JSON or not.

    Attributes:
        number: its first line.
        at: where it begins, in bytes.
        size: the bytes from there to its end.
        text: what it says, without a byte order mark.
    """

    number: int
    at: int
    size: int
    text: bytes


def values_of_file(stream: BinaryIO) -> Iterator[FileValue]:
    """Yield the values of a file.

    Where the first line is no JSON, a value ends where its brackets are closed; else it ends with its line, so that one
    line that is broken does not take the others with it.

    Raises:
        DataError: a value is too long.
    """
    lines = _lines(stream)
    first = next(lines, None)
    if first is None:
        return
    if first.text.lstrip()[:1] not in (b"{", b"[") or _is_json(first.text):
        yield first
        yield from lines
    else:
        yield from _joined(chain([first], lines), stream.name)


def _joined(lines: Iterable[FileValue], name: str) -> Iterator[FileValue]:
    parts: list[FileValue] = []
    opened = 0
    for line in lines:
        parts.append(line)
        opened += _opened(line.text)
        if line.at + line.size - parts[0].at > LONGEST_LINE:
            raise _too_long(name, parts[0].number)
        if opened <= 0:
            yield _one_of(parts)
            parts, opened = [], 0
    if parts:
        yield _one_of(parts)


def _one_of(parts: Sequence[FileValue]) -> FileValue:
    first, last = parts[0], parts[-1]
    return FileValue(first.number, first.at, last.at + last.size - first.at, b"".join(each.text for each in parts))


def _opened(line: bytes) -> int:
    """Return how many brackets a line opens and does not close. A text of JSON never goes over its line."""
    bare = _TEXT.sub(b"", line)
    return bare.count(b"{") + bare.count(b"[") - bare.count(b"}") - bare.count(b"]")


def _is_json(line: bytes) -> bool:
    try:
        read_json(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def _lines(stream: BinaryIO) -> Iterator[FileValue]:
    """Yield each line that is not blank."""
    at = 0
    for number in range(1, 2**63):
        line = stream.readline(LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > LONGEST_LINE:
            raise _too_long(stream.name, number)
        if line.strip():
            yield FileValue(number, at, len(line), line.removeprefix(MARK) if at == 0 else line)
        at += len(line)


def _too_long(name: str, number: int) -> DataError:
    return DataError(
        f"{name}:{number}: the value is longer than {LONGEST_LINE // 2**20} MiB. "
        f"Write one span or one request a line: jq -c '.[]'."
    )
