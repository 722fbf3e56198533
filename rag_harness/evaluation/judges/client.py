"""Client of a judge's chat model: prompts, marked texts, schemas, shared requests and parsed replies."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

from rag_harness.core.concurrency import paused
from rag_harness.core.errors import RecordingMissError
from rag_harness.core.files import json_digest
from rag_harness.core.protocols import ChatModel, JudgeParts
from rag_harness.core.registry import REVISIONS
from rag_harness.core.types import Message
from rag_harness.models.array_store import key_of
from rag_harness.models.calls import with_alternatives
from rag_harness.models.prompts import json_of

_PROMPTS = files(__package__) / "prompts"


# Reads a judge's reply. Missing or malformed parts get a named reason; nothing is guessed.


class Missing(Enum):
    """Reasons for a missing verdict. Stores of verdicts keep the position in this list: add new ones at the end."""

    UNREADABLE = "the judge's reply is not the JSON that was asked for"
    LEFT_OUT = "the judge gave no verdict for it"
    TWICE = "the judge gave two verdicts for it"
    WORD = "the judge gave a verdict that it was not offered"
    NUMBERS = "the judge's numbers do not fit what it was asked"
    PASSAGE = "the judge named a passage that is not there"


@dataclass(frozen=True, slots=True)
class PassageVerdict:
    """A verdict, 1 or 0, with the number of its supporting passage; or the reason why there is none."""

    value: float | None = None
    passage: int | None = None
    missing: Missing | None = None


def read_verdicts(text: str, count: int, words: Mapping[str, float], passages: int = 0) -> list[PassageVerdict]:
    """Return the verdicts of a reply on items 1 to ``count``, in their order.

    Args:
        text: the reply.
        count: number of items in the question.
        words: the offered verdicts, with their values.
        passages: number of passages; 0 where verdicts name none.
    """
    found = entries_of(text, count)
    if isinstance(found, Missing):
        return [PassageVerdict(missing=found)] * count
    return [verdict_of(entries, words, passages) for entries in found]


def entries_of(text: str, count: int) -> list[list[Mapping[str, Any]]] | Missing:
    """Return the entries of a reply for the items 1 to ``count``; or the reason why none can be read."""
    entries = objects_of(json_of(text), "verdicts")
    if entries is None:
        return Missing.UNREADABLE
    by_number: dict[int | None, list[Mapping[str, Any]]] = {}
    for entry in entries:
        by_number.setdefault(whole_number(entry.get("index")), []).append(entry)
    if not by_number.keys() <= set(range(1, count + 1)):
        # The reply may count from 0, for example: then no other number can be trusted either.
        return Missing.NUMBERS
    return [by_number.get(number, []) for number in range(1, count + 1)]


def objects_of(found: Mapping[str, Any] | None, name: str) -> Sequence[Mapping[str, Any]] | None:
    """Return the list of objects under ``name``; None where it is missing, or where an item is not an object."""
    listed = found.get(name) if found is not None else None
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        return None
    return listed


def verdict_of(entries: Sequence[Mapping[str, Any]], words: Mapping[str, float], passages: int) -> PassageVerdict:
    """Return the verdict of the entries on one item, of which there should be one."""
    if len(entries) != 1:
        return PassageVerdict(missing=Missing.TWICE if entries else Missing.LEFT_OUT)
    value = offered(entries[0].get("verdict"), words)
    if value is None:
        return PassageVerdict(missing=Missing.WORD)
    passage = whole_number(entries[0].get("passage")) or 0
    if not value or not passage:
        return PassageVerdict(value)
    return PassageVerdict(value, passage) if 1 <= passage <= passages else PassageVerdict(missing=Missing.PASSAGE)


def offered(said: object, words: Mapping[str, float]) -> float | None:
    """Return the value of a word that was offered; None for anything else."""
    return words.get(said.strip().lower()) if isinstance(said, str) else None


def whole_number(said: object) -> int | None:
    """Return an integer, also where it was written as text; None for anything else."""
    if isinstance(said, str) and said.strip().isdecimal() and len(said) <= 9:
        return int(said)
    if isinstance(said, bool) or not isinstance(said, (int, float)):
        return None
    return int(said) if abs(said) < 1e9 and said == int(said) else None


def words_of(said: object) -> str:
    """Return a text; empty for anything else, or a blank text. Lone surrogates are replaced: no file can hold them."""
    if not isinstance(said, str) or not said.strip():
        return ""
    return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# The form of a reply: as a JSON schema for servers that support them, and in words for others.

Schema = Mapping[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}


def object_schema(keys: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object that has exactly these keys."""
    return {"type": "object", "properties": dict(keys), "required": list(keys), "additionalProperties": False}


def list_schema(of: Schema, most: int, least: int = 0) -> Schema:
    """Return the schema of a list of ``least`` to ``most`` items. Without an end, a small model repeats itself."""
    return {"type": "array", "items": of, "minItems": least, "maxItems": most}


def response_format(reply: Mapping[str, Schema]) -> Mapping[str, Any]:
    """Return OpenAI's structured-output request."""
    return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": object_schema(reply)}}


def shape(schema: Schema) -> str:
    """Describe a schema in words, for servers without support for schemas."""
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    if schema["type"] == "object":
        return "{" + ", ".join(f'"{name}": {shape(each)}' for name, each in schema["properties"].items()) + "}"
    if schema["type"] == "array":
        return f"[{shape(schema['items'])}, …]"
    return {"string": '"…"', "integer": "1", "boolean": "true or false"}[schema["type"]]


