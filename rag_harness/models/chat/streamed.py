"""A streamed completion, as far as it has come."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from rag_harness.errors import ModelOutputError
from rag_harness.types import Usage


@dataclass
class Streamed:
    """What the chunks of one answer add up to; ``first`` is when the first token came, on perf_counter's clock."""

    model: str
    first: float | None = None
    usage: Usage | None = None
    end: str = ""
    _text: list[str] = field(default_factory=list)

    def add(self, chunk: Any) -> None:
        """Take in a chunk of the SDK's."""
        self.model = chunk.model or self.model
        if chunk.usage:
            self.usage = Usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens, calls=1)
            self.end = self.end or "usage"
        for choice in (chunk.choices or ())[:1]:
            self.end = choice.finish_reason or self.end
            if choice.delta and choice.delta.content:
                self.first = self.first or perf_counter()
                self._text.append(choice.delta.content)

    def text(self) -> str:
        """Return the whole answer.

        Raises:
            ConnectionError: it has not come to its end.
            ModelOutputError: there is no text in it.
        """
        if not self.end:
            # Half an answer must not pass for a whole one: a connection closed early looks like a stream's end.
            raise ConnectionError("the stream broke off before its end")
        if not self._text:
            raise ModelOutputError(f"{self.model} answered without any text (finish_reason {self.end!r}).")
        return "".join(self._text)


def condensed(body: bytes) -> bytes:
    """Return a recorded stream with its deltas joined: the SDK makes objects of every event, most of what replay costs.

    A stream that is not understood is returned as it is.
    """
    text: list[str] = []
    others: list[bytes] = []
    first: dict[str, Any] | None = None
    try:
        for event in body.split(b"\n\n"):
            said = json.loads(event[6:]) if event.startswith(b"data: {") else {}
            delta = _plain_delta(said)
            if delta is None:
                others.append(event)
                continue
            first = first or said
            text.append(delta)
    except (ValueError, TypeError, AttributeError):
        return body
    if first is None:
        return body
    first["choices"][0]["delta"] = {"role": "assistant", "content": "".join(text)}
    return b"\n\n".join([b"data: " + json.dumps(first).encode(), *others])


def _plain_delta(said: dict[str, Any]) -> str | None:
    """Return the text of an event that brings nothing else; None of all others."""
    choices = said.get("choices") or []
    if len(choices) != 1 or choices[0].get("finish_reason") or said.get("usage"):
        return None
    delta = choices[0].get("delta") or {}
    return delta.get("content") or "" if delta.keys() <= {"role", "content"} else None
