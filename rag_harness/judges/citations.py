"""Removes citation marks from an answer before it is judged, and gives them back as each claim's citations.

A mark is no claim. Judged as text, ``[Source 2]`` would be a "claim" of its own, or change the verdict of a sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from rag_harness.judges.traits import JudgeAround
from rag_harness.measures.judged import (
    Claim,
    ClaimedText,
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
        starts = sorted({claim.start for claim in moved if claim.start >= 0})
        lines = [found.start() for found in re.finditer("\n", self.answer)]
        cited: dict[int, dict[int, None]] = {}
        for mark in self.marks:
            owner = _owner(mark, starts, lines)
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


def _owner(mark: MarksSideBySide, starts: Sequence[int], lines: Sequence[int]) -> int | None:
    """Return the start of the claim that a mark belongs to: the last one before it, if possible on the same line.

    A mark at the beginning of a line belongs to the claim after it. ``lines`` are the places where lines end.
    """
    after = bisect_left(starts, mark.start)
    before = starts[after - 1] if after else None
    ended = bisect_left(lines, mark.start)
    line = lines[ended - 1] + 1 if ended else 0
    next_line = bisect_left(lines, mark.end)
    behind = bisect_left(starts, mark.end)
    follows = behind < len(starts) and (next_line == len(lines) or starts[behind] < lines[next_line])
    if before is not None and (before >= line or not follows):
        return before
    return starts[behind] if follows else None


def unmarked_answer(answer: str, contexts: int) -> Unmarked:
    """Return ``answer`` without its citation marks: those of the prompts, and ``[1]`` up to the number of contexts.

    A number in brackets is no mark inside code, or above the number of contexts: it may be an index, or a list.
    """
    marks = tuple(_joined(answer, sorted(_marks(answer, contexts), key=lambda mark: mark.start)))
    text, pieces, done, length, last = list[str](), [(0, 0)], 0, 0, ""

    def add(piece: str) -> None:
        nonlocal length, last
        text.append(piece)
        length, last = length + len(piece), piece[-1:] or last

    for mark in marks:
        add(answer[done : mark.start].rstrip(" \t"))
        # "free.[1]Refunds" becomes two words.
        if last and not last.isspace() and answer[mark.end : mark.end + 1].isalnum():
            pieces.append((length, mark.start))
            add(" ")
        pieces.append((length, mark.end))
        done = mark.end
    return Unmarked(answer, "".join([*text, answer[done:]]), marks, tuple(pieces))


def _marks(answer: str, contexts: int) -> Iterator[MarksSideBySide]:
    for found in CITATION.finditer(answer):
        yield MarksSideBySide(*found.span(), tuple(cited_sources(found[0])))
    code = [found.span() for found in _CODE.finditer(answer)]
    begins = [start for start, _ in code]
    for found in _NUMBERED.finditer(answer):
        numbers = tuple(int(number) for number in re.findall(r"\d+", found[1]))
        nearest = bisect_right(begins, found.start()) - 1
        inside = nearest >= 0 and found.start() < code[nearest][1]
        if not inside and all(1 <= number <= contexts for number in numbers):
            yield MarksSideBySide(*found.span(), numbers)


def _joined(answer: str, marks: Sequence[MarksSideBySide]) -> Iterator[MarksSideBySide]:
    """Join marks that have only commas and "and" between them."""
    beside: list[MarksSideBySide] = []
    for mark in marks:
        if beside and not _BETWEEN.match(answer, beside[-1].end, mark.start):
            yield _as_one(beside)
            beside = []
        beside.append(mark)
    if beside:
        yield _as_one(beside)


def _as_one(marks: Sequence[MarksSideBySide]) -> MarksSideBySide:
    return MarksSideBySide(marks[0].start, marks[-1].end, tuple(chain.from_iterable(mark.sources for mark in marks)))


class CitationsOff(JudgeAround):
    """A judge that never sees the marks of an answer."""

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
