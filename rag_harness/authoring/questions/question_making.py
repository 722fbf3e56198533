"""Makes as many questions of each kind as are wanted, all of which pass the filters; counts the dropped drafts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.authoring.questions.by_language.drafts_by_language import drafts_in
from rag_harness.authoring.questions.by_language.question_forms import QUESTION_FORMS
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.filters import draft_fault
from rag_harness.authoring.questions.interleaved import direct_and_versions, hops_and_versions
from rag_harness.authoring.questions.likeness import TakenQuestions
from rag_harness.authoring.questions.negative import negative_drafts
from rag_harness.words.languages import ENGLISH

_MAKERS = {"direct": direct_and_versions, "multi_hop": hops_and_versions, "negative": negative_drafts}
QUESTION_KINDS = ("direct", "multi_hop", "negative")


@dataclass
class GeneratedQuestions:
    """The questions, and the numbers of dropped drafts, by reason.

    ``short`` is the number of missing questions of each kind; ``stopped`` says why no more were asked for.
    """

    drafts: list[Draft] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    short: dict[str, int] = field(default_factory=dict)
    stopped: str = ""


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
