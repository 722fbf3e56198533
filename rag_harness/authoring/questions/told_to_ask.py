"""The tasks for a model that writes questions: one for each kind, with the passages that it should be about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.links import neighbours
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.models.prompts import Prompts
from rag_harness.types import Chunk, Document, Hit, Message

_TASKS = {
    "direct": "Write one question that the source answers.",
    "multi_hop": "Write one question that needs both sources: neither alone may hold the answer. Quote from each.",
    "negative": (
        "Write one question that a reader of the source would ask next, that is close to its topic, and that it does "
        'not answer. Say in "answer" what is not said. Leave "quotes" empty.'
    ),
}
ROUNDS = 5
"""The most questions for one page, each about another part of it if it has so many."""
LEAST = 200
"""The fewest characters of a chunk that a question can be about."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task for one question: its kind, and the chunks that it should be about."""

    kind: str
    chunks: tuple[Chunk, ...]

    def messages(self, prompts: Prompts) -> list[Message]:
        """Return the messages for the model."""
        hits = [Hit(chunk, 0.0, number) for number, chunk in enumerate(self.chunks, 1)]
        return prompts.messages(_TASKS[self.kind], hits)


def tasks(kind: str, collection: DocumentCollection, seed: int) -> Iterator[Task]:
    """Yield tasks of a kind, one page after the other in a random order, then each page again with another part."""
    chance = Random(f"{seed} {kind} llm")
    parts = chunks_by_page(collection)
    pages = shuffled([page for page in collection.current if parts.get(page.doc_id)], chance)
    for turn in range(ROUNDS):
        for page in pages:
            own = parts[page.doc_id]
            if turn < len(own):
                chunk = own[(turn * 7) % len(own)] if len(own) % 7 else own[turn]
                yield from _task(kind, page, chunk, parts, collection, turn)


def _task(
    kind: str, page: Document, chunk: Chunk, parts: dict[str, list[Chunk]], collection: DocumentCollection, turn: int
) -> Iterator[Task]:
    if kind != "multi_hop":
        yield Task(kind, (chunk,))
        return
    near = [name for name in neighbours(page, collection) if name in parts]
    if turn < len(near):
        nearest = [hit.chunk for hit in collection.nearest(chunk.text[:400], 50) if hit.chunk.doc_id == near[turn]]
        yield Task(kind, (chunk, (nearest or parts[near[turn]])[0]))


def chunks_by_page(collection: DocumentCollection) -> dict[str, list[Chunk]]:
    """Return the chunks of current pages that questions can be about."""
    found: dict[str, list[Chunk]] = {}
    for chunk in collection.chunks:
        if len(chunk.text) >= LEAST and chunk.doc_id not in collection.superseded:
            found.setdefault(chunk.doc_id, []).append(chunk)
    return found
