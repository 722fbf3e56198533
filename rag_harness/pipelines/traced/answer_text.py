"""The text of what an app returned, by the shapes that frameworks give it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_harness.errors import ModelOutputError

_KEYS = ("answer", "response", "output", "result", "content", "text", "replies", "messages")
"""Keys or attributes that may hold the text, in this order: those of chains, query engines, agents and messages."""
_DEEPEST = 6


def answer_text(returned: Any, name: str) -> str:
    """Return the text of an answer.

    It is a text itself, or the first of the keys or attributes that is there: answer, response, output, result,
    content, text, replies, messages; of a list the last item. A mapping with one item only is its item's text.

    Args:
        returned: what the app returned.
        name: the app's name, for messages.

    Raises:
        ModelOutputError: there is no text; says what is there.
    """
    found = _text(returned, 0)
    if found is None:
        keys = f" with {', '.join(map(repr, list(returned)[:10]))}" if isinstance(returned, Mapping) else ""
        raise ModelOutputError(
            f"{name} returned {type(returned).__name__}{keys}, and no text is found in it. Hand over a function that "
            f"returns the text: rag_traced(lambda question: app(question)[…])."
        )
    return found


def _text(value: Any, depth: int) -> str | None:
    if isinstance(value, str):
        return value
    if value is None or depth > _DEEPEST:
        return None
    if isinstance(value, (list, tuple)):
        return _of_list(value, depth)
    inside = _inside(value)
    if not inside and isinstance(value, Mapping) and len(value) == 1:
        inside = list(value.values())
    return next((text for each in inside if (text := _text(each, depth + 1)) is not None), None)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [value[key] for key in _KEYS if value.get(key) is not None]
    return [found for key in _KEYS if (found := getattr(value, key, None)) is not None and not callable(found)]


def _of_list(items: list[Any] | tuple[Any, ...], depth: int) -> str | None:
    """Return the text of the last item; of a message in parts the text of all."""
    parts = [each["text"] for each in items if isinstance(each, Mapping) and isinstance(each.get("text"), str)]
    if parts:
        return "".join(parts)
    return _text(items[-1], depth + 1) if items else None
