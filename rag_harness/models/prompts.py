"""Prompts of chat models and their replies.

Files of prompts, JSON, reasoning, and repeated requests until a reply is usable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rag_harness.core.errors import ModelOutputError, SettingsError
from rag_harness.core.protocols import ChatModel
from rag_harness.core.text.terms import without_marks
from rag_harness.core.types import Hit, Message

# Shipped prompts are in the studies, in authoring and in users. A file of the same name in the folder ``prompts``
# replaces one. ``{context}`` and ``{question}`` are filled in. Other braces stay, so a prompt may contain JSON.

_PACKAGE = Path(__file__).parents[1]
_SLOT = re.compile(r"\{(context|question)\}")


def filename_of(hit: Hit) -> str:
    """Return the default label of a source: its file, and its pages if it has any."""
    if hit.chunk.pages is None:
        return hit.chunk.doc_id
    first, last = hit.chunk.pages
    return f"{hit.chunk.doc_id}, page {first}" if first == last else f"{hit.chunk.doc_id}, pages {first}-{last}"


@dataclass(frozen=True, slots=True)
class Prompts:
    """The two templates of an experiment."""

    system: str
    user: str

    def messages(
        self, question: str, hits: Sequence[Hit] = (), label: Callable[[Hit], str] = filename_of
    ) -> list[Message]:
        """Fill in the question and the numbered context. ``label`` returns the text after a source's number."""
        return self.filled(context_of(hits, label), question)

    def filled(self, context: str, question: str) -> list[Message]:
        """Fill in both texts as they are."""
        values = {"question": question, "context": context}
        filled = _SLOT.sub(lambda slot: values[slot[1]], self.user)
        return [Message("system", self.system), Message("user", filled)]


def context_of(hits: Sequence[Hit], label: Callable[[Hit], str] = filename_of) -> str:
    """Number the chunks: ``[Source 1: returns-policy.md] text``. A label begins with the filename.

    Marks inside labels and texts get round brackets, because a document must not begin a source of its own.
    """
    return "\n\n".join(
        f"[Source {n}: {without_marks(label(hit))}] {without_marks(hit.chunk.text)}" for n, hit in enumerate(hits, 1)
    )


def load_prompts(experiment: str, overrides: Path | None = None) -> Prompts:
    """Return the prompts of ``experiment``. Files in ``overrides`` have priority.

    Raises:
        SettingsError: a file is not UTF-8, or a user prompt has no ``{question}``.
    """
    system, user = (_read(f"{experiment}.{part}.md", overrides) for part in ("system", "user"))
    if "{question}" not in user:
        raise SettingsError(f"{experiment}.user.md has no {{question}}: the model would never see the query.")
    return Prompts(system, user)


def _read(name: str, overrides: Path | None) -> str:
    if overrides is not None and (overrides / name).is_file():
        try:
            return (overrides / name).read_text(encoding="utf-8").rstrip("\n")
        except UnicodeDecodeError as error:
            raise SettingsError(f"{overrides / name}: not UTF-8 at byte {error.start}.") from error
    if name not in _shipped():
        raise SettingsError(f"No prompt {name}. Put a file of that name into the folder prompts/ of your project.")
    return _shipped()[name].read_text(encoding="utf-8").rstrip("\n")


@lru_cache
def _shipped() -> Mapping[str, Path]:
    """Return the prompt files of the studies, of authoring and of users, by name."""
    folders = ("studies/prompts/*", "authoring/*/prompts", "pipelines/prompts")
    return {file.name: file for folder in folders for file in _PACKAGE.glob(f"{folder}/*.md")}


# What a model thought, apart from what it answered.
#
# Servers without a parser of reasoning send both as one text: ``<think>…</think>`` before the answer (DeepSeek, Qwen,
# gpt-oss behind Ollama and vLLM), or the closing mark alone where the template has the opening one.

_NAMES = "think|thinking|thought|reasoning|reflection"
_OPEN = re.compile(rf"\s*(?:<({_NAMES})>|\[(THINK)\]|◁(think)▷)", re.IGNORECASE)
_OPENING = re.compile(rf"<(?:{_NAMES})>", re.IGNORECASE)
_CLOSE = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷", re.IGNORECASE)


class SplitReply(NamedTuple):
    """A reply in its two parts."""

    thought: str
    answer: str


