"""Retrieval from a textbook: selected text, fusion, summaries of sections, places in the book, and floors."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rag_harness.core.errors import ModelOutputError, QueryTooLongError
from rag_harness.core.files import json_digest
from rag_harness.core.protocols import ChatModel, Retriever
from rag_harness.core.text.comparison import compared_words, slug, with_single_blanks
from rag_harness.core.types import Chunk, Decision, Hit, Message
from rag_harness.models.prompts import Prompts
from rag_harness.retrieval.builder import Retrieval
from rag_harness.retrieval.chunking.chunkers import summary_of
from rag_harness.retrieval.retrievers import RRF_K

# Fuses two first stages: nearest by cosine and best by words. This is alternative B of the decision record.

DENSE_WEIGHT, WORDS_WEIGHT = 0.7, 0.3
DEPTH = 100
"""How many candidates each of the two finds."""

Fuse = Callable[[Sequence[Hit], Sequence[Hit]], Mapping[str, float]]
"""From hits by cosine and hits by words to a score for each chunk among them."""


@dataclass(frozen=True)
class Fused:
    """Fuses the candidates of two retrievers.

    The floor needs a cosine for every chunk. A chunk that was found only by words gets the lowest cosine of the
    candidates; its true cosine is not higher.
    """

    dense: Retriever
    words: Retriever
    fuse: Fuse

    def retrieve(self, query: str, k: int) -> list[Hit]:
        near = self.dense.retrieve(query, max(k, DEPTH))
        worded = self.words.retrieve(query, max(k, DEPTH))
        scores = self.fuse(near, worded)
        hits = {hit.chunk.chunk_id: hit for hit in (*worded, *near)}
        lowest = {"dense": min((hit.score for hit in near), default=0.0)}
        signals: dict[str, dict[str, float]] = {name: dict(lowest) for name in hits}
        for hit in (*near, *worded):
            signals[hit.chunk.chunk_id].update(hit.scores)
        best = sorted(scores, key=lambda name: (-scores[name], -signals[name]["dense"], name))[:k]
        for name in best:
            signals[name]["hybrid"] = scores[name]
        return [
            replace(hits[name], score=scores[name], rank=rank, source="hybrid", scores=signals[name])
            for rank, name in enumerate(best, 1)
        ]


def weighted(near: Sequence[Hit], worded: Sequence[Hit]) -> dict[str, float]:
    """Return 0.7 cosine + 0.3 BM25, each scaled to 0..1 over its candidates; a missing score counts as 0."""
    by_cosine, by_words = _stretched(near), _stretched(worded)
    return {
        name: DENSE_WEIGHT * by_cosine.get(name, 0.0) + WORDS_WEIGHT * by_words.get(name, 0.0)
        for name in (by_cosine | by_words)
    }


def by_rank(near: Sequence[Hit], worded: Sequence[Hit]) -> dict[str, float]:
    """Return reciprocal rank fusion: the sum of 1 / (60 + rank); see ``retrieval.retrievers.HybridRetriever``."""
    scores: dict[str, float] = {}
    for hit in (*near, *worded):
        scores[hit.chunk.chunk_id] = scores.get(hit.chunk.chunk_id, 0.0) + 1 / (RRF_K + hit.rank)
    return scores


def _stretched(hits: Sequence[Hit]) -> dict[str, float]:
    """Return scores scaled from 0, the lowest, to 1, the highest; all are 1 if they are equal."""
    low = min((hit.score for hit in hits), default=0.0)
    width = max((hit.score for hit in hits), default=0.0) - low
    return {hit.chunk.chunk_id: (hit.score - low) / width if width > 0 else 1.0 for hit in hits}


RUN_PERCENT = 60
"""A chunk contains a selection if it has a run of this percentage of its words. A page on a screen lacks the marks of
its source, and a selection may reach into the next section."""


class Selection:
    """A selected text, prepared for searching.

    Args:
        text: the text from the browser.
    """

    def __init__(self, text: str) -> None:
        self.text = with_single_blanks(text)
        self.words = _words(text)

    @cached_property
    def _runs(self) -> list[str]:
        """All runs of the needed length, between blanks. A longer run begins with one of these."""
        length = self._needed
        starts = range(len(self.words) - length + 1) if length else ()
        return [f" {' '.join(self.words[start : start + length])} " for start in starts]

    @property
    def _needed(self) -> int:
        return -(-len(self.words) * RUN_PERCENT // 100)

    def is_in(self, text: str) -> bool:
        """Whether ``text`` contains the selection: exactly but for white space, or by a long run of its words."""
        if not self.text:
            return False
        if _stands_in(self.text, with_single_blanks(text)):
            return True
        there = _words(text)
        if len(there) < self._needed:
            return False
        line = f" {' '.join(there)} "
        return any(run in line for run in self._runs)


def selected_text(inputs: Any) -> Selection | None:
    """Return the selection; None if the query has no such input, or it is not a text."""
    value = inputs.get("selected_text")
    return Selection(value) if isinstance(value, str) else None


def _stands_in(part: str, text: str) -> bool:
    """Whether ``text`` contains ``part`` as whole words. (A pattern of 200,000 characters would take a second.)"""
    at = text.find(part)
    while at >= 0:
        if not (_in_a_word(text, at) or _in_a_word(text, at + len(part))):
            return True
        at = text.find(part, at + 1)
    return False


def _in_a_word(text: str, border: int) -> bool:
    """Whether the characters on both sides of ``border`` belong to one word."""
    return 0 < border < len(text) and all(letter.isalnum() for letter in text[border - 1 : border + 1])


def _words(text: str) -> Sequence[str]:
    return compared_words(text)


LOOKED_AT = 20
"""How many sections are looked at: those with most of the selection's words, by BM25."""
MOST = 5
"""The most sections that are added. A text that more of them hold does not say which one the student reads."""
SEARCHED = 400
"""The most characters of a selection that are searched with the question. An embedding model reads little text."""


