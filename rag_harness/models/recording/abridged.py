"""Abridged requests: recordings may keep long paragraphs cut short, because the documents of a prompt are elsewhere.

Different requests stay different: each cut has the digest of its whole paragraph, and the name of a recording is the
digest of the whole request.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

_LONGEST, _KEPT = 200, 100
"""Most characters of a paragraph that stays whole, and the characters left of a longer one."""


def abridged(value: Any) -> Any:
    """Return JSON in which each paragraph of more than 200 characters is cut to its first 100.

    An abridged paragraph stays as it is.
    """
    if isinstance(value, str):
        return "\n\n".join(map(_paragraph, value.split("\n\n")))
    if isinstance(value, Mapping):
        return {key: abridged(each) for key, each in value.items()}
    return [abridged(each) for each in value] if isinstance(value, list) else value


def _paragraph(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{text[:_KEPT]} … [{len(text)} characters, {digest}]"
