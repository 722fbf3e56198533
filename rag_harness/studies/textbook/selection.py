"""Finds the chunks that contain the text that a student has selected."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from rag_harness.words.comparison import compared_words

RUN_PERCENT = 60
"""A chunk contains a selection if it has a run of this percentage of its words. A page on a screen lacks the marks of
its source, and a selection may reach into the next section."""


class Selection:
    """A selected text, prepared for searching.

    Args:
        text: the text from the browser.
    """

    def __init__(self, text: str) -> None:
        self.text = with_single_blanks(text)
        self.words = _words(text)

    @cached_property
    def _runs(self) -> list[str]:
        """All runs of the needed length, between blanks. A longer run begins with one of these."""
        length = self._needed
        starts = range(len(self.words) - length + 1) if length else ()
        return [f" {' '.join(self.words[start : start + length])} " for start in starts]

    @property
    def _needed(self) -> int:
        return -(-len(self.words) * RUN_PERCENT // 100)

    def is_in(self, text: str) -> bool:
        """Whether ``text`` contains the selection: exactly but for white space, or by a long run of its words."""
        if not self.text:
            return False
        if _stands_in(self.text, with_single_blanks(text)):
            return True
        there = _words(text)
        if len(there) < self._needed:
            return False
        line = f" {' '.join(there)} "
        return any(run in line for run in self._runs)


def selected_text(inputs: Any) -> Selection | None:
    """Return the selection; None if the query has no such input, or it is no text."""
    value = inputs.get("selected_text")
    return Selection(value) if isinstance(value, str) else None


def with_single_blanks(text: str) -> str:
    """Return ``text`` with each run of white space as one blank, and none at the ends."""
    return " ".join(text.split())


def _stands_in(part: str, text: str) -> bool:
    """Whether ``text`` contains ``part`` as whole words. (A pattern of 200,000 characters would take a second.)"""
    at = text.find(part)
    while at >= 0:
        if not (_in_a_word(text, at) or _in_a_word(text, at + len(part))):
            return True
        at = text.find(part, at + 1)
    return False


def _in_a_word(text: str, border: int) -> bool:
    """Whether the characters on both sides of ``border`` belong to one word."""
    return 0 < border < len(text) and all(letter.isalnum() for letter in text[border - 1 : border + 1])


def _words(text: str) -> Sequence[str]:
    return compared_words(text)
