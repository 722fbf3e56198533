"""Parser for a prompt: its sources and its question."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.words.comparison import readable_text

# Reading is bounded. Retrieval puts a few kB into a prompt, so the limits never cut a real RAG prompt.
MAX_CONTEXT_CHARS = 200_000
MAX_QUESTION_CHARS = 4_000
MAX_SOURCES = 200

_LABELLED = re.compile(r"^\[Source (\d{1,4}): ?([^\]\n]*)\]", re.M)
_BARE = re.compile(r"^\[Source (\d{1,4})\]", re.M)
_QUESTION = "Question: "


@dataclass(frozen=True, slots=True)
class PromptSource:
    """One numbered source of the context. ``label`` is the text after its number; it begins with the filename."""

    number: int
    label: str
    text: str

    @property
    def filename(self) -> str:
        """The first word of the label, which is the filename."""
        return self.label.split()[0].rstrip(",;") if self.label.split() else f"source {self.number}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """The content of a chat request. ``sources`` is empty without retrieval."""

    question: str
    sources: tuple[PromptSource, ...] = ()


def content_text(content: Any) -> str:
    """Return a message's text. Its content is a string or a list of parts, as in OpenAI's API."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def role_text(messages: Sequence[Mapping[str, Any]], *roles: str) -> str:
    """Return the last message of one of ``roles``, or nothing."""
    found = [content_text(message.get("content")) for message in messages if message.get("role") in roles]
    return found[-1] if found else ""


def parse_prompt(messages: Sequence[Mapping[str, Any]]) -> Prompt:
    """Split the last user message into its sources and its question."""
    text = readable_text(role_text(messages, "user").replace("\r\n", "\n")).text
    # The last marker counts: a chunk may contain "Question:", and the pipeline writes the real one at the end.
    context, marker, question = text.rpartition(f"\n\n{_QUESTION}")
    if not marker:
        context, question = ("", text.removeprefix(_QUESTION)) if not text.startswith("Context:") else (text, "")
    return Prompt(_clip(question.strip()), _sources(context[:MAX_CONTEXT_CHARS]))


def _clip(question: str) -> str:
    half = MAX_QUESTION_CHARS // 2
    return question if len(question) <= 2 * half else f"{question[:half]} {question[-half:]}"


def _sources(context: str) -> tuple[PromptSource, ...]:
    heads = _consecutive(_LABELLED, context) or _consecutive(_BARE, context)
    ends = [*(head.start() for head in heads), len(context)][1:]
    return tuple(
        PromptSource(number, head[2].strip() if head.re is _LABELLED else "", context[head.end() : end].strip())
        for number, (head, end) in enumerate(zip(heads, ends, strict=True), start=1)
    )


def _consecutive(pattern: re.Pattern[str], context: str) -> list[re.Match[str]]:
    """Return the matches numbered 1, 2, 3, … in order, so that a "[Source 9]" in a chunk begins no source."""
    heads: list[re.Match[str]] = []
    for match in pattern.finditer(context):
        if int(match[1]) == len(heads) + 1 <= MAX_SOURCES:
            heads.append(match)
    return heads
