"""Word vectors and word weights. A vector is the mean of the hidden states of a word's pieces in MiniLM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rag_harness.errors import ModelOutputError
from rag_harness.judges.embedded.source import JsonLeaf, ReadPassage
from rag_harness.judges.embedded.words import Ints, SplitText, split_text
from rag_harness.types import Pieces

Float32s = npt.NDArray[np.float32]
Halves = npt.NDArray[np.float16]

_WIDTH = 384

PiecesOf = Callable[[str, Sequence[int]], Pieces]
"""The type of ``TextEmbedder.pieces``."""


@dataclass(frozen=True)
class Encoded:
    """A text with a vector for each word.

    Attributes:
        text: its sentences and words.
        halves: vectors of the words, unit length or zero, shape (words, d); in half precision, because sources are kept
            in memory.
        weights: weights of the words, shape (words,): 0 for a function word, above 4 for a rare one.
        fields: yes-or-no leaves, where the text was JSON.
        structured: whether it was JSON.
    """

    text: SplitText
    halves: Halves
    weights: Float32s
    fields: tuple[JsonLeaf, ...] = ()
    structured: bool = False

    @property
    def vectors(self) -> Float32s:
        """Vectors of the words, shape (words, d)."""
        return self.halves.astype(np.float32)

    @cached_property
    def sentence_vectors(self) -> Float32s:
        """Mean vector of each sentence's words, one row a sentence, unit length."""
        return unit(np.add.reduceat(self.vectors, self.text.firsts, axis=0))


def encode(passage: ReadPassage, pieces_of: PiecesOf) -> Encoded:
    """Return ``passage`` with its word vectors. A passage without words does not call the model.

    Raises:
        ModelOutputError: the vectors contain NaN or infinity.
    """
    # A tokenizer accepts no lone surrogates.
    text = split_text(passage.text.encode("utf-8", "replace").decode())
    if not len(text.spans):
        empty = np.zeros((0, _WIDTH), np.float16)
        return Encoded(text, empty, np.zeros(0, np.float32), passage.fields, passage.structured)
    pieces = pieces_of(text.text, _borders(text))
    if not np.isfinite(pieces.vectors).all():
        raise ModelOutputError(f"The vectors of {text.text[:60]!r} hold values that are no numbers.")
    vectors, rarest = _by_word(pieces, text.spans)
    return Encoded(text, vectors.astype(np.float16), weights_of(text, rarest), passage.fields, passage.structured)


def weights_of(text: SplitText, ids: Ints) -> Float32s:
    """Return the weight of each word. BERT's ids are ordered by frequency, so a high id is a rare piece."""
    weights: Float32s = (text.content * (0.2 + np.log1p(ids / 1000))).astype(np.float32)
    return weights


def unit(rows: Float32s) -> Float32s:
    """Return rows of unit length. Zeros, NaN and infinity become zeros."""
    finite = np.where(np.isfinite(rows), rows, 0)
    unit_rows: Float32s = finite / np.maximum(np.linalg.norm(finite, axis=-1, keepdims=True), 1e-9)
    return unit_rows.astype(np.float32)


def _borders(text: SplitText) -> list[int]:
    return [start for start, _ in text.sentences]


def _by_word(pieces: Pieces, spans: Ints) -> tuple[Float32s, Ints]:
    """Return the mean vector of each word's pieces, and the id of the first piece; zeros for a word without pieces."""
    word = np.searchsorted(spans[:, 0], pieces.spans[:, 0], side="right") - 1
    inside = (word >= 0) & (pieces.spans[:, 0] < spans[np.maximum(word, 0), 1])
    word, kept = word[inside], np.flatnonzero(inside)
    vectors = np.zeros((len(spans), pieces.vectors.shape[1]), np.float32)
    ids = np.zeros(len(spans), np.int64)
    if len(kept):
        begins = np.flatnonzero(np.diff(word, prepend=-1))
        vectors[word[begins]] = np.add.reduceat(pieces.vectors[kept], begins, axis=0)
        ids[word[begins]] = pieces.ids[kept[begins]]
    return unit(vectors), ids
