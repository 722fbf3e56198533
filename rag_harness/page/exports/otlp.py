"""The trials of a run as spans of OpenTelemetry, and the backend that takes them."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from rag_harness.core.errors import PrerequisiteError, SettingsError
from rag_harness.core.files import json_digest
from rag_harness.core.progress import grouped
from rag_harness.page.exports.scored_run import Destination, ScoredRun
from rag_harness.page.exports.servers import Posting, Reply
from rag_harness.pipelines.otel.spans import SpanEvent, SpanRecord, request_of
from rag_harness.records.manifest import RunManifest, of_run, seconds_of
from rag_harness.records.row import ExperimentResult, RowCall, RowStage, rows_in
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.trials import READ_OFF

_PATH = "/v1/traces"
_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_UNKNOWN_TYPE = 415
_PASSING = (429, 502, 503, 504)
"""Statuses after which OTLP asks for another try: https://opentelemetry.io/docs/specs/otlp/#failures-1"""
_WAITS = (1.0, 2.0, 4.0)
"""Seconds before each further try, where the backend names none."""
_LONGEST_WAIT = 30.0
"""Seconds that a backend may ask to wait, all its requests together: a run that has ended does not wait for long."""
_JSON = "application/json"
_PAGES = ("text/html", "application/xhtml+xml")
_DIGITS = 8
_SECONDS = 10.0
_ADDRESS = re.compile(r"https?://[^\s?#@]{1,2000}")
SERVICE = "rag-harness"
"""The name of the service that spans are said to be of; ``OTEL_SERVICE_NAME`` names another."""


class Refused(NamedTuple):
    """How many spans of a request were not taken, and why."""

    spans: int
    why: str


class OtlpBackend:
    """A backend.

    Args:
        url: its address, with or without ``/v1/traces``. Keys come from ``OTEL_EXPORTER_OTLP_HEADERS``.

    Raises:
        SettingsError: the address is missing, is not an http address, or contains a key.
    """

    def __init__(self, url: str) -> None:
        if url and not _ADDRESS.fullmatch(url):
            raise SettingsError(
                "This is not an address of a backend. Write it whole, http://127.0.0.1:4318, and without keys: they "
                "come from OTEL_EXPORTER_OTLP_HEADERS."
            )
        self.url = url.rstrip("/").removesuffix(_PATH)
        self._posting = Posting("OTLP", self.url, _headers(), _SECONDS)
        self._takes_json, self._left = True, _LONGEST_WAIT

    def take(self, spans: Sequence[SpanRecord]) -> Refused:
        """Send spans, and return which of them were refused: none, most of the time.

        Raises:
            PrerequisiteError: the backend does not answer, refuses the request, sends something other than a reply of
                OTLP, or takes only protobuf, which cannot be written here.
        """
        request = request_of(spans, os.environ.get("OTEL_SERVICE_NAME") or SERVICE)
        if self._takes_json:
            reply = self._sent(request, (_UNKNOWN_TYPE,))
            if reply.status != _UNKNOWN_TYPE:
                # Some say nothing where the protocol has an empty object.
                return self._refused(reply, reply.content if reply.raw.strip() else {})
            self._takes_json = False
        from rag_harness.pipelines.otel.spans import protobuf_of, said_of_protobuf

        reply = self._sent(protobuf_of(request))
        return self._refused(reply, reply.content if reply.kind == _JSON else said_of_protobuf(reply.raw))

    def _sent(self, body: Any, known: tuple[int, ...] = ()) -> Reply:
        """Return the reply to a request, which is sent again while the backend is busy, for so long."""
        reply = self._posting.send(_PATH, body, (*known, *_PASSING))
        for usual in _WAITS:
            seconds = _asked_to_wait(reply.retry_after, usual)
            if reply.status not in _PASSING or seconds > self._left:
                break
            self._left -= seconds
            time.sleep(seconds)
            reply = self._posting.send(_PATH, body, (*known, *_PASSING))
        if reply.status in _PASSING:
            raise self._posting.refusal(_PATH, reply)
        return reply

    def _refused(self, reply: Reply, said: Any) -> Refused:
        if not isinstance(said, dict) or reply.kind in _PAGES:
            raise PrerequisiteError(
                f"OTLP at {self.url} answered {_PATH} with {reply.status} and {reply.kind or 'a text'}. That is not "
                f"a reply of OTLP, so it is not known whether anything was taken. Does the backend take OTLP over "
                "HTTP here?"
            )
        partial = said.get("partialSuccess")
        partial = partial if isinstance(partial, dict) else {}
        number = str(partial.get("rejectedSpans", 0))
        rejected = int(number) if number.isascii() and number.isdecimal() else 0
        return Refused(rejected, str(partial.get("errorMessage", "")))


