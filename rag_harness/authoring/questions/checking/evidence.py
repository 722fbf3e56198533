"""Checks each quote of a question in the documents: unchanged, moved, changed or gone."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rag_harness.authoring.kb.page import squeeze
from rag_harness.authoring.questions.checking.findings import Finding
from rag_harness.authoring.questions.checking.gold_questions import QuestionWithGold
from rag_harness.authoring.questions.checking.pages import Pages
from rag_harness.authoring.questions.checking.placing import (
    QuotedPassage,
    holds_quote,
    otherwise_marked,
    reworded,
    tells_page,
    with_other_figures,
)
from rag_harness.expectations import tells_by_words
from rag_harness.types import Evidence, Expectation
from rag_harness.words.terms import figures


def quote_findings(asked: QuestionWithGold, pages: Pages) -> Iterator[Finding]:
    """Yield findings about quotes that are not in their page word for word."""
    for quote in asked.quotes:
        names = [quote.filename] if quote.filename else [name for each in asked.pages if (name := pages.name_of(each))]
        if pages.unread.intersection(names):
            continue
        texts = [pages.texts[name] for name in names if name in pages.texts]
        if any(holds_quote(text, quote.quote) for text in texts):
            continue
        yield from _changed(asked, quote, names[0] if names else "", pages)


def _changed(asked: QuestionWithGold, quote: Evidence, filename: str, pages: Pages) -> Iterator[Finding]:
    text = pages.texts.get(filename)
    marked = otherwise_marked(text, quote.quote) if text is not None else None
    if marked is not None:
        yield _marked_otherwise(quote, filename, marked.text)
        return
    elsewhere = pages.holding(quote.quote)
    moved_to = pages.renamed.get(filename) if pages.renamed.get(filename) in elsewhere else None
    if moved_to or len(elsewhere) == 1:
        target = moved_to or next(iter(elsewhere))
        is_safe = bool(moved_to) or tells_page(quote.quote)
        why = "" if is_safe else "too short to be sure that it is the same"
        yield Finding("moved", filename, why, quote.quote, elsewhere[target], target, mends=is_safe)
        return
    now = pages.renamed.get(filename, filename)
    yield from _lost(asked, quote, filename, now, pages)


def _marked_otherwise(quote: Evidence, filename: str, new: str) -> Finding:
    is_space = squeeze(new) == squeeze(quote.quote)
    what, why = ("white space", "") if is_space else ("markup", "the words are the same")
    return Finding(
        "white space" if what == "white space" else "markup",
        filename,
        why,
        quote.quote,
        new,
        filename,
        affects=not is_space,
        mends=True,
    )


def _lost(asked: QuestionWithGold, quote: Evidence, filename: str, now: str, pages: Pages) -> Iterator[Finding]:
    """Yield findings that need a person: other figures, other words, or nothing like the quote in the page."""
    text = pages.texts.get(now, "")
    figured = with_other_figures(text, quote.quote)
    found = figured or reworded(text, quote.quote)
    if found is None:
        several = sorted(pages.holding(quote.quote))
        why = f"it stands in {', '.join(several)}" if several else ""
        near = pages.nearest(f"{asked.alone or asked.text} {quote.quote}")
        yield Finding("gone", filename, why, quote.quote, proposals=near)
        return
    changes = ", ".join(f"{was} -> {is_now}" for was, is_now in found.figures)
    yield Finding("figure" if figured else "reworded", filename, changes, quote.quote, found.text, now)
    yield from _answer(asked, quote, found)


def _answer(asked: QuestionWithGold, quote: Evidence, found: QuotedPassage) -> Iterator[Finding]:
    """Yield a finding if the ground truth, or an expectation, has a figure that the page no longer has."""
    gone = figures(quote.quote) - figures(found.text)
    if outdated := gone & figures(asked.ground_truth):
        said = ", ".join(sorted(outdated))
        yield Finding("answer", quote.filename, f"the ground truth says {said}", asked.ground_truth)
    for each in asked.expect:
        if gone & _figures_wanted(each):
            yield Finding("expectation", quote.filename, f"{each}: the page no longer says so. Mend it.")


def _figures_wanted(each: Expectation) -> frozenset[str]:
    """Return the figures that an answer has to have; figures of its form, such as its length, are none of them."""
    if each.negated or not tells_by_words(each):
        return frozenset()
    if each.kind == "number":
        return frozenset({f"{each.wanted:g}"})
    return figures(json.dumps(each.wanted)) if isinstance(each.wanted, str | list) else frozenset()
