"""Cutting of pages: a short page in this process, a long one in a child process with limits.

Cutting takes linear time, but a page of 32 MB with nothing but headings still takes minutes and gigabytes.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any

from rag_harness.dataset.ingest.isolated import Child
from rag_harness.dataset.ingest.parsed import fault_in, packed_fault
from rag_harness.errors import ChunkTooLongError, UnreadableError
from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking import Chunker, ChunkingSettings
from rag_harness.types import Chunk, Document

HERE = 32 << 10
"""Most characters of a page to cut in this process. No such page took more than 1.2 s and 50 MB."""
CHUNKS = 10_000
"""Most chunks of one page: 15 MB of prose."""
ANSWER_BYTES = 8 << 20
"""Most bytes of the data of a page's chunks besides the text: places, headings, repeated headers."""
_OWN = "rag_harness."
_TOGETHER = 1_024

CutsOf = Callable[[Document, Sequence[Chunk]], list[Any]]


class Cutting:
    """Cuts pages with one chunker. Close it at the end.

    A user's chunker or tokenizer runs in this process for pages of any length, because it may need this process.

    Args:
        chunker: cuts.
        tokenizer: counts tokens.
        settings: longest chunk and overlap.
        cuts_of: makes plain JSON from a page's chunks; a function of a module of this package.
    """

    def __init__(self, chunker: Chunker, tokenizer: Tokenizer, settings: ChunkingSettings, cuts_of: CutsOf) -> None:
        self._chunker, self._tokenizer, self._settings, self._cuts_of = chunker, tokenizer, settings, cuts_of
        self._child = Child()

    def cuts(self, page: Document) -> list[Any]:
        """Return ``cuts_of`` of the chunks of a page.

        Raises:
            UnreadableError: the page passes a limit. PassingError: another run may succeed.
            ChunkTooLongError: a single character is longer than a chunk may be.
        """
        if len(page.text) > HERE and (asked := self._asked(page)):
            found = _answered(self._child.answer(f"{__name__}:{cut_there.__name__}", asked))
        else:
            found = self._cuts_of(page, self._chunker(page, self._tokenizer, self._settings))
        if len(found) > CHUNKS:
            raise UnreadableError(_too_many(len(found)))
        return found

    def close(self) -> None:
        """End the child process, if there is one."""
        self._child.close()

    def _asked(self, page: Document) -> bytes:
        """Return the question for the child process, or nothing if it could not answer."""
        parts = self._chunker, type(self._tokenizer), self._cuts_of
        if not all(part.__module__.startswith(_OWN) for part in parts):
            return b""
        with suppress(pickle.PicklingError, TypeError, AttributeError):
            tokenizer = pickle.dumps(self._tokenizer)
            names = [(part.__module__, part.__name__) for part in (self._chunker, self._cuts_of)]
            return pickle.dumps((names, tokenizer, self._settings, page))
        return b""


def cut_there(asked: bytes) -> bytes:
    """Cut a page in the child process with limits."""
    names, tokenizer, settings, page = pickle.loads(asked)  # sent by the parent process
    chunker, cuts_of = (getattr(import_module(module), name) for module, name in names)
    try:
        chunks = chunker(page, _tokenizer(tokenizer), settings)
    except ChunkTooLongError as error:
        return json.dumps([[], str(error)]).encode()
    if len(chunks) > CHUNKS:
        return packed_fault(_too_many(len(chunks)))
    answer = json.dumps([cuts_of(page, chunks), ""], ensure_ascii=False).encode("utf-8", "surrogatepass")
    return answer if len(answer) <= ANSWER_BYTES else packed_fault(_too_much(len(chunks), len(answer)))


@lru_cache(1)
def _tokenizer(pickled: bytes) -> Tokenizer:
    return _FewAtOnce(pickle.loads(pickled))


class _FewAtOnce:
    """Counts a few texts at a time, because each token takes a hundred bytes meanwhile."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def count(self, texts: Sequence[str]) -> list[int]:
        parts = (texts[start : start + _TOGETHER] for start in range(0, len(texts), _TOGETHER))
        return [count for part in parts for count in self._tokenizer.count(part)]


def _answered(answer: bytes) -> list[Any]:
    fault = fault_in(answer)
    if fault is not None:
        raise fault
    cuts, too_long = json.loads(answer.decode("utf-8", "surrogatepass"))
    if too_long:
        raise ChunkTooLongError(too_long)
    return list(cuts)


def _too_many(chunks: int) -> str:
    return f"would be cut into {chunks:,} chunks, and a document may have {CHUNKS:,}. Split it"


def _too_much(chunks: int, size: int) -> str:
    return (
        f"its {chunks:,} chunks repeat or change {size / (1 << 20):.1f} MB of text, and {ANSWER_BYTES >> 20} MB may be "
        f"kept: long headings, or headers of tables, say. Shorten them, or split it"
    )
