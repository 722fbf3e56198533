"""Versions of sources: which of two sources that disagree is the current one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from rag_harness.models.reader.prompt import PromptSource
from rag_harness.models.reader.units import Unit
from rag_harness.words.terms import figures, terms

# Two units are about one thing when most words of the shorter one are in the other. With half, "express costs …" would
# match "standard costs …". With all, a reworded sentence would be missed.
SAME_THING = 0.6

_MARK = re.compile(
    r"[-_. ](?:v(?P<v>\d{1,3})|(?P<year>(?:19|20)\d\d)(?:-\d\d){0,2}|(?P<old>old|archived?|legacy))$", re.I
)
_OUTDATED = r"superseded|no longer (?:applies|applicable|valid|in force|current)|outdated|out of date|archived|obsolete"
_THING = r"(?:page|policy|version|document|article|guide|edition|list|table|schedule|notice|offer)"
_STALE = re.compile(
    rf"^[ >*_#!-]{{0,20}}(?:(?:note|status|important|warning)\W{{1,5}})?(?:{_OUTDATED}|previous version|old version)\b"
    rf"|^# [^\n]{{0,200}}\b(?:{_OUTDATED}|previous version|old version)\b"
    rf"|\bthis (?:\w{{1,30}} ){{0,3}}{_THING}\b[^.\n]{{0,80}}\b(?:{_OUTDATED}|previous version|older version)\b"
    rf"|\bthis is (?:a|an|the) (?:{_OUTDATED}|previous|older?|earlier)\b"
    r"|\b(?:effective|valid|in force) until\b",
    re.I | re.M,
)
_REPLACING = re.compile(r"\b(?:supersedes|replaces|replaced the)\b", re.I)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<{{}}>{'|'.join(_MONTHS)})[a-z]*\.?"
_EFFECTIVE = re.compile(
    r"\b(?:effective|applies|valid|in force)(?:[ _]date)?(?: as of| from| since| on)?[*:\s]{1,6}(?:"
    rf"(?P<y1>\d{{4}})-(?P<m1>\d\d)-(?P<d1>\d\d)|(?P<d2>\d{{1,2}}) {_MONTH.format('m2')} (?P<y2>\d{{4}})"
    rf"|{_MONTH.format('m3')} (?:(?P<d3>\d{{1,2}}),? )?(?P<y3>\d{{4}})|(?P<y4>\d{{4}})\b)",
    re.I,
)
_HISTORY = re.compile(
    r"\b(?:(?:19|20)\d\d|v\d+|previous(?:ly)?|former(?:ly)?|older?|superseded|used to|history)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Version:
    """What a document says about its own version; ``mark`` is the year or number in its filename."""

    family: str
    mark: int | None
    superseded: bool
    effective: tuple[int, int, int] | None

    def supersedes(self, other: Version) -> bool:
        """Return whether this version is newer than ``other``. Without any sign, neither is."""
        if self.superseded != other.superseded:
            return other.superseded
        if self.family != other.family:
            return False
        if self.effective and other.effective and self.effective != other.effective:
            return self.effective > other.effective
        return _newer(self.mark, other.mark)


def _newer(mark: int | None, other: int | None) -> bool:
    """Return whether ``mark`` is newer. A page without a mark is the current one: old copies get a year or "-v1"."""
    if mark is None or other is None:
        return mark is None and other is not None
    return mark > other


def asks_for_history(question: str) -> bool:
    """Return whether the question is about an old version. Then the current one must not be preferred."""
    return bool(_HISTORY.search(question))


def versions(sources: Iterable[PromptSource]) -> dict[int, Version]:
    """Return each source's version by number. All chunks of a file share their signs."""
    texts: dict[str, list[str]] = defaultdict(list)
    numbers: dict[int, str] = {}
    for source in sources:
        texts[source.filename].append(source.text)
        numbers[source.number] = source.filename
    judged = {name: _version(name, "\n".join(parts)) for name, parts in texts.items()}
    return {number: judged[name] for number, name in numbers.items()}


@lru_cache(maxsize=512)
def _version(filename: str, text: str) -> Version:
    stem = re.sub(r"\.\w{1,8}$", "", filename.lower())
    match = _MARK.search(stem)
    mark = int(match["v"] or match["year"] or 0) if match else None
    dates = map(_date, _EFFECTIVE.finditer(text))
    return Version(stem[: match.start()] if match else stem, mark, _is_stale(text), max(dates, default=None))


def _is_stale(text: str) -> bool:
    # "This page replaces the previous version" is about the other page.
    return any(not _REPLACING.search(found[0]) for found in _STALE.finditer(text))


def _date(found: re.Match[str]) -> tuple[int, int, int]:
    parts = (("y", "1234"), ("m", "123"), ("d", "123"))
    year, month, day = (next((found[part + i] for i in ways if found[part + i]), "1") for part, ways in parts)
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    return int(year), number, int(day)


def same_thing(first: Unit, second: Unit) -> bool:
    """Return whether two units of different sources differ in little more than their figures."""
    if first.source == second.source or figures(first.text) == figures(second.text):
        return False
    ours, theirs = (
        frozenset(word for word in terms(unit.text, unit.language) if not word[0].isdigit()) for unit in (first, second)
    )
    return bool(ours and theirs) and len(ours & theirs) / min(len(ours), len(theirs)) >= SAME_THING
