"""Reads which passages support each claim alone, how far, and by which words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.judges.llm.judge_replies import (
    Missing,
    PassageVerdict,
    entries_of,
    objects_of,
    offered,
    verdict_of,
    whole_number,
    words_of,
)
from rag_harness.judges.llm.spans import find_quote

DEGREES = {"full": 1.0, "partial": 0.5}
NOT_THERE = "the words that the judge quoted do not stand in the source"


@dataclass(frozen=True, slots=True)
class PassageSupport(PassageVerdict):
    """A verdict by all passages together, and those that support the claim alone.

    Attributes:
        by: value, quote and remark of each passage that supports the claim, by its number from 1; None where they
            cannot be read, and ``missing`` then says why.
        needs: whether the claim needs a source.
    """

    by: Mapping[int, tuple[float, str, str]] | None = None
    needs: bool = True


def read_cited(text: str, count: int, words: Mapping[str, float], passages: Sequence[str]) -> list[PassageSupport]:
    """Return the verdicts of a reply on claims 1 to ``count``, in their order."""
    found = entries_of(text, count)
    if isinstance(found, Missing):
        return [PassageSupport(missing=found)] * count
    return [_support(entries, words, passages) for entries in found]


def _support(
    entries: Sequence[Mapping[str, Any]], words: Mapping[str, float], passages: Sequence[str]
) -> PassageSupport:
    verdict = verdict_of(entries, words, len(passages))
    if len(entries) != 1:
        return PassageSupport(missing=verdict.missing)
    by, needs = _by_passage(entries[0], passages), entries[0].get("needs_source")
    if isinstance(by, Missing) or not isinstance(needs, bool):
        missing = by if isinstance(by, Missing) else Missing.WORD
        return PassageSupport(verdict.value, verdict.passage, verdict.missing or missing)
    return PassageSupport(verdict.value, verdict.passage, verdict.missing, by, needs)


def _by_passage(entry: Mapping[str, Any], passages: Sequence[str]) -> Mapping[int, tuple[float, str, str]] | Missing:
    listed = objects_of(entry, "support")
    if listed is None:
        return Missing.UNREADABLE
    found: dict[int, tuple[float, str, str]] = {}
    for each in listed:
        number, value = whole_number(each.get("passage")), offered(each.get("degree"), DEGREES)
        if number is None or not 1 <= number <= len(passages):
            return Missing.PASSAGE
        if value is None or number in found:
            return Missing.WORD if value is None else Missing.TWICE
        found[number] = (value, *_quote(words_of(each.get("quote")), passages[number - 1]))
    return found


def _quote(said: str, passage: str) -> tuple[str, str]:
    """Return the quoted words as the passage has them; no words and a remark where it has not."""
    start, end = find_quote(said, passage)
    return (passage[start:end], "") if start >= 0 else ("", NOT_THERE)
