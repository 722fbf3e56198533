"""Marks that only an answer may have: citations such as ``[Source 1]``, and "I don't know"."""

from __future__ import annotations

import re

from rag_harness.words.languages import LANGUAGES

DECLINES = re.compile(r"\bI (?:don['’]?t|do not) know\b", re.IGNORECASE)
"""The words with which the prompts ask a model to decline."""
CITATION = re.compile(r"\[\s*sources?\b([^\]]{0,400})\]", re.IGNORECASE)
"""``[Source 1]``, ``[Sources 1, 3]``, ``[Source 1: a]``; the group is the text after the word.

The group has a limit. Without it, each unclosed mark would be read to the end of the text."""
_MARK = re.compile(r"\[(?P<said>\s*sources?\b[^\[\]]*)(?P<end>\]?)", re.IGNORECASE)


def says_unknown(text: str) -> bool:
    """Return whether a text has the words with which prompts ask a model to decline, in any language with rules."""
    return DECLINES.search(text) is not None or any(rules.declines.search(text) for rules in LANGUAGES.values())


def without_marks(text: str) -> str:
    """Return ``text`` of unknown origin with round brackets in place of citation marks, also of unclosed ones.

    Unchanged, its marks would look like sources of the prompt, and like citations in an answer that quotes them.
    """
    return _MARK.sub(lambda mark: f"({mark['said']}{')' if mark['end'] else ''}", text)
