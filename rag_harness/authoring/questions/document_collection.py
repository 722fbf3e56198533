"""The documents that questions are about: a search by words, links between them, and superseded pages."""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from urllib.parse import unquote

from rag_harness.authoring.kb.plan import PlanPage
from rag_harness.authoring.questions.facts import Fact, read_facts
from rag_harness.authoring.questions.planned_facts import PlannedPages
from rag_harness.authoring.questions.sentence_facts import seen
from rag_harness.core.text.languages import ENGLISH
from rag_harness.core.text.terms import terms
from rag_harness.core.types import Chunk, Document, Hit
from rag_harness.models.reader_prompt import PromptSource, Version, versions
from rag_harness.retrieval.bm25 import Bm25Index
from rag_harness.retrieval.chunking.markdown import read_sections


def superseded_pages(documents: Sequence[Document]) -> dict[str, str]:
    """Return the id of each superseded page with its replacement's id; "" if the replacement is not named."""
    told = _told(documents)
    return told if told or any("status" in each.metadata for each in documents) else _read(documents)


def _told(documents: Sequence[Document]) -> dict[str, str]:
    named = {str(each.metadata.get("id", each.doc_id)): each.doc_id for each in documents}
    found = {each.doc_id: "" for each in documents if each.metadata.get("status") == "outdated"}
    for document in documents:
        old = str(document.metadata.get("supersedes") or "")
        if named.get(old, old) in {each.doc_id for each in documents} if old else False:
            found[named.get(old, old)] = document.doc_id
    return found


def _read(documents: Sequence[Document]) -> dict[str, str]:
    # A source's filename ends at the first blank.
    known = versions(PromptSource(n, each.doc_id.replace(" ", "-"), each.text) for n, each in enumerate(documents))
    families: dict[str, list[int]] = defaultdict(list)
    for number, version in known.items():
        families[version.family].append(number)
    found = {documents[number].doc_id: "" for number, version in known.items() if version.superseded}
    for members in families.values():
        current = _current(members, known)
        for number in members:
            if current is not None and number != current:
                found[documents[number].doc_id] = documents[current].doc_id
    return found


def _current(members: Sequence[int], known: Mapping[int, Version]) -> int | None:
    for one in members if len(members) > 1 else ():
        if all(known[one].supersedes(known[other]) for other in members if other != one):
            return one
    return None


CHUNK = 1_000
"""From so many characters on, a chunk is closed: some paragraphs of one section."""
NEAREST = 10
MOST_FACTS = 2_000
"""The most facts of a page: otherwise a page of 10 MB would be read for minutes."""
_LOOKED_AT = 5_000
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\]\([^)]{0,500}\)|\]\[[^\]]{0,300}\]|https?://\S+", re.S)
_SMALL = re.compile(r"(?<![\w'’.:/-])[a-z][a-z'’]*(?![\w.:/=(-])")
_GREAT = re.compile(r"(?<=[a-z,] )[A-Z][a-z'’]*\b")


