"""What of a sheet its reader does not tell: merged cells, formulas without a value, and how values are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any
from xml.parsers import expat

from rag_harness.dataset.ingest.process_limits import CELLS
from rag_harness.errors import UnreadableError

_MOST_MERGES = 50_000
_RANGE = re.compile(r"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})")
_MONEY = re.compile(r"""[€$£¥]|\b(?:EUR|USD|GBP|CHF|JPY)\b""")
_DECIMALS = re.compile(r"[0#]\.(0{1,15})")
_QUOTED = re.compile(r'"[^"]{0,99}"|\\.|\[[^\]]{0,99}\]')


@dataclass
class SheetMarks:
    """Counts of a sheet, and its merged cells: (column, last row) by the first row."""

    cells: int = 0
    without_value: int = 0
    merged: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    _held: dict[int, tuple[str, int]] = field(default_factory=dict)

    def filled(self, number: int, cells: list[str]) -> list[str]:
        """Return row ``number`` with the text of cells that are merged with cells above. Rows come in order."""
        self._held = {at: (text, last) for at, (text, last) in self._held.items() if last >= number}
        most = max(self._held, default=-1) + 1
        row = [*cells, *[""] * (most - len(cells))]
        for at, (text, _) in self._held.items():
            row[at] = row[at] or text
        for at, last in self.merged.get(number, ()):
            if at < len(row) and row[at]:
                self._held[at] = (row[at], last)
        return row


def marks_of(pieces: Iterable[bytes], most: int) -> SheetMarks:
    """Return the marks of a sheet. A sheet of a million rows is refused before its values are read.

    Raises:
        UnreadableError: it has more than ``most`` cells with a value, or is damaged.
    """
    reading = _Reading(most)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.text
    try:
        for piece in pieces:
            parser.Parse(piece)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise UnreadableError(f"a sheet is damaged: {error}. Save it anew") from None
    return reading.marks


class _Reading:
    def __init__(self, most: int) -> None:
        self.marks = SheetMarks()
        self._most = most
        self._formula = self._value = self._inside = False
        self._merges = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name == "c":
            self._formula = self._value = False
        elif name == "f":
            self._formula = True
        elif name in ("v", "t"):
            self._inside = True
        elif name == "mergeCell":
            self._merge(attributes.get("ref", ""))

    def text(self, said: str) -> None:
        self._value = self._value or (self._inside and bool(said))

    def end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name in ("v", "t"):
            self._inside = False
        elif name == "c":
            self.marks.cells += self._value
            self.marks.without_value += self._formula and not self._value
            if self.marks.cells > self._most:
                raise UnreadableError(f"has more than {CELLS:,} cells with a value. Split it, or save a part as CSV")

    def _merge(self, ref: str) -> None:
        found = _RANGE.fullmatch(ref)
        self._merges += 1
        if found and found[2] != found[4] and self._merges <= _MOST_MERGES:
            self.marks.merged.setdefault(int(found[2]), []).append((_column(found[1]), int(found[4])))


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def shown_value(value: Any, number_format: str) -> str:
    """Return a value as text: dates as ISO writes them, percent as percent, other numbers with all their digits.

    Zeros at the end and the currency are often in the number format alone; they are added.
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (date, time, timedelta)):
        return _shown_time(value)
    if isinstance(value, float | int):
        return _shown_number(value, number_format or "")
    return " ".join(str(value).split())


def _shown_time(value: date | time | timedelta) -> str:
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds") if value.time() != time() else value.date().isoformat()
    return value.isoformat()


def _shown_number(value: float, number_format: str) -> str:
    shown_as = number_format.partition(";")[0].replace("[$", "[")  # [$€-407] names a currency
    plain = _QUOTED.sub("", shown_as)
    if "%" in plain:
        return f"{value * 100:.12g}%"
    money = _MONEY.search(shown_as)
    return f"{_with_zeros(f'{value:.15g}', plain)} {money[0] if money else ''}".rstrip()


def _with_zeros(text: str, number_format: str) -> str:
    decimals = _DECIMALS.search(number_format)
    if not decimals or not text.lstrip("-").replace(".", "").isdigit():
        return text
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(len(decimals[1]), '0')}"
