"""Questions near the topic that nothing in the collection answers: what is told of one thing is asked of its sibling.

A question about a row of a table, a class or a page of a folder is asked about another of the same kind. It is kept
where every passage that names the other thing lacks the rarest words of what is asked, and words of near meaning; where
too many name it to be sure, it is not asked. The nearest passages go into the row, for who reviews it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from rag_harness.questions.collection import Collection
from rag_harness.questions.draft import LEFT_OPEN, Draft
from rag_harness.questions.facts import Fact
from rag_harness.questions.paraphrase import in_other_words
from rag_harness.questions.passages import seen
from rag_harness.questions.selecting import shuffled
from rag_harness.questions.siblings import siblings, swapped
from rag_harness.questions.tables import question_of as question_of_cell
from rag_harness.questions.unsaid import unsaid
from rag_harness.questions.wording import question_of, sentence
from rag_harness.reader.terms import term, terms
from rag_harness.types import Document

KIND = "negative"
MANY = 40
"""Chunks: a thing that more of them name is too common to be sure that nothing is said of it."""
RAREST = 2
"""Words of what is asked that no passage on the thing may have."""
IN_COMMON = 2
"""Attributes that two things share, for what is told of the one to be asked of the other."""
SHOWN = 3
"""Nearest passages in a row's metadata."""
USUAL = 3
"""Pages whose tables tell an attribute, from which people may ask it of anything like."""
_OF_EACH = 3
_TRIED = 12
_KINDS = frozenset(("cell", "quantity", "property", "permission", "condition", "purpose"))
_ALIKE = tuple(
    frozenset(map(term, words.split()))
    for words in (
        "price prices cost costs fee fees charge charges rate pay amount surcharge deposit free",
        "default defaults standard initial initially",
        "limit limits maximum max most cap quota up",
        "deadline time period duration timeout term days hours minutes",
        "weight heavy weighs kg",
        "height tall cm size dimensions",
        "warranty guarantee guaranteed covered",
        "raise raises error exception fail fails",
        "support supports supported available unsupported",
    )
)


def negative_drafts(collection: Collection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield drafts, a page after the other: of each one about a sibling, and one after what is left open."""
    chance = Random(f"{seed} negative")
    told: list[tuple[frozenset[str], str]] = []
    used: Counter[str] = Counter()
    of_kind = siblings(_near(collection, chance), collection.names)
    for page in shuffled(collection.current, chance):
        facts = shuffled([fact for fact in collection.facts(page.doc_id) if fact.kind in _KINDS], chance)
        things = _attributes(facts)
        for found in (_siblings(facts, of_kind, collection, chance), _open(facts, collection, used, chance),
                      _usual(facts, things, told, collection, chance)):  # fmt: skip
            yield from ((draft,) for draft, _ in zip(found, range(_OF_EACH), strict=False))
        told += [(attributes, page.doc_id) for attributes in things.values()]


def _siblings(
    facts: Sequence[Fact], of_kind: dict[str, tuple[str, ...]], collection: Collection, chance: Random
) -> Iterator[Draft]:
    return (draft for fact in facts for draft in _of_fact(fact, of_kind, collection, chance))


def _open(facts: Sequence[Fact], collection: Collection, used: Counter[str], chance: Random) -> Iterator[Draft]:
    for fact in facts:
        asked = unsaid(fact, collection, used)
        if asked:
            yield replace(_draft(asked, fact, collection, chance), made_of=(LEFT_OPEN,))


def _attributes(facts: Sequence[Fact]) -> dict[str, frozenset[str]]:
    """Return the attributes that tables of a page tell of each thing."""
    found: dict[str, set[str]] = {}
    for fact in facts:
        if "thing" in fact.parts:
            found.setdefault(fact.parts["thing"], set()).add(fact.parts["attribute"])
    return {thing: frozenset(attributes) for thing, attributes in found.items()}


def _usual(
    facts: Sequence[Fact],
    things: dict[str, frozenset[str]],
    told: Sequence[tuple[frozenset[str], str]],
    collection: Collection,
    chance: Random,
) -> Iterator[Draft]:
    """Ask what is told of things that have two attributes with this one, where no passage tells it of this one."""
    for fact in facts:
        own = things.get(fact.parts.get("thing", ""), frozenset())
        known = frozenset().union(*things.values())
        near = {name for other, _ in told if len(own & other) >= IN_COMMON for name in other}
        asked = sorted(name for name in near - known if len({page for names, page in told if name in names}) >= USUAL)
        for attribute in shuffled(asked, chance)[:_TRIED]:
            if nothing_says(fact.parts["thing"], terms(attribute), collection):
                yield _draft(sentence(question_of_cell(attribute, fact.parts["thing"])), fact, collection, chance)
                break


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
            yield _draft(asked, fact, collection, chance)
            return


def nothing_says(thing: str, asked: frozenset[str], collection: Collection) -> bool:
    """Whether the passages that name a thing all lack the rarest words asked, and words of near meaning."""
    rarest = sorted(asked, key=lambda each: (-collection.rarity(each), each))[:RAREST]
    near = {*rarest, *(word for alike in _ALIKE if alike & set(rarest) for word in alike)}
    named = terms(thing)
    hits = [terms(hit.chunk.text) for hit in collection.nearest(thing, MANY + 1)] if named else []
    naming = [found for found in hits if named <= found]
    return 0 < len(naming) <= MANY and not any(near & found for found in naming)


def nearest_to(question: str, collection: Collection) -> list[dict[str, str]]:
    """Return the nearest passages to a question, for who reviews that none answers it."""
    hits = collection.nearest(question, SHOWN)
    return [{"filename": hit.chunk.doc_id, "text": seen(hit.chunk.text)[:240]} for hit in hits]


def _draft(plain: str, fact: Fact, collection: Collection, chance: Random) -> Draft:
    truth = f"The documents do not answer this: {fact.doc_id} is about something near, and does not say it."
    metadata = {"nearest_page": fact.doc_id, "nearest": nearest_to(plain, collection)}
    return Draft(KIND, plain, in_other_words(plain, chance), truth, "", (), (fact.kind,), metadata)
