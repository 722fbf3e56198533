"""The writers of pages: the grammar in this process, or a chat model, which is asked again with its page's faults."""

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
from rag_harness.registry.revisions import REVISIONS

Read = Callable[[str], Awaitable[str | Fault]]
"""From a page to the page that is kept, or to its fault."""
EMBEDDED = "embedded"
REMEMBERED = 12_000
"""How many characters of its last page a model sees when it is asked again."""
_AGAIN = "That page cannot be used:\n{fault}\n\nWrite the whole page again without these faults. Only the page."
_FENCED = re.compile(r"\A(`{3,}|~{3,})(?:markdown|md)?[ \t]*\n(.*)\n\1\Z", re.DOTALL)
_THOUGHT = "</think>"
_NOTHING = (
    "- the plan has no facts, tables or steps for it, and without a model nothing else can be said. Plan some, or have "
    "it written: --writer llm"
)


class Writer(Protocol):
    """Writes one page at a time. If ``digest`` changes, pages are written again."""

    @property
    def name(self) -> str:
        """Return the writer's name for labels."""
        ...

    @property
    def digest(self) -> str:
        """Return a digest of how it writes."""
        ...

    async def write(self, brief: Brief, read: Read) -> str | Fault:
        """Return the page, or the fault that it could not mend."""
        ...


class EmbeddedWriter:
    """Composes pages by a grammar. The same plan and seed give the same pages."""

    name = EMBEDDED

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    @cached_property
    def digest(self) -> str:
        return text_digest(f"{self._seed} {REVISIONS['knowledge_base/embedded_writer']}")

    async def write(self, brief: Brief, read: Read) -> str | Fault:
        page = brief.page
        return await read(compose(brief, self._seed)) if page.facts or page.tables or page.steps else Fault(_NOTHING)


class AskedWriter:
    """Asks a chat model for pages and tells it the faults, at most three times a page."""

    def __init__(self, chat: ChatModel, prompts: Prompts) -> None:
        self.name: str = chat.model
        self._chat, self._prompts = chat, prompts

    @cached_property
    def digest(self) -> str:
        return text_digest(f"{self._prompts.system}\n{self._prompts.user}")

    async def write(self, brief: Brief, read: Read) -> str | Fault:
        asked = self._prompts.messages(json.dumps(brief.told(), ensure_ascii=False, indent=1))
        return await ask_until_right(self._chat, asked, lambda said: read(page_in(said)), _AGAIN, REMEMBERED)


def page_in(reply: str) -> str:
    """Return the page in a reply, without a fence around it and without thoughts before it."""
    text = reply.rpartition(_THOUGHT)[2].strip()
    fenced = _FENCED.match(text)
    return f"{(fenced[2] if fenced else text).strip()}\n"
