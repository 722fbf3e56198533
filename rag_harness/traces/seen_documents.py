"""All documents of a trace, each once, and what became of them: what searches found, and what was left of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from rag_harness.traces.found_documents import FoundDocument
from rag_harness.traces.steps import SeenStep


class SeenDocuments:
    """Numbers documents from 0, in the order in which they were seen. What two spans name may be one document.

    Attributes:
        all: each document, with whatever any span has told of it.
    """

    def __init__(self) -> None:
        self.all: list[FoundDocument] = []
        self._by_both: dict[tuple[str, str], int] = {}
        self._by_id: dict[str, int] = {}
        self._by_text: dict[str, int] = {}

    def number(self, document: FoundDocument) -> int:
        """Return the number of a document. Two chunks may have the id of one page, so texts count where both have."""
        at = self._by_both.get((document.id, document.text))
        if at is None and not document.text:
            at = self._by_id.get(document.id)
        if at is None and document.text:
            at = self._by_text.get(document.text)
            # Two chunks with ids of their own may have the same text.
            at = at if at is None or not document.id or not self.all[at].id else None
        if at is None:
            at = len(self.all)
            self.all.append(document)
        self._note(document, at)
        return at

    def _note(self, document: FoundDocument, at: int) -> None:
        known = self.all[at]
        if known is not document and not (known.text and known.id and known.names):
            self.all[at] = known = replace(
                known, text=known.text or document.text, id=known.id or document.id, names=known.names or document.names
            )
        self._by_both.setdefault((document.id, document.text), at)
        self._by_both.setdefault((known.id, known.text), at)
        if known.id:
            self._by_id.setdefault(known.id, at)
        if known.text:
            self._by_text.setdefault(known.text, at)


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What the searches of a trace came to; documents by their numbers, each once.

    Attributes:
        documents: all of them, by number.
        of_step: what each step returned, best first, as it tells them, in the order of the steps.
        first: what the first stages found, in their order: of joined searches the joined list comes first.
        left: what was left of it after all rerankers.
    """

    documents: Sequence[FoundDocument]
    of_step: Sequence[Mapping[int, FoundDocument]]
    first: Sequence[int]
    left: Sequence[int]


def outcome_of(steps: Sequence[SeenStep]) -> SearchOutcome:
    """Return what the searches of a trace came to."""
    seen = SeenDocuments()
    of_step = [_numbered(step, seen) for step in steps]
    first, left = _Lists(), _Lists()
    # A search ends before the reranker around it does.
    for step, found in sorted(zip(steps, of_step, strict=True), key=lambda each: each[0].span.end_ns):
        # What a reranker that failed was given is still there.
        if step.returns_documents and not step.has_lost_documents:
            numbers = list(found)
            if step.kind != "rerank":
                first.take(numbers, replaces=step.kind == "", keeps=True)
            left.take(numbers, replaces=step.kind != "retrieve", keeps=False)
    return SearchOutcome(seen.all, of_step, first.flat(), left.flat())


def _numbered(step: SeenStep, seen: SeenDocuments) -> dict[int, FoundDocument]:
    found: dict[int, FoundDocument] = {}
    for document in step.found or ():
        found.setdefault(seen.number(document), document)
    return found


class _Lists:
    """Lists of numbers, each of which may take the place of those that it was made of. The work is linear."""

    def __init__(self) -> None:
        # Each list that is there, with those that come behind it, which are such pairs, too.
        self._lists: dict[int, tuple[Sequence[int], Sequence[Any]]] = {}
        # By number: the lists in which it came; by list that stands behind another: that one.
        self._holding: dict[int, list[int]] = {}
        self._around: dict[int, int] = {}
        self._taken = 0

    def take(self, new: Sequence[int], replaces: bool, keeps: bool) -> None:
        """Take a list.

        Args:
            new: the list.
            replaces: whether it was made of others: those with which it shares a number, or the last one where there
                is none.
            keeps: whether what it has left out of them comes behind it.
        """
        key, self._taken = self._taken, self._taken + 1
        used = self._made_of(new) if replaces else []
        behind = [self._lists.pop(each) for each in used]
        self._around |= dict.fromkeys(used, key) if keeps else {}
        self._lists[key] = new, behind if keeps else ()
        for number in new:
            # All lists with a number go into the one that is made of them.
            self._holding[number] = [] if replaces else self._holding.get(number, [])
            self._holding[number].append(key)

    def flat(self) -> list[int]:
        """Return all numbers, each once."""
        found: dict[int, None] = {}
        waiting = list(reversed(self._lists.values()))
        while waiting:
            numbers, behind = waiting.pop()
            found |= dict.fromkeys(numbers)
            waiting += reversed(behind)
        return list(found)

    def _made_of(self, new: Sequence[int]) -> list[int]:
        found = {self._outermost(key) for number in new for key in self._holding.get(number, ())}
        there = sorted(key for key in found if key in self._lists)
        return there or list(islice(reversed(self._lists), 1))

    def _outermost(self, key: int) -> int:
        passed = []
        while key in self._around:
            passed.append(key)
            key = self._around[key]
        self._around |= dict.fromkeys(passed, key)
        return key
