"""A call of a model by the attributes of its span: model, messages, reply, tokens, cost, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.traces.flattened import is_hidden, structured
from rag_harness.traces.model_messages import Side, ToolWish, messages_of
from rag_harness.traces.span_record import SpanRecord
from rag_harness.types import Call, Message, Usage

_MODELS = (
    "llm.model_name", "llm.response.model_name", "llm.request.model_name",
    "gen_ai.response.model", "gen_ai.request.model",
)  # fmt: skip
_PROMPT_TOKENS = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_COMPLETION_TOKENS = ("llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_EVIDENCE = frozenset(
    {
        *_MODELS, *_PROMPT_TOKENS, *_COMPLETION_TOKENS, "llm.prompts", "llm.choices",
        "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt", "gen_ai.completion",
    }
)  # fmt: skip
_LISTS = ("llm.input_messages.", "llm.output_messages.", "llm.prompts.", "llm.choices.", "gen_ai.prompt.")
_LARGEST = 10.0**18
"""More is no number of tokens, of seconds or of dollars."""
_FIRST_TOKEN = "First Token Stream Event"
"""OpenInference's event of the first token of a streamed reply."""
_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
"""Seconds."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model.

    Attributes:
        call: for the row: model, tokens, cost, time, messages.
        reply: its text; empty where it is not told.
        wishes: the tools that it has asked for.
    """

    call: Call
    reply: str = ""
    wishes: tuple[ToolWish, ...] = ()

    @property
    def prompt(self) -> str:
        """All that the model was given, as one text; empty where it is not told."""
        return "\n\n".join(message.content for message in self.call.messages)


def is_call(span: SpanRecord) -> bool:
    """Return whether a span of kind ``llm`` is about a model: Haystack marks the filling of a template so, too."""
    return any(name in _EVIDENCE or name.startswith(_LISTS) for name in span.attributes)


def call_of(span: SpanRecord, around: Sequence[SpanRecord] = ()) -> ModelCall:
    """Return the call of a model's span.

    Args:
        span: the span.
        around: spans of kind ``llm`` around it that are about this call alone. They may tell what it does not.
    """
    spans = (span, *around)
    told = {name: value for each in reversed(spans) for name, value in each.attributes.items()}
    sent, said = (next((found for each in spans if (found := messages_of(each, side))), []) for side in _SIDES)
    call = Call(
        "answer",
        next((value for name in _MODELS if isinstance(value := told.get(name), str) and value), ""),
        Usage(_tokens(told, _PROMPT_TOKENS), _tokens(told, _COMPLETION_TOKENS), calls=1),
        span.ms,
        next((ms for each in spans if (ms := _ttft(each)) is not None), None),
        messages=tuple(Message(message.role, message.shown) for message in sent),
        usd=_number(told.get("llm.cost.total")),
        finish_reason=_finish_reason(told),
    )
    reply = "\n".join(message.text for message in said if message.text)
    return ModelCall(call, reply or _plain_output(span), tuple(wish for message in said for wish in message.wishes))


_SIDES: tuple[Side, Side] = ("input", "output")


def _plain_output(span: SpanRecord) -> str:
    said = structured(span.attributes.get("output.value"))
    return said if isinstance(said, str) and not is_hidden(said) else ""


def _tokens(told: Mapping[str, Any], names: Sequence[str]) -> int:
    return int(next((n for name in names if (n := _number(told.get(name)))), 0))


def _number(value: Any) -> float | None:
    """Return a number from 0 on that may be one; None for anything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= _LARGEST else None


def _finish_reason(told: Mapping[str, Any]) -> str:
    said = structured(told.get("llm.finish_reason") or told.get("gen_ai.response.finish_reasons"))
    said = said[0] if isinstance(said, (list, tuple)) and said else said
    return said if isinstance(said, str) else ""


def _ttft(span: SpanRecord) -> float | None:
    seconds = _number(span.attributes.get(_FIRST_CHUNK))
    if seconds is not None:
        return seconds * 1000
    first = [event.at_ns for event in span.events if event.name == _FIRST_TOKEN and event.at_ns >= span.start_ns]
    return (min(first) - span.start_ns) / 1e6 if first else None
