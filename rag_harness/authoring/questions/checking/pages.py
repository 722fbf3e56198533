"""Looks up documents for the gold of questions: which exist, which were renamed, which are near a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection as Some
from collections.abc import Mapping, Sequence
from functools import cache, cached_property

from rag_harness.authoring.questions.checking.findings import Proposal
from rag_harness.authoring.questions.checking.gold_questions import QuestionWithGold
from rag_harness.authoring.questions.checking.placing import holds_quote, otherwise_marked, pieces, tells_page
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.dataset.slugs import numbered
from rag_harness.retrieval.chunking.heading_sections import read_headings
from rag_harness.words.terms import terms

PROPOSED = 3
_LOOKED_AT = 10


class Pages:
    """A collection, searched for the gold of questions.

    Args:
        collection: the documents as they are now.
        asked: the questions.
        unread: names of files that exist and could not be read.
    """

    def __init__(
        self, collection: DocumentCollection, asked: Sequence[QuestionWithGold], unread: Some[str] = ()
    ) -> None:
        self.collection: DocumentCollection = collection
        self.unread: frozenset[str] = frozenset(unread)
        self._asked = asked
        self.texts: Mapping[str, str] = {each.doc_id: each.text for each in collection.documents}
        self.holding = cache(self._holding)

    def name_of(self, gold: str) -> str:
        """Return the page of a gold id, which names a page, a heading or a chunk."""
        page = gold.rpartition("#")[0]
        return gold if gold in self.texts or not page else page

    def has_heading(self, gold: str) -> bool:
        """Whether the page has the heading that gold names. Gold that names a page or a chunk has no heading."""
        page, _, anchor = gold.rpartition("#")
        if gold in self.texts or page not in self.texts or anchor.rpartition("_")[2].isdigit() or anchor.isdigit():
            return True
        return anchor in numbered(heading.title for heading in read_headings(self.texts[page]))

    def _holding(self, quote: str) -> Mapping[str, str]:
        """Return the pages with a quote, even if marked up differently, and the passage as it is there.

        Only the first pages of a search by words are looked at.
        """
        found: dict[str, str] = {}
        for name in dict.fromkeys(hit.chunk.doc_id for hit in self.collection.nearest(quote, _LOOKED_AT)):
            text = self.texts[name]
            if holds_quote(text, quote):
                found[name] = quote
            elif marked := otherwise_marked(text, quote):
                found[name] = marked.text
        return found

    @cached_property
    def renamed(self) -> Mapping[str, str]:
        """Maps pages that are gone to the pages that have all of their quotes, from all questions."""
        quotes: dict[str, set[str]] = {}
        for asked in self._asked:
            for quote in asked.quotes:
                if quote.filename and quote.filename not in self.texts:
                    quotes.setdefault(quote.filename, set()).add(quote.quote)
        named = {name for asked in self._asked for name in map(self.name_of, asked.pages)} | quotes.keys()
        found: dict[str, str] = {}
        for name, all_quotes in quotes.items():
            holders = Counter(page for quote in sorted(all_quotes) for page in self.holding(quote))
            new = [page for page, count in holders.items() if count == len(all_quotes)]
            # A page that questions already name is not the new name of another page.
            unknown = [page for page in new if page not in named]
            if len(unknown or new) == 1 and any(map(tells_page, all_quotes)):
                found[name] = (unknown or new)[0]
        return found

    def of_like_name(self, name: str) -> str:
        """Return the only page in another folder with the file name of a page that is gone; "" if there is none."""
        last = name.rpartition("/")[2]
        found = [page for page in self.texts if page.rpartition("/")[2] == last]
        return found[0] if len(found) == 1 else ""

    def nearest(self, wanted: str, most: int = PROPOSED) -> tuple[Proposal, ...]:
        """Return the passages nearest to a text by words, one from each chunk, current pages first."""
        hits = self.collection.nearest(wanted, _LOOKED_AT)
        ranked = sorted(hits, key=lambda hit: hit.chunk.doc_id in self.collection.superseded)
        words = terms(wanted)
        return tuple(
            Proposal(
                hit.chunk.doc_id,
                self.best_piece(words, hit.chunk.text),
                round(hit.score, 2),
                round(self.collection.covered(words, hit.chunk.text), 2),
            )
            for hit in ranked[:most]
        )

    def best_piece(self, words: frozenset[str], text: str) -> str:
        """Return the sentence, list item or row of a text with most of the given words, weighted by rarity."""
        return max(pieces(text), key=lambda piece: self.collection.covered(words, piece), default=text)
