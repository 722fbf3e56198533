"""Finds repeated questions: by runs of words (MinHash, then Jaccard) and by the cosine of word counts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.overlap import overlap
from rag_harness.types import Evidence
from rag_harness.words.languages import ENGLISH
from rag_harness.words.minhash import PERMUTATIONS, Hashing, Runs, resemblance, signature
from rag_harness.words.terms import term, tokens

ALIKE = 0.6
"""From this Jaccard similarity of three-word runs on, two questions are the same."""
SAME_WORDS = 0.9
"""From this cosine of content word counts on, two questions are the same: same words in another order."""
_BAND = 2


ASKED, REJECTED = "asked already", "somebody rejected it"
_Facts = tuple[tuple[Evidence, ...], str, tuple[str, ...]]


class TakenQuestions:
    """The questions that were taken, and those that were rejected.

    Args:
        most_shared: the share of its words that a question may have in common with the pages that answer it.
        collection: has those pages; not needed if all words may be shared.
        rejected: questions that a person has rejected; only the ground truth of their answers is known.
    """

    def __init__(
        self, most_shared: float = 1.0, collection: DocumentCollection | None = None, rejected: Iterable[Draft] = ()
    ) -> None:
        self._most_shared, self._collection = most_shared, collection
        self._hashing = Hashing()
        self._shown: set[tuple[tuple[Evidence, ...], str]] = set()
        self._runs: list[Runs] = []
        self._words: list[Counter[str]] = []
        self._bands: dict[tuple[int, bytes], list[int]] = defaultdict(list)
        self._holding: dict[str, list[int]] = defaultdict(list)
        self._unwanted: set[_Facts] = set()
        for draft in rejected:
            if draft.text:
                self._remember(draft.text)
            self._unwanted.add(_facts(draft))
        self._rejected = len(self._runs)

    def fault_of(self, draft: Draft) -> str | None:
        """Return the reason against a draft that repeats an earlier question or copies its page; else None."""
        if draft.evidence and self._collection and overlap(draft, self._collection) > self._most_shared:
            return "shares too many words with its page"
        if draft.evidence and _facts(draft) in self._unwanted:
            return REJECTED
        if draft.evidence and (draft.evidence, draft.answer) in self._shown:
            return ASKED
        like = self._like(draft.text)
        return None if like is None else REJECTED if like < self._rejected else ASKED

    def _like(self, text: str) -> int | None:
        """Return the number of the first question that is the same, if any."""
        runs, words = self._hashing.runs(text), self._counted(text)
        near = {number for band in _bands(runs) for number in self._bands.get(band, ())}
        sharing = {number for word in words for number in self._holding.get(word, ())}
        like = [number for number in near if resemblance(runs, self._runs[number]) >= ALIKE]
        same = (number for number in sorted(sharing) if _cosine(words, self._words[number]) >= SAME_WORDS)
        return min(like) if like else next(same, None)

    def _counted(self, text: str) -> Counter[str]:
        language = self._collection.language if self._collection else ENGLISH
        return Counter(found for token in tokens(text) if (found := term(token, language)))

    def add(self, draft: Draft) -> None:
        """Remember a question."""
        self._shown.add((draft.evidence, draft.answer))
        self._remember(draft.text)

    def _remember(self, text: str) -> None:
        runs, words = self._hashing.runs(text), self._counted(text)
        number = len(self._runs)
        self._runs.append(runs)
        self._words.append(words)
        for band in _bands(runs):
            self._bands[band].append(number)
        for word in words:
            self._holding[word].append(number)


def _facts(draft: Draft) -> _Facts:
    return draft.evidence, draft.ground_truth, draft.made_of


def _bands(runs: Runs) -> list[tuple[int, bytes]]:
    if not len(runs):
        return []
    sketch = signature(runs)
    return [(start, sketch[start : start + _BAND].tobytes()) for start in range(0, PERMUTATIONS, _BAND)]


def _cosine(first: Counter[str], second: Counter[str]) -> float:
    shared = sum(count * second[word] for word, count in first.items())
    lengths = math.hypot(*first.values()) * math.hypot(*second.values())
    return shared / lengths if lengths else 0.0
