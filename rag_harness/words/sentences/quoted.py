"""The sentences that the embedded reader quotes: of one line of prose without markup."""

from __future__ import annotations

import re

LONGEST = 600
"""Characters; a sentence that has as many takes no more behind an abbreviation."""

_BORDER = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]])) (?=[^\sa-z])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|approx|no|nr|vs|mr|mrs|dr|st|incl|max|min)\.$", re.I)


def quoted_sentences(text: str) -> list[str]:
    """Split one line of prose; "e.g. Monday" and "No. 4" stay whole."""
    found: list[str] = []
    for piece in _BORDER.split(text):
        if found and len(found[-1]) < LONGEST and _ABBREVIATION.search(found[-1][-10:]):
            found[-1] += f" {piece}"
        else:
            found.append(piece)
    return found
