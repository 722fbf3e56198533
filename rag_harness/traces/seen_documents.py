"""All documents of a trace, each once, and what became of them: what searches found, and what was left of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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
    first: list[list[int]] = []
    left: list[list[int]] = []
    # A search ends before the reranker around it does.
    for step, found in sorted(zip(steps, of_step, strict=True), key=lambda each: each[0].span.end_ns):
        # What a reranker that failed was given is still there.
        if step.returns_documents and not step.has_lost_documents:
            numbers = list(found)
            if step.kind != "rerank":
                first = _with(first, numbers, replaces=step.kind == "", keeps=True)
            left = _with(left, numbers, replaces=step.kind != "retrieve", keeps=False)
    return SearchOutcome(seen.all, of_step, _flat(first), _flat(left))


def _numbered(step: SeenStep, seen: SeenDocuments) -> dict[int, FoundDocument]:
    found: dict[int, FoundDocument] = {}
    for document in step.found or ():
        found.setdefault(seen.number(document), document)
    return found


def _with(lists: list[list[int]], new: list[int], replaces: bool, keeps: bool) -> list[list[int]]:
    """Return the lists with a new one, in the place of those that it was made of.

    Args:
        lists: what was there before.
        new: the new list.
        replaces: whether it was made of others: those with which it shares a document, or the last one where it is
            empty.
        keeps: whether what it has left out comes behind it.
    """
    if not replaces:
        return [*lists, new]
    shared = [each for each in lists if not set(each).isdisjoint(new)] or lists[-1:]
    others = [each for each in lists if not any(each is used for used in shared)]
    return [*others, _flat([new, *shared]) if keeps else new]


def _flat(lists: Iterable[Sequence[int]]) -> list[int]:
    return list(dict.fromkeys(number for each in lists for number in each))
