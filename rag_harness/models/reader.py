"""The baseline reader, which quotes the best units of the context with citations, or declines.

Behind the interface of OpenAI's chat completions.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeAlias

from rag_harness.core.settings.profiles import BASELINE_READER
from rag_harness.core.text.languages import rules_of
from rag_harness.core.text.terms import terms, without_marks
from rag_harness.models.reader_prompt import (
    BOOSTS,
    Prompt,
    QuestionTerms,
    Unit,
    Version,
    asks_for_history,
    content_text,
    languages_in,
    parse_prompt,
    read_question,
    role_text,
    same_thing,
    split_sources,
    versions,
)

__all__ = ["app"]


# None of these numbers was fitted to the study's questions. Each is a round number with a reason.
MAX_ANSWER_UNITS = 3  # a fact, its condition, and a second hop
ABOVE_WEIGHT = 0.5  # a heading names the topic of its lines, not their content
KIND_WEIGHT = 0.25  # "how long" weighs a quarter of the words: it chooses among units on topic
EARLY_BONUS = 0.05  # retrieval's order decides only near-ties
POOL = 40  # a unit worse than forty others adds no third hop
TOPIC_BONUS = 0.1  # of units that add the same, prefer the one on topic
MIN_GAIN = 0.15  # a unit that adds less than a seventh of the question is padding

ABSENT_WEIGHT = 0.5
"""Weight of a word that the context lacks: the context may use another word. A product code has its full weight.

