"""Generate questions of each kind that pass the filters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from random import Random

from rag_harness.authoring.drafting import DraftCounts
from rag_harness.authoring.questions.answerable import (
    direct_drafts,
    multi_hop_drafts,
    old_and_new_drafts,
    version_drafts,
)
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.drafts import Draft, TakenQuestions, draft_fault
from rag_harness.authoring.questions.facts import (
    DURATION,
    MONEY,
    QUESTION_FORMS,
    WEIGHT,
    Fact,
    QuestionForms,
    answers_it,
    in_turn,
    shuffled,
)
from rag_harness.authoring.questions.gap_questions import negative_drafts
from rag_harness.authoring.questions.sentence_facts import seen
from rag_harness.core.text.languages import ENGLISH, LANGUAGES
from rag_harness.core.types import Document, Evidence

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


# Combines two kinds of drafts in one stream, with the rarer kind spread among the other.

EVERY = 6
"""One draft in so many is about something that another version of a page states differently."""


def direct_and_versions(collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield direct drafts, with some among them that a stale answer fails."""
    chance = Random(f"{seed} versions")
    return _between(direct_drafts(collection, seed), version_drafts(collection, chance))


def hops_and_versions(collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield multi-hop drafts, with some among them that ask for old and new."""
    chance = Random(f"{seed} old and new")
    return _between(multi_hop_drafts(collection, seed), old_and_new_drafts(collection, chance))


def _between(many: Iterator[tuple[Draft, ...]], some: Iterator[tuple[Draft, ...]]) -> Iterator[tuple[Draft, ...]]:
    while batch := list(islice(many, EVERY)):
        yield from batch
        yield from islice(some, 1)
    yield from some


_MAKERS = {"direct": direct_and_versions, "multi_hop": hops_and_versions, "negative": negative_drafts}
QUESTION_KINDS = ("direct", "multi_hop", "negative")


@dataclass
class GeneratedQuestions(DraftCounts):
    """The questions; ``short`` is the number of missing ones of each kind."""

    drafts: list[Draft] = field(default_factory=list)
    short: dict[str, int] = field(default_factory=dict)


def make_questions(
    collection: DocumentCollection,
    wanted: Mapping[str, int],
    seed: int = 0,
    most_shared: float = 1.0,
    rejected: Sequence[Draft] = (),
) -> GeneratedQuestions:
    """Return the questions; fewer than wanted if the text allows no more. The same seed gives the same questions.

    ``most_shared`` is the share of its words that a question may have in common with the pages that answer it.
    ``rejected`` are questions that a person has rejected; other questions replace them.
    """
    found = GeneratedQuestions()
    for own, share in _shared(collection, wanted):
        asked = TakenQuestions(most_shared, own, rejected)
        for kind in QUESTION_KINDS:
            if share.get(kind):
                _take(_drafts(kind, own, seed), share[kind], own, found, asked)
    for kind in QUESTION_KINDS:
        lacking = wanted.get(kind, 0) - sum(draft.kind == kind for draft in found.drafts)
        found.short |= {kind: lacking} if lacking > 0 else {}
    return found


def _shared(
    collection: DocumentCollection, wanted: Mapping[str, int]
) -> Iterator[tuple[DocumentCollection, Mapping[str, int]]]:
    """Yield the documents of each language, and how many questions of each kind are to be about them."""
    left, rest = len(collection.documents), dict(wanted)
    for own in collection.by_language.values():
        share = {kind: round(number * len(own.documents) / left) for kind, number in rest.items()} if left else rest
        yield own, share
        left -= len(own.documents)
        rest = {kind: number - share[kind] for kind, number in rest.items()}


def _drafts(kind: str, collection: DocumentCollection, seed: int) -> Iterable[tuple[Draft, ...]]:
    if collection.language == ENGLISH:
        return _MAKERS[kind](collection, seed)
    return drafts_in(kind, collection, seed) if collection.language in QUESTION_FORMS else ()


def _take(
    drafts: Iterable[tuple[Draft, ...]],
    wanted: int,
    collection: DocumentCollection,
    found: GeneratedQuestions,
    asked: TakenQuestions,
) -> None:
    taken = 0
    for variants in drafts:
        passed, fault = _first_that_passes(variants, collection, asked)
        if passed is None:
            found.dropped[fault] += 1
            continue
        asked.add(passed)
        found.drafts.append(passed)
        taken += 1
        if taken == wanted:
            return


def _first_that_passes(
    variants: tuple[Draft, ...], collection: DocumentCollection, asked: TakenQuestions
) -> tuple[Draft | None, str]:
    fault = "says too little"
    for draft in variants:
        fault = draft_fault(draft, collection) or asked.fault_of(draft) or ""
        if not fault:
            return draft, ""
    return None, fault
