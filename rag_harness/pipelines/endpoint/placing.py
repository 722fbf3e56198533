"""The documents of a service's contexts: found by id, else by text. Gold is never used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from rag_harness.files.sources import text_digest
from rag_harness.pipelines.endpoint.contexts import Context
from rag_harness.pipelines.endpoint.text_origins import TextOrigins
from rag_harness.retrieval.documents import document_of
from rag_harness.types import UNMARKED, Chunk, Document, Hit

BY_ID, BY_TEXT, BY_NOTHING = "id", "text", "nothing"


@dataclass(frozen=True)
class PlacedContexts:
    """Contexts as hits, and the number of contexts that were placed in each way."""

    hits: tuple[Hit, ...] = ()
    how: Mapping[str, int] = field(default_factory=dict)


class Placing:
    """Finds the documents of contexts in one set of data.

    Args:
        documents: reads the documents.
        name: the service's name. Chunks without a document are named after it.
        source: who found the hits.
    """

    def __init__(self, documents: Callable[[], Sequence[Document]], name: str, source: str = "service") -> None:
        self._documents, self._name, self._source = documents, name, source

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {document.doc_id: document.text for document in self._documents()}

    @cached_property
    def _ends(self) -> Mapping[str, str]:
        """Documents by each end of their paths, from the file name or its stem on; "" where several end so."""
        stems, names = dict[str, str](), dict[str, str]()
        for doc_id in self._texts:
            path = PurePosixPath(doc_id)
            for found, last in ((stems, path.stem), (names, path.name)):
                for end in _ends_of([*path.parts[:-1], last]):
                    found[end] = "" if end in found else doc_id
        return stems | names

    @cached_property
    def _deepest(self) -> int:
        return max((len(PurePosixPath(doc_id).parts) for doc_id in self._texts), default=0)

    @cached_property
    def _passages(self) -> TextOrigins:
        return TextOrigins(list(self._texts.values()))

    @cached_property
    def _squeezed(self) -> dict[str, str]:
        return {}

    def text_of(self, doc_id: str) -> str:
        """Return the text of a document; empty where there is no such document."""
        return self._texts.get(doc_id, "")

    def place(self, contexts: Sequence[Context]) -> PlacedContexts:
        """Return ``contexts`` as hits, in order."""
        found = [self._place(context) for context in contexts]
        taken: set[str] = set()
        ranked = enumerate(zip(contexts, found, strict=True), 1)
        hits = [self._hit(context, *at, rank, taken) for rank, (context, at) in ranked]
        return PlacedContexts(tuple(hits), dict(Counter(how for _, how in found)))

    def _place(self, context: Context) -> tuple[str, str]:
        """Return the id of the document ("" if unknown), and how it was found."""
        for name in (context.document, context.id, *context.others):
            doc_id = self._named(name) or self._named(document_of(name))
            if doc_id:
                return doc_id, BY_ID
        at = self._passages.find(context.text)
        return (list(self._texts)[at], BY_TEXT) if at is not None else ("", BY_NOTHING)

    def _named(self, name: str) -> str:
        """Return the document that a name tells: its id, or a path that ends like its path and no other's.

        A service may keep the documents below another root, so what stands before the whole path of a document counts
        for nothing. A folder that is told and differs does: the same name there is another document.
        """
        if not name or name in self._texts:
            return name
        path = PurePosixPath(name.replace("\\", "/"))
        # "3.12" is a numbered chunk, and not a file "3".
        stem = "" if path.suffix[1:].isdecimal() else path.stem
        folders = [part for part in path.parts[:-1] if part != "/"]
        return next((at for last in (path.name, stem) if last and (at := self._ending([*folders, last]))), "")

    def _ending(self, told: Sequence[str]) -> str:
        """Return the document whose path ends as a told one does, as far as both go."""
        for end in _ends_of(told[max(0, len(told) - self._deepest) :]):
            if end in self._ends:
                doc_id, length = self._ends[end], end.count("/") + 1
                is_whole = length in (len(told), len(PurePosixPath(doc_id).parts))
                return doc_id if is_whole else ""
        return ""

    def _hit(self, context: Context, doc_id: str, how: str, rank: int, taken: set[str]) -> Hit:
        own = (context.id or text_digest(context.text)).replace("#", ".")
        chunk_id = f"{doc_id}#{own}" if doc_id else f"{self._name}:{own}"
        chunk_id = chunk_id if chunk_id not in taken else f"{chunk_id}-{rank}"
        taken.add(chunk_id)
        marks = {"markup": UNMARKED} if doc_id and not self._is_verbatim(context.text, doc_id) else {}
        score = context.score if context.score is not None else 1 / rank
        chunk = Chunk(chunk_id, doc_id, context.text, metadata={**marks, "placed": how})
        return Hit(chunk, score, rank, source=self._source)

    def _is_verbatim(self, text: str, doc_id: str) -> bool:
        """Return whether a text stands literally in its document, Markdown included."""
        if doc_id not in self._squeezed:
            self._squeezed[doc_id] = " ".join(self._texts[doc_id].split())
        return " ".join(text.split()) in self._squeezed[doc_id]


def _ends_of(parts: Sequence[str]) -> list[str]:
    """Return the ends of a path, the longest first."""
    return ["/".join(parts[start:]) for start in range(len(parts))]
