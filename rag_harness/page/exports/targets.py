"""The tools that scores are exported to, by their names: MLflow, Langfuse and Phoenix."""

from __future__ import annotations

import base64
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rag_harness.core.errors import DataError, PrerequisiteError
from rag_harness.core.files import json_digest
from rag_harness.core.progress import grouped
from rag_harness.core.registry import missing_package
from rag_harness.core.types import Case
from rag_harness.page.exports.otlp import to_otlp
from rag_harness.page.exports.scored_run import (
    Destination,
    MeanScore,
    ScoredRun,
    Target,
    to_csv,
    to_parquet,
    write_tables,
)
from rag_harness.page.exports.servers import Posting
from rag_harness.pipelines.otel.spans import SpanRecord, request_of
from rag_harness.records.cases import CaseFile
from rag_harness.tables.trials import READ_OFF, measure_column

_LABELLED = ("query_type", "status", "cause", "model", "fingerprint")


@dataclass(frozen=True, slots=True)
class Score:
    """A score on a trace.

    Attributes:
        name: a measure, or ``gate 01``.
        value: the number; None for a verdict that has none.
        label: a verdict in a word; empty for a measure.
        comment: the interval and the number of cases, or the gate.
    """

    name: str
    value: float | None
    label: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ScoredTrace:
    """A trial or an experiment.

    Attributes:
        trace_id: 32 hexadecimal digits, the same for the same trial of the same run.
        name: the experiment, and for a trial its question's id.
        experiment: the experiment.
        query_id: the question; empty for an experiment.
        session: the experiment with the date of the run.
        asked: the question; empty for an experiment.
        answer: the answer.
        error: why the answer is missing.
        start: when it began; of a trial the start of the run because rows have no other time.
        end: when it ended.
        scores: its scores.
        labels: short facts about it.
        documents: what was retrieved, best first; None for a further chunk of a document.
        gold: the documents that should be.
    """

    trace_id: str
    name: str
    experiment: str
    query_id: str
    session: str
    asked: str
    answer: str
    error: str
    start: datetime
    end: datetime
    scores: Sequence[Score]
    labels: Mapping[str, str]
    documents: Sequence[str | None] = ()
    gold: frozenset[str] = frozenset()


def scored_traces(run: ScoredRun, output: Path) -> Iterator[ScoredTrace]:
    """Yield the trials of a run, and behind those of all experiments the experiments."""
    cases: dict[str, Mapping[str, Case]] = {}
    for record in run.trials:
        name = record["experiment"]
        if name not in cases:
            cases[name] = _cases(run, output, name)
        yield _trial(run, record, cases[name].get(record["query_id"]))
    yield from (_experiment(run, name) for name in run.trials.experiments)


def _trial(run: ScoredRun, record: Mapping[str, Any], case: Case | None) -> ScoredTrace:
    name, start = record["experiment"], datetime.fromisoformat(run.manifest.date)
    values = {
        measure: record[measure if measure in READ_OFF else measure_column(measure)]
        for measure in run.trials.tables[name].columns
    }
    return ScoredTrace(
        trace_id_of(run, name, record["query_id"]),
        f"{name} {record['query_id']}",
        name,
        record["query_id"],
        _session(run, name),
        record["query"] or "",
        record["answer"] or "",
        record["error"] or ("" if record["status"] == "ok" else record["status"]),
        start,
        start + timedelta(milliseconds=record["total_ms"] or 0),
        [Score(measure, float(value)) for measure, value in values.items() if value is not None],
        {key: str(record[key]) for key in _LABELLED if record[key]},
        record["retrieved"] or (),
        frozenset(doc for doc, grade in case.qrels.items() if grade > 0) if case else frozenset(),
    )


