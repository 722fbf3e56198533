"""What came of holding questions against documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    "may be answered",
    "one page holds all",
]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A passage that may take the place of evidence.

    ``quote`` is verbatim; ``score`` is BM25's of its chunk; ``share`` is the part of the words looked for, by rarity,
    that stands in the chunk: 0 to 1.
    """

    filename: str
    quote: str
    score: float
    share: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is so no more.

    Attributes:
        what: its kind.
        filename: the page that the question names; empty where it names none.
        why: what a person has to know beside old and new.
        old: the quote as the question has it.
        new: what stands in its place, verbatim; empty where nothing does.
        new_file: the page that has ``new``, or that a renamed page is.
        affects: whether the question needs a person, or mending.
        mends: whether ``new`` and ``new_file`` may take the place of the old ones without a person.
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
    """The findings of each question that has some, in the order of the file, and how much was looked at."""

    found: Mapping[str, Sequence[Finding]]
    questions: int
    quotes: int
    pages: int
    unproven: int
    """Answerable questions without a quote: of these only the pages are looked up."""

    @property
    def affected(self) -> list[str]:
        """The questions that need mending or a person."""
        return [name for name, findings in self.found.items() if any(each.affects for each in findings)]

    @property
    def open(self) -> list[str]:
        """Those of them that only a person can mend."""
        return [
            name for name, findings in self.found.items() if any(each.affects and not each.mends for each in findings)
        ]
