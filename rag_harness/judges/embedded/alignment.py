"""Aligns an answer with its source: the nearest sentence of the source for each sentence, and the nearest words.

The nearness of two sentences is their cosine plus their MaxSim. MaxSim takes for each word of the answer the best
cosine with a word of the source's sentence, weighted by the word's rarity (Khattab & Zaharia, "ColBERT", 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rag_harness.judges.embedded.encoding import Encoded, Float32s
from rag_harness.judges.embedded.source import JsonLeaf
from rag_harness.judges.embedded.words import Ints

TOP = 3
"""Number of nearest source sentences for each sentence of the answer."""


@dataclass(frozen=True)
class EncodedSource:
    """All passages as one sequence of words. Passages without a word are left out, but keep their number."""

    passages: tuple[Encoded, ...]

    @cached_property
    def _read(self) -> list[tuple[int, Encoded]]:
        return [(place, each) for place, each in enumerate(self.passages) if len(each.text.spans)]

    @cached_property
    def empty(self) -> bool:
        """Whether it has no words."""
        return not self._read

    @cached_property
    def vectors(self) -> Float32s:
        """Vectors of all words, shape (words, d)."""
        return np.concatenate([each.vectors for _, each in self._read])

    @cached_property
    def sentence_vectors(self) -> Float32s:
        """Vectors of all sentences, shape (sentences, d)."""
        return np.concatenate([each.sentence_vectors for _, each in self._read])

    @cached_property
    def firsts(self) -> Ints:
        """The first word of each sentence."""
        begins = np.cumsum([0, *(len(each.text.spans) for _, each in self._read)])
        return np.concatenate([each.text.firsts + begin for (_, each), begin in zip(self._read, begins, strict=False)])

    @cached_property
    def passage_of(self) -> Ints:
        """The passage of each sentence."""
        return np.repeat(
            [place for place, _ in self._read], [len(each.text.sentences) for _, each in self._read]
        ).astype(np.int64)

    @cached_property
    def words(self) -> list[str]:
        """All words in lower case."""
        return [word for _, each in self._read for word in each.text.words]

    @cached_property
    def stems(self) -> list[str]:
        """The stem of each word."""
        return [stem for _, each in self._read for stem in each.text.stems]

    @cached_property
    def sentences(self) -> list[str]:
        """All sentences."""
        return [each.text.text[start:end] for _, each in self._read for start, end in each.text.sentences]

    @cached_property
    def fields(self) -> Sequence[JsonLeaf]:
        """The yes-or-no leaves of all JSON passages."""
        return [field for _, each in self._read for field in each.fields]

    @cached_property
    def structured(self) -> float:
        """The share of words from JSON passages."""
        return sum(len(each.text.spans) for _, each in self._read if each.structured) / len(self.words)


@dataclass(frozen=True)
class Alignment:
    """Similarities of an answer's words and sentences with a source's.

    Attributes:
        sims: cosine of each pair of words, shape (n, m).
        best: best cosine of each word in each sentence of the source, shape (n, sentences).
        cosine: cosines of the sentences, shape (answer's, source's).
        max_sim: weighted MaxSim of the sentences, shape (answer's, source's).
        top: nearest sentences of the source, best first, shape (answer's, TOP); repeated where there are fewer.
    """

    sims: Float32s
    best: Float32s
    cosine: Float32s
    max_sim: Float32s
    top: Ints

    @property
    def score(self) -> Float32s:
        """Nearness of the sentences."""
        return self.cosine + self.max_sim


def align(answer: Encoded, source: EncodedSource) -> Alignment:
    """Align ``answer`` with ``source``. Neither may be empty."""
    sims = np.clip(answer.vectors @ source.vectors.T, -1, 1)
    best = np.maximum.reduceat(sims, source.firsts, axis=1)
    weights = answer.weights + 1e-3
    total = np.add.reduceat(weights, answer.text.firsts)
    summed = np.add.reduceat(best * weights[:, None], answer.text.firsts, axis=0)
    weighted = np.asarray(summed / total[:, None], np.float32)
    cosine = answer.sentence_vectors @ source.sentence_vectors.T
    # Values that are equal after rounding are ties. Then the order of the source decides, not the last bit.
    order = np.argsort(-(cosine + weighted).round(5), axis=1, kind="stable")
    places = np.minimum(np.arange(TOP), order.shape[1] - 1)
    return Alignment(sims, best, cosine, weighted, order[:, places])
