"""The lines of a file under review, and the rows in them: a line is a question, a turn, or a whole conversation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rag_harness.authoring.questions.review.reviewed_rows import QueryRow, line_of
from rag_harness.dataset.conversations import rows_of_line, with_turns
from rag_harness.files.json_text import read_json


class _Whole(NamedTuple):
    """A line that holds a whole conversation, as it was read."""

    line: str
    raw: Mapping[str, Any]
    rows: Sequence[QueryRow]


class FileLines:
    """The rows of a file with their lines. What is not changed keeps its bytes.

    Args:
        lines: those of the file, without empty ones.

    Attributes:
        rows: the questions, a turn a row, in their order.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self.rows: list[QueryRow] = []
        self._own: list[str] = []
        self._wholes: dict[str, _Whole] = {}
        for line in lines:
            raw = read_json(line)
            rows = rows_of_line(raw)
            if "turns" in raw:
                self._wholes[str(raw["conversation"])] = _Whole(line, raw, rows)
            self.rows += rows
            self._own += map(line_of, rows) if "turns" in raw else [line]

    def add(self, apart: Iterable[tuple[str, QueryRow]]) -> None:
        """Add rejected rows with their lines: a turn behind those of its conversation, others at the end."""
        turns: dict[str, list[tuple[str, QueryRow]]] = defaultdict(list)
        others: list[tuple[str, QueryRow]] = []
        known = {row.get("conversation") for row in self.rows} - {None}
        for line, row in apart:
            (turns[row["conversation"]] if row.get("conversation") in known else others).append((line, row))
        both = zip(self._own, self.rows, strict=True)
        found: list[tuple[str, QueryRow]] = []
        for conversation, group in groupby(both, key=lambda each: each[1].get("conversation")):
            found += group
            found += sorted(turns.pop(conversation, []), key=lambda each: int(each[1]["turn"])) if conversation else []
        found += others
        self._own, self.rows = [line for line, _ in found], [row for _, row in found]

    def with_rows(self, changed: Mapping[int, QueryRow]) -> FileLines:
        """Return the lines with other rows at these numbers."""
        new = FileLines()
        new._wholes = self._wholes
        new.rows, new._own = list(self.rows), list(self._own)
        for number, row in changed.items():
            new.rows[number], new._own[number] = row, line_of(row)
        return new

    def with_those_of(self, old: FileLines, chosen: Sequence[bool]) -> FileLines:
        """Return the lines with the chosen rows as they are in ``old``, byte for byte."""
        new = self.with_rows({})
        for number, is_chosen in enumerate(chosen):
            if is_chosen:
                new.rows[number], new._own[number] = old.rows[number], old._own[number]
        return new

    def asked(self, stay: Sequence[bool]) -> bytes:
        """Return the lines of the rows that stay. The turns of a line stay in one line."""
        return "".join(f"{line}\n" for line in self._lines(stay)).encode()

    def apart(self, are_out: Sequence[bool]) -> bytes:
        """Return the lines of the rows that are out, a turn a line."""
        lines = (line for line, is_out in zip(self._own, are_out, strict=True) if is_out)
        return "".join(f"{line}\n" for line in lines).encode()

    def _lines(self, stay: Sequence[bool]) -> Iterator[str]:
        kept = [number for number, stays in enumerate(stay) if stays]
        for conversation, numbers in groupby(kept, key=lambda number: self.rows[number].get("conversation")):
            whole = self._wholes.get(str(conversation))
            if whole is None:
                yield from (self._own[number] for number in numbers)
            else:
                rows = [self.rows[number] for number in numbers]
                yield whole.line if rows == whole.rows else line_of(with_turns(whole.raw, rows))
