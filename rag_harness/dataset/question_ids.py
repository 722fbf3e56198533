"""Ids of questions whose file has none: digests, so that the same question has the same id in every file."""

from __future__ import annotations

import re

from rag_harness.files.sources import text_digest

_LONGEST = 100
_OTHERS = re.compile(r"[^A-Za-z0-9_.\-]+")


def id_of_question(text: str, kind: str = "q") -> str:
    """Return an id made of a question's text; white space does not count. ``kind`` is what it begins with."""
    return f"{kind}_{text_digest(' '.join(text.split()))[:12]}"


def as_id(name: str) -> str:
    """Return a name in the letters that an id may have; empty where none is left."""
    return _OTHERS.sub("-", name.strip())[:_LONGEST].strip("-")
