"""Interventions: the context of a row with one thing changed. Pure; None where nothing would be different."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from rag_harness.derived.attribution.gold import GoldFacts
from rag_harness.derived.attribution.shelf import Shelf, says, with_single_blanks
from rag_harness.results.row import ExperimentResult
from rag_harness.results.row_parts import RetrievedChunk
from rag_harness.types import Chunk, Hit

TWICE = ("+twice", "+thrice", "+a_fourth_time")
"""Repeats without a change. One is not enough: a trial that fails three times in ten seems repaired by anything."""
GOLD_CONTEXT, NO_CONTEXT, GOLD_AT_BOTH_ENDS = "+gold_context", "+no_context", "+gold_at_both_ends"
NO_DISTRACTORS, PASSAGES_ALONE, CURRENT_VERSIONS = "+no_distractors", "+passages_alone", "+current_versions"


@dataclass(frozen=True, slots=True)
class InterventionGold:
    """The gold that an intervention may add to a context, or remove from it.

    Attributes:
        chunks: whole chunks that contain the needed quotes.
        passages: the needed quotes alone, a chunk each; none where a page stands for its quotes.
        superseded: ids of outdated pages.
    """

    chunks: Sequence[Chunk]
    passages: Sequence[Chunk] = ()
    superseded: Collection[str] = ()


Altered = Callable[[Sequence[Hit], InterventionGold], "list[Hit] | None"]
"""From the hits of the row and the gold to the hits that are given instead."""


def hits_of(row: ExperimentResult, shelf: Shelf | None) -> list[Hit]:
    """Return the context of a row as it was given, with whole chunks where the index still has them."""
    known = shelf.chunks if shelf is not None else {}
    return [
        Hit(_chunk(said, known.get(said.chunk_id)), said.score, rank, scores=said.scores)
        for rank, said in enumerate(row.retrieved_chunks, 1)
    ]


def _chunk(said: RetrievedChunk, known: Chunk | None) -> Chunk:
    if known is not None and known.text == said.text:
        return known
    section = tuple(said.metadata.section.split(" > ")) if said.metadata.section else ()
    return Chunk(said.chunk_id, said.metadata.filename, said.text, section=section)


def gold_chunks(hits: Sequence[Hit], facts: GoldFacts, shelf: Shelf | None) -> list[Chunk]:
    """Return chunks with the needed quotes: from the context, else from the index, else the paragraph itself.

    Where a page stands for its quotes, all its chunks are returned.
    """
    found: dict[str, Chunk] = {}
    for fact in facts.needed:
        given = [hit.chunk for hit in hits if fact.quote and says([hit.chunk.text], fact.quote)]
        for chunk in given[:1] or _gold(fact.filename, fact.quote, shelf):
            if not fact.quote or not says((known.text for known in found.values()), fact.quote):
                found.setdefault(chunk.chunk_id, chunk)
    return list(found.values())


def _gold(doc_id: str, quote: str, shelf: Shelf | None) -> list[Chunk]:
    own = _name(doc_id, quote)
    if shelf is None:
        return [Chunk(own, doc_id, quote)] if quote else []
    if not quote:
        return shelf.of_page(doc_id)
    holding = sorted(shelf.holding(quote), key=lambda chunk: chunk.doc_id != doc_id)
    return holding[:1] or [Chunk(own, doc_id, shelf.passage(doc_id, quote))]


def _gold_context(hits: Sequence[Hit], gold: InterventionGold) -> list[Hit] | None:
    """Put missing gold in place of the last hits without gold, so that the prompt keeps its length."""
    given, wanted = {hit.chunk.chunk_id for hit in hits}, _ids(gold.chunks)
    missing = [chunk for chunk in gold.chunks if chunk.chunk_id not in given]
    if not missing:
        return None
    others = [n for n, hit in enumerate(hits) if hit.chunk.chunk_id not in wanted]
    leaving = set(others[len(others) - min(len(missing), len(others)) :])
    kept = [hit for n, hit in enumerate(hits) if n not in leaving]
    return _ranked([*kept, *_as_hits(missing)])


def _no_context(hits: Sequence[Hit], _: InterventionGold) -> list[Hit] | None:
    return [] if hits else None


def _gold_at_both_ends(hits: Sequence[Hit], gold: InterventionGold) -> list[Hit] | None:
    """Put the evidence first, and again last: a prompt that loses one end of its context has the other."""
    wanted = _ids(gold.chunks)
    found = [hit for hit in hits if hit.chunk.chunk_id in wanted]
    others = [hit for hit in hits if hit.chunk.chunk_id not in wanted]
    return _ranked([*found, *others, *found]) if found else None


def _no_distractors(hits: Sequence[Hit], gold: InterventionGold) -> list[Hit] | None:
    wanted = _ids(gold.chunks)
    kept = [hit for hit in hits if hit.chunk.chunk_id in wanted]
    return _ranked(kept) if kept and len(kept) < len(hits) else None


def _passages_alone(hits: Sequence[Hit], gold: InterventionGold) -> list[Hit] | None:
    """Give the passages without the rest of their chunks, twice: a prompt may shorten each chunk, or lose one."""
    same = {with_single_blanks(hit.chunk.text) for hit in hits} >= {
        with_single_blanks(chunk.text) for chunk in gold.passages
    }
    return None if same or not hits else _ranked(_as_hits([*gold.passages, *gold.passages]))


def _current_versions(hits: Sequence[Hit], gold: InterventionGold) -> list[Hit] | None:
    kept = [hit for hit in hits if hit.chunk.doc_id not in gold.superseded]
    return _ranked(kept) if len(kept) < len(hits) else None


INTERVENTIONS: Mapping[str, Altered] = {
    GOLD_CONTEXT: _gold_context,
    NO_CONTEXT: _no_context,
    GOLD_AT_BOTH_ENDS: _gold_at_both_ends,
    NO_DISTRACTORS: _no_distractors,
    PASSAGES_ALONE: _passages_alone,
    CURRENT_VERSIONS: _current_versions,
}


def altered(row: ExperimentResult, facts: GoldFacts, shelf: Shelf | None) -> dict[str, list[Hit]]:
    """Return the changed context of each intervention. Interventions that would change nothing are left out."""
    hits = hits_of(row, shelf)
    gold = InterventionGold(gold_chunks(hits, facts, shelf), _passages(facts), facts.superseded)
    made = {name: change(hits, gold) for name, change in INTERVENTIONS.items()}
    return {name: changed for name, changed in made.items() if changed is not None}


def _passages(facts: GoldFacts) -> list[Chunk]:
    """Return the needed quotes, a chunk each, where the model was given all of them; else evidence is missing."""
    needed = facts.needed
    if facts.lost or not all(fact.quote for fact in needed):
        return []
    return [Chunk(_name(fact.filename, fact.quote), fact.filename, fact.quote) for fact in needed]


def _name(doc_id: str, quote: str) -> str:
    return f"{doc_id}#gold-{blake2b(quote.encode(), digest_size=4).hexdigest()}"


def _ids(chunks: Sequence[Chunk]) -> set[str]:
    return {chunk.chunk_id for chunk in chunks}


def _as_hits(chunks: Sequence[Chunk]) -> list[Hit]:
    return [Hit(chunk, 1.0, 1, source="gold") for chunk in chunks]


def _ranked(hits: Sequence[Hit]) -> list[Hit]:
    return [Hit(hit.chunk, hit.score, rank, hit.source, hit.scores) for rank, hit in enumerate(hits, 1)]
