"""Parser for citation marks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.words.citation_marks import CITATION

_NUMBER = re.compile(r"\s*(?:source\s*)?(\d{1,6})\b", re.IGNORECASE)


def cited_sources(text: str) -> Sequence[int]:
    """Return the numbers of cited sources, once each: ``[Source 1]``, ``[Sources 1, 3]``, ``[Source 1: a]``."""
    pieces = (piece for cited in CITATION.findall(text) for piece in re.split(r"[,;&]|\band\b", cited))
    numbers = (match for match in map(_NUMBER.match, pieces) if match)
    return list(dict.fromkeys(int(match[1]) for match in numbers))
