"""Finds the contexts of imported questions in the documents: which page, and which of its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rag_harness.authoring.importing.imported import ImportedQuestion
from rag_harness.authoring.importing.notes import Notes
from rag_harness.authoring.questions.checking.placing import otherwise_marked, tells_page
from rag_harness.pipelines.endpoint.contexts import Context
from rag_harness.pipelines.endpoint.placing import Placing
from rag_harness.types import Document, Evidence

_PARAGRAPHS = re.compile(r"\n[ \t]{0,80}\n")
_SHOWN = 60
_LONGEST = 5_000
"""The most characters of a paragraph that is looked for with other marks than the page has."""


@dataclass
class PlacedGold:
    """The gold of a question in our documents.

    Attributes:
        pages: the documents, each once.
        evidence: verbatim quotes of them.
        lost: contexts and names that no document has.
    """

    pages: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class ContextPlaces:
    """Finds contexts and names of documents in a knowledge base.

    Args:
        documents: the documents.
        notes: takes what is not found.
    """

    def __init__(self, documents: Sequence[Document], notes: Notes) -> None:
        self._texts = {document.doc_id: document.text for document in documents}
        self._placing, self._notes = Placing(lambda: documents, "import"), notes

    def place(self, question: ImportedQuestion) -> PlacedGold:
        """Return where the contexts and documents of a question are. What is not found is noted."""
        found = PlacedGold()
        for name in question.documents:
            if page := self._page_of("", name):
                found.pages.append(page)
            else:
                found.lost.append(name)
                self._lack(name, question.where)
        for text, name in question.contexts:
            self._add(found, text, name, question.where)
        found.pages = list(dict.fromkeys([*(each.filename for each in found.evidence), *found.pages]))
        return found

    def check(self, pages: Iterable[str], where: str) -> None:
        """Note those of the documents that a line names and the folder does not have."""
        for name in dict.fromkeys(pages):
            if name not in self._texts:
                self._lack(name, where)

    def _lack(self, name: str, where: str) -> None:
        self._notes.lose(f"a document that the folder does not have, e.g. {name[:_SHOWN]!r}", where)

    def _add(self, found: PlacedGold, text: str, name: str, where: str) -> None:
        page = self._page_of(text, name)
        if not page:
            found.lost.append(text)
            self._notes.lose("a context that no document has, or several have", where)
            return
        quotes = self._quotes(page, text)
        if not quotes:
            self._notes.tell(
                "a context whose page is found, and not its words: the page is gold, without a quote", where
            )
            found.pages.append(page)
        found.evidence += [each for each in quotes if each not in found.evidence]

    def _page_of(self, text: str, name: str) -> str:
        """Return the document of a context, by its text; by its name where there is no text."""
        by_text = self._placing.place([Context(text)]).hits[0].chunk.doc_id if text else ""
        return by_text or (self._placing.place([Context("", document=name)]).hits[0].chunk.doc_id if name else "")

    def _quotes(self, page: str, text: str) -> list[Evidence]:
        """Return a quote for each paragraph of a context that stands in the page, in the page's own words.

        A whole context is often longer than a chunk, and a quote that a chunk's border divides is found in none.
        """
        paragraphs = (each.strip() for each in _PARAGRAPHS.split(text))
        found = (self._verbatim(self._texts[page], each) for each in paragraphs if tells_page(each))
        return [Evidence(page, quote) for quote in found if quote]

    @staticmethod
    def _verbatim(text: str, paragraph: str) -> str:
        if paragraph in text:
            return paragraph
        passage = otherwise_marked(text, paragraph) if len(paragraph) <= _LONGEST else None
        return passage.text if passage else ""
