"""``summaries``: the sections of ``headings``, each as its headings and its first sentences.

Summaries are extractive; no model writes them. A summary has the id of its section, so that a retriever can return the
section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.headings import chunk_document as cut_by_headings
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.types import Chunk, Document
from rag_harness.words.sentence_ends import sentence_spans

SENTENCES = 3
"""Number of prose sentences in a summary."""

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
_NO_PROSE = re.compile(r"^[ \t]*(?:#{1,6}[ \t].*|\|.*|[-*_]{3,}[ \t]*)$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")


def chunk_document(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one page into the summaries of its sections, in the order of the page; errors as in ``headings``."""
    return [replace(chunk, text=summary_of(chunk)) for chunk in cut_by_headings(document, tokenizer, settings)]


def summary_of(chunk: Chunk) -> str:
    """Return the headings of a section and its first sentences of prose. Without prose: only its headings."""
    first = " ".join(islice(_sentences(chunk.text, chunk.language), SENTENCES))
    above = " > ".join(chunk.section)
    return f"{above}: {first}" if above and first else above or first or chunk.text


def _sentences(text: str, language: str) -> Iterator[str]:
    prose = _NO_PROSE.sub("\n", _FORMULA.sub(" ", _FENCE.sub("\n", text)))
    for paragraph in _PARAGRAPH.split(prose):
        for start, end in sentence_spans(paragraph, language=language, wrapped=True):
            yield " ".join(paragraph[start:end].split())
