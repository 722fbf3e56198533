"""Calls of models and tools by the attributes of their spans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag_harness.core.types import Call, Message, Usage
from rag_harness.pipelines.otel.spans import SpanRecord, SpanTree, flat_list, is_hidden, kind_of, structured

Side = Literal["input", "output"]
_MESSAGE_EVENTS = ("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.tool.message")


@dataclass(frozen=True, slots=True)
class ToolWish:
    """A call of a tool that a model has requested: its name, its arguments, the id of the call."""

    name: str
    arguments: Any = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message: its role, its text, and the tools that it requests."""

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
    """Return a value from an event of the span: some instrumentations put content there."""
    return next((structured(event.attributes[name]) for event in span.events if name in event.attributes), None)


def _joined(parts: Sequence[Any]) -> str:
    return "\n".join(part for part in parts if isinstance(part, str) and part and not is_hidden(part))


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return _text(value.get("content", value.get("text")))
    if isinstance(value, (list, tuple)):
        return _joined([_text(each) for each in value])
    return value if isinstance(value, str) and not is_hidden(value) else ""


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
"""More is not a number of tokens, of seconds or of dollars."""
_FIRST_TOKEN = "First Token Stream Event"
"""OpenInference's event of the first token of a streamed reply."""
_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
"""Seconds."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model.

    Attributes:
        call: for the row: model, tokens, cost, time, messages.
        reply: its text; empty where the trace lacks it.
        wishes: the tools that it has requested.
    """

    call: Call
    reply: str = ""
    wishes: tuple[ToolWish, ...] = ()

    @property
    def prompt(self) -> str:
        """The whole prompt, as one text; empty where the trace lacks it."""
        return "\n\n".join(message.content for message in self.call.messages)


def is_call(span: SpanRecord) -> bool:
    """Return whether a span of kind ``llm`` is about a model: Haystack marks the filling of a template so, too."""
    return any(name in _EVIDENCE or name.startswith(_LISTS) for name in span.attributes)


def call_of(span: SpanRecord, around: Sequence[SpanRecord] = ()) -> ModelCall:
    """Return the call of a model's span.

    Args:
        span: the span.
        around: spans of kind ``llm`` around it that are about this call alone. They may have values that it lacks.
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


_NAMES = ("tool.name", "gen_ai.tool.name")
_IDS = ("tool.id", "gen_ai.tool.call.id")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value")
_RESULTS = ("gen_ai.tool.call.result", "output.value")


@dataclass(frozen=True, slots=True)
class ToolSeen:
    """A call of a tool.

    Attributes:
        span: the span of the tool; without one, the span of the model that requested it.
        name: the tool's name.
        arguments: its arguments; None where the trace lacks them.
        result: its result; None where the trace lacks it.
        has_span: whether the span is the tool's own.
    """

    span: SpanRecord
    name: str
    arguments: Any = None
    result: Any = None
    has_span: bool = True


def tools_in(tree: SpanTree, calls: Sequence[tuple[SpanRecord, ModelCall]]) -> list[ToolSeen]:
    """Return the calls of tools in a trace.

    Args:
        tree: all spans.
        calls: the calls of models among them.
    """
    tools = [span for span in tree.spans if kind_of(span) == "tool" and not _is_inside_itself(span, tree)]
    if not tools:
        return _asked_for(calls)
    wishes = [wish for _, call in calls for wish in call.wishes]
    return [_tool(span, wishes) for span in tools]


def _is_inside_itself(span: SpanRecord, tree: SpanTree) -> bool:
    """Return whether a span is the inner one of two of one call: LlamaIndex has both."""
    around = tree.parents.get(span.span_id)
    if around is None or kind_of(around) != "tool":
        return False
    return _named(around) == _named(span) and _value(around.attributes, _ARGUMENTS) == _value(
        span.attributes, _ARGUMENTS
    )


def _named(span: SpanRecord) -> str:
    return next((str(value) for key in _NAMES if (value := span.attributes.get(key))), "") or span.name


def _tool(span: SpanRecord, wishes: list[ToolWish]) -> ToolSeen:
    """Return the call of a tool's span. The wish that it fulfils is taken off the list."""
    name = _named(span)
    given, result = _by_name(_value(span.attributes, _ARGUMENTS)), _value(span.attributes, _RESULTS)
    call_id = next((str(value) for key in _IDS if (value := span.attributes.get(key))), "")
    said, answered = _unwrapped(result)
    wish = _wish(wishes, name, call_id or answered, given)
    if wish is not None:
        wishes.remove(wish)
    # A framework hands a tool of one parameter its value alone. The model has named the parameter.
    named = wish.arguments if wish is not None and not isinstance(given, Mapping) else None
    return ToolSeen(span, name, given if named is None else named, said)


def _wish(wishes: Sequence[ToolWish], name: str, call_id: str, given: Any) -> ToolWish | None:
    if call_id:
        return next((wish for wish in wishes if wish.id == call_id), None)
    fitting = [wish for wish in wishes if wish.name == name]
    exact = [wish for wish in fitting if given in (wish.arguments, *_values(wish.arguments))]
    return next(iter(exact or fitting), None)


def _values(arguments: Any) -> Sequence[Any]:
    return list(arguments.values()) if isinstance(arguments, Mapping) and len(arguments) == 1 else []


def _value(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    found = next((attributes[name] for name in names if name in attributes), None)
    return None if is_hidden(found) else structured(found)


def _by_name(given: Any) -> Any:
    """Return the arguments by their names, where LlamaIndex has wrapped those of a Python function."""
    is_call = isinstance(given, Mapping) and given.keys() <= {"args", "kwargs"} and not given.get("args")
    return given["kwargs"] if is_call and isinstance(given.get("kwargs"), Mapping) else given


def _unwrapped(result: Any) -> tuple[Any, str]:
    """Return the result of a tool, and the id of its call where the trace has it.

    LangChain has wrapped both into a message, LlamaIndex the text into blocks.
    """
    if isinstance(result, Mapping) and {"blocks", "tool_name"} <= result.keys() and isinstance(result["blocks"], list):
        texts = [each.get("text") for each in result["blocks"] if isinstance(each, Mapping)]
        return structured("\n".join(text for text in texts if isinstance(text, str))), ""
    data = result.get("data") if isinstance(result, Mapping) and result.get("type") == "tool" else None
    if not isinstance(data, Mapping) or "content" not in data:
        return result, ""
    return structured(data["content"]), str(data.get("tool_call_id") or "")


def _asked_for(calls: Sequence[tuple[SpanRecord, ModelCall]]) -> list[ToolSeen]:
    """Return the tools that models have requested before another call, in an app without spans of tools."""
    if not calls:
        return []
    asked = [(span, wish) for span, call in calls[:-1] for wish in call.wishes]
    results = [message.content for message in calls[-1][1].call.messages if message.role == "tool"]
    results += [None] * (len(asked) - len(results))  # type: ignore[list-item]
    return [
        ToolSeen(span, wish.name, wish.arguments, structured(result), has_span=False)
        for (span, wish), result in zip(asked, results, strict=False)
    ]
