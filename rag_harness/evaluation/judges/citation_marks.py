"""Citations for every judge: marks removed before judgement, and claims with the sources that support them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.text.comparison import compared_words
from rag_harness.core.text.sentences import sentence_spans
from rag_harness.core.text.terms import CITATION, cited_sources
from rag_harness.evaluation.measures.opinion import (
    SUPPORTS_FROM,
    CitedClaim,
    Claim,
    CriterionVerdict,
    Judge,
    JudgeQuestion,
    Material,
    SourceVerdict,
    Verdict,
    Verdicts,
)

# Removes citation marks from an answer before it is judged, and gives them back as each claim's citations.
#
# A mark is not a claim. Judged as text, ``[Source 2]`` would be a "claim" of its own, or change the verdict of a
# sentence.

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

    def placed_verdicts(self, said: Verdicts) -> Verdicts:
        """Return verdicts on claims of ``text``, with the claims placed."""
        if not self.marks:
            return said
        placed = self.placed([verdict.claim for verdict in said.each])
        each = (replace(verdict, claim=claim) for verdict, claim in zip(said.each, placed, strict=True))
        return replace(said, each=tuple(each))

    def placed_criterion(self, said: CriterionVerdict) -> CriterionVerdict:
        """Return a verdict with the place of its quote in the answer."""
        if said.start < 0:
            return said
        claim = self._moved(Claim(said.quote, said.start, said.end))
        return replace(said, start=claim.start, end=claim.end)

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
    """Return ``answer`` without its citation marks: the marks of the prompts, and ``[1]`` up to the number of contexts.

    A number in brackets is not a mark inside code or above the number of contexts. It may be an index, or a list.
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


# Gives claims their places in an answer, and the citations of their sentence.
#
# A mark is a citation of the claim before it (``Unmarked``). A judge that splits a sentence into several claims leaves
# those before the last one without it, though a mark at the end of a sentence is about the whole sentence.


def placed_claims(plain: Unmarked, claims: Sequence[Claim]) -> list[Claim]:
    """Return claims of an answer without marks, with their places in the answer as it was given and their citations.

    A claim without a place gets the place of the sentence that has most of its words. A claim without a mark of its
    own has the next mark in its sentence.
    """
    sentences = Sentences(plain.text)
    located = [claim if claim.start >= 0 else _located(claim, sentences) for claim in claims]
    found = plain.placed(located)
    marked = sorted((one.start, each.citations) for one, each in zip(located, found, strict=True) if each.citations)
    return [
        each if each.citations or one.start < 0 else replace(each, citations=_next(one.start, sentences, marked))
        for one, each in zip(located, found, strict=True)
    ]


class Sentences:
    """The sentences of a text, each with its place and its words."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = list(sentence_spans(text))

    @cached_property
    def _words(self) -> list[set[str]]:
        return [_words(self._text[start:end]) for start, end in self._spans]

    @cached_property
    def begins(self) -> list[int]:
        """Where they begin."""
        return [begin for begin, _ in self._spans]

    def nearest(self, claim: str) -> str:
        """Return the sentence that has most words of ``claim``, the first of equals; empty if none has one."""
        start, end = self.place_of(claim)
        return self._text[start:end] if start >= 0 else ""

    def place_of(self, claim: str) -> tuple[int, int]:
        """Return the place of the sentence that has most words of ``claim``, the first of equals; -1 if none has."""
        wanted = _words(claim)
        shared = ((len(wanted & words), span) for words, span in zip(self._words, self._spans, strict=True))
        count, span = max(shared, key=lambda each: each[0], default=(0, (-1, -1)))
        return span if count else (-1, -1)


def _located(claim: Claim, sentences: Sentences) -> Claim:
    start, end = sentences.place_of(claim.text)
    return replace(claim, start=start, end=end)


def _next(start: int, sentences: Sentences, marked: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[int, ...]:
    """Return the citations of the first claim behind ``start`` in the same sentence that has some."""
    behind = bisect_right(marked, start, key=lambda each: each[0])
    if behind == len(marked):
        return ()
    at, cites = marked[behind]
    return cites if bisect_right(sentences.begins, at) == bisect_right(sentences.begins, start) else ()


def _words(text: str) -> set[str]:
    return set(compared_words(text))


# Answers the question ``CITATIONS`` by a judge that does not answer it.
#
# It is asked about each source by itself, as if the prompt had no other: the embedded judge, judges of the project.
# Such a judge says neither which claims need a citation nor what several sources support together, and its quote is the
# sentence of the source that has most words of the claim.


async def cited_by_each(judge: Judge, material: Material, asks: Collection[JudgeQuestion]) -> Sequence[CitedClaim]:
    """Return each claim with the sources that support it. A source without text supports nothing, and is not asked of.

    Raises:
        ModelOutputError: the judge finds other claims by another source.
        RagHarnessError: the judge failed.
    """
    asked = [(number, text) for number, text in enumerate(material.contexts, 1) if text.strip()]
    alone = [(replace(material, contexts=(text,)), asks) for _, text in asked]
    said = [await judge.opinion(*each).supported("answer", "contexts") for each in alone]
    claims = [verdict.claim for verdict in said[0].each] if said else []
    if any([verdict.claim for verdict in each.each] != claims for each in said):
        raise ModelOutputError("the judge found other claims in the answer when it was given another source")
    columns = {number: each.each for (number, _), each in zip(asked, said, strict=True)}
    sources = [Sentences(text) for text in material.contexts]
    return [
        CitedClaim(
            claim,
            tuple(
                _verdict(number, source, columns[number][place]) if number in columns else SourceVerdict(number, 0.0)
                for number, source in enumerate(sources, 1)
            ),
        )
        for place, claim in enumerate(claims)
    ]


def placed_cited(plain: Unmarked, claims: Sequence[CitedClaim]) -> Sequence[CitedClaim]:
    """Return claims with their places in the answer as it was given, and the sources that it cites for each."""
    placed = placed_claims(plain, [each.claim for each in claims])
    return [replace(each, claim=claim) for each, claim in zip(claims, placed, strict=True)]


def _verdict(number: int, source: Sentences, said: Verdict) -> SourceVerdict:
    if said.value is None or said.value < SUPPORTS_FROM:
        return SourceVerdict(number, said.value, reason=said.reason)
    return SourceVerdict(number, said.value, source.nearest(said.claim.text), said.reason)
