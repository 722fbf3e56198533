"""Finds a quote in a page: word for word, with other marks, with other figures, or in other words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

LIKE = 0.6
"""From this share of common words, in the same order, a passage counts as the quote in other words."""
FEWEST_WORDS = 3
"""How many words beside its figures a quote needs to be recognised when its figures have changed."""
TELLING = 5
"""How many words a quote needs to identify its page: "30 days" may be in any page."""
_LOOKED_AT = 5
"""How many passages with most of a quote's words are compared; the most similar is taken."""
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+|[^\w\s]")
_FIGURE = r"(\d+(?:[.,:]\d+)*)"
_EMPHASIS = "*_`"
_TARGET = re.compile(r"\]\([^()\s]*(?:\s\"[^\"]*\")?\)")
_MARKS = frozenset("*_`~\\[]")
_GAP = r"(?:[\s*_`~\\\[]|\]\([^()\s]*\)|\])"
_ALIKE = ({"'", "’", "‘"}, {'"', "“", "”"}, {"-", "–", "—", "‑"})
_PIECE = re.compile(r"\S(?:.*?[.!?](?=\s)|.*)")


class QuotedPassage(NamedTuple):
    """The passage ``text[start:end]`` of a page that is or was a quote. ``figures``: pairs of old and new ones."""

    text: str
    figures: tuple[tuple[str, str], ...] = ()


def holds_quote(text: str, quote: str) -> bool:
    """Whether a text has a quote word for word, without cutting a figure: ``€10`` is not in ``€100``."""
    start = text.find(quote)
    while start >= 0 and _cuts_figure(text, start, start + len(quote)):
        start = text.find(quote, start + 1)
    return start >= 0


def _cuts_figure(text: str, start: int, end: int) -> bool:
    behind = re.match(r"[.,:]?\d", text[end : end + 2]) if text[end - 1 : end].isdigit() else None
    before = re.search(r"\d[.,:]?$", text[max(0, start - 2) : start]) if text[start : start + 1].isdigit() else None
    return bool(behind or before)


def otherwise_marked(text: str, quote: str) -> QuotedPassage | None:
    """Return the passage that differs from a quote only in white space, emphasis, link targets and typography."""
    if not _words(quote):
        return None
    match = re.search(_pattern(quote), text)
    return QuotedPassage(_with_marks(text, match.start(), match.end())) if match else None


def with_other_figures(text: str, quote: str) -> QuotedPassage | None:
    """Return the passage that also differs in figures; of several, the one with the fewest changed figures."""
    old = [token for token in _tokens(quote) if token[0].isdigit()]
    if not old or len(_words(quote)) < FEWEST_WORDS:
        return None
    found = [
        QuotedPassage(
            _with_marks(text, match.start(), match.end()),
            tuple((was, now) for was, now in zip(old, match.groups(), strict=True) if was != now),
        )
        for match in re.finditer(_pattern(quote, _FIGURE), text)
    ]
    return min(found, key=lambda each: len(each.figures), default=None)


def reworded(text: str, quote: str) -> QuotedPassage | None:
    """Return the passage with most of a quote's words in their order. It has as many sentences or lines."""
    wanted = _words(quote)
    size = max(1, len(list(_pieces(quote))))
    ranked = sorted(_windows(text, size), key=lambda each: -len(set(each[1]) & set(wanted)))[:_LOOKED_AT]
    rated = [(SequenceMatcher(None, wanted, words, autojunk=False).ratio(), passage) for passage, words in ranked]
    best = max(rated, key=lambda each: each[0], default=(0.0, ""))
    return QuotedPassage(best[1]) if len(wanted) >= FEWEST_WORDS and best[0] >= LIKE else None


def tells_page(quote: str) -> bool:
    """Whether a quote has enough words to identify its page: another page with these words is its new place."""
    return len(_words(quote)) >= TELLING


def pieces(text: str) -> list[str]:
    """Return the sentences, list items and table rows of a text, verbatim."""
    return [text[start:end] for start, end in _pieces(text)]


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    for match in _PIECE.finditer(text):
        yield match.start(), match.start() + len(match[0].rstrip())


@lru_cache(maxsize=4)
def _windows(text: str, size: int) -> Sequence[tuple[str, Sequence[str]]]:
    spans = list(_pieces(text))
    groups = [spans[first : first + size] for first in range(max(1, len(spans) - size + 1))] if spans else []
    windows = [text[group[0][0] : group[-1][1]] for group in groups]
    return [(window, _words(window)) for window in windows]


def _words(text: str) -> list[str]:
    return [token.casefold() for token in _tokens(text) if token[0].isalnum()]


def _tokens(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(_TARGET.sub("]", text)) if token not in _MARKS]


def _pattern(quote: str, figure: str = "") -> str:
    """Return a pattern for a quote with any marks between its words; ``figure`` replaces each of its figures."""
    tokens = _tokens(quote)
    parts = [r"(?<![^\W_])(?<!\d[.,:])"] if tokens[0][0].isalnum() else []
    for number, token in enumerate(tokens):
        if number:
            parts.append(f"{_GAP}{'+' if tokens[number - 1].isalpha() and token.isalpha() else '*'}")
        parts.append(figure if figure and token[0].isdigit() else _signs(token))
    return "".join([*parts, r"(?![^\W_])" if tokens[-1].isalpha() else "", r"(?![.,:]?\d)"])


def _signs(token: str) -> str:
    alike = next((signs for signs in _ALIKE if token in signs), None)
    return f"[{re.escape(''.join(sorted(alike)))}]" if alike else re.escape(token)


def _with_marks(text: str, start: int, end: int) -> str:
    """Extend a passage by a link that it begins or ends in, and by emphasis next to it."""
    if text[start:end].count("](") > text[start:end].count("[") and text[start - 1 : start] == "[":
        start -= 1
    if text[start:end].count("[") > text[start:end].count("]") and (target := _TARGET.match(text, end)):
        end = target.end()
    ahead, after = text[max(0, start - 3) : start], text[end : end + 3]
    before, behind = ahead[len(ahead.rstrip(_EMPHASIS)) :], after[: len(after) - len(after.lstrip(_EMPHASIS))]
    marks = before if before == behind[::-1] else ""
    return text[start - len(marks) : end + len(marks)]
