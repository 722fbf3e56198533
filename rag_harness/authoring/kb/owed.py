"""Checks what a question demands of its answers against its own gold and the documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from rag_harness.expectations import AnswerSeen, Source, kind_of, looked_at, tells_by_words
from rag_harness.expectations.facts import fact_of
from rag_harness.types import Expectation
from rag_harness.words.contradictions import against
from rag_harness.words.terms import figures, terms

_NAMES_DOCUMENTS = ("cites", "cites_any", "cites_all", "cites_only", "retrieves")
_IN_A_SOURCE = "context_contains"


def wrongly_expected(
    expect: Sequence[Expectation], ground_truth: str, answerable: bool, documents: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence for each expectation that no right answer can keep to.

    Args:
        expect: the expectations of one question.
        ground_truth: its right answer; empty where nobody wrote one.
        answerable: whether the documents answer it.
        documents: the text of each document by its name; an empty text was not read.
    """
    by_words = [each for each in expect if tells_by_words(each)] if ground_truth.strip() else []
    for kept in looked_at(by_words, AnswerSeen(ground_truth, sources=None)):
        if kept.kept is False:
            yield f"{kept.expectation}: the ground truth does not keep to it: {kept.said}. Mend one of the two."
    for each in expect:
        if why := _fact_against(each, ground_truth):
            yield f"{each}: {why}. Mend one of the two."
        yield from (f"{each}: {why}" for why in (*_declining(each, ground_truth, answerable), *_gone(each, documents)))


def _fact_against(each: Expectation, ground_truth: str) -> str:
    """Return how the ground truth itself fails a rubric that asks for a fact; empty where the rules see nothing."""
    found = fact_of(kind_of(each.kind).criterion(each)) if kind_of(each.kind).asks == "criterion" else None
    if found is None or not ground_truth.strip():
        return ""
    fact, absent = found
    if absent == each.negated:
        other = next(iter(against(fact, [ground_truth])), None)
        return f"the ground truth says {other.differs[1]!r} and not {other.differs[0]!r}" if other else ""
    is_said = terms(fact) <= terms(ground_truth) and figures(fact) <= figures(ground_truth)
    return "the ground truth says so itself" if terms(fact) and is_said and not against(fact, [ground_truth]) else ""


def _declining(each: Expectation, ground_truth: str, answerable: bool) -> Iterator[str]:
    if each.kind not in ("declines", "answers"):
        return
    wants_declining = (each.kind == "declines") != each.negated
    if wants_declining and answerable and ground_truth.strip():
        yield "the question has an answer, its ground truth. Mend one of the two."
    if not wants_declining and not answerable:
        yield "no document answers the question, so a right answer declines. Mend one of the two."


def _gone(each: Expectation, documents: Mapping[str, str]) -> Iterator[str]:
    """Yield why the documents make it impossible. A misspelt name is one below "not", too: it would always hold."""
    if each.kind in _NAMES_DOCUMENTS:
        named = [each.wanted] if isinstance(each.wanted, str) else each.wanted
        missing = [name for name in named if not any(fnmatchcase(document, name) for document in documents)]
        yield from (f"no document is called {name!r}. Mend the name." for name in missing)
    if each.kind == _IN_A_SOURCE and not each.negated and all(documents.values()) and not _stands_in(each, documents):
        yield "no document has these words. Copy them from a document."


def _stands_in(each: Expectation, documents: Mapping[str, str]) -> bool:
    every = AnswerSeen("", sources=[Source(name, text) for name, text in documents.items()])
    return looked_at([each], every)[0].kept is True
