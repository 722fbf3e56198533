"""Questions of traces as rows of queries.jsonl for people to label."""

from __future__ import annotations

import json
import sqlite3
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

from rag_harness.core.errors import DataError, ModelOutputError
from rag_harness.core.text.refusals import declines
from rag_harness.pipelines.endpoint.answer import Placing
from rag_harness.pipelines.otel.files import TraceFile
from rag_harness.pipelines.traced_app import KeptTrace, kept_trace
from rag_harness.service.database import DATABASE, Database
from rag_harness.service.observations import FAILED

THUMBS_DOWN, ABSTAINED, WARNED, BROKEN, OTHERS = "thumbs-down", "abstained", "warned", "failed", "any"
LABELLING_REASONS = (THUMBS_DOWN, BROKEN, ABSTAINED, WARNED, OTHERS)
"""Why a question is picked, the strongest reason first. A question with several reasons counts under the first."""
UNLABELLED = "unlabelled"
WordsOfTrace = Callable[[str], Mapping[str, Any]]
"""From a trace id to its words, as ``content_of`` has them."""
_BY_DECISION = {FAILED: BROKEN, "abstain": ABSTAINED, "warn": WARNED}
_TRACES_NAMED = 20
_ENDS = " .!?…"


@dataclass(frozen=True, slots=True)
class Logged:
    """A trace in the form for labelling: the question and its outcome; ``began`` is in ISO 8601."""

    trace_id: str
    began: str
    decision: str
    confidence: float | None
    thumb: int | None
    comment: str
    question: str
    inputs: Mapping[str, Any]

    @property
    def reason(self) -> str:
        """Why a person should look at it."""
        return THUMBS_DOWN if self.thumb == -1 else _BY_DECISION.get(self.decision, OTHERS)

    @property
    def same(self) -> str:
        """The key of traces that ask the same: the words, and what was sent with them."""
        words = " ".join(unicodedata.normalize("NFKC", self.question).casefold().split())
        return json.dumps([words.rstrip(_ENDS) or words, self._without_place], sort_keys=True)

    @property
    def case_inputs(self) -> Mapping[str, Any]:
        """What a case of it has as inputs. The first question of a conversation is one like any other."""
        return self.inputs if self.inputs.get("history") else self._without_place

    @property
    def _without_place(self) -> Mapping[str, Any]:
        return {name: value for name, value in self.inputs.items() if name not in ("conversation", "turn")}


@dataclass(frozen=True, slots=True)
class TracedQuestion:
    """A question with all its traces: those with the strongest reason first, and among these the newest first."""

    traces: tuple[Logged, ...]

    @property
    def shown(self) -> Logged:
        """The trace whose answer is shown to the person who labels."""
        return self.traces[0]

    @property
    def key(self) -> str:
        """The question's name, which does not depend on when and how often it was asked."""
        return sha256(self.shown.same.encode()).hexdigest()


def merged(traces: Iterable[Logged]) -> list[TracedQuestion]:
    """Return each question once, in the order in which they were first asked."""
    by_question: dict[str, list[Logged]] = defaultdict(list)
    for each in traces:
        by_question[each.same].append(each)
    asked = [TracedQuestion(tuple(_telling_first(same))) for same in by_question.values()]
    return sorted(asked, key=lambda one: (min(each.began for each in one.traces), one.key))


def sample_of_questions(
    asked: Sequence[TracedQuestion], size: int | None, only: str | None, seed: int
) -> list[TracedQuestion]:
    """Return a random sample of at most ``size`` questions; without ``only``, each reason gets an equal share.

    The draw depends only on the seed and the question, not on how often or in which order questions were asked.
    """
    groups = _by_reason(asked, only)
    for group in groups.values():
        group.sort(key=lambda one: sha256(f"{seed}/{one.key}".encode()).digest())
    taken = {one.key for one in list(_in_turns(list(groups.values())))[:size]}
    return [one for one in asked if one.key in taken]


def rows(taken: Sequence[TracedQuestion], asked: Sequence[TracedQuestion], content: WordsOfTrace) -> Iterator[str]:
    """Yield the lines of ``queries.jsonl``; ``asked`` are all questions from which ``taken`` was drawn."""
    sizes = {reason: len(group) for reason, group in _by_reason(asked, None).items()}
    for one in taken:
        yield json.dumps(_row(one, sizes[one.shown.reason], content(one.shown.trace_id)), ensure_ascii=False)


def _telling_first(traces: list[Logged]) -> list[Logged]:
    newest = sorted(traces, key=lambda each: (each.began, each.trace_id), reverse=True)
    return sorted(newest, key=lambda each: LABELLING_REASONS.index(each.reason))


def _by_reason(asked: Iterable[TracedQuestion], only: str | None) -> dict[str, list[TracedQuestion]]:
    groups: dict[str, list[TracedQuestion]] = {reason: [] for reason in LABELLING_REASONS if only in (None, reason)}
    for one in asked:
        if one.shown.reason in groups:
            groups[one.shown.reason].append(one)
    return groups


def _in_turns(groups: Sequence[Sequence[TracedQuestion]]) -> Iterator[TracedQuestion]:
    for turn in range(max(map(len, groups), default=0)):
        yield from (group[turn] for group in groups if turn < len(group))


