"""The ASGI app of the simulated model, with the interface of OpenAI's chat completions. It is called in process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from rag_harness.models.reader.app import Receive, Scope, Send
from rag_harness.models.reader.prompt import content_text, parse_prompt
from rag_harness.models.reader.wire import RequestError
from rag_harness.models.simulated.simulated_model import SimulatedAnswer, SimulatedModel

MODEL = "simulated/known-faults"
_SEED = 7
_KEYS = {"reasoning_steps", "answer"}


class SimulatedApp:
    """Serves POST …/chat/completions with the answers of ``model``. The body of the reply does not name the fault."""

    def __init__(self, model: SimulatedModel) -> None:
        self._model = model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] != "http" or not str(scope["path"]).endswith("/chat/completions"):
                raise RequestError(404, f"The simulated model has no {scope.get('path')!r}, only /v1/chat/completions.")
            body = _parsed(await _content(receive))
            status, kind, parts = 200, b"application/json", _replies(body, self._said(body))
        except RequestError as error:
            status, kind, parts = error.status, b"application/json", iter([json.dumps(error.body)])
        else:
            kind = b"text/event-stream; charset=utf-8" if body.get("stream") else kind
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": "".join(parts).encode()})

    def _said(self, body: Mapping[str, Any]) -> str:
        keys, messages = _wanted_keys(body), body["messages"]
        prompt, seed = parse_prompt(messages), body.get("seed", _SEED)
        sources = [(source.filename, source.text) for source in prompt.sources]
        reasons = "reasoning_steps" in keys
        found = self._model.answer(prompt.question, sources, seed=seed, reasons=reasons)
        return _in_form(found, reasons) if keys else found.text


def _in_form(found: SimulatedAnswer, reasons: bool) -> str:
    steps = {"reasoning_steps": list(found.steps)} if reasons else {}
    return json.dumps({**steps, "answer": found.text}, ensure_ascii=False)


async def _content(receive: Receive) -> bytes:
    content, more = b"", True
    while more:
        event = await receive()
        content, more = content + event.get("body", b""), event.get("more_body", False)
    return content


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        body: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"The request body is not valid JSON: {error}.") from error
    if not isinstance(body, dict):
        raise RequestError(400, "The request body must be a JSON object.")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise RequestError(400, "'messages' must be a non-empty list of objects.", param="messages")
    if body.get("model") != MODEL:
        raise RequestError(404, f"There is no model {body.get('model')!r} here, only {MODEL!r}.", "model_not_found")
    return body


def _wanted_keys(body: Mapping[str, Any]) -> set[str]:
    """Return the keys of the requested JSON object; none means plain text."""
    form = body.get("response_format")
    described = form.get("json_schema") if isinstance(form, Mapping) else None
    schema = described.get("schema") if isinstance(described, Mapping) else None
    if schema is None:
        return set()
    keys = set(schema.get("properties") or ()) if isinstance(schema, Mapping) else set[str]()
    if "answer" not in keys or not keys <= _KEYS:
        message = f"The simulated model fills the properties {sorted(_KEYS)}; the schema has {sorted(keys)}."
        raise RequestError(400, message, param="response_format")
    return keys


def _replies(body: Mapping[str, Any], said: str) -> Iterator[str]:
    """Yield the reply: one JSON object, or the events of a stream. The answer is one event: recordings stay small."""
    is_streamed = bool(body.get("stream"))
    deciding = json.dumps([body["model"], body["messages"], body.get("response_format"), body.get("seed")])
    kind = f"chat.completion{'.chunk' * is_streamed}"
    identity = hashlib.sha256(deciding.encode()).hexdigest()[:16]
    reply = {"id": f"chatcmpl-{identity}", "object": kind, "created": 0, "model": MODEL}
    where = "delta" if is_streamed else "message"
    reply["choices"] = [{"index": 0, where: {"role": "assistant", "content": said}, "finish_reason": "stop"}]
    reply["usage"] = _usage(body["messages"], said)
    text = json.dumps(reply, ensure_ascii=False)
    yield from [f"data: {text}\n\n", "data: [DONE]\n\n"] if is_streamed else [text]


def _usage(messages: list[dict[str, Any]], said: str) -> dict[str, int]:
    """Estimate tokens at four characters each, as for the baseline reader. Nobody pays for them."""
    prompt = sum(-(-len(content_text(message.get("content"))) // 4) for message in messages)
    completion = -(-len(said) // 4)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
