"""The digest of a file of questions without what their answers owe: that changes no answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from rag_harness.dataset.query_tables import rows_of_table
from rag_harness.dataset.records.reading import is_table
from rag_harness.files.sources import bytes_digest

_OWED, _BLANKS = ("expect", "tools"), " \t\r\n"
_DECODER = json.JSONDecoder()


def asked_digest(file: Path, mapped: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the digest of a file of questions as if no line had ``expect`` or ``tools``.

    Without any it is that of the bytes. That of a table is that of the lines that its rows
    make, by the columns that ``mapped`` names.
    """
    if is_table(file):
        return bytes_digest(b"\n".join(_asked(each.text.encode()) for each in rows_of_table(file, mapped)))
    content = file.read_bytes()
    if not any(f'"{key}"'.encode() in content for key in _OWED):
        return bytes_digest(content)
    return bytes_digest(b"\n".join(map(_asked, content.split(b"\n"))))


def _asked(line: bytes) -> bytes:
    """Return a line without what its answer owes, its own or that of its turns."""
    try:
        text = line.decode("utf-8")
        cuts = list(_cuts(text, _after_blanks(text, 0))) if any(f'"{key}"' in text for key in _OWED) else []
    except (ValueError, IndexError, RecursionError):
        return line  # it is no JSON, and whoever reads it says so
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text.encode()


def _cuts(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the places to cut out of the object that begins at ``start``: members with a comma, those of turns, too."""
    comma, first = start, start + 1
    for key, value, end in _members(text, start):
        if key in _OWED:
            after = _after_blanks(text, end)
            # The comma before it goes with it. Where no member is left before it, the one behind it does.
            behind = _after_blanks(text, after + 1) if text[after] == "," else end
            yield (first, behind) if first else (comma, end)
            first = first and behind
            comma = after
            continue
        first = 0
        if key == "turns" and text[value] == "[":
            for turn in _items(text, value):
                yield from _cuts(text, turn)
        comma = _after_blanks(text, end)


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key of each member of an object, where its value begins, and where that ends."""
    place = _after_blanks(text, start + 1) if text[start] == "{" else len(text)
    while place < len(text) and text[place] == '"':
        key, place = _DECODER.raw_decode(text, place)
        value = _after_blanks(text, _after_blanks(text, place) + 1)
        _, end = _DECODER.raw_decode(text, value)
        yield key, value, end
        place = _after_blanks(text, _after_blanks(text, end) + 1)


def _items(text: str, start: int) -> Iterator[int]:
    """Yield where each item of a list begins."""
    place = _after_blanks(text, start + 1)
    while text[place] != "]":
        yield place
        _, end = _DECODER.raw_decode(text, place)
        place = _after_blanks(text, end)
        place = _after_blanks(text, place + 1) if text[place] == "," else place


def _after_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place] in _BLANKS:
        place += 1
    return place
