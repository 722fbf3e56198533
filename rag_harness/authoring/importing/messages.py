"""Messages of a conversation, as the tools write them: questions with their replies, the last question apart.

``{"role": "user", "content": "…"}``, ``{"type": "human", "content": "…"}``, ``{"speaker": "user", "text": "…"}``
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_harness.authoring.importing.imported import SaidBefore
from rag_harness.authoring.importing.notes import Notes
from rag_harness.dataset.records.source_record import given
from rag_harness.files.json_text import is_deep, read_json

_SPEAKERS = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "agent", "bot", "model"), "assistant"),
    **dict.fromkeys(("system", "developer", "tool", "function"), "other"),
}
_LONGEST = 1 << 20
"""The most characters of a cell that is read as a list of Python."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """What was said: the turns before the last question, that question, and what was replied to it.

    ``beside`` is what else the user sends.
    """

    before: tuple[SaidBefore, ...]
    query: str
    reply: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)


def structured(value: Any) -> Any:
    """Return a list or an object that a text holds, in JSON or as Python prints it; any other value as it is."""
    known = given(value)
    if not isinstance(known, str) or known.strip()[:1] not in ("[", "{"):
        return known
    try:
        return read_json(known)
    except ValueError:
        return _python_value(known)


def _python_value(text: str) -> Any:
    if len(text) > _LONGEST:
        return text
    try:
        found = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return found if isinstance(found, (list, dict)) and not is_deep(found) else text


def are_messages(value: Any) -> bool:
    """Return whether a value is a list of messages."""
    return isinstance(value, list) and bool(value) and all(_speaker(each) for each in value)


def dialogue_of(messages: Sequence[Mapping[str, Any]], where: str, notes: Notes) -> Dialogue | None:
    """Return the questions and replies of messages; None where no user says anything.

    Messages that follow each other without a reply count as one. What is no question and no reply is noted.
    """
    turns: list[tuple[list[str], list[str]]] = []
    for each in messages:
        speaker, text = _speaker(each), message_text(each)
        if given(each.get("tool_calls")):
            notes.tell("calls of tools in a conversation: a history has what was said", where)
        if speaker == "other":
            notes.tell("messages of the system or of tools: a history has what user and assistant said", where)
        elif not text:
            continue
        elif speaker == "user":
            if not turns or turns[-1][1]:
                turns.append(([], []))
            turns[-1][0].append(text)
        elif not turns:
            notes.tell("what the assistant said before the first question: a history begins with a question", where)
        else:
            turns[-1][1].append(text)
    said = [SaidBefore(*("\n\n".join(texts) for texts in turn)) for turn in turns]
    return Dialogue(tuple(said[:-1]), said[-1].query, said[-1].reply) if said else None


def _speaker(message: Any) -> str:
    if not isinstance(message, Mapping):
        return ""
    said = next((message[key] for key in ("role", "speaker", "type") if isinstance(message.get(key), str)), "")
    return _SPEAKERS.get(said.lower(), "")


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message; parts of a list that are no text are left out."""
    inner = message.get("data")
    holder = inner if isinstance(inner, Mapping) else message
    content = given(next((holder[key] for key in ("content", "text") if key in holder), None))
    if isinstance(content, list):
        texts = [each.get("text") if isinstance(each, Mapping) else each for each in content]
        return "\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())
    return content.strip() if isinstance(content, str) else ""
