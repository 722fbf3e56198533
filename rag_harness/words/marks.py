"""What only who answers may say: citation marks, ``[Source 1]``, and that it does not know."""

from __future__ import annotations

import re

DECLINES = re.compile(r"\bI (?:don['’]?t|do not) know\b", re.IGNORECASE)
"""How the prompts ask to say so."""
CITATION = re.compile(r"\[\s*sources?\b([^\]]{0,400})\]", re.IGNORECASE)
"""``[Source 1]``, ``[Sources 1, 3]``, ``[Source 1: a]``; the group is what stands behind the word.

It has a limit, or a text of unclosed marks would be read to its end for each of them."""
_MARK = re.compile(r"\[(?P<said>\s*sources?\b[^\[\]]*)(?P<end>\]?)", re.IGNORECASE)


def unmarked(text: str) -> str:
    """Return ``text`` with round brackets where it has marks, or begins one: it was written by anybody.

    As they are, they would open sources that are not there, and be citations of an answer that quotes them.
    """
    return _MARK.sub(lambda mark: f"({mark['said']}{')' if mark['end'] else ''}", text)