Best of 0.3, 0.5 and 1 on the development half of ``benchmarks/reader_calibration.py`` (balanced accuracy 0.65, 0.66,
0.65).
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit and its terms: ``said`` in its text, ``framed`` only above. ``typed``: it has the kind of token."""

    unit: Unit
    said: frozenset[str]
    framed: frozenset[str]
    typed: bool


@dataclass(slots=True)
class Coverage:
    """Coverage by the chosen units, between 0 and 1 for each term; ``kind`` is the coverage of the requested kind."""

    share: dict[str, float] = field(default_factory=dict)
    kind: float = 0.0


def unit_candidates(question: QuestionTerms, units: Sequence[Unit]) -> list[Candidate]:
    """Return a candidate for each unit that shares a term with the question and says more than the question."""
    wanted, pattern = question.terms, question.pattern
    # "returns-policy-2024.md" is three words here, and "lamp-HK-204.md" keeps its code.
    above = {
        unit.above: terms(" ".join((*unit.above, unit.above[0].replace("-", " ").replace("_", " "))), unit.language)
        for unit in {unit.above: unit for unit in units}.values()
    }
    found: list[Candidate] = []
    for unit in units:
        words = terms(unit.text, unit.language)
        said, framed = words & wanted, (above[unit.above] & wanted) - words
        if (said or framed) and words - wanted:
            found.append(Candidate(unit, said, framed, bool(pattern and pattern.search(unit.text))))
    return found


def term_weights(question: QuestionTerms, found: Sequence[Candidate], units: int) -> dict[str, float]:
    """Return each term's weight: BM25's IDF over the units of the context, times its boost.

    A term that the context lacks is multiplied by ABSENT_WEIGHT, unless it is a code. If it is only of the story, its
    weight is 0.
    """
    said = Counter(key for candidate in found for key in candidate.said)
    there = said.keys() | {key for candidate in found for key in candidate.framed}
    plain = {key for key, boost in question.boosts.items() if boost < BOOSTS["code"]}
    lacking = dict.fromkeys(plain - there, ABSENT_WEIGHT) | dict.fromkeys(question.story - there, 0.0)
    # A term that occurs nowhere counts as if in two units. Many are only wording and would outweigh the others.
    counts = {key: min(max(said[key], 2), units) for key in question.words}
    return {
        key: lacking.get(key, 1.0) * question.boosts[key] * math.log(1 + (units - n + 0.5) / (n + 0.5))
        for key, n in counts.items()
    }


def kind_weight(question: QuestionTerms, weights: Mapping[str, float]) -> float:
    """Return the weight of the requested kind of token; 0 if the question asks for none."""
    return KIND_WEIGHT * sum(weights.values()) if question.kind else 0.0


def best_candidates(
    question: QuestionTerms, found: Sequence[Candidate], weights: Mapping[str, float]
) -> list[Candidate]:
    """Return the candidates by what each covers by itself, best first."""
    kind, nothing = kind_weight(question, weights), Coverage()
    return sorted(found, key=lambda candidate: -coverage_gain(candidate, nothing, weights, kind))


def choose_units(
    question: QuestionTerms, found: Sequence[Candidate], weights: Mapping[str, float]
) -> tuple[list[Candidate], Coverage]:
    """Choose up to MAX_ANSWER_UNITS of ``found`` greedily, by what each adds; return them and their coverage."""
    total, kind = sum(weights.values()), kind_weight(question, weights)
    chosen, covered, rest = list[Candidate](), Coverage(), list(found[:POOL])
    alone = {
        id(c): TOPIC_BONUS * coverage_gain(c, covered, weights, kind) + EARLY_BONUS * total / c.unit.source
        for c in rest
    }
    while rest and len(chosen) < MAX_ANSWER_UNITS:
        gains = [coverage_gain(candidate, covered, weights, kind) for candidate in rest]
        ranked = [value + alone[id(candidate)] for value, candidate in zip(gains, rest, strict=True)]
        top = ranked.index(max(ranked))
        # The first unit may count its heading. A further one must add terms in its own text.
        if chosen and (gains[top] < MIN_GAIN * total or not rest[top].said):
            break
        cover_terms(covered, rest[top], weights)
        chosen.append(rest.pop(top))
    return chosen, covered


def coverage_gain(candidate: Candidate, covered: Coverage, weights: Mapping[str, float], kind: float) -> float:
    """Return the weight that ``candidate`` adds to the coverage."""
    said = sum(weights[key] * (1 - covered.share.get(key, 0.0)) for key in sorted(candidate.said))
    framed = sum(
        weights[key] * max(0.0, ABOVE_WEIGHT - covered.share.get(key, 0.0)) for key in sorted(candidate.framed)
    )
    return said + framed + (kind and kind * max(0.0, _typed(candidate, weights) - covered.kind))


def cover_terms(covered: Coverage, candidate: Candidate, weights: Mapping[str, float]) -> None:
    """Return the coverage with ``candidate`` added."""
    for keys, share in ((candidate.said, 1.0), (candidate.framed, ABOVE_WEIGHT)):
        for key in keys:
            covered.share[key] = max(share, covered.share.get(key, 0.0))
    covered.kind = max(covered.kind, _typed(candidate, weights))


def _typed(candidate: Candidate, weights: Mapping[str, float]) -> float:
    """Return the credit for a number, date or price. It depends on the topic of its unit, as any page has numbers."""
    if not candidate.typed:
        return 0.0
    total = sum(weights.values())
    said = sum(weights[key] for key in sorted(candidate.said))
    framed = sum(weights[key] for key in sorted(candidate.framed))
    return min(1.0, 2 * (said + ABOVE_WEIGHT * framed) / total) if total else 0.0


SOURCE_SHARE = 0.6
"""Share of the support that comes from the whole page: a page names its subject once and then says "it".

Best of 0.4, 0.5 and 0.6 on the development half of ``benchmarks/reader_calibration.py`` (AUC 0.69, 0.69, 0.70).
"""
TERMS_THAT_COUNT = 5
"""Support is measured on this many of the question's heaviest terms, because no answer repeats a long letter.

Best of 4, 5 and 6 on the same half (AUC 0.69, 0.70, 0.70; balanced accuracy 0.65, 0.66, 0.66).
"""
# Most units that are compared for conflicts. Every pair is compared, and only units that may be quoted matter.
COMPARED = 12


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that disagree. ``kept`` is the current one, or 0 if that is unknown."""

    first: int
    second: int
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """The evidence for a question. ``relevant`` are the sources about it, with the terms that each covers."""

    chosen: tuple[Candidate, ...]
    relevant: Mapping[int, frozenset[str]]
    conflicts: tuple[Conflict, ...]
    covered: Coverage
    support: float


