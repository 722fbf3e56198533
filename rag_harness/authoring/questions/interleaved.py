"""Combines two kinds of drafts in one stream, with the rarer kind spread among the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

from rag_harness.authoring.questions.direct import direct_drafts
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.multi_hop import multi_hop_drafts
from rag_harness.authoring.questions.version_questions import old_and_new_drafts, version_drafts

EVERY = 6
"""One draft in so many is about something that another version of a page states differently."""


def direct_and_versions(collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield direct drafts, with some among them that a stale answer fails."""
    chance = Random(f"{seed} versions")
    return _between(direct_drafts(collection, seed), version_drafts(collection, chance))


def hops_and_versions(collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield multi-hop drafts, with some among them that ask for old and new."""
    chance = Random(f"{seed} old and new")
    return _between(multi_hop_drafts(collection, seed), old_and_new_drafts(collection, chance))


def _between(many: Iterator[tuple[Draft, ...]], some: Iterator[tuple[Draft, ...]]) -> Iterator[tuple[Draft, ...]]:
    while batch := list(islice(many, EVERY)):
        yield from batch
        yield from islice(some, 1)
    yield from some
