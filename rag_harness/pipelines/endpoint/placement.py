"""Documents of a service's contexts, found by id, else by text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rag_harness.core.files import text_digest
from rag_harness.core.text.comparison import words_of
from rag_harness.core.text.page_names import PageNames
from rag_harness.core.text.shingles import PageTexts
from rag_harness.core.types import UNMARKED, Chunk, Document, Hit, Metadata
from rag_harness.pipelines.endpoint.answer import MOST_CONTEXTS, Context, check_number, is_uuid
from rag_harness.records.document_ranking import document_of

if TYPE_CHECKING:
    from rag_harness.data.datasets import Data


BY_ID, BY_TEXT, BY_NAME, BY_NOTHING = "id", "text", "name", "nothing"
"""Where there are no documents to look in, a document is taken by the name that the context tells."""
NO_TEXT, OTHER_TEXT = "id, no text", "id, other text"
"""Found by id or name, but the context has no text, or one that shares no run of six words with the document."""


@dataclass(frozen=True)
class PlacedContexts:
    """Contexts as hits, and the number of contexts that were placed in each way."""

    hits: tuple[Hit, ...] = ()
    how: Mapping[str, int] = field(default_factory=dict)


class _Place(NamedTuple):
    """The document of a context, "" if unknown; how it was found; whether its text is not literally that document's."""

    doc_id: str
    how: str
    lacks_marks: bool = False


class Placing:
    """Finds the documents of contexts in one set of data.

    Args:
        documents: reads the documents; None where there are none to look in.
        name: the service's name. Chunks without a document are named after it.
        source: who found the hits.
        most: the most contexts of an answer.
    """

    def __init__(
        self,
        documents: Callable[[], Sequence[Document]] | None,
        name: str,
        source: str = "service",
        most: int = MOST_CONTEXTS,
    ) -> None:
        self._documents, self._name, self._source, self._most = documents, name, source, most
        # Shared by all chunks that say the same: a mapping of its own takes a fifth of the memory of a context.
        self._about: dict[_Place, Metadata] = {}

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {} if self._documents is None else {document.doc_id: document.text for document in self._documents()}

    @cached_property
    def _names(self) -> PageNames:
        return PageNames(lambda: self._texts)

    @cached_property
    def _pages(self) -> PageTexts:
        return PageTexts(self._texts)

    def text_of(self, doc_id: str) -> str:
        """Return the text of a document; empty where the document does not exist."""
        return self._texts.get(doc_id, "")

    def place(self, contexts: Sequence[Context]) -> PlacedContexts:
        """Return ``contexts`` as hits, in order.

        Raises:
            ModelOutputError: they are too many.
        """
        check_number(len(contexts), self._most, self._name)
        found = [self._place(context) for context in contexts]
        taken: set[str] = set()
        ranked = enumerate(zip(contexts, found, strict=True), 1)
        hits = [self._hit(context, at, rank, taken) for rank, (context, at) in ranked]
        return PlacedContexts(tuple(hits), dict(Counter(at.how for at in found)))

    def _place(self, context: Context) -> _Place:
        if self._documents is None:
            named = _told(context)
            return _Place(named, (BY_NAME if context.text.strip() else NO_TEXT) if named else BY_NOTHING)
        for name in (context.document, context.id, *context.others):
            doc_id = self._names.find(name) or self._names.find(document_of(name))
            if doc_id:
                return _Place(doc_id, self._by_id(context.text, doc_id), not self._pages.quotes(doc_id, context.text))
        doc_id = self._pages.find(context.text)
        return (
            _Place(doc_id, BY_TEXT, not self._pages.quotes(doc_id, context.text)) if doc_id else _Place("", BY_NOTHING)
        )

    def _by_id(self, text: str, doc_id: str) -> str:
        """Return how well the text of a context agrees with the document that its id names.

        A service may shorten texts or join them, so one run of words in common is enough. A text with fewer words than
        a run has to be there whole, in one sequence.
        """
        if not words_of(text):
            return NO_TEXT
        return BY_ID if self._pages.says(doc_id, text) else OTHER_TEXT

    def _hit(self, context: Context, at: _Place, rank: int, taken: set[str]) -> Hit:
        doc_id, own = at.doc_id, (context.id or text_digest(context.text)).replace("#", ".")
        chunk_id = f"{doc_id}#{own}" if doc_id else f"{self._name}:{own}"
        chunk_id = chunk_id if chunk_id not in taken else f"{chunk_id}-{rank}"
        taken.add(chunk_id)
        marks = {"markup": UNMARKED} if at.lacks_marks else {}
        about = self._about.setdefault(at._replace(doc_id=""), {**marks, "placed": at.how})
        score = context.score if context.score is not None else 1 / rank
        chunk = Chunk(chunk_id, doc_id, context.text, metadata=about)
        return Hit(chunk, score, rank, source=self._source)


def placing_in(data: Data, name: str, source: str = "service", most: int = MOST_CONTEXTS) -> Placing:
    """Return the finder of the documents of contexts in ``data``; without documents, it takes names as they are."""
    return Placing((lambda: data.documents) if data.has_documents else None, name, source, most)


def _told(context: Context) -> str:
    """Return the document that a context tells: by its name, or by an id with a ``#``, which is a chunk of one.

    Another id may be a number, which says nothing of a document.
    """
    names = (context.document, context.id.rpartition("#")[0], *context.others)
    return next((name for name in names if name and not is_uuid(name)), "")