def gather(prompt: Prompt, question: QuestionTerms, languages: Mapping[int, str] | None = None) -> Findings:
    """Find candidates, resolve conflicts, choose units, and measure the support. ``languages``: by source."""
    units = split_sources(prompt.sources, languages or {})
    found = unit_candidates(question, units)
    weights = term_weights(question, found, len(units))
    known = {} if asks_for_history(prompt.question) else versions(prompt.sources)
    conflicts = _old_siblings(found, known)
    found = best_candidates(question, _without_losers(found, conflicts), weights)
    conflicts += _disagreements(found[:COMPARED], known)
    found = _without_losers(found, conflicts)
    chosen, covered = choose_units(question, found, weights)
    relevant = _relevant(found)
    support = _support(chosen, covered, relevant, weights, kind_weight(question, weights))
    return Findings(tuple(chosen), relevant, tuple(conflicts), covered, support)


def _old_siblings(found: list[Candidate], known: Mapping[int, Version]) -> list[Conflict]:
    """Return each source that is an old version of a page whose current version is also in the context."""
    touched = {candidate.unit.source for candidate in found}
    losers: dict[int, Conflict] = {}
    for one, other in combinations(sorted(known), 2):
        if known[one].family == known[other].family:
            kept = _current(one, other, known)
            loser = one + other - kept
            if kept and loser in touched:
                losers.setdefault(loser, Conflict(one, other, kept))
    return list(losers.values())


def _disagreements(top: list[Candidate], known: Mapping[int, Version]) -> list[Conflict]:
    """Compare all pairs of units that may be quoted, and return one conflict per pair of sources."""
    pairs: dict[tuple[int, int], Conflict] = {}
    for one, other in combinations((candidate.unit for candidate in top), 2):
        first, second = sorted((one.source, other.source))
        apart = first in known and known[first] != known[second]
        if apart and (first, second) not in pairs and same_thing(one, other):
            pairs[first, second] = Conflict(first, second, _current(first, second, known))
    return list(pairs.values())


def _current(one: int, other: int, known: Mapping[int, Version]) -> int:
    if known[one].supersedes(known[other]):
        return one
    return other if known[other].supersedes(known[one]) else 0


def _without_losers(found: list[Candidate], conflicts: list[Conflict]) -> list[Candidate]:
    lost = {number for c in conflicts if c.kept for number in (c.first, c.second) if number != c.kept}
    return [candidate for candidate in found if candidate.unit.source not in lost]


def _relevant(found: list[Candidate]) -> dict[int, frozenset[str]]:
    touched: dict[int, frozenset[str]] = {}
    for candidate in found:
        source = candidate.unit.source
        touched[source] = touched.get(source, frozenset()) | candidate.said | candidate.framed
    return touched


def _support(
    chosen: list[Candidate],
    covered: Coverage,
    relevant: Mapping[int, frozenset[str]],
    weights: Mapping[str, float],
    kind: float,
) -> float:
    """Return the weight share of the heaviest terms that the quoted units and their best page cover."""
    total = sum(sorted(weights.values())[-TERMS_THAT_COUNT:]) + kind
    if not chosen or total <= 0:
        return 0.0
    quoted = sum(weights[key] * share for key, share in sorted(covered.share.items()))
    pages = (sum(weights[key] for key in sorted(relevant[c.unit.source])) for c in chosen)
    covers = (1 - SOURCE_SHARE) * quoted + SOURCE_SHARE * max(pages) + kind * covered.kind
    return min(1.0, covers / total)


# The reasoning steps of the baseline reader: a few sentences about an answer, written from its numbers.

SHOWN_PER_STEP = 5


def explain(prompt: Prompt, question: QuestionTerms, findings: Findings, cited: tuple[int, ...]) -> tuple[str, ...]:
    """Return the steps: what to check, key terms, sources, conflicts, completeness, conclusion."""
    names = {source.number: f"source {source.number} ({source.filename})" for source in prompt.sources}
    return (
        f"Check what the {len(names)} sources say{_wanted(question)}." if names else "There is no context to check.",
        f"Key terms of the question: {_listed(question.words.values())}.",
        _relevance(question, findings, names),
        *_conflicts(findings, names),
        _completeness(question, findings),
        _conclusion(findings, cited, names),
    )


def _wanted(question: QuestionTerms) -> str:
    return f" and look for {question.kind}" if question.kind else ""


