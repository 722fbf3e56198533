"""Bodies of the OpenAI chat completions API: parser for requests, writer of answers and errors."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rag_harness.models.reader.prompt import content_text, role_text
from rag_harness.models.reader.reader import ReaderAnswer, reader_answer
from rag_harness.settings.profiles import BASELINE_READER

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


def answer(raw: bytes) -> ReaderReply:
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
    """Estimate tokens at four characters each. There is no tokenizer, and nobody pays for them."""
    prompt = sum(-(-len(content_text(message.get("content"))) // 4) for message in messages)
    completion = -(-len(content) // 4)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def completion(reply: ReaderReply) -> dict[str, Any]:
    """Return the body of a plain answer; ``created`` is 0 so that recordings are stable."""
    message = {"role": "assistant", "content": reply.content, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**_envelope(reply, "chat.completion"), "choices": [choice], "usage": reply.usage}


def chunks(reply: ReaderReply) -> Iterator[dict[str, Any]]:
    """Yield the bodies of a streamed answer."""
    yield _chunk(reply, {"role": "assistant", "content": ""})
    for start in range(0, len(reply.content), PIECE_CHARS):
        yield _chunk(reply, {"content": reply.content[start : start + PIECE_CHARS]})
    yield _chunk(reply, {}, "stop")
    if reply.include_usage:
        yield {**_envelope(reply, "chat.completion.chunk"), "choices": [], "usage": reply.usage}


def events(reply: ReaderReply) -> Iterator[str]:
    """Yield the server-sent events of a streamed answer."""
    for chunk in chunks(reply):
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def _chunk(reply: ReaderReply, delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**_envelope(reply, "chat.completion.chunk"), "choices": [choice]}


def _envelope(reply: ReaderReply, kind: str) -> dict[str, Any]:
    return {"id": reply.id, "object": kind, "created": 0, "model": MODEL}


def models() -> dict[str, Any]:
    """Return the body of the list of models."""
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "rag-harness"}]}
