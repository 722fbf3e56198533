"""Citation marks of an answer, such as ``[Source 1]``, and the mark "I don't know"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.core.text.languages import LANGUAGES

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


_NUMBER = re.compile(r"\s*(?:source\s*)?(\d{1,6})\b", re.IGNORECASE)


def cited_sources(text: str) -> Sequence[int]:
    """Return the numbers of cited sources, once each: ``[Source 1]``, ``[Sources 1, 3]``, ``[Source 1: a]``."""
    pieces = (piece for cited in CITATION.findall(text) for piece in re.split(r"[,;&]|\band\b", cited))
    numbers = (match for match in map(_NUMBER.match, pieces) if match)
    return list(dict.fromkeys(int(match[1]) for match in numbers))