def _relevance(question: QuestionTerms, findings: Findings, names: Mapping[int, str]) -> str:
    order = sorted(findings.relevant, key=lambda number: (-len(findings.relevant[number]), number))[:SHOWN_PER_STEP]
    said = [f"{names[n]} covers {_listed(_asked(question, findings.relevant[n]))}" for n in order]
    return f"Relevant: {'; '.join(said)}." if said else "No source is relevant: none holds a key term."


def _conflicts(findings: Findings, names: Mapping[int, str]) -> tuple[str, ...]:
    if findings.conflicts:
        return tuple(_conflict(conflict, names) for conflict in findings.conflicts[:SHOWN_PER_STEP])
    used = sorted({candidate.unit.source for candidate in findings.chosen})
    return (f"No conflicts between sources {' and '.join(map(str, used))}.",) if len(used) > 1 else ("No conflicts.",)


def _conflict(conflict: Conflict, names: Mapping[int, str]) -> str:
    pair = f"{names[conflict.first]} and {names[conflict.second]}"
    if not conflict.kept:
        return f"Possible conflict: {pair} give different figures, and nothing says which is current."
    old = conflict.first + conflict.second - conflict.kept
    return f"Conflict: {pair} are two versions; {names[conflict.kept]} is current, so source {old} is set aside."


def _completeness(question: QuestionTerms, findings: Findings) -> str:
    missing = _asked(question, question.terms - findings.covered.share.keys())
    lacks_kind = bool(question.kind) and not findings.covered.kind
    gaps = [f"not covered: {_listed(missing)}"] * bool(missing) + [f"{question.kind} was not found"] * lacks_kind
    return f"Completeness: {'; '.join(gaps) or 'every key term is covered'}."


def _conclusion(findings: Findings, cited: tuple[int, ...], names: Mapping[int, str]) -> str:
    percent = f"{findings.support:.0%} of the question's weight"
    if not cited:
        return f"Conclusion: the context supports only {percent}, too little to answer."
    verb = "support" if len(cited) > 1 else "supports"
    return f"Conclusion: {' and '.join(names[number] for number in cited)} {verb} {percent}; answer from there."


def _asked(question: QuestionTerms, keys: Iterable[str]) -> list[str]:
    wanted = frozenset(keys)
    return [word for key, word in question.words.items() if key in wanted]


def _listed(words: Iterable[str]) -> str:
    shown = list(words)
    more = f" and {len(shown) - 2 * SHOWN_PER_STEP} more" if len(shown) > 2 * SHOWN_PER_STEP else ""
    return ", ".join(shown[: 2 * SHOWN_PER_STEP]) + more or "none"


NOT_IN_CONTEXT = "I don't know. The provided context does not answer this."
WITHOUT_CONTEXT = "I don't know."

MIN_SUPPORT = 0.6
"""Least support of an answer. ``benchmarks/reader_calibration.py`` chose it on a half of MTRAG-UN, never on the study.

The rule: thresholds are 0.05 apart. Of those with a balanced accuracy within a standard error of the best, the lowest
is chosen, because it refuses least. On the held-out half, with the last turn alone, it refuses 16 % of the answerable
and 34 % of the unanswerable tasks (balanced accuracy 0.59; with 0.5 and no story weight 19 %, 25 % and 0.53). With a
letter around the question it refuses 39 % and 36 % (0.49: no better than chance; before, it refused all).
"""


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """The result. ``support`` is the share of the question's weight that the answer's units and their source cover."""

    answer: str
    steps: tuple[str, ...] = ()
    supported: bool = False
    support: float = 0.0
    citations: tuple[int, ...] = ()


def reader_answer(messages: Sequence[Mapping[str, Any]], wants_steps: bool = False) -> ReaderAnswer:
    """Answer the last user message from its own context. The same messages give the same reading."""
    prompt = parse_prompt(messages)
    languages = languages_in(prompt)
    question = read_question(prompt.question, languages.question)
    findings = gather(prompt, question, languages.sources)
    supported = findings.support >= MIN_SUPPORT
    cited = tuple(dict.fromkeys(c.unit.source for c in findings.chosen)) if supported else ()
    refusal = _refusal(languages.question, with_context=bool(prompt.sources))
    return ReaderAnswer(
        answer=_quote(findings) if supported else refusal,
        steps=explain(prompt, question, findings, cited) if wants_steps else (),
        supported=supported,
        support=findings.support,
        citations=cited,
    )


