"""Makes as many questions of each kind as are wanted, all of which pass the filters; counts the dropped drafts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.filters import draft_fault
from rag_harness.authoring.questions.interleaved import direct_and_versions, hops_and_versions
from rag_harness.authoring.questions.likeness import TakenQuestions
from rag_harness.authoring.questions.negative import negative_drafts

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
    found, asked = GeneratedQuestions(), TakenQuestions(most_shared, collection, rejected)
    for kind in QUESTION_KINDS:
        if wanted.get(kind):
            _take(_drafts(kind, collection, seed), wanted[kind], collection, found, asked)
            lacking = wanted[kind] - sum(draft.kind == kind for draft in found.drafts)
            found.short |= {kind: lacking} if lacking else {}
    return found


def _drafts(kind: str, collection: DocumentCollection, seed: int) -> Iterable[tuple[Draft, ...]]:
    return _MAKERS[kind](collection, seed)


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