def _experiment(run: ScoredRun, name: str) -> ScoredTrace:
    start = datetime.fromisoformat(run.manifest.date)
    means = [
        Score(f"{each.measure} {each.slice}".strip(), each.value, comment=_interval(each.interval, each.n))
        for each in run.scores
        if each.experiment == name
    ]
    verdicts = [
        Score(f"gate {number:02}", gate.get("value"), str(gate["state"]), str(gate["gate"]))
        for number, gate in enumerate(run.gates_of(name), 1)
    ]
    known = {"commit": run.manifest.commit, "export": run.identity}
    labels = {key: value for key, value in known.items() if value}
    said = _session(run, name)
    return ScoredTrace(
        trace_id_of(run, name, ""),
        f"{name}, all trials",
        name,
        "",
        said,
        "",
        "",
        "",
        start,
        start,
        [*means, *verdicts],
        labels,
    )


def trace_id_of(run: ScoredRun, experiment: str, query_id: str) -> str:
    """Return the id of a trial's trace; of the experiment's where the query has no id."""
    of = [run.manifest.date, experiment, query_id]
    return json_digest(["trace", *of]) + json_digest(["search", *of])


def _session(run: ScoredRun, name: str) -> str:
    return f"{name} {run.manifest.date}"


def _interval(between: tuple[float, float] | None, n: int) -> str:
    said = f"95 % interval {between[0]:.4g} to {between[1]:.4g}, " if between else ""
    return f"{said}n = {n}"


def _cases(run: ScoredRun, output: Path, name: str) -> Mapping[str, Case]:
    with closing(CaseFile(output, run.manifest.suites[name].cases)) as cases:
        kept = (cases[position].case for position in range(len(cases.ids)))
        return {case.query.query_id: case for case in kept}


# A run in Langfuse: a trace a trial with its scores, a trace an experiment with means, intervals and verdicts.
#
# Traces are sent as OTLP in JSON and scores to ``/api/public/scores``, as Langfuse's own client 5 does. Ids are made of
# run, experiment and question, and Langfuse writes over what has the id of something that is there.

_BATCH = 100
"""Traces, or scores, of a request."""
_LONGEST_TEXT = 20_000
"""The most characters of a question or an answer."""
_KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
_SCORES = "/api/public/scores"
LangfuseBody = dict[str, Any]