def _refusal(language: str, with_context: bool) -> str:
    """Return how the reader says that it does not know: in the question's language, or in English without its rules."""
    rules = rules_of(language)
    if rules:
        return f"{rules.refusal} {rules.about_context}" if with_context else rules.refusal
    return NOT_IN_CONTEXT if with_context else WITHOUT_CONTEXT


def _quote(findings: Findings) -> str:
    """Join sentences in one paragraph. A row or item gets a line of its own; the first one follows its lead-in."""
    written, introduced, flows = "", set[str](), True
    for unit in (candidate.unit for candidate in findings.chosen):
        lead = unit.above[-1] if unit.above[-1].endswith(":") and unit.above[-1] not in introduced else ""
        introduced.add(lead)
        flowed, flows = flows, unit.text.endswith((".", "!", "?"))
        gap = (" " if flowed and flows else "\n") if written else ""
        # Removing markup, or writing a table as a line, may create a citation mark.
        quoted = without_marks(f"{lead}{' ' if lead else ''}{unit.text}")
        written += f"{gap}{quoted} [Source {unit.source}]"
    return written


MODEL = BASELINE_READER
PIECE_CHARS = 32
_KEYS = frozenset(("reasoning_steps", "answer"))


class RequestError(Exception):
    """A request that cannot be answered: HTTP status, OpenAI error code, the wrong parameter."""

    def __init__(self, status: int, message: str, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error"
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass(frozen=True, slots=True)
class ReaderReply:
    """An answer to a request, as the base of plain and streamed bodies."""

    id: str
    content: str
    usage: dict[str, int]
    stream: bool
    include_usage: bool


def answer_request(raw: bytes) -> ReaderReply:
    """Answer a request body. Raises RequestError. Temperature, seed, n and token limits are ignored."""
    body = _parse(raw)
    messages = body["messages"]
    wanted = _wanted_keys(body)
    reading = reader_answer(messages, wants_steps="reasoning_steps" in wanted)
    content = _content(reading, wanted)
    options = body.get("stream_options")
    include_usage = isinstance(options, Mapping) and bool(options.get("include_usage"))
    return ReaderReply(_identity(body), content, _usage(messages, content), bool(body.get("stream")), include_usage)


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"The request body is not valid JSON: {error}.") from error
    if not isinstance(body, dict):
        raise RequestError(400, "The request body must be a JSON object.")
    if body.get("model") != MODEL:
        message = f"The model {body.get('model')!r} does not exist here; this server has {MODEL!r}."
        raise RequestError(404, message, "model_not_found", "model")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise RequestError(400, "'messages' must be a non-empty list of objects.", param="messages")
    return body


