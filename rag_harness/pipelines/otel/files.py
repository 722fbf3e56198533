"""Files of spans: OTLP/JSON, and exports of Phoenix and Langfuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from rag_harness.core.errors import DataError, TraceError
from rag_harness.core.json_text import read_json
from rag_harness.pipelines.otel.spans import SpanEvent, SpanRecord, spans_of_request
from rag_harness.pipelines.otel.steps import MOST_SPANS

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
        text: its text, without a byte order mark.
    """

    number: int
    at: int
    size: int
    text: bytes


def values_of_file(stream: BinaryIO) -> Iterator[FileValue]:
    """Yield the values of a file.

    Where the first line is not JSON, a value ends where its brackets are closed. Else it ends with its line, so that
    one broken line does not spoil the others.

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


# Nested attributes as flat ones, times in text as nanoseconds: what exports write otherwise than OpenTelemetry.

_DEEPEST = 12
_FRACTION = re.compile(r"\.([0-9]{1,12})")


def flat_attributes(said: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield nested attributes under names with dots; items of a list of objects have their number in the name.

    ``{"a": {"b": 1}, "c": [{"d": 2}]}`` is ``a.b = 1`` and ``c.0.d = 2``. Null does not count as a value.
    """
    for name, value in said.items():
        whole = f"{prefix}{name}"
        if value is None:
            continue
        if isinstance(value, Mapping) and depth < _DEEPEST and not _is_metadata(whole):
            yield from flat_attributes(value, f"{whole}.", depth + 1)
        elif (
            isinstance(value, list) and depth < _DEEPEST and value and all(isinstance(each, Mapping) for each in value)
        ):
            for number, each in enumerate(value):
                yield from flat_attributes(each, f"{whole}.{number}.", depth + 1)
        else:
            yield whole, value


def _is_metadata(name: str) -> bool:
    # OpenInference has metadata as a JSON text, and its own keys may have dots.
    return name == "metadata" or name.endswith(".metadata")


def nanoseconds(value: Any) -> int:
    """Return a time as nanoseconds since 1970: of ISO 8601, in UTC where it has no zone, or a number; 0 for no time.

    Numbers are seconds, milliseconds, microseconds or nanoseconds, by their size.
    """
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e20:
        return 0
    # A second of 2001 to 2286 has ten digits.
    factor = next((factor for limit, factor in ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3)) if value < limit), 1)
    return int(value * factor)


def _six_digits(found: re.Match[str]) -> str:
    # Python 3.10 reads three digits or six.
    return f".{found[1][:6]:0<6}"


