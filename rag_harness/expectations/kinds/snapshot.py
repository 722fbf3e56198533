"""The answer says what it said before. Case, blanks and citation marks do not count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from typing import ClassVar, NamedTuple

from rag_harness.expectations.kind import LONGEST, AnswerSeen, ExpectationKind, Finding
from rag_harness.expectations.kinds.text import in_one_line
from rag_harness.expectations.looking import looked_at
from rag_harness.types import Expectation

SNAPSHOT = "snapshot"
NOT_YET = "no snapshot yet: pytest --snapshot-update"
_WORD = re.compile(r"\d{1,30}(?:[.,]\d{1,30}){0,10}|\w{1,30}|[^\w\s]")
"""A number, a word, or a sign. Blanks do not count, so neither does the one that a citation mark leaves."""
_BESIDE, _MOST = 2, 12
"""How many words a message shows before and behind those that differ, and how many of these."""


class Snapshot(ExpectationKind):
    """The answer says what its snapshot says."""

    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"case": bool}

    def problem(self, demand: Expectation) -> str:
        if demand.negated:
            return 'it has no opposite. What an answer must not say is {"not": {"contains": "…"}}'
        if demand.wanted is not True:
            return 'write true: the text is that of an answer. A text of your own is {"equals": "…"}'
        return ""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if demand.was is None:
            return Finding(None, NOT_YET)
        change = _change(demand, answer.words)
        return change or Finding(True, "it says the same", 0, len(answer.text))


def renewed(demand: Expectation, text: str) -> Expectation:
    """Return a snapshot as an update leaves it: with the present answer, unless it says what the kept one says.

    An empty answer, and one that is too long to be looked at, is not kept.
    """
    if not text.strip() or len(text) > LONGEST:
        return demand
    is_same = looked_at([demand], AnswerSeen(text))[0].kept is True
    return demand if is_same else replace(demand, was=text)


class _Word(NamedTuple):
    text: str
    start: int
    end: int


def _change(demand: Expectation, now: str) -> Finding | None:
    """Return what has changed, from the first to the last word that differs; None where nothing has."""
    was, counts_case = AnswerSeen(demand.was or "").words, bool(demand.options.get("case"))
    old, new = _words(was, counts_case), _words(now, counts_case)
    if [each.text for each in old] == [each.text for each in new]:
        return None
    if not new:
        return Finding(False, "the answer is empty")
    first = sum(1 for _ in takewhile(_alike, zip(old, new, strict=False)))
    rest = min(len(old), len(new)) - first
    last = sum(1 for _ in takewhile(_alike, zip(old[::-1][:rest], new[::-1][:rest], strict=False)))
    differing = new[first : len(new) - last] or new[max(first - 1, 0) :][:1]
    said = f"“{_shown(was, old, first, last)}” became “{_shown(now, new, first, last)}”"
    return Finding(False, said, differing[0].start, differing[-1].end)


def _words(text: str, counts_case: bool) -> list[_Word]:
    found = _WORD.finditer(text)
    return [_Word(match[0] if counts_case else match[0].casefold(), *match.span()) for match in found]


def _alike(pair: tuple[_Word, _Word]) -> bool:
    return pair[0].text == pair[1].text


def _shown(text: str, words: list[_Word], first: int, last: int) -> str:
    """Return the words that differ with a few beside them, cut from behind."""
    start, end = max(0, first - _BESIDE), min(len(words), len(words) - last + _BESIDE, first + _MOST)
    if start >= end:
        return ""
    shown = in_one_line(text[words[start].start : words[end - 1].end])
    return f"{'…' if start else ''}{shown}{'…' if end < len(words) and not shown.endswith('…') else ''}"
