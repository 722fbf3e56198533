"""The data that are shown for a question."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShownQuote:
    """The place of a quote: ``before + quote + after`` is text of the page.

    If the quote has no place, ``fault`` says why, ``before`` and ``after`` are empty, and ``nearest`` is the page's
    passage with most of its words, else the page's beginning. ``section`` are the headings above it, outermost first.
    ``replaced_by`` is the page that superseded this one, "?" if it is not known.
    """

    filename: str
    quote: str
    before: str = ""
    after: str = ""
    section: tuple[str, ...] = ()
    fault: str = ""
    replaced_by: str = ""
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class Near:
    """A passage near a question: it has ``share`` of the question's words, weighted by rarity, 0 to 1."""

    filename: str
    text: str
    section: tuple[str, ...]
    share: float


@dataclass(frozen=True, slots=True)
class Shown:
    """``near``: the passages nearest to a negative question; else passages of other pages that may answer it."""

    places: tuple[ShownQuote, ...]
    near: tuple[Near, ...]
    faults: tuple[str, ...]
