"""What a row of a table states: which of its names are attributes, and what is asked of a cell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_harness.questions.passages import Passage

_EMPTY = re.compile(r"[\W_]*$|n/?a$|none$|unknown$|tbd$|same$|see\b|as above", re.I)
_MARK = re.compile(r"^(?:[✓✔✅❌✗✘]|yes|no|x)\W{0,3}$", re.I)
_MONEY = re.compile(r"[€$£¥]\s?\d|\d\s?(?:€|EUR|USD|GBP)")
_TIME = re.compile(r"^\D{0,12}\d[\d–-]*\s?(?:working |business )?(?:second|minute|hour|day|night|week|month|year)s?\b", re.I)
_WORDY = re.compile(r"^(what|when|how|where|why|who|which)\b", re.I)
_WHAT_IT = re.compile(r"^what (?:it|they) (\w+?)(?:s)?\b(.*)$", re.I)
_PASSIVE = re.compile(r"^([a-z]+(?:ed|en|t)) (with|by|for|in|on|from|as|to|under)$", re.I)
_TELLS = re.compile(r"^(?:description|meaning|notes?|purpose|details?|explanation|what|remarks?|comments?|effect)s?$", re.I)
_LONGEST = 8
"""Words of a row's name or of a column's: a longer one is a sentence."""


def read_row(passage: Passage, title: str) -> Iterator[tuple[str, str, dict[str, str], str]]:
    """Yield what the cells of a row state, as kind, answer, parts and what is said."""
    row, *cells = passage.cells
    first, *names = passage.names
    if not _names_something(row) or len(set(names)) < len(names):
        return
    for name, cell in zip(names, cells, strict=True):
        if _names_something(name) and not _EMPTY.match(cell) and not _MARK.match(cell) and cell != row:
            parts = {"row": row, "column": name, "first": first, "how": _how(name, cell, first, names)}
            said = f"{row} – {name}: {cell}" if first else f"{name} – {row}: {cell}"
            yield "cell", cell, {**parts, "title": title}, said


def _names_something(name: str) -> bool:
    return bool(re.search(r"[^\W\d_]", name)) and len(name.split()) <= _LONGEST


def _how(name: str, cell: str, first: str, names: list[str]) -> str:
    """Return the form of the question: what a name of a column is to its rows."""
    if not first or first.casefold() in ("feature", "property", "attribute", "specification"):
        return "turned" if len(names) > 1 or not first else "attribute"
    if _WHAT_IT.match(name):
        return "what it"
    if _PASSIVE.match(name):
        return "passive"
    if _WORDY.match(name):
        return "wordy"
    if _TELLS.match(name):
        return "tells"
    if _is_entity(name, names):
        return "money" if _MONEY.search(cell) else "time" if _TIME.match(cell) else "entity"
    return "attribute"


def _is_entity(name: str, names: list[str]) -> bool:
    """Whether columns are things rather than what is said of things: Zone 1, Zone 2, …; Basic, Grove, Grove Plus."""
    words = [set(re.findall(r"[^\W\d_]{3,}", each.casefold())) for each in names]
    own = set(re.findall(r"[^\W\d_]{3,}", name.casefold()))
    shared = sum(bool(own & other) for other in words)
    return shared > 1
