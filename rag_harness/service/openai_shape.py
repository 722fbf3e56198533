"""An answer in the form of OpenAI's chat completions, with citations, so that any chat front end can show it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

from rag_harness.service.telling import AnswerEvent
from rag_harness.types import PipelineOutput, Usage

WITHDRAWN = "\n\n(What stands above is withdrawn.)\n\n"
"""Stands between withdrawn words and their replacement: these streams cannot take words back."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What every part of one answer has: the experiment as its model, an id, and seconds since 1970."""

    model: str
    id: str
    created: int

    def whole(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer in one piece.

        Args:
            body: ``answer``, ``citations``, ``decision``, ``confidence``, ``reasons`` and ``history_read`` as
                ``POST /query`` has them, and ``usage`` by ``usage_of``.
        """
        message = {"role": "assistant", "content": body["answer"], "refusal": None, **_beside(body, body["citations"])}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**self.envelope("chat.completion"), "choices": [choice], "usage": body["usage"]}

    async def chunks(
        self, events: AsyncGenerator[AnswerEvent, None], include_usage: bool = False
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the parts of a streamed answer. Its citations are in the last delta. ``events`` end with the stream.

        If an experiment may withhold an answer, pass strict events. If words are withdrawn all the same, the stream
        says so and goes on with their replacement; offsets of citations then count all text that was sent. An ``error``
        ends the stream with an ``error_body`` from ``Shows.failure``.
        """
        stream = _Stream(self, include_usage)
        yield self.chunk({"role": "assistant", "content": ""})
        async with aclosing(events):
            async for event in events:
                for chunk in stream.chunks(event):
                    yield chunk

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        """Return a part that adds ``delta`` to the message."""
        choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish}
        return {**self.envelope("chat.completion.chunk"), "choices": [choice]}

    def envelope(self, kind: str) -> dict[str, Any]:
        """Return the fields of every part; ``kind`` is its type, in OpenAI's words."""
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


@dataclass
class _Stream:
    """The state of a stream: how many characters were ``sent``, and how many of them came before the valid answer."""

    completion: Completion
    include_usage: bool
    sent: int = 0
    before: int = 0
    citations: list[Mapping[str, Any]] = field(default_factory=list)

    def chunks(self, event: AnswerEvent) -> Iterator[dict[str, Any]]:
        """Yield the parts that an event adds to the stream."""
        if event.name == "error":
            yield dict(event.data)
        elif event.name == "citation":
            self.citations.append(event.data)
        elif event.name == "done":
            yield from self._last(event.data)
        elif text := _text(event):
            self.before = self.sent + len(WITHDRAWN) if event.name == "replace" else self.before
            self.sent += len(text)
            yield self.completion.chunk({"content": text})

    def _last(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        moved = [_moved(each, self.before) for each in self.citations]
        yield self.completion.chunk(_beside(body, moved), "stop")
        if self.include_usage:
            yield {**self.completion.envelope("chat.completion.chunk"), "choices": [], "usage": body["usage"]}


def _text(event: AnswerEvent) -> str:
    """Return the text that an event adds to the stream."""
    if event.name == "replace":
        return f"{WITHDRAWN}{event.data['answer']}"
    return str(event.data["text"]) if event.name == "token" else ""


def _beside(body: Mapping[str, Any], citations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of a message beside its text: OpenAI's annotations, and our own fields."""
    verdict = {name: body[name] for name in ("decision", "confidence", "reasons", "history_read")}
    annotations = [_annotation(each) for each in citations if each["url"]]
    return {"annotations": annotations, "citations": [dict(each) for each in citations], "verdict": verdict}


def _annotation(citation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotation of a citation with an address; ``end_index`` is exclusive, as in a slice."""
    places = {"start_index": citation["answer_start"], "end_index": citation["answer_end"]}
    title = citation["section"] or citation["document"]
    return {"type": "url_citation", "url_citation": {**places, "title": title, "url": citation["url"]}}


def _moved(citation: Mapping[str, Any], shift: int) -> dict[str, Any]:
    return {**citation, **{name: citation[name] + shift for name in ("answer_start", "answer_end")}}


def usage_of(output: PipelineOutput) -> dict[str, int]:
    """Return the tokens of all calls that an answer took."""
    used = reduce(add, (call.usage for call in output.calls), Usage()) if output.stages else output.usage
    prompt, said = used.prompt_tokens, used.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said}


def error_body(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """Return OpenAI's shape of an error."""
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def models(experiment: str, created: int) -> dict[str, Any]:
    """Return the body of ``GET /v1/models``: front ends ask for the models before anything else."""
    return {
        "object": "list",
        "data": [{"id": experiment, "object": "model", "created": created, "owned_by": "rag-harness"}],
    }