def _row(one: TracedQuestion, of: int, content: Mapping[str, Any]) -> dict[str, Any]:
    shown = one.shown
    seen = {
        "drawn_of": of,
        "decision": shown.decision,
        "confidence": shown.confidence,
        "comments": [each.comment for each in one.traces if each.comment],
        "answer_given": content.get("answer", ""),
        "sources_cited": content.get("cited", []),
        "sources_shown": content.get("sources", []),
        "first_asked": min(each.began for each in one.traces),
        "last_asked": max(each.began for each in one.traces),
        "trace_ids": [each.trace_id for each in one.traces][:_TRACES_NAMED],
    }
    return {
        "query_id": f"trace_{one.key[:16]}",
        "query_type": UNLABELLED,
        "query": shown.question,
        "inputs": shown.case_inputs,
        "ground_truth": "",
        "context_reference": [],
        "evidence": [],
        "metadata": {"reviewed": "no", "sampled_as": shown.reason, "asked": len(one.traces), "seen": seen},
    }


# The traces of a state folder in the form for labelling. A server may run on the folder meanwhile.

_ALL = """
SELECT id, collection, began, thumb, comment,
    json_extract(body, '$.decision') AS decision, json_extract(body, '$.confidence') AS confidence,
    json_extract(content, '$.question') AS question, json_extract(content, '$.inputs') AS inputs
FROM traces WHERE began >= ? AND (? IS NULL OR collection = ?) ORDER BY began, id
"""
_ONE = "SELECT json_remove(content, '$.prompts', '$.answered') FROM traces WHERE id = ?"


class LoggedTraces:
    """The traces that a service kept; close it at the end.

    Raises:
        DataError: no service has run on ``state``.
        StateError: its database is damaged, or of a newer release.
    """

    def __init__(self, state: Path) -> None:
        file = state / DATABASE
        if not file.is_file():
            raise DataError(
                f"No service has run on {state}: {DATABASE} is not there. Name its folder with --state DIR."
            )
        self._database = Database(file)

    def since(self, seconds: float, collection: str | None) -> list[Logged]:
        """Return the traces of a collection that are at most ``seconds`` old, the oldest first.

        Raises:
            DataError: no trace is found, no trace has words, or they are of several collections and none was named.
        """
        wanted = time.time() - seconds, collection, collection
        found = self._database.read(lambda connection: connection.execute(_ALL, wanted).fetchall())
        _of_one(found)
        with_words = [_logged(row) for row in found if row["question"]]
        if not with_words:
            raise DataError(_none_has_words(len(found), collection))
        return with_words

    def content(self, trace_id: str) -> dict[str, Any]:
        """Return the words of a trace, without its prompts and what the page shows of it."""
        found = self._database.read(lambda connection: connection.execute(_ONE, (trace_id,)).fetchone())
        said: dict[str, Any] = json.loads(found[0])
        return said

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def _of_one(found: list[sqlite3.Row]) -> None:
    whose = sorted({row["collection"] for row in found})
    if len(whose) > 1:
        raise DataError(
            f"There are traces of {len(whose)} collections: {', '.join(whose[:10])}. One tenant's questions are no "
            f"other's cases: name one with --collection."
        )


def _none_has_words(traces: int, collection: str | None) -> str:
    of = f" of collection {collection!r}" if collection else ""
    if not traces:
        return f"No question{of} was traced in that time. Look further back with --since."
    return (
        f"{traces} traces{of} have no words in them: questions and answers are kept only by "
        f"`rag-harness serve --trace-content`. Start the server so, tell its users, and come back."
    )


def _logged(row: sqlite3.Row) -> Logged:
    began = datetime.fromtimestamp(row["began"], timezone.utc).isoformat(timespec="seconds")
    said = row["question"], json.loads(row["inputs"] or "{}")
    return Logged(row["id"], began, row["decision"], row["confidence"], row["thumb"], row["comment"], *said)


class ExportedQuestions:
    """The questions of a file of OTLP/JSON, Phoenix or Langfuse.

    Raises:
        DataError: the file cannot be read; lists the problems.

    Attributes:
        logged: a trace each.
        unread: ids of traces without a question, each with the reason.
    """

    def __init__(self, file: Path) -> None:
        self.logged: list[Logged] = []
        self.unread: list[tuple[str, str]] = []
        self._content: dict[str, Mapping[str, Any]] = {}
        for trace_id, spans in TraceFile(file).traces():
            try:
                trace = kept_trace(spans)
            except ModelOutputError as error:
                self.unread.append((trace_id, str(error)))
                continue
            began = datetime.fromtimestamp(trace.began_ns / 1e9, timezone.utc).isoformat()
            self.logged.append(Logged(trace_id, began, _decision(trace), None, None, "", trace.question, {}))
            self._content[trace_id] = _words(trace)

    def content(self, trace_id: str) -> Mapping[str, Any]:
        """Return the words of a trace: its answer, the sources that a model was given."""
        return self._content[trace_id]


def _decision(trace: KeptTrace) -> str:
    if trace.failed:
        return FAILED
    return "abstain" if declines(trace.answer) else "pass"


def _words(trace: KeptTrace) -> Mapping[str, Any]:
    try:
        hits = trace.output(Placing(lambda: (), "traces", "search")).context
    except ModelOutputError:
        # Somebody labels a question whose sources are not told all the same.
        hits = ()
    return {"answer": trace.answer, "sources": [{"score": hit.score, "text": hit.chunk.text} for hit in hits]}
