"""A file of spans, read some traces at a time: what is in memory does not grow with the file.

A file of one JSON value over several lines is in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from rag_harness.errors import DataError, TraceError
from rag_harness.files.json_text import read_json
from rag_harness.traces.exported.json_values import MARK, values_of_file
from rag_harness.traces.exported.langfuse import is_langfuse, spans_of_langfuse
from rag_harness.traces.exported.phoenix import is_phoenix, spans_of_phoenix
from rag_harness.traces.otlp.otlp_json import spans_of_request
from rag_harness.traces.seen_trace import MOST_SPANS
from rag_harness.traces.span_record import SpanRecord

_AT_ONCE = 2000
"""Spans of the traces that are read together, for a line with spans of many traces is not read for each of them."""
_SHOWN = 20
_FORMATS = "OTLP/JSON, spans of Phoenix, or observations of Langfuse"


class TraceFile:
    """The traces of a file.

    Args:
        file: a JSON object or list a line or over several lines, of one of the formats that are known; which one, each
            says itself.

    Raises:
        DataError: the file cannot be read, or lines are no spans; lists the problems as ``file:line: …``.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._places: dict[str, list[int]] = {}
        """For each span of each trace, where its line begins."""
        self._full: dict[int, int] = {}
        """The spans of each line that has more of them than are read at once."""
        self._long: dict[int, int] = {}
        """The bytes of each value that stands on several lines."""
        problems: list[str] = []
        with self._opened() as stream:
            for number, at, size, line in values_of_file(stream):
                self._long |= {at: size} if line.rstrip().count(b"\n") else {}
                try:
                    traces = [span.trace_id for span in _spans_in(line)]
                    for trace_id in traces:
                        self._places.setdefault(trace_id, []).append(at)
                    self._full |= {at: len(traces)} if len(traces) > _AT_ONCE else {}
                except TraceError as error:
                    problems.append(f"{file}:{number}: {error}")
                    if len(problems) > _SHOWN:
                        break
        if problems:
            more = ["…"] if len(problems) > _SHOWN else []
            raise DataError("\n".join([*problems[:_SHOWN], *more]))
        if not self._places:
            raise DataError(f"{file} holds no span. It takes {_FORMATS}.")

    def __len__(self) -> int:
        return len(self._places)

    def _opened(self) -> BinaryIO:
        try:
            return self._file.open("rb")
        except OSError as error:
            raise DataError(f"{self._file} cannot be read: {error.strerror}. It takes {_FORMATS}.") from error

    def traces(self) -> Iterator[tuple[str, list[SpanRecord]]]:
        """Yield each trace by its id, in the order in which the first of its spans stand; of spans twice, the first."""
        with self._opened() as stream:
            for together in self._together():
                found: dict[str, dict[str, SpanRecord]] = {trace_id: {} for trace_id in together}
                for at in sorted({at for trace_id in together for at in self._places[trace_id]}):
                    stream.seek(at)
                    text = stream.read(self._long[at]) if at in self._long else stream.readline()
                    for span in _spans_in(text.removeprefix(MARK)):
                        if span.trace_id in found and len(found[span.trace_id]) <= MOST_SPANS:
                            found[span.trace_id].setdefault(span.span_id, span)
                yield from ((trace_id, list(spans.values())) for trace_id, spans in found.items())

    def _together(self) -> Iterator[list[str]]:
        """Yield the ids of traces that are read together: as many spans as the fullest of their lines has, at least."""
        together, spans, most = list[str](), 0, _AT_ONCE
        for trace_id, places in self._places.items():
            if together and spans + len(places) > most:
                yield together
                together, spans, most = [], 0, _AT_ONCE
            together.append(trace_id)
            spans += len(places)
            most = max(most, *(self._full.get(at, 0) for at in places))
        yield together


def _spans_in(line: bytes) -> Iterator[SpanRecord]:
    try:
        said = read_json(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise TraceError(f"This is no JSON: {error}. Was the file cut short?") from error
    for each in said if isinstance(said, list) else [said]:
        yield from _spans_of(each)


def _spans_of(said: Any) -> Iterator[SpanRecord]:
    if isinstance(said, Mapping):
        if "resourceSpans" in said:
            return spans_of_request(said)
        if is_phoenix(said):
            return spans_of_phoenix(said)
        if is_langfuse(said):
            return spans_of_langfuse(said)
        if isinstance(page := said.get("data"), list) and page:
            return chain.from_iterable(map(_spans_of, page))
    keys = f" with {', '.join(map(repr, list(said)[:5]))}" if isinstance(said, Mapping) else ""
    raise TraceError(f"A {type(said).__name__}{keys} is no span that is known: it takes {_FORMATS}.")
