"""The sentences that the embedded reader quotes: of one line of prose without markup."""

from __future__ import annotations

import re

from rag_harness.words.languages import ENGLISH, rules_of

LONGEST = 600
"""Characters; a sentence that has as many takes no more behind an abbreviation."""

_BORDER = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]])) (?=[^\sa-z])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|approx|no|nr|vs|mr|mrs|dr|st|incl|max|min)\.$", re.I)


def quoted_sentences(text: str, language: str = ENGLISH) -> list[str]:
    """Split one line of prose; "e.g. Monday" and "No. 4" stay whole, in German "z. B. Öl" and "3. März"."""
    rules = rules_of(language)
    found: list[str] = []
    for piece in _BORDER.split(text):
        before = found[-1] if found else ""
        shortened = rules.goes_on(before, piece) if rules else _ABBREVIATION.search(before[-10:])
        if before and len(before) < LONGEST and shortened:
            found[-1] += f" {piece}"
        else:
            found.append(piece)
    return found
