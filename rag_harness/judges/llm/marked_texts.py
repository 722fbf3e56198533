"""Puts the judged material between marks that it cannot contain: their key is made from its digest.

The key is not random: the same material must give the same request, so that recordings find it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_harness.models.recording.store import key_of

MarkedText = tuple[str, str]
"""A name of ours, and a text of somebody else."""
_KEY_LENGTH = 8


def marked(sections: Sequence[MarkedText]) -> str:
    """Return ``sections`` in their order, each below its ``<<name | key>>``; ``<<end | key>>`` ends the last."""
    key = _key([text for _, text in sections])
    return "\n".join([*(f"<<{name} | {key}>>\n{text}" for name, text in sections), f"<<end | {key}>>"])


def numbered(name: str, texts: Iterable[str]) -> list[MarkedText]:
    """Return a section for each text: ``passage 1``, ``passage 2``, …"""
    return [(f"{name} {number}", text) for number, text in enumerate(texts, 1)]


def _key(texts: Sequence[str]) -> str:
    """Return a key that no text contains. Where a text contains a key, the next one is tried."""
    key = key_of(*texts).hex()[:_KEY_LENGTH]
    while any(key in text for text in texts):
        key = key_of(key, *texts).hex()[:_KEY_LENGTH]
    return key