@dataclass(frozen=True)
class Passages:
    """Finds the sections that hold a selection.

    Args:
        retrieval: has the sections, and their vectors by way of its embedder.
        words: finds sections by words.
    """

    retrieval: Retrieval
    words: Retriever

    def beside(self, hits: Sequence[Hit], asked: str, selection: Selection) -> tuple[list[Hit], Decision]:
        """Return ``hits`` and, after them, the sections with the selection that are missing; and the decision.

        A section that is added has its own cosine to the question, and no higher score than the hits. So without a
        boost it stays behind them.
        """
        holding = [
            hit.chunk for hit in self.words.retrieve(selection.text, LOOKED_AT) if selection.is_in(hit.chunk.text)
        ]
        known = {hit.chunk.chunk_id for hit in hits}
        missing = [chunk for chunk in holding if chunk.chunk_id not in known]
        if len(holding) > MOST:
            missing = []
        added = self._added(missing, asked, min((hit.score for hit in hits), default=1.0), len(hits))
        return [*hits, *added], _decided(len(holding), len(added))

    def searched(self, asked: str, selection: Selection) -> tuple[str, Decision]:
        """Return the question with the selection behind it, as one text to search for; and the decision.

        It is the question alone if both are too long for the embedding model.
        """
        part = selection.text[:SEARCHED]
        try:
            self.retrieval.embedder.check_query(f"{asked} {part}")
        except QueryTooLongError as error:
            why = (
                f"with the selection the question has {error.tokens} tokens, and the embedding model reads {error.most}"
            )
            return asked, Decision("search", "question alone", reason=why)
        return f"{asked} {part}", Decision("search", "question and selection", float(len(part)))

    def _added(self, chunks: Sequence[Chunk], asked: str, most: float, before: int) -> list[Hit]:
        found = sorted(((self._cosine(asked, chunk), chunk) for chunk in chunks), key=lambda pair: -pair[0])
        return [
            Hit(chunk, min(cosine, most), rank, source="passage", scores={"dense": cosine})
            for rank, (cosine, chunk) in enumerate(found, before + 1)
        ]

    def _cosine(self, asked: str, chunk: Chunk) -> float:
        """Return the cosine of the section's best window, as the index has it."""
        embedder = self.retrieval.embedder
        windows = embedder.embed_documents(self._windows[chunk.chunk_id])
        return float((windows @ embedder.embed_queries([asked])[0]).max())

    @cached_property
    def _windows(self) -> Mapping[str, list[str]]:
        """The texts of the index, by the id of their section."""
        found: dict[str, list[str]] = {}
        for window in self.retrieval.indexed:
            found.setdefault(self.retrieval.chunk_of_window[window.chunk_id].chunk_id, []).append(window.text)
        return found


def _decided(holding: int, added: int) -> Decision:
    if not holding:
        return Decision("passage", "not found", 0.0, reason="no section was found that holds the selection")
    if holding > MOST:
        why = f"more than {MOST} sections hold the selection: it does not say which one is read"
        return Decision("passage", "not told apart", 0.0, float(MOST), why)
    sections = "1 section holds" if holding == 1 else f"{holding} sections hold"
    if not added:
        return Decision(
            "passage",
            "found",
            0.0,
            reason=f"{sections} the selection, and cosine found {'it' if holding == 1 else 'them'}",
        )
    return Decision("passage", "added", float(added), reason=f"{sections} the selection, and cosine missed {added}")


