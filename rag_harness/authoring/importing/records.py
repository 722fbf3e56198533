"""Parts of a foreign record: question, messages, contexts, tools, labels, expectations.

Notes of what is left out.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_harness.core.json_text import is_deep, read_json
from rag_harness.data.source_records import given, plain_text, said_flag, texts_of
from rag_harness.records.cases import tools_of
from rag_harness.records.expectations import MOST_EXPECTED, expectations_of
from rag_harness.records.row import storable


@dataclass(frozen=True, slots=True)
class SaidBefore:
    """What a user said before a question, and what was replied; ``reply`` is empty where nothing was."""

    query: str
    reply: str = ""


@dataclass(frozen=True, slots=True)
class ImportedQuestion:
    """A question with what is known of it.

    Attributes:
        where: its place in the file.
        query: the question.
        name: its id in the file; empty where it has none.
        ground_truth: the answer that is wanted.
        contexts: texts that carry the answer, each with the name of its document, empty where none is said.
        documents: names of documents that carry it.
        expect: what its answer owes, as ``queries.jsonl`` has it.
        tools: the calls of tools that are expected, as ``queries.jsonl`` has them; empty where the file says none.
        query_type: its type; empty where the file says none.
        answerable: whether the documents answer it; None where the file says nothing.
        metadata: labels.
        inputs: what else the user sends.
        before: what was said before it; then it is the last turn of a conversation.
        reply: what was replied to it, where it is a turn.
        conversation: the id of its conversation; empty where the file has none.
        synthetic: whether the file says that no person wrote it.
    """

    where: str
    query: str
    name: str = ""
    ground_truth: str = ""
    contexts: Sequence[tuple[str, str]] = ()
    documents: Sequence[str] = ()
    expect: Sequence[Mapping[str, Any]] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    query_type: str = ""
    answerable: bool | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    before: Sequence[SaidBefore] = ()
    reply: str = ""
    conversation: str = ""
    synthetic: bool = False


# What could not be taken over from a file: each reason once, with its count and its first place.


class Notes:
    """Counts reasons.

    Attributes:
        is_short: whether something is missing that the source has: a record, a demand, evidence.
        leaves_out: whether fields are left out on purpose.
    """

    def __init__(self) -> None:
        self._lost: dict[str, tuple[int, str]] = {}
        self._left: dict[str, tuple[int, str]] = {}
        self._told: dict[str, tuple[int, str]] = {}

    def lose(self, what: str, where: str) -> None:
        """Note something that the file asks for and that is not in our lines."""
        self._count(self._lost, what, where)

    def leave(self, what: str, where: str) -> None:
        """Note a field that is left out on purpose."""
        self._count(self._left, what, where)

    def tell(self, what: str, where: str) -> None:
        """Note something that is taken over otherwise than it stood there."""
        self._count(self._told, what, where)

    @property
    def is_short(self) -> bool:
        """Whether something is missing that the source has."""
        return bool(self._lost)

    @property
    def leaves_out(self) -> bool:
        """Whether fields are left out on purpose."""
        return bool(self._left)

    def lines(self) -> Iterator[str]:
        """Yield a line a reason."""
        for heading, found in (
            ("not imported:", self._lost),
            ("left out:", self._left),
            ("to know:", self._told),
        ):
            if found:
                yield heading
            for what, (count, first) in found.items():
                yield f"  {count:5,} × {what} ({'first ' * (count > 1)}{first})"

    @staticmethod
    def _count(found: dict[str, tuple[int, str]], what: str, where: str) -> None:
        count, first = found.get(what, (0, where))
        found[what] = count + 1, first


# Messages of a conversation, as the tools write them: questions with their replies, the last question apart.
#
# ``{"role": "user", "content": "…"}``, ``{"type": "human", "content": "…"}``, ``{"speaker": "user", "text": "…"}``

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

    Messages that follow each other without a reply count as one. Other messages are noted.
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
    """Return the text of a message; parts of a list other than text are left out."""
    inner = message.get("data")
    holder = inner if isinstance(inner, Mapping) else message
    content = given(next((holder[key] for key in ("content", "text") if key in holder), None))
    if isinstance(content, list):
        texts = [each.get("text") if isinstance(each, Mapping) else each for each in content]
        return "\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())
    return content.strip() if isinstance(content, str) else ""


DOCUMENT_NAMES = ("document_id", "doc_id", "document", "source_file", "source", "filename", "doc_uri", "title", "id")
"""Members of an object that name its document; the first counts."""
_SHOWN = 40
_NESTED = re.compile(r"\s*\[\s*[\[{]")
TEXT_NAMES = ("text", "content", "page_content", "context", "quote")
"""Members of an object that are its text; the first counts."""


def contexts_of(value: Any, separator: str = "") -> tuple[list[tuple[str, str]], int]:
    """Return the texts of contexts, each with the name of its document, and how many items have no text that is known.

    A document's name is empty where none is said.

    Raises:
        ListCellError: a cell begins like a list of texts, and is none.
    """
    found = _items_of(value)
    if found is None:
        return [(text, "") for text in texts_of(value, separator)], 0
    parts = [_text_and_document(each) for each in found]
    return [each for each in parts if any(each)], sum(not any(each) for each in parts)


def beside_texts(value: Any, *read: Sequence[str]) -> list[str]:
    """Return the names of what objects in a list say beside their texts or documents, whose names are ``read``."""
    items = [each for each in flat(_items_of(value) or []) if isinstance(each, Mapping)]
    parts = [each for each in items if any(_first(each, names) for names in read)]
    used = {next((name for name in names if plain_text(each.get(name))), "") for each in parts for names in read}
    return other_members(parts, used)


def other_members(parts: Iterable[Mapping[str, Any]], read: Collection[str]) -> list[str]:
    """Return the names of members that say something and are not among those that are read."""
    named = [name for each in parts for name, value in each.items() if value not in (None, "", [], {})]
    return [name for name in dict.fromkeys(named) if name not in read]


def documents_of(value: Any, separator: str) -> tuple[list[str], int]:
    """Return names of documents, of lists inside a list too, and how many items have no name that is known.

    Raises:
        ListCellError: a cell begins like a list of texts, and is none.
    """
    found = _items_of(value)
    if found is None:
        return texts_of(value, separator), 0
    names = [_first(each, DOCUMENT_NAMES) if isinstance(each, Mapping) else plain_text(each) for each in flat(found)]
    return [name for name in dict.fromkeys(names) if name], names.count("")


def flat(values: list[Any]) -> list[Any]:
    """Return the items of a list and of lists inside it, without empty ones."""
    inner = [item for each in values for item in (flat(each) if isinstance(each, list) else [each])]
    return [each for each in inner if given(each) not in (None, "", {})]


def _items_of(value: Any) -> list[Any] | None:
    """Return the items of a list or an object; None for a text, even for the text of a list of texts."""
    is_nested = isinstance(value, str) and (value.lstrip()[:1] == "{" or _NESTED.match(value) is not None)
    found = structured(value) if is_nested else value
    if isinstance(found, Mapping):
        return [found] if found else []
    listed = list(found) if isinstance(found, (list, tuple)) else None
    return None if listed is None else [each for each in listed if given(each) not in (None, "", [], {})]


def object_text(value: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the only text of an object, and its key; None as key where it has several, or none.

    A message counts as its content. A number or a flag alone does not count as a text because it says nothing without
    its key.
    """
    if {"role", "speaker"} & value.keys() and (said := message_text(value)):
        return said, "content"
    texts = {key: text for key, each in value.items() if isinstance(each, str) and (text := each.strip())}
    if len(texts) == len(value) == 1:
        ((key, text),) = texts.items()
        return text, key
    return "", None