def _of_text(value: str) -> int:
    try:
        at = datetime.fromisoformat(_FRACTION.sub(_six_digits, value.strip().replace("Z", "+00:00"), count=1))
        at = at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)
        since = at - datetime(1970, 1, 1, tzinfo=timezone.utc)
    except (ValueError, OverflowError):
        return 0
    # Of whole microseconds, because a float has too few digits for nanoseconds.
    return max((since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000, 0)


# Spans as Langfuse exports them: observations, alone or below their trace.
#
# https://langfuse.com/docs/observability/data-model

_KINDS = {"GENERATION": "LLM", "SPAN": "CHAIN", "EVENT": "CHAIN"}
"""Types that OpenInference calls otherwise; RETRIEVER, TOOL, AGENT, EMBEDDING, GUARDRAIL are its own names."""
_TOKENS = {"prompt": ("input", "promptTokens", "prompt_tokens"), "completion": ("output", "completionTokens")}


def is_langfuse(said: Mapping[str, Any]) -> bool:
    """Return whether an object is an observation of Langfuse, or a trace with observations."""
    return isinstance(said.get("observations"), list) or ("traceId" in said and "type" in said and "startTime" in said)


def spans_of_langfuse(said: Mapping[str, Any]) -> Iterator[SpanRecord]:
    """Yield the spans of an observation, or of a trace, which is a span around its observations.

    Raises:
        TraceError: an observation has no ids, or a trace names its observations without having them.
    """
    inside = said.get("observations")
    if not isinstance(inside, list):
        yield _span(said, str(said.get("traceId") or ""), str(said.get("parentObservationId") or ""))
        return
    trace_id = str(said.get("id") or "")
    if any(not isinstance(each, Mapping) for each in inside):
        raise TraceError(
            f"Trace {trace_id!r} of Langfuse names its observations and does not have them: export observations, "
            f"or each trace by GET /api/public/traces/{{id}}."
        )
    spans = [_span(each, trace_id, str(each.get("parentObservationId") or f"trace-{trace_id}")) for each in inside]
    begin = nanoseconds(said.get("timestamp")) or min((span.start_ns for span in spans), default=0)
    about = {"openinference.span.kind": "CHAIN", **_sides(said)}
    end = max((span.end_ns for span in spans), default=begin)
    yield SpanRecord(str(said.get("name") or "trace"), trace_id, f"trace-{trace_id}", "", begin, end, about)
    yield from spans


def _span(said: Mapping[str, Any], trace_id: str, parent: str) -> SpanRecord:
    name, span_id = str(said.get("name") or said.get("type") or ""), str(said.get("id") or "")
    if not trace_id or not span_id:
        raise TraceError(f"Observation {name[:100]!r} of Langfuse has no {'id' if trace_id else 'traceId'}.")
    kind = str(said.get("type", "")).upper()
    begin, end = nanoseconds(said.get("startTime")), nanoseconds(said.get("endTime"))
    attributes = {"openinference.span.kind": _KINDS.get(kind, kind), **_sides(said)}
    if kind == "GENERATION":
        attributes |= _of_a_call(said)
    if kind == "TOOL":
        attributes["tool.name"] = name
    failed = str(said.get("level", "")).upper() == "ERROR"
    message = str(said.get("statusMessage") or "")
    return SpanRecord(
        name, trace_id, span_id, parent, begin, max(end, begin), attributes, failed=failed, message=message
    )


def _sides(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return input and output under OpenInference's names, JSON as text."""
    given = {f"{side}.value": said.get(side) for side in ("input", "output")}
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in given.items()
        if value is not None
    }


def _of_a_call(said: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"llm.model_name": said.get("model") or said.get("providedModelName") or ""}
    usage = _first_object(said, "usageDetails", "usage")
    for side, names in _TOKENS.items():
        found[f"llm.token_count.{side}"] = next((usage[name] for name in names if name in usage), 0)
    costs = _first_object(said, "costDetails")
    cost = next(
        (each for each in (costs.get("total"), said.get("calculatedTotalCost"), said.get("totalCost")) if each), None
    )
    for side in ("input", "output"):
        for n, (role, text) in enumerate(_messages(said.get(side), "user" if side == "input" else "assistant")):
            found[f"llm.{side}_messages.{n}.message.role"] = role
            found[f"llm.{side}_messages.{n}.message.content"] = text
    return found if cost is None else {**found, "llm.cost.total": cost}


def _first_object(said: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((value for name in names if isinstance(value := said.get(name), Mapping)), {})


def _messages(said: Any, role: str) -> Iterator[tuple[str, str]]:
    said = said["messages"] if isinstance(said, Mapping) and isinstance(said.get("messages"), list) else said
    for each in said if isinstance(said, list) else [said]:
        content = each.get("content") if isinstance(each, Mapping) else each
        if isinstance(content, list):
            content = "\n".join(part["text"] for part in content if isinstance(part, Mapping) and "text" in part)
        if isinstance(content, str) and content:
            yield str(each.get("role") or role) if isinstance(each, Mapping) else role, content


# Spans as Phoenix exports them: its HTTP interface and client (nested), and a data frame of them (flat names).
#
# https://arize.com/docs/phoenix/tracing/how-to-tracing/importing-and-exporting-traces


def is_phoenix(said: Mapping[str, Any]) -> bool:
    """Return whether an object is a span of Phoenix, or a page of them."""
    pages = said.get("data")
    if isinstance(pages, list) and pages and isinstance(pages[0], Mapping):
        return is_phoenix(pages[0])
    return "context.trace_id" in said or (isinstance(said.get("context"), Mapping) and "span_kind" in said)


def spans_of_phoenix(said: Mapping[str, Any]) -> Iterator[SpanRecord]:
    """Yield the spans of an object.

    Raises:
        TraceError: a span has no ids.
    """
    if isinstance(said.get("data"), list):
        for each in said["data"]:
            yield from spans_of_phoenix(each) if isinstance(each, Mapping) else ()
        return
    flat = dict(flat_attributes(said))
    name = str(said.get("name", ""))
    trace_id, span_id = (str(flat.get(f"context.{key}") or "") for key in ("trace_id", "span_id"))
    if not trace_id or not span_id:
        raise TraceError(f"Span {name[:100]!r} of Phoenix has no context.trace_id or no context.span_id.")
    attributes = {
        key.removeprefix("attributes."): value for key, value in flat.items() if key.startswith("attributes.")
    }
    attributes.setdefault("openinference.span.kind", str(said.get("span_kind") or ""))
    failed = str(said.get("status_code", "")).upper() == "ERROR"
    yield SpanRecord(
        name,
        trace_id,
        span_id,
        str(said.get("parent_id") or ""),
        nanoseconds(said.get("start_time")),
        nanoseconds(said.get("end_time")),
        attributes,
        tuple(_events(said.get("events"))),
        failed=failed,
        message=str(said.get("status_message") or ""),
    )


def _events(said: Any) -> Iterator[SpanEvent]:
    for each in said if isinstance(said, list) else ():
        if isinstance(each, Mapping):
            about = each.get("attributes")
            attributes = dict(flat_attributes(about)) if isinstance(about, Mapping) else {}
            yield SpanEvent(str(each.get("name", "")), nanoseconds(each.get("timestamp")), attributes)


# A file of spans, read some traces at a time: what is in memory does not grow with the file.
#
# A file of one JSON value over several lines is in memory as a whole.

_AT_ONCE = 2000
"""Spans of the traces that are read together, because a line with spans of many traces is not read for each of them."""
_SHOWN = 20
_FORMATS = "OTLP/JSON, spans of Phoenix, or observations of Langfuse"


class TraceFile:
    """The traces of a file.

    Args:
        file: JSON objects or lists, one a line or over several lines, in one of the known formats. The content tells
            which.

    Raises:
        DataError: the file cannot be read, or lines are not spans. The message lists the problems as ``file:line: …``.
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
        """Yield each trace by its id, in the order of their first spans; of repeated spans, the first."""
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
        raise TraceError(f"This is not JSON: {error}. Was the file cut short?") from error
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
    raise TraceError(f"A {type(said).__name__}{keys} is not a span that is known: it takes {_FORMATS}.")