def _asked_to_wait(said: str, usual: float) -> float:
    """Return the seconds of a header Retry-After, which has a number or a date; ``usual`` where it has neither."""
    if said.isascii() and said.isdecimal() and len(said) < _DIGITS:
        return float(said)
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return usual
    now = datetime.now(timezone.utc)
    return max((at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)).timestamp() - now.timestamp(), 0.0)


def _headers() -> dict[str, str]:
    """Return the headers of OpenTelemetry's variables: ``key=value,key=value``, with values as in addresses."""
    said = next((os.environ[name] for name in _HEADERS if os.environ.get(name)), "")
    pairs = (part.partition("=") for part in said.split(",") if "=" in part)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


# The words of a trial that may leave this machine: none unless they are asked for, and those without private text.
#
# OpenTelemetry's conventions ask for an opt-in before words of people, answers or documents are sent.

OPT_IN = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""OpenTelemetry's own variable that says whether words are sent."""
_YES = {"true", "1", "span_only", "span_and_event"}
_LONGEST = 20_000
"""The most characters of a text."""


def words_are_asked_for() -> bool:
    """Whether the variable asks for words."""
    return os.environ.get(OPT_IN, "").strip().lower() in _YES


class WordsOfTrial:
    """Questions, answers, arguments and results of tools, documents that were found, what errors say.

    Args:
        clean: removes keys and private text from plain JSON; None sends no words.
    """

    def __init__(self, clean: Callable[[Any], Any] | None = None) -> None:
        self._clean = clean

    def text(self, said: str) -> str:
        """Return a text as it may be sent; empty where none may."""
        # Cut last: a key that is cut in two is not found any more.
        return str(self._clean(said))[:_LONGEST] if self._clean is not None else ""

    def of_trial(self, row: ExperimentResult) -> dict[str, str]:
        """Return question and answer as attributes."""
        if self._clean is None:
            return {}
        found = {"gen_ai.input.messages": self._message("user", row.query)}
        if row.ok:
            found["gen_ai.output.messages"] = self._message("assistant", row.llm_answer)
        return found

    def of_step(self, step: RowStage) -> dict[str, str]:
        """Return what went into a step and what came out, as attributes."""
        if self._clean is None:
            return {}
        found: dict[str, Any] = {}
        if step.does == "tool":
            found = {"gen_ai.tool.call.arguments": step.input, "gen_ai.tool.call.result": step.output}
        elif step.does == "retrieve":
            documents = [{"id": hit.filename, "score": hit.score} for hit in step.hits]
            found = {"gen_ai.retrieval.query.text": step.input, "gen_ai.retrieval.documents": documents}
        return {name: self._value(value) for name, value in found.items() if value is not None}

    def _message(self, role: str, text: str) -> str:
        part = {"type": "text", "content": self.text(text)}
        return json.dumps([{"role": role, "parts": [part]}], ensure_ascii=False)

    def _value(self, value: Any) -> str:
        if isinstance(value, str):
            return self.text(value)
        assert self._clean is not None
        return json.dumps(self._clean(value), ensure_ascii=False)[:_LONGEST]


# A row says how long its steps took and in which order, not when each began. So a span begins where the one before it
# ends, and ``rag_harness.starts`` is ``inferred``. Ids are made of what makes a row: the same row has the same spans,
# whichever machine sends them and however often. https://github.com/open-telemetry/semantic-conventions-genai

_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_OPERATION = "gen_ai.operation.name"
_INFERRED = {"rag_harness.starts": "inferred"}


