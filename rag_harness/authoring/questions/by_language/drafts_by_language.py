"""Drafts of each kind from the facts of documents in another language than English."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from random import Random

from rag_harness.authoring.questions.by_language.question_forms import (
    DURATION,
    MONEY,
    QUESTION_FORMS,
    WEIGHT,
    QuestionForms,
)
from rag_harness.authoring.questions.by_language.stated_facts import answers_it
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.authoring.questions.selecting import in_turn, shuffled
from rag_harness.types import Document, Evidence
from rag_harness.words.languages import LANGUAGES

NEAREST_SHOWN = 3
_TRIED = 40
"""How many facts of a page are compared with those of another."""
_LEAST = 0.5
"""The least rarity of a word that two facts about one thing share, as a share of the rarest word's."""


def drafts_in(kind: str, collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield drafts of a kind about a collection in one language with forms."""
    forms, chance = QUESTION_FORMS[collection.language], Random(f"{seed} {kind} {collection.language}")
    makers = {"direct": _direct, "multi_hop": _multi_hop, "negative": _negative}
    yield from ((draft,) for draft in makers[kind](collection, forms, chance))


def _direct(collection: DocumentCollection, _: QuestionForms, chance: Random) -> Iterator[Draft]:
    for fact in in_turn(collection.current, lambda page: collection.facts(page.doc_id), chance):
        asked, evidence = fact.parts["asked"], (Evidence(fact.doc_id, fact.quote),)
        told = {"version_conflict": True} if _before(fact, collection) else {}
        yield Draft("direct", asked, asked, fact.said, fact.answer, evidence, (fact.kind,), told)


def _before(fact: Fact, collection: DocumentCollection) -> Fact | None:
    """Return the fact of a superseded page that answers the same question differently."""
    old_pages = [old for old, new in collection.superseded.items() if new == fact.doc_id]
    stale = (old for page in old_pages for old in collection.facts(page))
    return next((old for old in stale if old.parts["asked"] == fact.parts["asked"] and old.answer != fact.answer), None)


def _multi_hop(collection: DocumentCollection, forms: QuestionForms, chance: Random) -> Iterator[Draft]:
    yield from _old_and_new(collection, forms)
    pages = shuffled(collection.current, chance)
    for one, other in combinations(pages, 2):
        found = _pair(one, other, collection)
        if found:
            yield _both(*found, forms)


def _old_and_new(collection: DocumentCollection, forms: QuestionForms) -> Iterator[Draft]:
    for page in collection.current:
        for fact in collection.facts(page.doc_id):
            stale = _before(fact, collection)
            if stale is None:
                continue
            title = seen(collection.by_id[stale.doc_id].title)
            asked = forms.versions.format(asked=fact.parts["asked"], title=title)
            truth = f"{forms.after}{fact.said} {forms.before}{stale.said}"
            evidence = (Evidence(fact.doc_id, fact.quote), Evidence(stale.doc_id, stale.quote))
            told = {"kind": "old and new", "hops": 2, "linked": "yes", "version_conflict": True}
            answer = f"{fact.answer} {stale.answer}"
            yield Draft("multi_hop", asked, asked, truth, answer, evidence, (fact.kind, stale.kind), told)


def _pair(one: Document, other: Document, collection: DocumentCollection) -> tuple[Fact, Fact] | None:
    """Return the facts of two pages about one thing: one names the other's thing by the rarest word."""
    ours, theirs = (collection.facts(page.doc_id)[:_TRIED] for page in (one, other))
    pairs = [(_related(first, second, collection), first, second) for first in ours for second in theirs]
    weight, *facts = max(pairs, key=lambda pair: pair[0], default=(0.0,))
    least = _LEAST * math.log(len(collection.chunks) + 1)
    return (facts[0], facts[1]) if weight >= least and facts else None


def _related(one: Fact, other: Fact, collection: DocumentCollection) -> float:
    about, said = ([collection.terms(text) for text in (fact.parts["about"], fact.said)] for fact in (one, other))
    shared = (about[0] & said[1]) | (about[1] & said[0])
    return max((collection.rarity(term) for term in shared if term.isalpha()), default=0.0)


def _both(one: Fact, other: Fact, forms: QuestionForms) -> Draft:
    asked = forms.joined(one.parts["asked"], other.parts["asked"])
    evidence = (Evidence(one.doc_id, one.quote), Evidence(other.doc_id, other.quote))
    told = {"kind": "two parts", "hops": 2}
    answer = f"{one.answer} {other.answer}"
    return Draft("multi_hop", asked, asked, f"{one.said} {other.said}", answer, evidence, (one.kind, other.kind), told)


def _negative(collection: DocumentCollection, forms: QuestionForms, chance: Random) -> Iterator[Draft]:
    """Ask what is said of another thing with a common word in its name, where nothing says it of this one."""
    facts = [fact for page in collection.current for fact in collection.facts(page.doc_id) if "stated" in fact.parts]
    for fact in shuffled(facts, chance):
        named = collection.terms(fact.parts["about"])
        alike = (one for one in facts if collection.terms(one.parts["about"]) & named and one is not fact)
        for stated in sorted({one.parts["stated"] for one in alike} & {MONEY, DURATION, WEIGHT}):
            if not _is_said(named, stated, collection):
                yield _unanswered(forms.of_thing(fact.parts, stated), fact, collection, forms)


def _is_said(named: frozenset[str], stated: str, collection: DocumentCollection) -> bool:
    rules = LANGUAGES[collection.language]
    near = (chunk.text for chunk in collection.chunks if named <= collection.terms(chunk.text))
    return any(answers_it(text, stated, rules) for text in near)


def _unanswered(asked: str, fact: Fact, collection: DocumentCollection, forms: QuestionForms) -> Draft:
    hits = collection.nearest(asked, NEAREST_SHOWN)
    shown = [{"filename": hit.chunk.doc_id, "text": seen(hit.chunk.text)[:240]} for hit in hits]
    told = {"nearest_page": fact.doc_id, "nearest": shown}
    return Draft("negative", asked, asked, forms.unanswered.format(page=fact.doc_id), "", (), (fact.kind,), told)