SUMMARIES_SEARCHED, SECTIONS_SEARCHED = 20, 100
"""How many summaries are looked at, and how many sections have a cosine of their own."""
EXTRACTIVE = Decision("summaries", "extractive", reason="the first sentences of each section: no model wrote them")


@dataclass(frozen=True)
class SummariesFirst:
    """Finds summaries, and returns their sections by the better of two cosines: the summary's and the section's.

    Args:
        summaries: finds summaries by cosine; each has the id of its section.
        full: finds sections by cosine.
        sections: returns all sections.
    """

    summaries: Retriever
    full: Retriever
    sections: Callable[[], Sequence[Chunk]]

    @cached_property
    def _known(self) -> dict[str, Chunk]:
        return {chunk.chunk_id: chunk for chunk in self.sections()}

    def retrieve(self, query: str, k: int) -> list[Hit]:
        own = {hit.chunk.chunk_id: hit.score for hit in self.full.retrieve(query, max(k, SECTIONS_SEARCHED))}
        known = self._known
        found = [
            (max(hit.score, own.get(hit.chunk.chunk_id, hit.score)), hit.score, known[hit.chunk.chunk_id])
            for hit in self.summaries.retrieve(query, max(k, SUMMARIES_SEARCHED))
            if hit.chunk.chunk_id in known  # a section that is a near-duplicate may have a summary that is none
        ]
        found.sort(key=lambda each: (-each[0], each[2].chunk_id))
        return [
            Hit(chunk, cosine, rank, scores={"dense": cosine, "summary": summary})
            for rank, (cosine, summary, chunk) in enumerate(found[:k], 1)
        ]


_PATH = re.compile(r"(?:^|/)module-(\d{1,4})/chapter-(\d{1,4})\b")
_NUMBER = re.compile(r"\s*(\d{1,4})\s*")


@dataclass(frozen=True, slots=True)
class BookPlace:
    """The place of a section. A number is None if neither the page's metadata nor its path has it.

    ``path`` has titles, outermost first: module, chapter, heading. ``url`` leads to the heading.
    """

    module: int | None
    chapter: int | None
    path: tuple[str, ...]
    url: str

    @property
    def title(self) -> str:
        """Its last two titles, as a student sees them."""
        return " > ".join(self.path[-2:])


def book_place_of(chunk: Chunk) -> BookPlace:
    """Return the place of a chunk from its metadata; missing parts come from the path of its file."""
    known = chunk.metadata
    found = _PATH.search(chunk.doc_id)
    module, chapter = _number(known.get("module")), _number(known.get("chapter"))
    if module is None and chapter is None and found:
        module, chapter = int(found[1]), int(found[2])
    return BookPlace(module, chapter, _path(chunk, module, chapter), _url(chunk))


def _number(value: Any) -> int | None:
    match = _NUMBER.fullmatch(str(value)) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    return int(match[1]) if match else None


def _path(chunk: Chunk, module: int | None, chapter: int | None) -> tuple[str, ...]:
    title = str(chunk.metadata.get("title") or (chunk.section[0] if chunk.section else chunk.doc_id))
    below = chunk.section[1:] if chunk.section[:1] == (title,) else chunk.section
    # The text before a page's first heading has a heading from its chunker.
    below = below or tuple(filter(None, [str(chunk.metadata.get("heading") or "")]))
    of_module = _named("Module", module, str(chunk.metadata.get("module_title") or ""))
    return tuple(part for part in (of_module, _named("Chapter", chapter, title), *below) if part)


def _named(kind: str, number: int | None, title: str) -> str:
    if number is None:
        return title
    return f"{kind} {number}: {title}" if title else f"{kind} {number}"


def _url(chunk: Chunk) -> str:
    """Return the page's address with the anchor of the heading. Without an address, the file's path is used."""
    address = str(chunk.metadata.get("url") or f"/{chunk.doc_id.removesuffix('.md')}")
    if "#" in address or len(chunk.section) < 2:
        return address
    return f"{address}#{slug(chunk.section[-1])}"


def different_titles(chunks: Iterable[Chunk], most: int) -> list[str]:
    """Return the titles of the first ``most`` different sections."""
    found: dict[str, None] = {}
    for chunk in chunks:
        found[book_place_of(chunk).title] = None
        if len(found) == most:
            break
    return list(found)


PROMPTS = "t5.summary"
EMPTY, TOO_LONG = "empty", "longer than the section"
INSTEAD_OF = "summary_instead_of"
"""In the metadata of an extractive summary: what came back from the model."""


