"""Questions close to the topic that nothing in the collection answers: a fact of one thing is asked about another.

A question about a row of a table, a class or a page of a folder is asked about another one of the same kind. It is kept
if no passage that names the other thing has the rarest words of the question, or words with similar meaning. It is
dropped if too many passages name the thing. The nearest passages go into the row, for the reviewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import LEFT_OPEN, Draft
from rag_harness.authoring.questions.facts import PLANNED_KINDS, Fact
from rag_harness.authoring.questions.paraphrase import in_other_words
from rag_harness.authoring.questions.planned.untold import untold
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.siblings import siblings, swapped
from rag_harness.authoring.questions.silence import RAREST, nothing_says
from rag_harness.authoring.questions.unsaid import unsaid
from rag_harness.authoring.questions.usual import Usual
from rag_harness.authoring.questions.wording import question_of
from rag_harness.types import Document
from rag_harness.words.terms import terms

KIND = "negative"
NEAREST_SHOWN = 3
"""How many nearest passages are in a row's metadata."""
MOST_PAGES = 2_000
"""How many pages are tried, at random. A collection with few such questions would otherwise take minutes."""
_FACTS = 20
"""How many facts of a page are tried, at random. A page with many facts would otherwise take too long."""
_OF_EACH = 3
_TRIED = 12
_KINDS = frozenset(("cell", "quantity", "property", "permission", "condition", "purpose", *PLANNED_KINDS))


def negative_drafts(collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield drafts, page after page: for each, a question about a sibling, and one about something left open."""
    chance = Random(f"{seed} negative")
    usual = Usual(collection)
    used: Counter[str] = Counter()
    of_kind = siblings(_near(collection, chance), collection.names)
    for page in shuffled(collection.current, chance)[:MOST_PAGES]:
        facts = shuffled([fact for fact in collection.facts(page.doc_id) if fact.kind in _KINDS], chance)
        asked = usual.asked(facts, chance)
        of_usual = (negative_draft(question, fact.doc_id, fact.kind, collection, chance) for question, fact in asked)
        tried = facts[:_FACTS]
        is_planned = page.doc_id in collection.planned.things
        of_siblings = _siblings(() if is_planned else tried, of_kind, collection, chance)
        for found in (_untold(page, collection, chance), of_siblings, _open(tried, collection, used, chance), of_usual):
            yield from ((draft,) for draft, _ in zip(found, range(_OF_EACH), strict=False))


def _untold(page: Document, collection: DocumentCollection, chance: Random) -> Iterator[Draft]:
    """Yield questions about this page's thing that plans answer for the things of similar pages."""
    for question, kind in untold(page.doc_id, collection):
        yield negative_draft(question, page.doc_id, kind, collection, chance)


def _siblings(
    facts: Sequence[Fact], of_kind: dict[str, tuple[str, ...]], collection: DocumentCollection, chance: Random
) -> Iterator[Draft]:
    return (draft for fact in facts for draft in _of_fact(fact, of_kind, collection, chance))


def _open(facts: Sequence[Fact], collection: DocumentCollection, used: Counter[str], chance: Random) -> Iterator[Draft]:
    for fact in facts:
        asked = unsaid(fact, collection, used)
        if asked:
            yield negative_draft(asked, fact.doc_id, LEFT_OPEN, collection, chance)


_MOST_READ = 1_000
"""How many pages are searched for siblings in their tables and names."""


def _near(collection: DocumentCollection, chance: Random) -> list[Document]:
    pages = shuffled(collection.current, chance)[:_MOST_READ]
    return sorted(pages, key=lambda page: page.doc_id)


def _of_fact(
    fact: Fact, of_kind: dict[str, tuple[str, ...]], collection: DocumentCollection, chance: Random
) -> Iterator[Draft]:
    question = question_of(fact, chance)
    page = collection.by_id[fact.doc_id].text
    for asked, thing, told_of in shuffled(list(swapped(question, of_kind)), chance)[:_TRIED]:
        rest = terms(question) - terms(told_of)
        near = thing in page or (fact.kind != "cell" and thing in collection.names)
        if near and len(rest) >= RAREST and nothing_says(thing, rest, collection):
            yield negative_draft(asked, fact.doc_id, fact.kind, collection, chance)
            return


def nearest_to(question: str, collection: DocumentCollection) -> list[dict[str, str]]:
    """Return the passages nearest to a question. A reviewer checks that none of them answers it."""
    hits = collection.nearest(question, NEAREST_SHOWN)
    return [{"filename": hit.chunk.doc_id, "text": seen(hit.chunk.text)[:240]} for hit in hits]


def negative_draft(plain: str, doc_id: str, kind: str, collection: DocumentCollection, chance: Random) -> Draft:
    """Return the draft of a question that nothing answers; the page ``doc_id`` is about something near."""
    truth = f"The documents do not answer this: {doc_id} is about something near, and does not say it."
    metadata = {"nearest_page": doc_id, "nearest": nearest_to(plain, collection)}
    return Draft(KIND, plain, in_other_words(plain, chance), truth, "", (), (kind,), metadata)
