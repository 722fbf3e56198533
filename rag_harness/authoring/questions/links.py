"""The documents that a document leads to: by its links, else by a search for its words."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import unquote

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.types import Document

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