@dataclass(frozen=True)
class Writer:
    """Asks a model for a summary of each section, many at once.

    Args:
        chat: the model.
        prompts: its templates; ``{question}`` is the section's place, ``{context}`` its text.
        at_once: the most calls in flight; the run's limiter may allow fewer.
        run: waits for the calls.
        decides: everything else that decides what the model says, as plain JSON.
    """

    chat: ChatModel
    prompts: Prompts
    at_once: int
    run: Callable[[Coroutine[Any, Any, list[str]]], list[str]]
    decides: Sequence[Any] = ()

    def rewritten(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return sections with their summaries as texts.

        Raises:
            RagHarnessError: a call failed for good; calls under way are given up.
        """
        return [_summary(*pair) for pair in zip(chunks, self.run(self._all(chunks)), strict=True)]

    @property
    def identity(self) -> list[Any]:
        """Everything that decides the summaries: the model's settings, and the digest of the prompts."""
        return [*self.decides, json_digest([self.prompts.system, self.prompts.user])]

    async def _all(self, sections: Sequence[Chunk]) -> list[str]:
        turns = asyncio.Semaphore(self.at_once)
        calls = [asyncio.ensure_future(self._one(section, turns)) for section in sections]
        try:
            return await asyncio.gather(*calls)
        finally:
            for call in calls:
                call.cancel()

    async def _one(self, section: Chunk, turns: asyncio.Semaphore) -> str:
        async with turns:
            try:
                return (await self.chat.complete(self._messages(section))).text.strip()
            except ModelOutputError:
                return ""

    def _messages(self, section: Chunk) -> list[Message]:
        return self.prompts.messages(" > ".join(book_place_of(section).path), [Hit(section, 0.0, 1)])


def written_by(model: str, summaries: Sequence[Chunk]) -> Decision:
    """Return who wrote the summaries. The value counts the sections that keep their first sentences instead."""
    why = Counter(summary.metadata.get(INSTEAD_OF, "") for summary in summaries)
    instead = [f"{why[fault]} {fault}" for fault in (EMPTY, TOO_LONG) if why[fault]]
    reason = f"{why['']} of {len(summaries)} sections"
    reason += f"; extractive in place of what came back {', '.join(instead)}" if instead else ""
    return Decision("summaries", f"written by {model}", float(len(summaries) - why[""]), None, reason)


def _summary(section: Chunk, said: str) -> Chunk:
    """Return a section with its summary, after its headings, as the extractive summaries have them.

    A summary that is empty or longer than its section is replaced by the extractive one; the metadata say so.
    """
    fault = _fault(section, said)
    if fault:
        return replace(section, text=summary_of(section), metadata={**section.metadata, INSTEAD_OF: fault})
    return replace(section, text=": ".join(filter(None, [" > ".join(section.section), said])))


def _fault(section: Chunk, said: str) -> str:
    if not said:
        return EMPTY
    return TOO_LONG if len(said) > len(section.text) else ""


# The floor: the least cosine of a chunk that is about the question. Each embedding model has its own.
#
# The decision record says 0.7 for any model. Cosines of different models are not comparable, so
# ``benchmarks/textbook_floor.py`` sets a floor for each. It uses the development half of the questions, and takes the
# highest floor at which at most 5 % of the answerable questions find nothing.

RECORD = 0.7
"""The floor in the decision record."""
CALIBRATED = {
    "sentence-transformers/all-MiniLM-L6-v2": 0.24,
    # Hashed words carry no meaning, so no floor is useful: everything passes.
    "mock/hashed-words": 0.0,
}
"""Floors by embedding model, as the script printed them for the shipped book."""


def floor_of(model: str, kind: str) -> tuple[float, Decision]:
    """Return the floor for an embedding ``model``, and a decision that names it.

    Args:
        model: the model's name, as its publisher writes it.
        kind: ``calibrated``, ``record``, or a number from 0 to 1.

    Raises:
        ValueError: ``kind`` is none of these.
    """
    if kind == "record":
        return RECORD, Decision("floor chosen", "record", RECORD, reason="the decision record's")
    if kind != "calibrated":
        return _own(kind)
    if model in CALIBRATED:
        floor = CALIBRATED[model]
        return floor, Decision("floor chosen", "calibrated", floor, reason=f"calibrated for {model}")
    why = f"none is calibrated for {model}, so the record's stands; benchmarks/textbook_floor.py sets one"
    return RECORD, Decision("floor chosen", "record", RECORD, reason=why)


def _own(kind: str) -> tuple[float, Decision]:
    try:
        floor = float(kind)
    except ValueError:
        floor = -1.0
    if not 0 <= floor <= 1:
        raise ValueError(f"The floor is {kind!r}: expected calibrated, record, or a number from 0 to 1.")
    return floor, Decision("floor chosen", "own", floor, reason="the experiment's own")