def to_langfuse(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Send traces and scores.

    Raises:
        SettingsError: no address is named, neither by ``--url`` nor by ``LANGFUSE_HOST``.
        PrerequisiteError: a key is missing, no server answers, or it refuses something.
    """
    server = _server(destination.url)
    traces = scores = 0
    for group in grouped(scored_traces(run, destination.output), _BATCH):
        server.send("/api/public/otel/v1/traces", request_of(map(_span, group), "rag-harness"))
        for part in grouped((each for trace in group for each in _scores(trace)), _BATCH):
            _send_scores(server, part)
            scores += len(part)
        traces += len(group)
    return [f"{traces:,} traces with {scores:,} scores"]


def _server(url: str) -> Posting:
    missing = [name for name in _KEYS if not os.environ.get(name)]
    if missing:
        raise PrerequisiteError(f"Langfuse takes nothing without keys. Set {' and '.join(missing)}.")
    found = url or os.environ.get("LANGFUSE_HOST") or os.environ.get("LANGFUSE_BASE_URL") or ""
    keys = base64.b64encode(":".join(os.environ[name] for name in _KEYS).encode()).decode()
    return Posting("Langfuse", found, {"Authorization": f"Basic {keys}", "x-langfuse-ingestion-version": "4"})


def _send_scores(server: Posting, scores: Sequence[LangfuseBody]) -> None:
    """Send scores in one request; one by one where the server is of a version that takes no list."""
    reply = server.send(_SCORES, scores, known=(400,))
    if reply.status == 400:
        for each in scores:
            server.send(_SCORES, each)
    elif isinstance(reply.content, dict) and reply.content.get("rejected"):
        first = str(reply.content.get("errors"))[:300]
        raise PrerequisiteError(f"Langfuse refused {reply.content['rejected']} of {len(scores)} scores: {first}")


def _scores(trace: ScoredTrace) -> Iterator[LangfuseBody]:
    for each in trace.scores:
        value = {"dataType": "CATEGORICAL", "value": each.label} if each.label else {"value": each.value}
        body = {
            "id": json_digest([trace.trace_id, each.name]),
            "traceId": trace.trace_id,
            "name": each.name,
            "dataType": "NUMERIC",
            **value,
        }
        yield {**body, "comment": each.comment} if each.comment else body


def _span(trace: ScoredTrace) -> SpanRecord:
    said = {
        "langfuse.trace.name": trace.name,
        "session.id": trace.session,
        "langfuse.observation.input": json.dumps(trace.asked[:_LONGEST_TEXT], ensure_ascii=False)
        if trace.asked
        else "",
        "langfuse.observation.output": json.dumps(trace.answer[:_LONGEST_TEXT], ensure_ascii=False)
        if trace.answer
        else "",
        "langfuse.observation.level": "ERROR" if trace.error else "",
        "langfuse.observation.status_message": trace.error[:1000],
        **{f"langfuse.trace.metadata.{key}": value for key, value in trace.labels.items()},
    }
    return SpanRecord(
        trace.name,
        trace.trace_id,
        trace.trace_id[:16],
        start_ns=_nanoseconds(trace.start),
        end_ns=_nanoseconds(trace.end),
        attributes={key: value for key, value in said.items() if value},
        failed=bool(trace.error),
    )


def _nanoseconds(when: datetime) -> int:
    return int(when.timestamp() * 1_000_000) * 1_000


# A run in Phoenix: spans a trial with annotations, relevance on each retrieved document, and a span an experiment.
#
# Annotations of the same name on the same span replace each other, so a second export changes nothing.

_WAIT = 60
"""Seconds until a span that Phoenix has taken must be there to be annotated."""
_FURTHER = "(a further chunk of a document above)"
"""Means a hit that is not a document of its own: Phoenix counts documents without a gap."""
_IDENTIFIER = "rag-harness"
PhoenixBody = dict[str, Any]


def to_phoenix(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Send spans and annotations.

    Raises:
        SettingsError: no address is named, neither by ``--url`` nor by ``PHOENIX_COLLECTOR_ENDPOINT``.
        PrerequisiteError: no server answers, or it refuses something.
    """
    key = os.environ.get("PHOENIX_API_KEY")
    url = destination.url or os.environ.get("PHOENIX_COLLECTOR_ENDPOINT", "")
    server = Posting("Phoenix", url, {"Authorization": f"Bearer {key}"} if key else {})
    project = quote(destination.project, safe="")
    sent = annotated = 0
    for traces in grouped(scored_traces(run, destination.output), _BATCH):
        sent += _send_spans(server, project, [span for trace in traces for span in _spans(trace)])
        on_spans = [each for trace in traces for each in _annotations(trace)]
        on_documents = [each for trace in traces for each in _relevance(trace)]
        _annotate(server, "/v1/span_annotations?sync=true", on_spans)
        _annotate(server, "/v1/document_annotations?sync=true", on_documents)
        annotated += len(on_spans) + len(on_documents)
    return [f"{sent:,} new spans; {annotated:,} annotations"]


def _send_spans(server: Posting, project: str, spans: Sequence[PhoenixBody]) -> int:
    """Send the spans that are not there, and return how many these are. Phoenix takes all of a request or none."""
    path = f"/v1/projects/{project}/spans"
    reply = server.send(path, {"data": spans}, known=(400,))
    if reply.status != 400:
        return len(spans)
    there = _duplicates(reply.content)
    rest = [span for span in spans if span["context"]["span_id"] not in there]
    if not there:
        raise PrerequisiteError(f"Phoenix refused the spans: {str(reply.content)[:300]}")
    if rest:
        server.send(path, {"data": rest})
    return len(rest)


def _duplicates(content: Any) -> set[str]:
    """Return the ids of spans that are there already; the reply holds them as an object, or as JSON in ``detail``."""
    said = content.get("detail", content) if isinstance(content, dict) else content
    try:
        found: Any = json.loads(said) if isinstance(said, str) else said
        return {each["span_id"] for each in found["duplicate_spans"]}
    except (ValueError, TypeError, KeyError):
        return set()


def _annotate(server: Posting, path: str, annotations: Sequence[PhoenixBody]) -> None:
    """Send annotations; wait until the spans, which Phoenix writes when it has time, are there."""
    until = time.monotonic() + _WAIT
    for group in grouped(annotations, _BATCH):
        while server.send(path, {"data": group}, known=(404,)).status == 404:
            if time.monotonic() > until:
                raise PrerequisiteError(f"Phoenix has not written the spans within {_WAIT} s. Export again.")
            time.sleep(0.2)


def _spans(trace: ScoredTrace) -> Iterator[PhoenixBody]:
    said = {"input.value": trace.asked, "output.value": trace.answer, "session.id": trace.session}
    metadata = {"metadata": json.dumps(dict(trace.labels))}
    yield _phoenix_span(
        trace, _span_id(trace), "CHAIN", {key: value for key, value in (said | metadata).items() if value}
    )
    if trace.documents:
        hits = {
            f"retrieval.documents.{n}.document.{key}": name or _FURTHER
            for n, name in enumerate(trace.documents)
            for key in ("id", "content")
        }
        asked = {"input.value": trace.asked}
        yield {
            **_phoenix_span(trace, _search_id(trace), "RETRIEVER", asked | hits),
            "parent_id": _span_id(trace),
        }


def _phoenix_span(trace: ScoredTrace, span_id: str, kind: str, attributes: PhoenixBody) -> PhoenixBody:
    return {
        "name": trace.name,
        "context": {"trace_id": trace.trace_id, "span_id": span_id},
        "span_kind": kind,
        "start_time": trace.start.isoformat(),
        "end_time": trace.end.isoformat(),
        "status_code": "ERROR" if trace.error else "OK",
        "status_message": trace.error[:1000],
        "attributes": attributes,
    }


def _annotations(trace: ScoredTrace) -> Iterator[PhoenixBody]:
    for each in trace.scores:
        found = {"score": each.value, "label": each.label, "explanation": each.comment}
        result = {key: value for key, value in found.items() if value not in (None, "")}
        yield {"span_id": _span_id(trace), **_named(each.name, result), "identifier": _IDENTIFIER}


def _relevance(trace: ScoredTrace) -> Iterator[PhoenixBody]:
    """Yield whether each retrieved document is gold, where the question has gold."""
    for position, name in enumerate(trace.documents):
        if trace.gold and name:
            is_gold = name in trace.gold
            result = {"score": float(is_gold), "label": "relevant" if is_gold else "irrelevant"}
            yield {"span_id": _search_id(trace), "document_position": position, **_named("gold", result)}


def _named(name: str, result: PhoenixBody) -> PhoenixBody:
    return {"name": name, "annotator_kind": "CODE", "result": result}


def _span_id(trace: ScoredTrace) -> str:
    return trace.trace_id[:16]


def _search_id(trace: ScoredTrace) -> str:
    return trace.trace_id[16:]


# An experiment as a run of MLflow; the only file that knows MLflow.
#
# MLflow takes no ``@`` in names: ``recall@5`` is ``recall/5``, with ``recall/5.low`` and ``recall/5.high`` beside it.

_REFUSED = re.compile(r"[^A-Za-z0-9_\-. :/]")
_IDENTITY, _WHOLE = "rag_harness.export", "rag_harness.whole"
_METRICS, _PARAMS = 1_000, 100
"""The most of them in a request."""
_LONGEST_PARAM = 500
_KEPT = ("profile", "mode", "k", "seed", "chat_model", "embedding_model", "judge")
"""Settings that are parameters of a run."""


def to_mlflow(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Make a run of MLflow for each experiment, with metrics, verdicts and the tables as artifacts.

    A run that is there already is left as it is; one that was cut off is completed.

    Raises:
        PrerequisiteError: MLflow is not installed, or its server does not answer.
        DataError: two measures have one name in MLflow.
    """
    client, refusal = _client(destination.url)
    try:
        found = client.get_experiment_by_name(destination.project)
        kept_in = found.experiment_id if found else client.create_experiment(destination.project)
        return [_export(client, kept_in, run, name) for name in run.trials.experiments]
    except refusal as error:
        raise PrerequisiteError(f"MLflow did not take the scores: {error}") from error


def _client(url: str) -> tuple[Any, type[Exception]]:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise PrerequisiteError(missing_package("export to MLflow", error)) from error
    return MlflowClient(tracking_uri=url or None), MlflowException


def _export(client: Any, kept_in: str, run: ScoredRun, name: str) -> str:
    identity = f"{run.identity}-{name}"
    found = client.search_runs([kept_in], f"tags.`{_IDENTITY}` = '{identity}'")
    made = found[0] if found else None
    if made and made.data.tags.get(_WHOLE):
        return f"{name}: there already, as run {made.info.run_id}"
    time = int(datetime.fromisoformat(run.manifest.date).timestamp() * 1000)
    if made is None:
        tags = {_IDENTITY: identity, "rag_harness.commit": run.manifest.commit, **dict(_verdicts(run, name))}
        made = client.create_run(kept_in, start_time=time, tags=tags, run_name=f"{name} {run.manifest.date}")
    metrics = _metrics([each for each in run.scores if each.experiment == name], time)
    for start in range(0, len(metrics), _METRICS):
        client.log_batch(made.info.run_id, metrics=metrics[start : start + _METRICS])
    client.log_batch(made.info.run_id, params=_params(run)[:_PARAMS])
    with tempfile.TemporaryDirectory() as folder:
        write_tables(run, Path(folder), "csv")
        client.log_artifacts(made.info.run_id, folder)
    client.set_tag(made.info.run_id, _WHOLE, "yes")
    client.set_terminated(made.info.run_id, "FINISHED", time)
    return f"{name}: run {made.info.run_id}, {len(metrics):,} metrics, {len(run.gates_of(name)):,} verdicts"


def _verdicts(run: ScoredRun, name: str) -> Iterator[tuple[str, str]]:
    """Yield a tag a gate, and one that says whether all of them passed."""
    gates = run.gates_of(name)
    for number, gate in enumerate(gates, 1):
        yield f"gate.{number:02}", f"{gate['state']}: {gate['gate']}"[:_LONGEST_PARAM]
    if gates:
        states = {str(gate["state"]) for gate in gates}
        yield "gates", "passed" if states == {"passed"} else ", ".join(sorted(states))


def _metrics(scores: Sequence[MeanScore], time: int) -> list[Any]:
    from mlflow.entities import Metric

    named: dict[str, str] = {}
    found = []
    for each in scores:
        said = f"{each.measure} {each.slice}".strip()
        name = metric_name(said)
        if named.setdefault(name, said) != said:
            raise DataError(f"{named[name]!r} and {said!r} are both {name!r} in MLflow. Rename one measure.")
        low, high = each.interval or (None, None)
        values = {name: each.value, f"{name}.low": low, f"{name}.high": high, f"{name}.n": float(each.n)}
        found += [Metric(key, value, time, 0) for key, value in values.items() if value is not None]
    return found


def metric_name(said: str) -> str:
    """Return a name as MLflow takes it: ``recall/5`` for ``recall@5``, ``_`` for what else it refuses."""
    return _REFUSED.sub("_", said.replace("@", "/").replace("query_type=", ""))[:200]


def _params(run: ScoredRun) -> list[Any]:
    from mlflow.entities import Param

    known = run.manifest.settings
    return [Param(name, str(known[name])[:_LONGEST_PARAM]) for name in _KEPT if known.get(name) not in (None, "")]


TARGETS: Mapping[str, Target] = {
    "csv": to_csv,
    "parquet": to_parquet,
    "mlflow": to_mlflow,
    "langfuse": to_langfuse,
    "phoenix": to_phoenix,
    "otlp": to_otlp,
}
"""How a run is exported, by the tool's name."""

REMOVED: Mapping[str, str] = {
    "promptfoo": "There is no export to promptfoo; use --to csv, or rag-harness report for a page of all trials.",
    "wandb": "There is no export to Weights & Biases; use --to csv, whose scores.csv its client logs as a table.",
}
"""What is used in place of a target that was removed."""
