"""The findings of checking questions against documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

What = Literal[
    "white space",
    "markup",
    "moved",
    "figure",
    "reworded",
    "gone",
    "page renamed",
    "page gone",
    "heading gone",
    "page unread",
    "answer",
    "expectation",
    "may be answered",
    "one page holds all",
]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A passage that may replace evidence.

    ``quote`` is verbatim. ``score`` is the BM25 score of its chunk. ``share`` is the share of the searched words that
    the chunk has, weighted by rarity: 0 to 1.
    """

    filename: str
    quote: str
    score: float
    share: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing in the gold that is no longer true.

    Attributes:
        what: its kind.
        filename: the page that the question names; empty if it names none.
        why: what a person must know beside the old and the new text.
        old: the quote in the question.
        new: the passage that replaced it, verbatim; empty if there is none.
        new_file: the page that has ``new``, or the new name of a renamed page.
        affects: whether the question needs a correction or a person.
        mends: whether ``new`` and ``new_file`` may replace the old ones without a person.
        proposals: where to look for other evidence, best first.
    """

    what: What
    filename: str = ""
    why: str = ""
    old: str = ""
    new: str = ""
    new_file: str = ""
    affects: bool = True
    mends: bool = False
    proposals: tuple[Proposal, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of each question that has some, in the order of the file, and counts of what was checked."""

    found: Mapping[str, Sequence[Finding]]
    questions: int
    quotes: int
    pages: int
    unproven: int
    """The number of answerable questions without a quote and with pages; only these are checked."""
    unsearched: int = 0
    """The number of turns that nothing should answer and whose words alone say little: they are not searched for."""
    before: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The turns before each turn of a conversation."""
    bare: Sequence[str] = ()
    """The answerable questions that name neither a quote nor a page: there is nothing to check."""

    @property
    def standing(self) -> dict[str, list[str]]:
        """The later turns of each affected turn: what is said before them may be wrong."""
        affected, found = set(self.affected), dict[str, list[str]]()
        for name, before in self.before.items():
            for each in affected.intersection(before):
                found.setdefault(each, []).append(name)
        return found

    @property
    def affected(self) -> list[str]:
        """The questions that need a correction or a person."""
        return [name for name, findings in self.found.items() if any(each.affects for each in findings)]

    @property
    def open(self) -> list[str]:
        """The affected questions that only a person can correct."""
        return [
            name for name, findings in self.found.items() if any(each.affects and not each.mends for each in findings)
        ]