class TrialAsSpans:
    """The spans of one row.

    Args:
        row: the trial.
        scores: its scores by measure.
        words: which words of it may be sent.
        began: when its run began, in seconds since 1970: the time of rows that state none.
    """

    def __init__(self, row: ExperimentResult, scores: Mapping[str, float], words: WordsOfTrial, began: float) -> None:
        self._row, self._words = row, words
        self._scores = {name: value for name, value in scores.items() if isfinite(value)}
        ended = seconds_of(row.finished_at)
        # A float cannot hold whole nanoseconds since 1970.
        self._end = int((ended if isfinite(ended) else began) * 1e6) * 1000
        self._start = self._end - _ns(row.total_time_ms)
        self._key = [row.experiment, row.query_id, row.fingerprint, row.finished_at or began]
        own = json_digest(["trace", *self._key]) + json_digest(["trial", *self._key])
        # Where the app was traced, its trace is the place where people look for its scores.
        self._trace_id = row.trace_id if _TRACE_ID.fullmatch(row.trace_id) else own

    @property
    def scores(self) -> int:
        """How many scores the trial's span has."""
        return len(self._scores)

    def spans(self) -> Iterator[SpanRecord]:
        """Yield the span of the trial, then those of each step and of its calls."""
        row, number, at = self._row, 0, self._start
        failed, said = row.error is not None, self._words.of_trial(row)
        message = self._words.text(row.error_text) if row.error else ""
        events = tuple(SpanEvent("gen_ai.evaluation.result", self._end, _score(*each)) for each in self._scores.items())
        name = f"invoke_workflow {row.experiment}"
        yield SpanRecord(
            name, self._trace_id, self._id(0), "", self._start, self._end, _trial(row) | said, events,
            failed=failed, message=message,
        )  # fmt: skip
        for step in row.stages:
            number, own = number + 1, self._id(number + 1)
            yield self._span(_step_name(step), own, self._id(0), (at, step.ms), _step(step) | self._words.of_step(step))
            begin = at
            for call in step.calls:
                number += 1
                yield self._span(f"chat {call.model}".strip(), self._id(number), own, (begin, call.ms), _call(call))
                begin += _ns(call.ms)
            at += _ns(step.ms)

    def _span(
        self, name: str, own: str, around: str, took: tuple[int, float], attributes: Mapping[str, Any]
    ) -> SpanRecord:
        start, ms = took
        return SpanRecord(name, self._trace_id, own, around, start, start + _ns(ms), {**attributes, **_INFERRED})

    def _id(self, number: int) -> str:
        return json_digest(["span", number, *self._key])


def _trial(row: ExperimentResult) -> dict[str, Any]:
    place = row.asked.place
    said = {
        _OPERATION: "invoke_workflow",
        "gen_ai.workflow.name": row.experiment,
        "gen_ai.conversation.id": place.get("conversation"),
        "rag_harness.query_id": row.query_id,
        "rag_harness.query_type": row.query_type,
        "rag_harness.turn": place.get("turn"),
        "rag_harness.mode": row.mode,
        "rag_harness.profile": row.profile,
        "rag_harness.fingerprint": row.fingerprint,
        "rag_harness.recorded": row.timings_recorded,
        "rag_harness.cost_usd": row.cost_usd,
        "rag_harness.confidence": row.confidence,
        "rag_harness.answer.abstained": row.abstained,
        "rag_harness.answer.citations": len(row.citations),
        "rag_harness.answer.invalid_citations": len(row.invalid_citations),
        "rag_harness.context": len(row.retrieved_chunks),
    }
    if row.error is not None:
        said |= {"error.type": row.error.type, "rag_harness.failed_stage": row.error.stage}
    if not any(step.calls for step in row.stages) and row.usage.calls:
        # Else the spans of the calls have them, and who adds up all spans would count them twice.
        said |= {"gen_ai.request.model": row.model} | _tokens(row)
    return {name: value for name, value in said.items() if value is not None and value != ""}


def _step(step: RowStage) -> dict[str, Any]:
    said: dict[str, Any] = {"rag_harness.stage": step.name}
    if step.does == "retrieve":
        said |= {_OPERATION: "retrieval", "rag_harness.retrieved": len(step.hits)}
    elif step.does == "tool":
        said |= {_OPERATION: "execute_tool", "gen_ai.tool.name": step.name, "gen_ai.tool.type": "function"}
    elif step.hits:
        said |= {"rag_harness.retrieved": len(step.hits)}
    return said


def _step_name(step: RowStage) -> str:
    return f"execute_tool {step.name}" if step.does == "tool" else step.name


