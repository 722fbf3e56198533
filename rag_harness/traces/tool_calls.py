"""Calls of tools: their spans, with the arguments that a model gave; without spans, what models have asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.traces.flattened import is_hidden, structured
from rag_harness.traces.model_calls import ModelCall
from rag_harness.traces.model_messages import ToolWish
from rag_harness.traces.span_kinds import kind_of
from rag_harness.traces.span_record import SpanRecord
from rag_harness.traces.span_tree import SpanTree

_NAMES = ("tool.name", "gen_ai.tool.name")
_IDS = ("tool.id", "gen_ai.tool.call.id")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value")
_RESULTS = ("gen_ai.tool.call.result", "output.value")


@dataclass(frozen=True, slots=True)
class ToolSeen:
    """A call of a tool.

    Attributes:
        span: the span of the tool; where it has none, that of the model which asked for it.
        name: the tool's name.
        arguments: what it was given; None where it is not told.
        result: what it returned; None where it is not told.
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
    """Return what a tool returned, and the id of its call where that is told.

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
    """Return the tools that models have asked for and were called again after, in an app without spans of tools."""
    if not calls:
        return []
    asked = [(span, wish) for span, call in calls[:-1] for wish in call.wishes]
    results = [message.content for message in calls[-1][1].call.messages if message.role == "tool"]
    results += [None] * (len(asked) - len(results))  # type: ignore[list-item]
    return [
        ToolSeen(span, wish.name, wish.arguments, structured(result), has_span=False)
        for (span, wish), result in zip(asked, results, strict=False)
    ]