def noted_flag(value: Any, name: str, where: str, notes: Notes) -> bool | None:
    """Return what a field ``name`` says; None where it says nothing, or neither yes nor no, which is noted."""
    flag = said_flag(value)
    if flag is None and value not in (None, "", []):
        notes.lose(f"{name}: {str(value)[:_SHOWN]!r} is neither yes nor no", where)
    return flag


def _text_and_document(value: Any) -> tuple[str, str]:
    if isinstance(value, Mapping):
        return _first(value, TEXT_NAMES), _first(value, DOCUMENT_NAMES)
    return plain_text(value), ""


def _first(values: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((text for name in names if (text := plain_text(values.get(name)))), "")


# ragas writes ``name`` and ``args``, deepeval ``name`` and ``input_parameters``, both in JSON or as Python prints it.

_ARGUMENTS = ("args", "input_parameters", "inputParameters", "arguments")
_ABOUT = ("description", "reasoning", "type", "id")
"""What says nothing of the call itself."""
_RESULT = "output"


def wanted_tools(value: Any, name: str, where: str, notes: Notes) -> list[dict[str, Any]]:
    """Return the calls that a field ``name`` lists, in their order; none where it lists none.

    If one of them cannot be read, none is taken over: a line with some of the calls would expect another thing.
    """
    stated = structured(value)
    if stated == []:
        # Tools write it where nothing is said, and a line with it says that nothing is to be looked up.
        notes.tell(f'{name}: an empty list is left out. Where no tool is to be called, write "tools": []', where)
    if stated in (None, "", []):
        return []
    calls = stated if isinstance(stated, list) else [stated]
    made = [_call(structured(each)) for each in calls]
    _, problems = tools_of(made)
    if problems:
        notes.lose(f"{name}: {problems[0]}", where)
        return []
    if any(isinstance(each, Mapping) and each.get(_RESULT) is not None for each in calls):
        notes.lose(f"{name}: what a tool is to return: a line says which calls are expected, and with what", where)
    return made


def _call(stated: Any) -> Any:
    """Return a call with our names. What else it says stays, so that it is named as unknown."""
    if isinstance(stated, str):
        return {"name": stated}
    if not isinstance(stated, Mapping):
        return stated
    call = {key: value for key, value in stated.items() if key not in (*_ARGUMENTS, *_ABOUT, _RESULT)}
    given = next((args for key in _ARGUMENTS if (args := structured(stated.get(key))) not in (None, "")), None)
    return call if given is None else {**call, "args": given}


# The labels of an imported question: what else its record says, as far as it is short.

_LONGEST_LABEL = 2_000
"""The most characters of a label as JSON: vectors and pages are none."""


def labels_of(values: Mapping[str, Any], where: str, notes: Notes) -> dict[str, Any]:
    """Return the values as plain JSON, without empty ones. Those that are too long are noted."""
    found = {}
    for name, value in values.items():
        plain = storable(value)
        if not name or plain in (None, "", [], {}):
            continue
        if len(json.dumps(plain)) > _LONGEST_LABEL:
            notes.lose(f"{name}: longer than {_LONGEST_LABEL:,} characters, so it is not a label", where)
        else:
            found[str(name)] = plain
    return found


# Demands of another tool as expectations: those that ours can hold, each looked at as a line of questions would be.

Demand = Mapping[str, Any]
"""An expectation as ``queries.jsonl`` has it: ``{"contains": "45 days", "weight": 2}``."""


def kept_demands(demands: Iterable[Demand], where: str, notes: Notes) -> list[Demand]:
    """Return the demands that can be checked, each once. Others, and those that contradict them, are noted."""
    kept: list[Demand] = []
    for each in demands:
        _, problems = expectations_of([each])
        if not problems and each not in kept:
            _, problems = expectations_of([*kept, each])
        if problems:
            notes.lose(f"an expectation: {problems[0].removeprefix('0: ')}", where)
        elif each not in kept and len(kept) < MOST_EXPECTED:
            kept.append(each)
    return kept