class DocumentCollection:
    """Documents and an index of their chunks by words.

    Args:
        documents: the documents, in the order of their ids.
        planned: pages of the plan with facts that they must state, by id; empty without a plan.
    """

    def __init__(self, documents: Sequence[Document], planned: Mapping[str, PlanPage] | None = None) -> None:
        self.documents = documents
        self._pages = planned or {}
        self.planned: PlannedPages = PlannedPages(self._pages)
        self._shares: dict[re.Pattern[str], float] = {}
        self._facts = lru_cache(maxsize=256)(self._read_facts)
        self._page_terms = lru_cache(maxsize=256)(lambda doc_id: self.terms(seen(self.by_id[doc_id].text)))

    @cached_property
    def language(self) -> str:
        """The most frequent language of the documents. ``by_language`` has a collection of each."""
        return next(iter(self._counted), ENGLISH)

    @cached_property
    def by_language(self) -> Mapping[str, DocumentCollection]:
        """The documents of each language as a collection of their own, the most frequent first."""
        if len(self._counted) < 2:
            return {self.language: self}
        return {language: self._of(language) for language in self._counted}

    @cached_property
    def _counted(self) -> Mapping[str, int]:
        return dict(Counter(document.language for document in self.documents).most_common())

    def _of(self, language: str) -> DocumentCollection:
        documents = [document for document in self.documents if document.language == language]
        return DocumentCollection(documents, self._pages)

    def about(self, pages: Sequence[str]) -> DocumentCollection:
        """Return the collection in the language of the first of ``pages``."""
        first = self.by_id.get(pages[0]) if pages else None
        return self.by_language[first.language] if first else self

    def terms(self, text: str) -> frozenset[str]:
        """Return the content words of a text in the collection's language."""
        return terms(text, self.language)

    @cached_property
    def by_id(self) -> Mapping[str, Document]:
        """The documents by their ids."""
        return {document.doc_id: document for document in self.documents}

    @cached_property
    def superseded(self) -> Mapping[str, str]:
        """The superseded pages, with the page that replaced each; "" if that page is not known."""
        return superseded_pages(self.documents)

    @cached_property
    def current(self) -> Sequence[Document]:
        """The documents that are not superseded."""
        return [document for document in self.documents if document.doc_id not in self.superseded]

    @cached_property
    def chunks(self) -> Sequence[Chunk]:
        """All chunks, in the order of the documents."""
        return [chunk for document in self.documents for chunk in _chunks(document)]

    def facts(self, doc_id: str) -> Sequence[Fact]:
        """Return the facts of a document: first the planned ones, then the first ``MOST_FACTS`` of the text."""
        return self._facts(doc_id)

    def _read_facts(self, doc_id: str) -> Sequence[Fact]:
        found = list(islice(read_facts(self.by_id[doc_id], self.names), MOST_FACTS))
        return self.planned.facts(self.by_id[doc_id], found, self.names)

    def page_terms(self, doc_id: str) -> frozenset[str]:
        """Return the content words of a document, stemmed."""
        return self._page_terms(doc_id)

    @cached_property
    def _index(self) -> Bm25Index:
        return Bm25Index(lambda: self.chunks)

    def nearest(self, question: str, k: int = NEAREST) -> list[Hit]:
        """Return the ``k`` chunks that BM25 finds for a question, best first, superseded pages included."""
        return self._index.search(question, k)

    @cached_property
    def names(self) -> frozenset[str]:
        """The words that have a capital within sentences more often than not."""
        small: Counter[str] = Counter()
        great: Counter[str] = Counter()
        for chunk in self.chunks:
            prose = _CODE.sub(" ", chunk.text)
            small.update(_SMALL.findall(prose))
            great.update(_GREAT.findall(prose))
        return frozenset(word for word, count in great.items() if 2 * count > small[word.lower()])

    def share(self, pattern: re.Pattern[str]) -> float:
        """Return the share of the chunks with a match of a pattern, among the first 5,000."""
        if pattern not in self._shares:
            looked = self.chunks[:_LOOKED_AT]
            self._shares[pattern] = sum(bool(pattern.search(chunk.text)) for chunk in looked) / max(1, len(looked))
        return self._shares[pattern]

    @cached_property
    def _holders(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for chunk in self.chunks:
            for term in self.terms(chunk.text):
                found[term] = found.get(term, 0) + 1
        return found

    def rarity(self, term: str) -> float:
        """Return how rare a term is among chunks, in nats: 0 if every chunk has it."""
        return math.log((len(self.chunks) + 1) / (self._holders.get(term, 0) + 1))

    def covered(self, wanted: frozenset[str], text: str) -> float:
        """Return the share of ``wanted`` that a text has, weighted by rarity: 0 to 1."""
        whole = sum(self.rarity(term) + 0.1 for term in wanted)
        there = _terms_of(text, self.language)
        return sum(self.rarity(term) + 0.1 for term in wanted if term in there) / whole if whole else 0.0


@lru_cache(maxsize=256)
def _terms_of(text: str, language: str) -> frozenset[str]:
    return terms(text, language)


def _chunks(document: Document) -> Iterator[Chunk]:
    number = 0
    for section in read_sections(document.text):
        start = section.start
        for place, block in enumerate(section.blocks):
            if block.end - start >= CHUNK or place == len(section.blocks) - 1:
                text = document.text[start : block.end]
                name, about = f"{document.doc_id}#{number}", document.metadata
                yield Chunk(name, document.doc_id, text, start, block.end, section.path, number, metadata=about)
                number, start = number + 1, block.end


_TARGET = re.compile(r"\]\(<?([^)<>#?\s]{1,300})(?:[#?][^)\s]{0,100})?>?(?:\s[^)]{0,200})?\)")
_FOUND = 3
"""How many pages a search adds."""


def neighbours(document: Document, collection: DocumentCollection) -> list[str]:
    """Return the current documents that a document links to, then those nearest to its title and headings."""
    linked = [_resolved(document.doc_id, target) for target in _TARGET.findall(document.text)]
    found = [hit.chunk.doc_id for hit in collection.nearest(_about(document))]
    near = [doc_id for doc_id in dict.fromkeys(found) if doc_id not in linked and doc_id != document.doc_id][:_FOUND]
    known = collection.by_id
    both = dict.fromkeys([*linked, *near])
    return [name for name in both if name in known and name != document.doc_id and name not in collection.superseded]


def are_linked(first: Document, second: Document) -> bool:
    """Whether one of two documents links to the other."""
    pairs = ((first, second), (second, first))
    return any(
        _resolved(one.doc_id, target) == two.doc_id for one, two in pairs for target in _TARGET.findall(one.text)
    )


def leads_to(quote: str, doc_id: str, other: str) -> bool:
    """Whether a quote of one document links to another."""
    return any(_resolved(doc_id, target) == other for target in _TARGET.findall(quote))


def _about(document: Document) -> str:
    return f"{document.title} {document.text[:300]}"


def _resolved(doc_id: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(doc_id), unquote(target)))
