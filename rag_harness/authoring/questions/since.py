"""Finds the questions that a change of documents and questions affects, and the reasons."""

from __future__ import annotations

from collections.abc import Collection as Some
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from rag_harness.authoring.questions.document_collection import DocumentCollection

Why = Literal["own row", "gold", "retrieved", "near", "turns"]
WHYS: Mapping[Why, str] = {
    "own row": "by their own row",
    "gold": "by their gold",
    "retrieved": "by what was retrieved for them",
    "near": "by a changed page that has their words",
    "turns": "by an earlier turn of their conversation",
}
"""The reasons in the order in which they are checked, worded for a sentence."""


@dataclass(frozen=True, slots=True)
class DatedQuestion:
    """What decides whether a question is affected; ``pages`` are those of its gold.

    ``text`` is what is searched for; for a later turn, words that say what it is about. ``stands_on`` is the turn
    before it, empty for other questions.
    """

    name: str
    text: str
    pages: frozenset[str]
    stands_on: str = ""


@dataclass(frozen=True, slots=True)
class DataChange:
    """The changes since a revision: ``pages`` that are new, changed or gone, and questions with a changed row."""

    pages: frozenset[str]
    questions: frozenset[str]


def affected(
    questions: Iterable[DatedQuestion],
    change: DataChange,
    retrieved: Mapping[str, Some[str]],
    collection: DocumentCollection | None,
    k: int,
) -> dict[str, Why]:
    """Return the questions that a change affects, each with the first reason.

    Args:
        questions: all of them; turns of a conversation in their order.
        change: the change of documents and questions.
        retrieved: by query id, the documents that earlier runs retrieved.
        collection: the current documents; None if none has changed.
        k: a changed page affects a question if it is among the first ``k`` hits of a search by words.
    """
    found: dict[str, Why] = {}
    for each in questions:
        why = _why(each, change, retrieved, collection, k) or ("turns" if each.stands_on in found else None)
        found |= {each.name: why} if why else {}
    return found


def _why(
    asked: DatedQuestion,
    change: DataChange,
    retrieved: Mapping[str, Some[str]],
    collection: DocumentCollection | None,
    k: int,
) -> Why | None:
    if asked.name in change.questions:
        return "own row"
    if asked.pages & change.pages:
        return "gold"
    if not change.pages.isdisjoint(retrieved.get(asked.name, ())):
        return "retrieved"
    near = collection.nearest(asked.text, k) if collection is not None and change.pages else ()
    return "near" if any(hit.chunk.doc_id in change.pages for hit in near) else None
