"""Prompts: two files each, ``<id>.system.md`` and ``<id>.user.md``, in the folder ``prompts/`` of the caller.

Shipped prompts are in the studies, in authoring and in users. A file of the same name in the folder ``prompts``
replaces one.
``{context}`` and ``{question}`` are filled in. Other braces stay, so a prompt may contain JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rag_harness.errors import SettingsError
from rag_harness.types import Hit, Message
from rag_harness.words.citation_marks import without_marks

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
    folders = ("studies/*", "authoring/*", "users")
    return {file.name: file for folder in folders for file in _PACKAGE.glob(f"{folder}/prompts/*.md")}
