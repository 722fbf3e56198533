"""Text of an HTML page with hidden characters written as escapes. The page itself escapes markup."""

from __future__ import annotations

from rag_harness.shown.hidden import escaped


def visible(text: str) -> str:
    r"""Return text with hidden characters written as escapes, as ``\u202e``. Line breaks stay."""
    return escaped(text, kept="\t\n\r")