def _call(call: RowCall) -> dict[str, Any]:
    first = {} if call.ttft_ms is None else {"gen_ai.response.time_to_first_chunk": call.ttft_ms / 1000}
    reason = {"gen_ai.response.finish_reasons": [call.finish_reason]} if call.finish_reason else {}
    return {
        _OPERATION: "chat",
        "gen_ai.request.model": call.model,
        **_tokens(call),
        **first,
        **reason,
        "rag_harness.call.role": call.role,
        "rag_harness.call.waited_ms": call.waited_ms,
        "rag_harness.call.retries": call.retries,
        "rag_harness.call.recorded": call.recorded,
    }


def _tokens(spent: RowCall | ExperimentResult) -> dict[str, Any]:
    usage = spent.usage
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }


def _score(measure: str, value: float) -> dict[str, Any]:
    return {"gen_ai.evaluation.name": measure, "gen_ai.evaluation.score.value": float(value)}


def _ns(ms: float) -> int:
    return int(ms * 1e6)


_BATCH = 20
"""Trials of a request."""
NO_WORDS = f"Without words: {OPT_IN} asks for them, and nobody here knows the run's rag_scrub."
"""Why words are not sent though they are asked for."""


@dataclass
class Sent:
    """The result of sending the trials of a run.

    Attributes:
        trials: how many were sent.
        scores: number of their scores.
        unsent: how many were not sent.
        refused: spans of those sent that the backend did not take.
        why: the reason of the first failure; empty where all were taken.
    """

    trials: int = 0
    scores: int = 0
    unsent: int = 0
    refused: int = 0
    why: str = ""

    @property
    def said(self) -> str:
        """What was sent, in words."""
        return f"{self.trials:,} trials with {self.scores:,} scores"

    @property
    def missing(self) -> str:
        """What was not sent, in words; empty where all was."""
        parts = ((self.unsent, "trials were not sent"), (self.refused, "spans were refused"))
        return ", ".join(f"{number:,} {what}" for number, what in parts if number)


def to_otlp(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Send the trials without words: who exports a run does not know what it has to hide.

    Raises:
        SettingsError: no address is named.
        PrerequisiteError: the backend did not take all; says how many are missing.
    """
    backend = OtlpBackend(destination.url)
    sent = send_trials(destination.output, run.manifest, run.trials.tables, backend, WordsOfTrial())
    if sent.missing:
        raise PrerequisiteError(f"{sent.missing}, {sent.said} were: {sent.why}")
    return [f"{sent.said} to {backend.url}", *([NO_WORDS] if words_are_asked_for() else [])]


def send_trials(
    output: Path,
    manifest: RunManifest,
    tables: Mapping[str, SuiteTable],
    backend: OtlpBackend,
    words: WordsOfTrial,
) -> Sent:
    """Send each row of a run, until the backend fails. The others are counted: it would fail again, a timeout each."""
    sent = Sent()
    trials = (each for name, table in tables.items() for each in _trials(output, manifest, name, table, words))
    for group in grouped(trials, _BATCH):
        if sent.unsent:
            sent.unsent += len(group)
            continue
        try:
            refused = backend.take([span for trial in group for span in trial.spans()])
        except PrerequisiteError as error:
            sent.unsent, sent.why = len(group), sent.why or str(error)
            continue
        sent.trials, sent.scores = sent.trials + len(group), sent.scores + sum(trial.scores for trial in group)
        sent.refused, sent.why = sent.refused + refused.spans, sent.why or (refused.why if refused.spans else "")
    return sent


def _trials(
    output: Path, manifest: RunManifest, name: str, table: SuiteTable, words: WordsOfTrial
) -> Iterator[TrialAsSpans]:
    """Yield the rows of a suite with their scores. Of two rows of a case, the first counts, as in tables."""
    # Times, tokens and costs are on the spans.
    values = {measure: table.values(measure, {}) for measure in table.columns if measure not in READ_OFF}
    record, began, seen = manifest.suites[name], seconds_of(manifest.date), set[str]()
    is_of_run = of_run(record)
    for row in rows_in(output / record.file):
        if row.query_id not in seen and is_of_run(row):
            seen.add(row.query_id)
            scores = {measure: known[row.query_id] for measure, known in values.items() if row.query_id in known}
            yield TrialAsSpans(row, scores, words, began)
