"""Anchors of a page's headings, as GitHub numbers them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable


def slug(heading: str) -> str:
    """Return GitHub's anchor of a heading: lower case, hyphens for blanks, no punctuation."""
    return "".join(_slug_character(character) for character in heading.strip().lower())


def _slug_character(character: str) -> str:
    if character == " ":
        return "-"
    category = unicodedata.category(character)
    return character if character == "-" or category[0] in "LMN" or category == "Pc" else ""


def numbered(headings: Iterable[str]) -> list[str]:
    """Return the anchor of each heading of one page, in order: the second ``Notes`` is ``notes-1``."""
    anchors: dict[str, None] = {}
    seen: Counter[str] = Counter()
    for heading in headings:
        plain = unique = slug(heading)
        # Another heading may be "Notes 1", so the number alone does not make the anchor unique.
        while unique in anchors:
            seen[plain] += 1
            unique = f"{plain}-{seen[plain]}"
        anchors[unique] = None
    return list(anchors)
