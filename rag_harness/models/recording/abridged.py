"""A request with its long paragraphs cut short, as a recording may keep it: the documents of a prompt lie elsewhere.

What was sent is still told apart: each cut names the digest of the whole paragraph, and a recording is found by the
digest of the whole request, which its name is.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

_LONGEST, _KEPT = 200, 100
"""Characters of a paragraph that stays whole, and of one that does not."""


def abridged(value: Any) -> Any:
    """Return JSON with each paragraph of its texts that is longer than 200 characters cut to its first 100.

    What is abridged already stays as it is.
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