def split_reply(reply: str) -> SplitReply:
    """Return the text between the marks of reasoning, and the text behind them.

    Reasoning that never closes is the whole reply. Marks in the middle of an answer belong to the answer.
    """
    if "<" not in reply and "[" not in reply and "◁" not in reply:
        return SplitReply("", reply)
    thoughts, rest = list[str](), reply
    while opened := _OPEN.match(rest):
        closed = _CLOSE.search(rest, opened.end())
        thoughts.append(rest[opened.end() : closed.start() if closed else len(rest)].strip())
        rest = rest[closed.end() :] if closed else ""
    if not thoughts and (closed := _closed_alone(reply)):
        thoughts, rest = [reply[: closed.start()].strip()], reply[closed.end() :]
    return SplitReply("\n\n".join(filter(None, thoughts)), rest.lstrip()) if thoughts else SplitReply("", reply)


def _closed_alone(reply: str) -> re.Match[str] | None:
    """Return the first closing mark at the end of a line, where no opening one is before it."""
    closed = _CLOSE.search(reply)
    if closed is None or ("<" in reply[: closed.start()] and _OPENING.search(reply, 0, closed.start())):
        return None
    behind = reply[closed.end() : closed.end() + 1]
    return closed if behind in ("", "\n", "\r", "{") else None


_MOST_TRIED = 50
"""Braces of a reply from which an object is read; a formula may have many."""
_DECODER = json.JSONDecoder()


def json_of(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object in a reply, which may have reasoning, prose or a fence around it; None without one.

    Of several the last counts: drafts and examples come before the answer.
    """
    answer = split_reply(text).answer
    start, end = answer.find("{"), answer.rfind("}")
    try:
        found = json.loads(answer[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        # json raises ValueError for a number of 5,000 digits, too.
        found = None
    return found if isinstance(found, dict) else next(reversed([*_objects_in(answer)]), None)


def _objects_in(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects that are side by side in a text."""
    at = text.find("{")
    for _ in range(_MOST_TRIED):
        if at < 0:
            return
        try:
            found, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)


_T = TypeVar("_T")

TRIES = 3
"""Most times that a model is asked for one result."""
REMEMBERED = 4000
"""Most characters of a reply that are shown to the model again. A runaway reply must not cost more each time."""
EMPTY = "the reply is empty"
_NOTHING = "(nothing)"
"""Text shown to the model for an empty reply. Some servers refuse a message without text."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a reply cannot be used, in words that help the model to correct it."""

    text: str


async def ask_until_right(
    chat: ChatModel,
    messages: Sequence[Message],
    read: Callable[[str], Awaitable[_T | Fault]],
    again: str,
    remembered: int = REMEMBERED,
) -> _T | Fault:
    """Return the result of ``read`` for the first usable reply, or the last fault after ``TRIES``.

    A reply without text is a fault, too. For a retry, the model gets its last reply and ``again``.

    Args:
        chat: the model.
        messages: the request.
        read: returns the result of a reply, or its fault; it may call a model itself.
        again: the message about a fault; it contains ``{fault}``.
        remembered: most characters of a reply that are shown again.

    Raises:
        ModelCallError, DeadlineError, BudgetError, CriticalError: from ``chat.complete``; these are not retried.
    """

    async def checked(said: str) -> _T | Fault:
        return await read(said) if said.strip() else Fault(EMPTY)

    return await draft_until_right(partial(_said, chat), messages, checked, again, remembered)


async def draft_until_right(
    ask: Callable[[Sequence[Message]], Awaitable[str]],
    messages: Sequence[Message],
    read: Callable[[str], Awaitable[_T | Fault]],
    again: str,
    remembered: int = REMEMBERED,
) -> _T | Fault:
    """Return the same for replies that ``ask`` returns. ``read`` gets those without text, too."""
    asked, result = list(messages), Fault(EMPTY)
    for _ in range(TRIES):
        said = await ask(asked)
        found = await read(said)
        if not isinstance(found, Fault):
            return found
        result = found
        told = Message("user", again.replace("{fault}", found.text))
        asked = [*asked, Message("assistant", said[:remembered] or _NOTHING), told]
    return result


async def _said(chat: ChatModel, messages: Sequence[Message]) -> str:
    try:
        return (await chat.complete(messages)).text
    except ModelOutputError as error:
        return error.raw