def _wanted_keys(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys of the requested JSON object; none means plain text."""
    form = body.get("response_format")
    kind = form.get("type", "text") if isinstance(form, Mapping) else "text"
    if kind == "json_schema" and isinstance(form, Mapping):
        return _schema_keys(form)
    system = role_text(body["messages"], "system", "developer")
    named = frozenset(key for key in _KEYS if re.search(rf"\b{key}\b", system))
    if kind == "json_object":
        return named | {"answer"}
    return named if "json" in system.lower() and "answer" in named else frozenset()


def _schema_keys(form: Mapping[str, Any]) -> frozenset[str]:
    described = form.get("json_schema")
    schema = described.get("schema") if isinstance(described, Mapping) else None
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    found = frozenset(properties) if isinstance(properties, Mapping) else frozenset[str]()
    if "answer" not in found or not found <= _KEYS:
        message = f"This baseline reader fills the properties {sorted(_KEYS)}; the schema has {sorted(found)}."
        raise RequestError(400, message, param="response_format")
    return found


def _content(reading: ReaderAnswer, wanted: frozenset[str]) -> str:
    if not wanted:
        return reading.answer
    steps = {"reasoning_steps": list(reading.steps)} if "reasoning_steps" in wanted else {}
    return json.dumps({**steps, "answer": reading.answer}, ensure_ascii=False)


def _identity(body: Mapping[str, Any]) -> str:
    """Return an id derived from everything that decides the answer, so that a second recording is the same file."""
    deciding = [body["model"], body["messages"], body.get("response_format")]
    return f"chatcmpl-{hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:24]}"


def _usage(messages: list[dict[str, Any]], content: str) -> dict[str, int]:
    """Estimate tokens at four characters each. The reader has no tokenizer, and its tokens cost nothing."""
    prompt = sum(-(-len(content_text(message.get("content"))) // 4) for message in messages)
    completion = -(-len(content) // 4)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def completion_body(reply: ReaderReply) -> dict[str, Any]:
    """Return the body of a plain answer; ``created`` is 0 so that recordings are stable."""
    message = {"role": "assistant", "content": reply.content, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**_envelope(reply, "chat.completion"), "choices": [choice], "usage": reply.usage}


def completion_chunks(reply: ReaderReply) -> Iterator[dict[str, Any]]:
    """Yield the bodies of a streamed answer."""
    yield _chunk(reply, {"role": "assistant", "content": ""})
    for start in range(0, len(reply.content), PIECE_CHARS):
        yield _chunk(reply, {"content": reply.content[start : start + PIECE_CHARS]})
    yield _chunk(reply, {}, "stop")
    if reply.include_usage:
        yield {**_envelope(reply, "chat.completion.chunk"), "choices": [], "usage": reply.usage}


def completion_events(reply: ReaderReply) -> Iterator[str]:
    """Yield the server-sent events of a streamed answer."""
    for chunk in completion_chunks(reply):
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def _chunk(reply: ReaderReply, delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**_envelope(reply, "chat.completion.chunk"), "choices": [choice]}


def _envelope(reply: ReaderReply, kind: str) -> dict[str, Any]:
    return {"id": reply.id, "object": kind, "created": 0, "model": MODEL}


def models_body() -> dict[str, Any]:
    """Return the body of the list of models."""
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "rag-harness"}]}


Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]

# A prompt has a few kB. A longer request does not count as a question.
MAX_BODY_BYTES = 8_000_000
_ROUTES = {"/chat/completions": "POST", "/models": "GET"}


class _DisconnectedError(Exception):
    """The client left before its request was complete."""


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve POST /v1/chat/completions and GET /v1/models. The paths also work without ``/v1``."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
    else:
        await _http(scope, receive, send)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        event = (await receive())["type"]
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return


async def _http(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        path = _route(scope)
        if path == "/models":
            await _send_json(send, 200, models_body())
        else:
            await _reply(send, answer_request(await _body(receive)))
    except RequestError as error:
        await _send_json(send, error.status, error.body)
    except _DisconnectedError:
        return


def _route(scope: Scope) -> str:
    """Return the known path of a request. Raises RequestError: 404, or 405 for the wrong method."""
    asked = str(scope["path"]).removeprefix(scope.get("root_path", ""))
    path = asked.removeprefix("/v1")
    if path not in _ROUTES:
        raise RequestError(404, f"Unknown path {asked}. Known: {', '.join(f'/v1{known}' for known in _ROUTES)}.")
    if scope["method"] != _ROUTES[path]:
        raise RequestError(405, f"{asked} takes {_ROUTES[path]}, not {scope['method']}.")
    return path


async def _body(receive: Receive) -> bytes:
    raw, more = bytearray(), True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise _DisconnectedError
        raw += event.get("body", b"")
        more = event.get("more_body", False)
        if len(raw) > MAX_BODY_BYTES:
            raise RequestError(413, f"The request is larger than {MAX_BODY_BYTES} bytes.")
    return bytes(raw)


async def _reply(send: Send, reply: ReaderReply) -> None:
    if not reply.stream:
        await _send_json(send, 200, completion_body(reply))
        return
    await _start(send, 200, b"text/event-stream; charset=utf-8")
    for event in completion_events(reply):
        await _part(send, event, more=True)
    await _part(send, "")


async def _send_json(send: Send, status: int, body: dict[str, Any]) -> None:
    await _start(send, status, b"application/json")
    await _part(send, json.dumps(body))


async def _start(send: Send, status: int, content_type: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", content_type)]})


async def _part(send: Send, text: str, more: bool = False) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": more})
