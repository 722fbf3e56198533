"""What a reviewer sees of a question: its evidence within its pages, and nearby passages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.filters import ANSWERED
from rag_harness.authoring.questions.query_rows import TEMPTS
from rag_harness.authoring.questions.review.faults import against_its_kind, malformed, not_there
from rag_harness.authoring.questions.review.reviewed_rows import QueryRow, asked_alone
from rag_harness.authoring.questions.review.shown_question import Near, Shown, ShownQuote
from rag_harness.dataset.queries import QueryLine
from rag_harness.errors import meant
from rag_harness.types import NEGATIVE, Chunk
from rag_harness.words.terms import terms

AROUND = 600
"""Characters of a page before and after a quote."""
NEAREST = 3
_TRIED = 200
"""How many passages of all pages are searched for those of one page."""
LONGEST_NEIGHBOUR = 1_200
"""How many characters of a nearby passage are shown."""


class Showing:
    """The documents of the questions."""

    def __init__(self, collection: DocumentCollection) -> None:
        self._collection = collection

    def prepare(self) -> None:
        """Prepare what all questions share. Many documents take long; otherwise the first question waits for it."""
        len(self._chunks_of), len(self._collection.superseded)
        self._collection.nearest("")
        self._collection.rarity("")

    @property
    def names(self) -> Iterable[str]:
        """The names of the pages."""
        return self._collection.by_id

    def text_of(self, name: str) -> str | None:
        """Return the text of a page; None if it does not exist."""
        document = self._collection.by_id.get(name)
        return document.text if document else None

    def of(self, row: QueryRow) -> Shown:
        """Return what is shown of a row."""
        places = tuple(self._place(each["filename"], each["quote"]) for each in row.get("evidence") or ())
        return Shown(places, tuple(self._near(row)), tuple(self.faults(row)))

    def faults(self, row: QueryRow) -> list[str]:
        """Return why a row may not be accepted, with what to do; empty if it may."""
        if unread := malformed(row):
            return unread
        line = QueryLine.model_validate(row)
        places = [self._place(each.filename, each.quote) for each in line.evidence]
        named = dict.fromkeys([*line.context_reference, *line.qrels])
        gone = [self._no_page(name) for name in named if name not in self._collection.by_id]
        return [*(place.fault for place in places if place.fault), *gone, *against_its_kind(line)]

    def not_answered_by(self, row: QueryRow) -> list[str]:
        """Return the shown pages with all words of a negative question; empty for other questions."""
        near = self._near(row) if row.get("query_type") == NEGATIVE else []
        return list(dict.fromkeys(each.filename for each in near if each.share >= ANSWERED))

    def _place(self, filename: str, quote: str) -> ShownQuote:
        document = self._collection.by_id.get(filename)
        if document is None:
            return ShownQuote(filename, quote, fault=self._no_page(filename))
        start = document.text.find(quote)
        if start < 0:
            fault = not_there(filename, quote, document.text)
            return ShownQuote(filename, quote, fault=fault, nearest=self._nearest(filename, quote))
        end = start + len(quote)
        replaced = self._collection.superseded.get(filename)
        return ShownQuote(
            filename,
            quote,
            _behind_a_border(document.text[max(0, start - AROUND) : start], start <= AROUND),
            _before_a_border(document.text[end : end + AROUND], end + AROUND >= len(document.text)),
            self._section(filename, start),
            replaced_by="" if replaced is None else replaced or "?",
        )

    def _nearest(self, filename: str, quote: str) -> str:
        found = (hit.chunk for hit in self._collection.nearest(quote, _TRIED) if hit.chunk.doc_id == filename)
        # In a language whose words cannot be read, show the beginning of the page.
        text = next((chunk.text for chunk in found), self._collection.by_id[filename].text)
        return _cut(text.strip())

    def _no_page(self, name: str) -> str:
        hint = meant(name, self._collection.by_id)
        return f"{name!r} is no page of the documents.{hint} Edit the question, or reject it."

    def _section(self, doc_id: str, at: int) -> tuple[str, ...]:
        chunks = self._chunks_of[doc_id]
        place = bisect_right(chunks, at, key=lambda chunk: chunk.start) - 1
        return chunks[place].section if place >= 0 else ()

    @cached_property
    def _chunks_of(self) -> Mapping[str, list[Chunk]]:
        found: dict[str, list[Chunk]] = {name: [] for name in self.names}
        for chunk in self._collection.chunks:
            found[chunk.doc_id].append(chunk)
        return found

    def _near(self, row: QueryRow) -> list[Near]:
        """Return the passages nearest to a negative question; else those of other pages with most of its words."""
        collection, question = self._collection, asked_alone(row)
        wanted = terms(question)
        hits = [hit.chunk for hit in collection.nearest(question)]
        found = [
            Near(each.doc_id, _cut(each.text), each.section, collection.covered(wanted, each.text)) for each in hits
        ]
        if row.get("query_type") == NEGATIVE:
            return found[:NEAREST]
        own = own_pages(row)
        least = TEMPTS * max((near.share for near in found if near.filename in own), default=1.0)
        others = {near.filename: near for near in reversed(found) if near.filename not in own and near.share >= least}
        return sorted(others.values(), key=lambda near: -near.share)[:NEAREST]


def own_pages(row: QueryRow) -> set[str]:
    """Return the pages that a row names as its gold, or quotes."""
    named = row.get("context_reference") or ()
    quoted = (each["filename"] for each in row.get("evidence") or ())
    return {*([named] if isinstance(named, str) else named), *(row.get("qrels") or ()), *quoted}


def _behind_a_border(text: str, is_all: bool) -> str:
    """Return the text from its first complete line on."""
    first = text.find("\n")
    return text if is_all or first < 0 else text[first + 1 :]


def _before_a_border(text: str, is_all: bool) -> str:
    last = text.rfind("\n")
    return text if is_all or last < 0 else text[:last]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_NEIGHBOUR else f"{text[:LONGEST_NEIGHBOUR]} …"
