"""Removes citation marks from an answer before it is judged, and gives them back as each claim's citations.

A mark is no claim. Judged as text, ``[Source 2]`` would be a "claim" of its own, or change the verdict of a sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rag_harness.judges.traits import traits
from rag_harness.measures.judged import (
    Claim,
    ClaimedText,
    Judge,
    JudgeQuestion,
    Material,
    Opinion,
    Relevancy,
    SupportSource,
    Usefulness,
    Verdicts,
)
from rag_harness.registry.revisions import REVISIONS
from rag_harness.words.citation_marks import CITATION
from rag_harness.words.cited import cited_sources

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_NUMBERED = re.compile(r"\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\](?:\([^()\s]{0,500}\))?")
"""``[1]``, ``[1, 3]``, ``[1](https://…)``: marks whose numbers are positions of contexts."""
_BETWEEN = re.compile(r"(?:[^\S\n]|[,;&]|\band\b)*\Z")


@dataclass(frozen=True, slots=True)
class MarksSideBySide:
    """Adjacent marks, from ``start`` to ``end`` of the answer, and the sources that they name, from 1."""

    start: int
    end: int
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unmarked:
    """An answer without its marks.

    Attributes:
        answer: the answer as it was given.
        text: the answer without marks, and without the blanks before them.
        marks: the removed marks, in order.
        pieces: positions in ``text`` where a piece of the answer begins, with its position in the answer.
    """

    answer: str
    text: str
    marks: tuple[MarksSideBySide, ...]
    pieces: tuple[tuple[int, int], ...]

    def placed(self, claims: Sequence[Claim]) -> list[Claim]:
        """Return claims of ``text`` with their positions in the answer and their citations."""
        moved = [self._moved(claim) for claim in claims]
        cited: dict[int, dict[int, None]] = {}
        for mark in self.marks:
            owner = self._owner(mark, moved)
            if owner is not None:
                cited.setdefault(owner, {}).update(dict.fromkeys(mark.sources))
        return [replace(claim, citations=tuple(cited.get(claim.start, ()))) for claim in moved]

    def _moved(self, claim: Claim) -> Claim:
        if claim.start < 0:
            return claim
        return replace(claim, start=self._place(claim.start), end=self._place(max(claim.start, claim.end - 1)) + 1)

    def _place(self, at: int) -> int:
        begins, place = self.pieces[bisect_right(self.pieces, at, key=lambda piece: piece[0]) - 1]
        return place + at - begins

    def _owner(self, mark: MarksSideBySide, claims: Sequence[Claim]) -> int | None:
        """Return the start of the claim that a mark belongs to: the last one before it, if possible on the same line.

        A mark at the beginning of a line belongs to the claim after it.
        """
        starts = sorted({claim.start for claim in claims if claim.start >= 0})
        line = self.answer.rfind("\n", 0, mark.start) + 1
        ends = self.answer.find("\n", mark.end)
        before = [start for start in starts if start < mark.start]
        behind = [start for start in starts if mark.end <= start and (ends < 0 or start < ends)]
        if before and (before[-1] >= line or not behind):
            return before[-1]
        return behind[0] if behind else None


def unmarked_answer(answer: str, contexts: int) -> Unmarked:
    """Return ``answer`` without its citation marks: those of the prompts, and ``[1]`` up to the number of contexts.

    A number in brackets is no mark inside code, or above the number of contexts: it may be an index, or a list.
    """
    marks = tuple(_joined(answer, sorted(_marks(answer, contexts), key=lambda mark: mark.start)))
    text, pieces, done = "", [(0, 0)], 0
    for mark in marks:
        text += answer[done : mark.start].rstrip(" \t")
        # "free.[1]Refunds" becomes two words.
        if text and not text[-1].isspace() and answer[mark.end : mark.end + 1].isalnum():
            pieces.append((len(text), mark.start))
            text += " "
        pieces.append((len(text), mark.end))
        done = mark.end
    return Unmarked(answer, text + answer[done:], marks, tuple(pieces))


def _marks(answer: str, contexts: int) -> Iterator[MarksSideBySide]:
    for found in CITATION.finditer(answer):
        yield MarksSideBySide(*found.span(), tuple(cited_sources(found[0])))
    code = [found.span() for found in _CODE.finditer(answer)]
    for found in _NUMBERED.finditer(answer):
        numbers = tuple(int(number) for number in re.findall(r"\d+", found[1]))
        inside = any(start <= found.start() < end for start, end in code)
        if not inside and all(1 <= number <= contexts for number in numbers):
            yield MarksSideBySide(*found.span(), numbers)


def _joined(answer: str, marks: Sequence[MarksSideBySide]) -> Iterator[MarksSideBySide]:
    """Join marks that have only commas and "and" between them."""
    last: MarksSideBySide | None = None
    for mark in marks:
        if last and _BETWEEN.match(answer, last.end, mark.start):
            last = MarksSideBySide(last.start, mark.end, (*last.sources, *mark.sources))
            continue
        if last:
            yield last
        last = mark
    if last:
        yield last


class CitationsOff:
    """A judge that never sees the marks of an answer."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def model(self) -> str:
        return self._judge.model

    @property
    def asks_model(self) -> bool:
        return bool(traits(self._judge).asks_model)

    @property
    def deterministic(self) -> bool:
        return traits(self._judge).deterministic

    @property
    def reads_conversation(self) -> bool:
        return traits(self._judge).reads_conversation

    @cached_property
    def revision(self) -> str:
        """The judge's own revision, and that of the rules by which marks are removed."""
        return f"{self._judge.revision}+{REVISIONS['judges/citations'][:8]}"

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Opinion:
        plain = unmarked_answer(material.answer, len(material.contexts))
        opinion = self._judge.opinion(replace(material, answer=plain.text), asks)
        return _Cited(opinion, plain) if plain.marks else opinion


class _Cited:
    """An opinion of an answer without marks, with positions in the answer as it was given."""

    def __init__(self, opinion: Opinion, plain: Unmarked) -> None:
        self._opinion, self._plain = opinion, plain

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        said = await self._opinion.supported(claims, source)
        if claims != "answer":
            return said
        placed = self._plain.placed([verdict.claim for verdict in said.each])
        each = (replace(verdict, claim=claim) for verdict, claim in zip(said.each, placed, strict=True))
        return replace(said, each=tuple(each))

    async def usefulness(self) -> Sequence[Usefulness]:
        return await self._opinion.usefulness()

    async def relevancy(self) -> Relevancy:
        return await self._opinion.relevancy()
