"""Models that read one piece of a chunk and one claim at a time. A claim is supported where any piece supports it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

import numpy as np

from rag_harness.judges.encoder.asked_support import (
    DECIMALS,
    SUPPORTED_ABOVE,
    AskedSupport,
    ClaimSupport,
    Readings,
    TextKey,
)
from rag_harness.judges.encoder.chunk_pieces import chunk_pieces, word_counts
from rag_harness.judges.encoder.input_formats import InputFormat
from rag_harness.judges.encoder.loaded_classifier import LoadedClassifier, TokenIds

_ROOM_FOR_CLAIM = 0.25
"""Least share of an input that is left for the claim."""


class PairReading:
    """Says how likely a passage supports a claim.

    Args:
        asked_as: how the model is asked.
        load: loads the model; called for the first pair.
    """

    def __init__(self, asked_as: InputFormat, load: Callable[[], LoadedClassifier]) -> None:
        self._format, self._load = asked_as, load
        self._pieces = lru_cache(maxsize=4096)(self._cut)

    def texts(self, asked: AskedSupport) -> list[TextKey]:
        return [(asked.text[start:end], passage) for start, end in asked.spans for passage in asked.passages]

    def supports(self, asked: AskedSupport, readings: Sequence[Readings]) -> list[ClaimSupport]:
        """Return the highest support of each claim. An unread passage might have supported one that no other does."""
        values = np.array([reading[0, 0] for reading in readings]).reshape(len(asked.spans), len(asked.passages))
        return [self._support(row) for row in values]

    def read(self, texts: Sequence[TextKey]) -> list[Readings]:
        """Return the support of each (claim, passage), shape (1, 1); NaN where they are too long together."""
        pairs = [(place, passage, claim) for place, (claim, passage) in enumerate(texts)]
        inputs = self._ids([(passage, claim) for _, passage, claim in pairs])
        long = {place for (place, passage, _), ids in zip(pairs, inputs, strict=True) if self._is_long(passage, ids)}
        kept = [(place, ids) for (place, _, _), ids in zip(pairs, inputs, strict=True) if place not in long]
        cut = [(place, piece, texts[place][0]) for place in sorted(long) for piece in self._pieces(texts[place][1])]
        kept += zip([place for place, _, _ in cut], self._ids([(piece, claim) for _, piece, claim in cut]), strict=True)
        return self._highest(len(texts), kept)

    @abstractmethod
    def support_of(self, inputs: Sequence[TokenIds]) -> dict[int, float]:
        """Return P(supported) of each input, by its place."""

    @cached_property
    def loaded(self) -> LoadedClassifier:
        """The model."""
        return self._load()

    def _support(self, values: Readings) -> ClaimSupport:
        best = int(np.nanargmax(values)) if np.isfinite(values).any() else 0
        if values[best] > SUPPORTED_ABOVE:
            return ClaimSupport(float(values[best]), best)
        if np.isnan(values).any():
            why = f"the model reads at most {self._format.longest} tokens: no room for this claim beside a chunk"
            return ClaimSupport(None, reason=why)
        return ClaimSupport(float(values[best]))

    def _highest(self, count: int, inputs: Sequence[tuple[int, TokenIds]]) -> list[Readings]:
        found = np.full(count, -np.inf)
        short = [(place, ids) for place, ids in inputs if len(ids) <= self.loaded.longest]
        for number, value in self.support_of([ids for _, ids in short]).items():
            place = short[number][0]
            found[place] = max(found[place], value)
        for place, ids in inputs:
            # A piece that supports the claim is enough, whatever was not read.
            if len(ids) > self.loaded.longest and found[place] <= SUPPORTED_ABOVE:
                found[place] = np.nan
        return [np.array([[round(value, DECIMALS)]]) for value in found.tolist()]

    def _is_long(self, passage: str, ids: TokenIds) -> bool:
        if self._format.unit == "words":
            return word_counts([passage])[0] > self._window or len(ids) > self.loaded.longest
        return len(ids) > self._window

    def _cut(self, passage: str) -> tuple[str, ...]:
        count = word_counts if self._format.unit == "words" else self.loaded.counts
        return tuple(chunk_pieces(passage, count, self._window)) or (passage,)

    @cached_property
    def _window(self) -> int:
        return min(self._format.window, int(self.loaded.longest * (1 - _ROOM_FOR_CLAIM)))

    def _ids(self, pairs: Sequence[tuple[str, str]]) -> list[TokenIds]:
        """Return the token ids of each (passage, claim), never cut. No padding: batches come later."""
        if not pairs:
            return []
        loaded, form = self.loaded, self._format.text
        plain = {text: loaded.plain(text) for pair in pairs for text in pair}
        options = {"verbose": False, "return_attention_mask": False, "return_token_type_ids": False}
        chunks, claims = [plain[chunk] for chunk, _ in pairs], [plain[claim] for _, claim in pairs]
        if form:
            eos = loaded.tokenizer.eos_token or loaded.tokenizer.sep_token
            joined = [
                form.format(chunk=chunk, claim=claim, eos=eos) for chunk, claim in zip(chunks, claims, strict=True)
            ]
            ids: list[TokenIds] = loaded.tokenizer(joined, **options)["input_ids"]
        else:
            ids = loaded.tokenizer(chunks, claims, **options)["input_ids"]
        return ids
