"""Questions from facts of two pages that neither answers alone: comparisons, and two facts about one thing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from rag_harness.authoring.questions.compared import comparison
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.filters import fault_of_half
from rag_harness.authoring.questions.links import are_linked, leads_to, neighbours
from rag_harness.authoring.questions.paraphrase import in_other_words
from rag_harness.authoring.questions.planned.pairs import are_planned, like_draft
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.wording import question_of, sentence
from rag_harness.types import Document, Evidence
from rag_harness.words.terms import terms

KIND = "multi_hop"
SHARED = 4.2
"""Two questions with a common word of this rarity, in nats, are about one thing; less in a small collection."""
LED = 20.0
"""The weight of a link from a fact's own sentence to the other page."""
TWO = 0.7
"""The weight of the two rarest common words together, against one word that is as rare as both."""
_TRIED = 40
"""How many facts of a page are compared with those of another."""
_NEIGHBOURS = 8
_ROUNDS = 3
_OF_PAGE = 3
"""The most questions for one page: otherwise an overview page would be in every question."""


def multi_hop_drafts(collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield drafts, one pair of pages after the other, each pair once."""
    chance = Random(f"{seed} multi-hop")
    read: dict[str, list[Fact]] = {}
    paired: set[frozenset[str]] = set()
    uses: Counter[str] = Counter()
    for _ in range(_ROUNDS):
        for page in shuffled(collection.current, chance):
            for draft in _of_page(page, collection, read, paired, chance):
                if all(uses[name] < _OF_PAGE for name in draft.pages):
                    uses.update(draft.pages)
                    yield (draft,)
                    break


def _of_page(
    page: Document,
    collection: DocumentCollection,
    read: dict[str, list[Fact]],
    paired: set[frozenset[str]],
    chance: Random,
) -> Iterator[Draft]:
    mine = _facts(page, collection, read, chance)
    for name in neighbours(page, collection)[:_NEIGHBOURS] if mine else ():
        pair = frozenset((page.doc_id, name))
        if pair in paired:
            continue
        paired.add(pair)
        other = collection.by_id[name]
        theirs = _facts(other, collection, read, chance)
        if are_planned(page.doc_id, name, collection):
            draft = like_draft(mine, theirs, collection, chance)
        else:
            draft = _joined(mine, theirs, collection, chance) or comparison(mine, theirs, chance)
        if draft:
            linked = "yes" if are_linked(page, other) else "no"
            yield replace(draft, metadata={**draft.metadata, "hops": 2, "linked": linked})


def _facts(page: Document, collection: DocumentCollection, read: dict[str, list[Fact]], chance: Random) -> list[Fact]:
    if page.doc_id not in read:
        read[page.doc_id] = shuffled(collection.facts(page.doc_id), chance)
    return read[page.doc_id]


def _joined(
    mine: Sequence[Fact], theirs: Sequence[Fact], collection: DocumentCollection, chance: Random
) -> Draft | None:
    """Ask for two facts about one thing that are on different pages."""
    pairs = [(_related(one, other, collection), one, other) for one in mine[:_TRIED] for other in theirs[:_TRIED]]
    for weight, one, other in sorted(pairs, key=lambda pair: -pair[0])[:_TRIED]:
        if weight < _least(collection):
            return None
        halves = [question_of(fact, chance) for fact in (one, other)]
        shares = _shared(halves[0], halves[1], collection) >= _least(collection) or weight >= LED
        if shares and not any(map(fault_of_half, (one, other), halves, [collection] * 2)):
            return _both(one, other, halves, chance)
    return None


def _least(collection: DocumentCollection) -> float:
    return min(SHARED, 0.6 * math.log(len(collection.chunks) + 1))


def _related(one: Fact, other: Fact, collection: DocumentCollection) -> float:
    """Return how certain it is that two facts are about one thing: by their rarest common word, and by a link."""
    led = leads_to(one.quote, one.doc_id, other.doc_id) or leads_to(other.quote, other.doc_id, one.doc_id)
    return _shared(one.said, other.said, collection) + LED * led


def _shared(one: str, other: str, collection: DocumentCollection) -> float:
    rarest = sorted((collection.rarity(term) for term in terms(one) & terms(other)), reverse=True)[:2]
    return max([0.0, *rarest[:1], sum(rarest) * TWO])


def _both(one: Fact, other: Fact, halves: Sequence[str], chance: Random) -> Draft:
    def said(parts: Sequence[str]) -> str:
        return sentence(f"{parts[0].rstrip('?')}, and {parts[1][:1].lower()}{parts[1][1:]}")

    evidence = (Evidence(one.doc_id, one.quote), Evidence(other.doc_id, other.quote))
    truth, answer = f"{one.said} {other.said}", f"{one.answer} {other.answer}"
    text = said([in_other_words(half, chance) for half in halves])
    return Draft(KIND, said(halves), text, truth, answer, evidence, (one.kind, other.kind), {"kind": "two parts"})
