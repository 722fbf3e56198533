"""Records that are lines of ``queries.jsonl`` already: all that they say is kept as it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rag_harness.dataset.queries import QueryLine, lines_of
from rag_harness.dataset.query_tables import line_of_cells
from rag_harness.dataset.records.source_record import SourceRecord
from rag_harness.results.storable import storable

_FIELDS = frozenset({*QueryLine.model_fields, "turns"})
_ASKED, _NAMED = ("query", "turns", "scenario"), ("query_id", "conversation")
_NO_OTHER_TOOLS = ("qrels", "inputs", "turn", "turns", "reply", "standalone", "scenario")
"""Fields that no other tool has under this name. A table without any of them may hold contexts to be looked for."""


@dataclass(frozen=True, slots=True)
class OwnLine:
    """A record with our fields and no others.

    Attributes:
        where: its place in the file.
        values: the line.
        problems: what is wrong with the cells of a table.
    """

    where: str
    values: Mapping[str, Any]
    problems: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The field that holds the name of the line: the conversation's, where it is one."""
        return "conversation" if "conversation" in self.values else "query_id"

    @property
    def is_turn(self) -> bool:
        """Whether the line is one turn of a conversation, whose other turns stand on lines of their own."""
        return "turn" in self.values

    def pages(self) -> Iterator[str]:
        """Yield the documents that the line names as gold."""
        turns = self.values.get("turns")
        for each in turns if isinstance(turns, list) else [self.values]:
            if isinstance(each, Mapping):
                named = each.get("context_reference") or ()
                yield from [named] if isinstance(named, str) else named
                yield from each.get("qrels") or ()
                yield from (one["filename"] for one in each.get("evidence") or () if _is_quote(one))


def own_line(record: SourceRecord) -> OwnLine | None:
    """Return a record as the line that it is; None where it is none of ours."""
    values = {name: value for name, value in record.values.items() if value is not None}
    is_ours = values.keys() <= _FIELDS and any(map(values.get, _ASKED)) and any(map(values.get, _NAMED))
    if not is_ours:
        return None
    is_no_others = bool(values.keys() & {*_NO_OTHER_TOOLS})
    if record.number:  # a row of a table
        line, problems = line_of_cells(values, {name: name for name in values})
        return OwnLine(record.where, line, tuple(problems)) if is_no_others else None
    # A record of another tool may have our names for values of another form: an id with blanks, a number as an answer.
    is_line = is_no_others or not lines_of(json.dumps(storable(values)))[1]
    return OwnLine(record.where, values) if is_line else None


def _is_quote(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("filename"), str)
