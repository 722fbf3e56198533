"""The messages that a model was sent, and those that it said, by whichever convention a span has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag_harness.traces.flattened import flat_list, is_hidden, structured
from rag_harness.traces.span_record import SpanRecord

Side = Literal["input", "output"]
_MESSAGE_EVENTS = ("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.tool.message")


@dataclass(frozen=True, slots=True)
class ToolWish:
    """A call of a tool that a model has asked for: its name, its arguments, the id of the call."""

    name: str
    arguments: Any = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message: who has said it, its text, and the tools that it asks for."""

    role: str
    text: str
    wishes: tuple[ToolWish, ...] = ()

    @property
    def shown(self) -> str:
        """Its text; of one that only asks for tools, their names and arguments."""
        return self.text or "\n".join(f"{wish.name}({json.dumps(wish.arguments)})" for wish in self.wishes)


def messages_of(span: SpanRecord, side: Side) -> list[SaidMessage]:
    """Return the messages of one side of a model's call; empty where the span does not tell them."""
    attributes = span.attributes
    flat = flat_list(attributes, f"llm.{side}_messages")
    if flat:
        return [_openinference(each) for each in flat]
    genai = structured(attributes.get(f"gen_ai.{side}.messages")) or _in_events(span, f"gen_ai.{side}.messages")
    if isinstance(genai, (list, tuple)):
        before = _instructions(attributes.get("gen_ai.system_instructions")) if side == "input" else []
        return [*before, *(_genai(each) for each in map(structured, genai) if isinstance(each, Mapping))]
    return list(_older(span, side))


def _openinference(said: Mapping[str, Any]) -> SaidMessage:
    parts = [said.get("message.content")]
    parts += [part.get("message_content.text") for part in flat_list(said, "message.contents")]
    call = "tool_call.function"
    wishes = tuple(
        ToolWish(
            str(each[f"{call}.name"]), structured(each.get(f"{call}.arguments")), str(each.get("tool_call.id", ""))
        )
        for each in flat_list(said, "message.tool_calls")
        if f"{call}.name" in each
    )
    return SaidMessage(str(said.get("message.role", "")), _joined(parts), wishes)


def _genai(said: Mapping[str, Any]) -> SaidMessage:
    parts = said.get("parts", [{"type": "text", "content": said.get("content")}])
    parts = [each for each in parts if isinstance(each, Mapping)] if isinstance(parts, list) else []
    texts = [_text(each.get("content", each.get("response", each.get("result")))) for each in parts]
    wishes = tuple(
        ToolWish(str(each["name"]), structured(each.get("arguments")), str(each.get("id", "")))
        for each in parts
        if each.get("type") == "tool_call" and "name" in each
    )
    return SaidMessage(str(said.get("role", "")), _joined(texts), wishes)


def _instructions(said: Any) -> list[SaidMessage]:
    text = _text(structured(said))
    return [SaidMessage("system", text)] if text else []


def _older(span: SpanRecord, side: Side) -> Iterator[SaidMessage]:
    """Yield messages under names that the conventions have given up."""
    role, old = ("user", "prompt") if side == "input" else ("assistant", "completion")
    for each in flat_list(span.attributes, f"gen_ai.{old}"):
        yield SaidMessage(str(each.get("role", role)), _joined([each.get("content")]))
    plain = "llm.prompts" if side == "input" else "llm.choices"
    whole = span.attributes.get(plain, span.attributes.get(f"gen_ai.{old}"))
    texts = list(whole) if isinstance(whole, (list, tuple)) else [whole]
    texts += [text for each in flat_list(span.attributes, plain) for text in each.values()]
    yield from (SaidMessage(role, text) for each in texts if (text := _text(structured(each))))
    for event in span.events:
        content = _text(structured(event.attributes.get("content", event.attributes.get(f"gen_ai.{old}"))))
        if event.name in _MESSAGE_EVENTS and side == "input":
            yield SaidMessage(event.name.split(".")[1], content)
        elif event.name == f"gen_ai.content.{old}" or (event.name == "gen_ai.choice" and side == "output"):
            yield SaidMessage(role, content or _text(structured(event.attributes.get("message"))))


def _in_events(span: SpanRecord, name: str) -> Any:
    """Return a value that stands in an event of the span, for instrumentations that put content there."""
    return next((structured(event.attributes[name]) for event in span.events if name in event.attributes), None)


def _joined(parts: Sequence[Any]) -> str:
    return "\n".join(part for part in parts if isinstance(part, str) and part and not is_hidden(part))


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return _text(value.get("content", value.get("text")))
    if isinstance(value, (list, tuple)):
        return _joined([_text(each) for each in value])
    return value if isinstance(value, str) and not is_hidden(value) else ""