# Puts the judged material between marks that it cannot contain: their key is made from its digest.
#
# The key is not random: the same material must give the same request, so that recordings find it again.

MarkedText = tuple[str, str]
"""A name of ours, and a text of somebody else."""
_KEY_LENGTH = 8


def marked(sections: Sequence[MarkedText]) -> str:
    """Return ``sections`` in their order, each below its ``<<name | key>>``; ``<<end | key>>`` ends the last."""
    key = _key([text for _, text in sections])
    return "\n".join([*(f"<<{name} | {key}>>\n{text}" for name, text in sections), f"<<end | {key}>>"])


def numbered(name: str, texts: Iterable[str]) -> list[MarkedText]:
    """Return a section for each text: ``passage 1``, ``passage 2``, …"""
    return [(f"{name} {number}", text) for number, text in enumerate(texts, 1)]


def _key(texts: Sequence[str]) -> str:
    """Return a key that no text contains. Where a text contains a key, the next one is tried."""
    key = key_of(*texts).hex()[:_KEY_LENGTH]
    while any(key in text for text in texts):
        key = key_of(key, *texts).hex()[:_KEY_LENGTH]
    return key


_T = TypeVar("_T")

_REMEMBERED = 4096
"""Number of results that are kept for later rows."""


class Shared(Generic[_T]):
    """Results by key. A row waits for work that is under way, and gets the stored result of finished work.

    Failed work is not stored: the next row tries again. Work goes on when the row that started it is cancelled, for
    others may wait for it; its own limits bound it.
    """

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._tasks: OrderedDict[Hashable, asyncio.Task[_T]] = OrderedDict()

    async def get(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Return the result of ``work``. It is started only where no work for ``key`` is known."""
        known = self._tasks.get(key)
        return await asyncio.shield(self._begin(key, work)) if known is None else await followed(known)

    def _begin(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, _T]]) -> asyncio.Task[_T]:
        task = self._tasks[key] = asyncio.create_task(work())
        task.add_done_callback(lambda done: self._forget_failed(key, done))
        if len(self._tasks) > self._remembered:
            self._tasks.popitem(last=False)
        return task

    def _forget_failed(self, key: Hashable, done: asyncio.Task[_T]) -> None:
        # The exception is read even where no row waits any more: asyncio would complain.
        if (done.cancelled() or done.exception()) and self._tasks.get(key) is done:
            del self._tasks[key]


async def followed(task: asyncio.Task[_T]) -> _T:
    """Return the result of work that another row started. The waiting does not count as this row's time."""
    if task.done():
        return task.result()
    with paused():
        return await asyncio.shield(task)


# Asks the judge's model one question. Equal requests of two rows are sent once.

_LONGEST_REPLY = 4096
"""Tokens of a reply: a hundred verdicts, or some fifty claims with their quotes."""


class JudgeChat:
    """Access to the model of role ``judge``.

    Args:
        chat: the model.
        shares: whether equal requests are sent only once in this process.
    """

    def __init__(self, chat: ChatModel, shares: bool) -> None:
        self.chat, self._states_probabilities = chat, True
        self._shared: Shared[str] | None = Shared() if shares else None

    async def ask(self, task: str, sections: Sequence[MarkedText], reply: Mapping[str, Schema], end: str = "") -> str:
        """Return the model's reply.

        Args:
            task: the task.
            sections: the material, as data.
            reply: JSON schema of each key of the reply.
            end: last text of the prompt, outside of the data.

        Raises:
            RagHarnessError: any error of the chat model.
        """
        system = f"{prompt('data')}\n\n{task}\n\nReply as JSON: {shape(object_schema(reply))}"
        messages = [Message("system", system), Message("user", "\n\n".join(filter(None, [marked(sections), end])))]
        if self._shared is None:
            return await self._complete(messages, reply)
        key = key_of(*(message.content for message in messages))
        return await self._shared.get(key, lambda: self._complete(messages, reply))

    async def first_token(self, task: str, sections: Sequence[MarkedText]) -> Mapping[str, float]:
        """Return the log-probability of each token that the reply could begin with; empty where they are not stated.

        A model that once stated none is not asked again.

        Raises:
            RagHarnessError: any error of the chat model.
        """
        messages = [Message("system", f"{prompt('data')}\n\n{task}"), Message("user", marked(sections))]
        if not self._states_probabilities:
            return {}
        try:
            with with_alternatives():
                found = (await self.chat.complete(messages)).first_token
        except RecordingMissError:
            # The run that recorded had learnt from another answer that the model states none.
            return {}
        self._states_probabilities = bool(found)
        return found

    async def _complete(self, messages: Sequence[Message], reply: Mapping[str, Schema]) -> str:
        return (await self.chat.complete(messages, response_format(reply))).text


def asking_of(parts: JudgeParts, shares: bool) -> JudgeChat:
    """Return the access to the model that the settings name for role ``judge``."""
    return JudgeChat(parts.chat("judge", temperature=0.0, max_output_tokens=_LONGEST_REPLY), shares)


@lru_cache
def prompt(name: str) -> str:
    """Return a prompt of this package."""
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


def revision_of(judge: str) -> str:
    """Return the digest of a judge's prompts and its revision."""
    texts = [file for file in sorted(each.name for each in _PROMPTS.iterdir()) if file.endswith(".md")]
    prompts = {file: prompt(file.removesuffix(".md")) for file in texts if file.startswith((judge, "data"))}
    return json_digest([prompts, REVISIONS[f"judges/{judge}"]])
