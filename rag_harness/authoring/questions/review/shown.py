"""What is shown of a question: the nouns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A quote where it stands: ``before + quote + after`` is text of the page.

    ``fault`` says why it stands nowhere, then ``before`` and ``after`` are empty, and ``nearest`` is the passage of the
    page that has most of its words, else its beginning. ``section`` are the headings above
    it, outermost first; ``replaced_by`` is the page that superseded this one, "?" where it is not known which.
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
    """A passage that is near a question: ``share`` of its words, weighed by rarity, stand in it, 0 to 1."""

    filename: str
    text: str
    section: tuple[str, ...]
    share: float


@dataclass(frozen=True, slots=True)
class Shown:
    """``near`` are nearest passages of a question that nothing answers, else passages of other pages that may."""

    places: tuple[Place, ...]
    near: tuple[Near, ...]
    faults: tuple[str, ...]
