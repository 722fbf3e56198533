"""Text of a page: markup is escaped by whoever writes the page; here, what would turn its direction is written out."""

from __future__ import annotations

from rag_harness.shown.hidden import escaped


def visible(text: str) -> str:
    r"""Return text with what nobody would see written out, as ``\u202e``; its lines are kept."""
    return escaped(text, kept="\t\n\r")
