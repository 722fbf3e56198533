"""Search for the page of a text, with an index of shingles (runs of words) over all pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rag_harness.words.same_words import words_of

_RUN = 6
"""Words of a run. Five words in a row often occur in two documents, six seldom."""
_FEWEST = 3
"""Fewest words of a text that is looked for: of two words, most documents have some."""
_SHARE = 0.8
"""Least share of a text's runs in its document: a service may add a title, or cut the last word."""
_PRIME = np.uint64(1_000_003)

_Numbers = npt.NDArray[np.uint64]


class TextOrigins:
    """Finds the document that contains a text.

    Args:
        documents: their texts.
    """

    def __init__(self, documents: Sequence[str]) -> None:
        self._ids: dict[str, int] = {}
        numbered = [self._numbered(words_of(text), grow=True) for text in documents]
        self._folded = [f" {' '.join(map(str, numbers))} " for numbers in numbered]
        runs = [_runs(numbers) for numbers in numbered]
        owners = np.repeat(np.arange(len(runs)), [len(each) for each in runs])
        keys = np.concatenate([*runs, np.empty(0, np.uint64)])
        order = np.argsort(keys, kind="stable")
        self._keys, self._owners = keys[order], owners[order]

    def find(self, text: str) -> int | None:
        """Return the number of the document that contains ``text``. None where no document does, or several do.

        The document contains the text word for word, or most of its runs of six words.
        """
        numbers = self._numbered(words_of(text))
        if len(numbers) < _FEWEST:
            return None
        candidates = (
            self._sharing(_runs(numbers)) if len(numbers) >= _RUN else dict.fromkeys(range(len(self._folded)), 0.0)
        )
        folded = f" {' '.join(map(str, numbers))} "
        whole = [at for at in candidates if folded in self._folded[at]]
        if whole:
            return whole[0] if len(whole) == 1 else None
        best = max(candidates.values(), default=0.0)
        likeliest = [at for at, share in candidates.items() if share == best]
        return likeliest[0] if best >= _SHARE and len(likeliest) == 1 else None

    def shares(self, text: str, number: int) -> bool:
        """Return whether a document has a run of six words of ``text``; of a shorter text, all words in a row."""
        numbers = self._numbered(words_of(text))
        if len(numbers) < _RUN:
            return f" {' '.join(map(str, numbers))} " in self._folded[number]
        return number in self._sharing(_runs(numbers))

    def _numbered(self, words: Sequence[str], grow: bool = False) -> list[int]:
        """Return words as numbers; 0 is a word that no document has."""
        if grow:
            return [self._ids.setdefault(word, len(self._ids) + 1) for word in words]
        return [self._ids.get(word, 0) for word in words]

    def _sharing(self, runs: _Numbers) -> dict[int, float]:
        """Return the documents that share some of ``runs``, each with its share."""
        first, last = (np.searchsorted(self._keys, runs, side) for side in ("left", "right"))
        found: dict[int, int] = {}
        for begin, end in zip(first.tolist(), last.tolist(), strict=True):
            for owner in set(self._owners[begin:end].tolist()):
                found[owner] = found.get(owner, 0) + 1
        return {owner: n / len(runs) for owner, n in found.items()}


class PageTexts:
    """The texts of pages, and whether they say something. Case, punctuation, marks and white space do not count.

    Args:
        texts: of all pages, by their names.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._squeezed: dict[str, str] = {}

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self._texts)}

    @cached_property
    def _origins(self) -> TextOrigins:
        return TextOrigins(list(self._texts.values()))

    def has(self, name: str) -> bool:
        """Whether there is a page of this name."""
        return name in self._texts

    def find(self, text: str) -> str:
        """Return the page that contains a text; empty where none does, or several do."""
        number = self._origins.find(text)
        return "" if number is None else list(self._texts)[number]

    def quotes(self, name: str, text: str) -> bool:
        """Whether a text stands literally in a page, Markdown included."""
        if name not in self._squeezed:
            self._squeezed[name] = " ".join(self._texts[name].split())
        return " ".join(text.split()) in self._squeezed[name]

    def says(self, name: str, text: str) -> bool:
        """Whether a page has a text, or a run of six words of it: a pipeline may shorten texts, or join them."""
        # Most texts stand there literally, and need no index of all pages.
        return self.quotes(name, text) or self._origins.shares(text, self._numbers[name])


class PagesOfContexts:
    """Finds the page of a context: by the name that the context tells, or, where it tells none, by its words.

    Args:
        by_name: finds a page by a name.
        texts: returns the texts of all pages, by their names; called when words are looked for.
    """

    def __init__(self, by_name: Callable[[str], str], texts: Callable[[], Mapping[str, str]]) -> None:
        self._by_name, self._texts = by_name, texts

    @cached_property
    def _pages(self) -> PageTexts:
        return PageTexts(self._texts())

    def find(self, name: str, text: str) -> str:
        """Return the page; empty where no page, or more than one, goes by the ``name`` or has the ``text``."""
        return self._by_name(name) if name else self._pages.find(text)


def _runs(numbers: Sequence[int]) -> _Numbers:
    """Return a number for each run of words, shape (words - 5,); empty where there are fewer."""
    words = np.asarray(numbers, np.uint64)
    if len(words) < _RUN:
        return np.empty(0, np.uint64)
    total = np.zeros(len(words) - _RUN + 1, np.uint64)
    for at in range(_RUN):
        total = total * _PRIME + words[at : len(words) - _RUN + 1 + at]
    return total
