"""Checks every question against the current documents."""

from __future__ import annotations

from collections.abc import Collection as Some
from collections.abc import Iterator, Sequence

from rag_harness.authoring.kb.owed import wrongly_expected
from rag_harness.authoring.questions.checking.evidence import quote_findings
from rag_harness.authoring.questions.checking.findings import Finding, Proposal, Report
from rag_harness.authoring.questions.checking.gold_questions import QuestionWithGold
from rag_harness.authoring.questions.checking.pages import Pages
from rag_harness.authoring.questions.checking.placing import holds_quote
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.filters import ANSWERED
from rag_harness.words.terms import terms


def check(asked: Sequence[QuestionWithGold], collection: DocumentCollection, unread: Some[str] = ()) -> Report:
    """Check questions against documents.

    Args:
        asked: the questions.
        collection: the documents as they are now.
        unread: names of files that exist and could not be read.
    """
    pages = Pages(collection, asked, unread)
    found = {each.name: list(_findings(each, pages)) for each in asked}
    return Report(
        {name: findings for name, findings in found.items() if findings},
        len(asked),
        sum(len(each.quotes) for each in asked),
        len(collection.documents),
        sum(each.answerable and not each.quotes and bool(each.pages) for each in asked),
        sum(not (each.answerable or each.alone) for each in asked),
        {each.name: each.stands_on for each in asked if each.stands_on},
        [each.name for each in asked if each.answerable and not each.quotes and not each.pages],
    )


def _findings(asked: QuestionWithGold, pages: Pages) -> Iterator[Finding]:
    quotes = list(quote_findings(asked, pages))
    yield from quotes
    yield from _pages(asked, pages, {each.filename for each in quotes if each.what == "moved"})
    if asked.expect:
        documents = {**dict.fromkeys(pages.unread, ""), **pages.texts}
        for said in wrongly_expected(asked.expect, asked.ground_truth, asked.answerable, documents):
            yield Finding("expectation", why=said)
    if not asked.answerable:
        yield from _answered(asked, pages)
    elif len({quote.filename for quote in asked.quotes}) > 1:
        yield from _one_page(asked, pages)


def _pages(asked: QuestionWithGold, pages: Pages, moved: set[str]) -> Iterator[Finding]:
    """Yield findings about pages that a question names and that do not exist."""
    for gold in dict.fromkeys([*asked.pages, *(quote.filename for quote in asked.quotes if quote.filename)]):
        name = pages.name_of(gold)
        if name in pages.texts:
            if not pages.has_heading(gold):
                yield Finding("heading gone", name, f"no heading has the anchor of {gold!r}")
        elif name in pages.unread:
            yield Finding("page unread", name, "the file is there, and cannot be read")
        elif new := pages.renamed.get(name):
            yield Finding("page renamed", name, "all quotes of it stand there", new_file=new, mends=True)
        elif name not in moved:
            yield _gone(asked, name, pages)


def _gone(asked: QuestionWithGold, name: str, pages: Pages) -> Finding:
    like = pages.of_like_name(name)
    near = () if like else pages.nearest(f"{asked.alone or asked.text} {asked.ground_truth}")
    return Finding("page gone", name, "a page of that file name is" if like else "", new_file=like, proposals=near)


def _answered(asked: QuestionWithGold, pages: Pages) -> Iterator[Finding]:
    """Yield a finding if a passage has every word of a question that nothing should answer."""
    words = terms(asked.alone)
    for hit in pages.collection.nearest(asked.alone) if words else ():
        chunk = hit.chunk
        share = pages.collection.covered(words, chunk.text)
        if share >= ANSWERED and chunk.doc_id not in asked.looked_at:
            quote = pages.best_piece(words, chunk.text)
            near = (Proposal(chunk.doc_id, quote, round(hit.score, 2), 1.0),)
            yield Finding("may be answered", why="a passage has every word of it", proposals=near)
            return


def _one_page(asked: QuestionWithGold, pages: Pages) -> Iterator[Finding]:
    """Yield a finding if one page has all quotes of a question that should need several pages."""
    first, *others = asked.quotes
    for name in pages.holding(first.quote):
        if all(holds_quote(pages.texts[name], quote.quote) or name in pages.holding(quote.quote) for quote in others):
            yield Finding("one page holds all", name, "every quote stands in this page", new_file=name)
            return
