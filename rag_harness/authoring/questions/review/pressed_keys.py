"""The keys of a review, and what each does."""

from __future__ import annotations

KEYS = {
    "a": "accept",
    "e": "edit",
    "r": "reject",
    "n": "next",
    "b": "back",
    "s": "skip to the next unreviewed",
    "u": "undo the decision",
    "c": "more context, or less",
    "space": "more of it",
    "?": "keys",
    "q": "quit",
}
ALSO = {"j": "n", "k": "b", "right": "n", "left": "b", "down": "n", "up": "b", " ": "space", "pagedown": "space"}
"""Other keys with the same effect."""
