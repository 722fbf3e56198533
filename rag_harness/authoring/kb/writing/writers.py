"""Who writes pages: the grammar in this process, or a chat model that is asked again with the faults of its page."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Protocol

from rag_harness.authoring.kb.brief import Brief
from rag_harness.authoring.kb.writing.embedded import compose
from rag_harness.files.sources import text_digest
from rag_harness.models.prompts import Prompts
from rag_harness.models.until_right import Fault, ask_until_right
from rag_harness.protocols import ChatModel
from rag_harness.registry.identity import code_digest

Read = Callable[[str], Awaitable[str | Fault]]
"""A page -> the page as it is kept, or what is wrong with it."""
EMBEDDED = "embedded"
REMEMBERED = 12_000
"""Characters of its last page that a model sees when it is asked again."""
_AGAIN = "That page cannot be used:\n{fault}\n\nWrite the whole page again without these faults. Only the page."
_FENCED = re.compile(r"\A(`{3,}|~{3,})(?:markdown|md)?[ \t]*\n(.*)\n\1\Z", re.DOTALL)
_THOUGHT = "</think>"
_NOTHING = (
    "- the plan has no facts, tables or steps for it, and without a model nothing else can be said. Plan some, or have "
    "it written: --writer llm"
)


class Writer(Protocol):
    """Writes a page at a time. What ``digest`` changes with is written anew."""

    @property
    def name(self) -> str:
        """Return who it is, as pages are labelled."""
        ...

    @property
    def digest(self) -> str:
        """Return a digest of how it writes."""
        ...

    async def write(self, brief: Brief, read: Read) -> str | Fault:
        """Return the page, or the fault that it could not mend."""
        ...


class EmbeddedWriter:
    """Composes pages by a grammar: the same for the same plan and seed."""

    name = EMBEDDED

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    @cached_property
    def digest(self) -> str:
        return text_digest(f"{self._seed} {code_digest('rag_harness.authoring.kb.writing.embedded')}")

    async def write(self, brief: Brief, read: Read) -> str | Fault:
        page = brief.page
        return await read(compose(brief, self._seed)) if page.facts or page.tables or page.steps else Fault(_NOTHING)


class AskedWriter:
    """Has pages written by a chat model, and says what is wrong with them, at most three times a page."""

    def __init__(self, chat: ChatModel, prompts: Prompts) -> None:
        self.name = chat.model
        self._chat, self._prompts = chat, prompts

    @cached_property
    def digest(self) -> str:
        return text_digest(f"{self._prompts.system}\n{self._prompts.user}")

    async def write(self, brief: Brief, read: Read) -> str | Fault:
        asked = self._prompts.messages(json.dumps(brief.told(), ensure_ascii=False, indent=1))
        return await ask_until_right(self._chat, asked, lambda said: read(page_in(said)), _AGAIN, REMEMBERED)


def page_in(reply: str) -> str:
    """Return the page in a reply, without a fence around it and what was thought before it."""
    text = reply.rpartition(_THOUGHT)[2].strip()
    fenced = _FENCED.match(text)
    return f"{(fenced[2] if fenced else text).strip()}\n"
