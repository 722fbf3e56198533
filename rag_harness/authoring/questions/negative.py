"""Questions near the topic that nothing in the collection answers: what is told of one thing is asked of its sibling.

A question about a row of a table, a class or a page of a folder is asked about another of the same kind. It is kept
where every passage that names the other thing lacks the rarest words of what is asked, and words of near meaning; where
too many name it to be sure, it is not asked. The nearest passages go into the row, for who reviews it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from rag_harness.authoring.questions.collection import Collection
from rag_harness.authoring.questions.draft import LEFT_OPEN, Draft
from rag_harness.authoring.questions.facts import PLANNED_KINDS, Fact
from rag_harness.authoring.questions.paraphrase import in_other_words
from rag_harness.authoring.questions.passages import seen
from rag_harness.authoring.questions.planned.untold import untold
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.siblings import siblings, swapped
from rag_harness.authoring.questions.silence import RAREST, nothing_says
from rag_harness.authoring.questions.unsaid import unsaid
from rag_harness.authoring.questions.usual import Usual
from rag_harness.authoring.questions.wording import question_of
from rag_harness.types import Document
from rag_harness.words.terms import terms

KIND = "negative"
SHOWN = 3
"""Nearest passages in a row's metadata."""
MOST_PAGES = 2_000
"""Pages that are tried, drawn: a collection that bears few such questions would else be searched for minutes."""
_FACTS = 20
"""Facts of a page that are tried, drawn: a page of many would else take the time of many pages."""
_OF_EACH = 3
_TRIED = 12
_KINDS = frozenset(("cell", "quantity", "property", "permission", "condition", "purpose", *PLANNED_KINDS))


def negative_drafts(collection: Collection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield drafts, a page after the other: of each one about a sibling, and one after what is left open."""
    chance = Random(f"{seed} negative")
    usual = Usual(collection)
    used: Counter[str] = Counter()
    of_kind = siblings(_near(collection, chance), collection.names)
    for page in shuffled(collection.current, chance)[:MOST_PAGES]:
        facts = shuffled([fact for fact in collection.facts(page.doc_id) if fact.kind in _KINDS], chance)
        asked = usual.asked(facts, chance)
        of_usual = (_draft(question, fact.doc_id, fact.kind, collection, chance) for question, fact in asked)
        tried = facts[:_FACTS]
        is_planned = page.doc_id in collection.planned.things
        of_siblings = _siblings(() if is_planned else tried, of_kind, collection, chance)
        for found in (_untold(page, collection, chance), of_siblings, _open(tried, collection, used, chance), of_usual):
            yield from ((draft,) for draft, _ in zip(found, range(_OF_EACH), strict=False))


def _untold(page: Document, collection: Collection, chance: Random) -> Iterator[Draft]:
    """Yield what plans tell of like pages' things, asked of this page's thing."""
    for question, kind in untold(page.doc_id, collection):
        yield _draft(question, page.doc_id, kind, collection, chance)


def _siblings(
    facts: Sequence[Fact], of_kind: dict[str, tuple[str, ...]], collection: Collection, chance: Random
) -> Iterator[Draft]:
    return (draft for fact in facts for draft in _of_fact(fact, of_kind, collection, chance))


def _open(facts: Sequence[Fact], collection: Collection, used: Counter[str], chance: Random) -> Iterator[Draft]:
    for fact in facts:
        asked = unsaid(fact, collection, used)
        if asked:
            yield _draft(asked, fact.doc_id, LEFT_OPEN, collection, chance)


_MOST_READ = 1_000
"""Pages whose tables and names are read for siblings."""


def _near(collection: Collection, chance: Random) -> list[Document]:
    pages = shuffled(collection.current, chance)[:_MOST_READ]
    return sorted(pages, key=lambda page: page.doc_id)


def _of_fact(
    fact: Fact, of_kind: dict[str, tuple[str, ...]], collection: Collection, chance: Random
) -> Iterator[Draft]:
    question = question_of(fact, chance)
    page = collection.by_id[fact.doc_id].text
    for asked, thing, told_of in shuffled(list(swapped(question, of_kind)), chance)[:_TRIED]:
        rest = terms(question) - terms(told_of)
        near = thing in page or (fact.kind != "cell" and thing in collection.names)
        if near and len(rest) >= RAREST and nothing_says(thing, rest, collection):
            yield _draft(asked, fact.doc_id, fact.kind, collection, chance)
            return


def nearest_to(question: str, collection: Collection) -> list[dict[str, str]]:
    """Return the nearest passages to a question, for who reviews that none answers it."""
    hits = collection.nearest(question, SHOWN)
    return [{"filename": hit.chunk.doc_id, "text": seen(hit.chunk.text)[:240]} for hit in hits]


def _draft(plain: str, doc_id: str, kind: str, collection: Collection, chance: Random) -> Draft:
    truth = f"The documents do not answer this: {doc_id} is about something near, and does not say it."
    metadata = {"nearest_page": doc_id, "nearest": nearest_to(plain, collection)}
    return Draft(KIND, plain, in_other_words(plain, chance), truth, "", (), (kind,), metadata)
