"""Token classifiers: LettuceDetect. Each token of an answer is supported or not, given all passages at once.

Where the passages do not fit into one input, there are several. A token is unsupported only where it is in each:
another input may have the passage that supports it. (The authors' code takes the highest, and flags such tokens.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rag_harness.judges.encoder.asked_support import (
    DECIMALS,
    SUPPORTED_ABOVE,
    AskedSupport,
    ClaimSupport,
    Readings,
    TextKey,
    UnsupportedWords,
)
from rag_harness.judges.encoder.chunk_pieces import chunk_pieces
from rag_harness.judges.encoder.input_formats import InputFormat
from rag_harness.judges.encoder.loaded_classifier import LoadedClassifier, probabilities

_ANSWERING = (
    "Briefly answer the following question:\n{question}\n"
    "Bear in mind that your response should be strictly based on the following {count} passages:\n{passages}\n"
    "In case the passages do not contain the necessary information to answer the question, please reply with: "
    '"Unable to answer based on given passages."\noutput:'
)
_SUMMARISING = "Summarize the following text:\n{passages}\noutput:"
_SPARE = 8
"""Tokens of an input that are left free: special ones, and those that counting by parts misses."""


class TokenClassifier:
    """Says how likely each token of a text is unsupported.

    Args:
        asked_as: how the model is asked.
        load: loads the model; called for the first text.
        supporting: place of the label that means support. All others mean that a token is unsupported.
    """

    def __init__(self, asked_as: InputFormat, load: Callable[[], LoadedClassifier], supporting: int) -> None:
        self._format, self._load, self._supporting = asked_as, load, supporting

    def texts(self, asked: AskedSupport) -> list[TextKey]:
        return [(asked.question, asked.text, *asked.passages)]

    def supports(self, asked: AskedSupport, readings: Sequence[Readings]) -> list[ClaimSupport]:
        """Return 1 - the highest probability of a claim's tokens to be unsupported, and where they are."""
        return [self._support(asked, span, readings[0]) for span in asked.spans]

    def read(self, texts: Sequence[TextKey]) -> list[Readings]:
        """Return start, end and P(unsupported) of each token, shape (n, 3); a row of NaN where a text is too long."""
        whole = self._encoded([(_prompt(question, passages), text) for question, text, *passages in texts])
        inputs = [(place, each) for place, each in enumerate(whole) if len(each.ids) <= self.loaded.longest]
        for place in sorted({*range(len(texts))} - {place for place, _ in inputs}):
            question, text, *passages = texts[place]
            several = self._encoded([(prompt, text) for prompt in self._prompts(question, text, passages)])
            inputs += [(place, each) for each in several]
        found: list[Readings | None] = [None] * len(texts)
        for number, rows in self._unsupported([each for _, each in inputs]):
            place = inputs[number][0]
            before = found[place]
            found[place] = rows if before is None else _lowest(before, rows)
        return [np.full((1, 3), np.nan) if rows is None else _rounded(rows) for rows in found]

    @cached_property
    def loaded(self) -> LoadedClassifier:
        """The model."""
        return self._load()

    def _support(self, asked: AskedSupport, span: tuple[int, int], tokens: Readings) -> ClaimSupport:
        start, end = span
        if np.isnan(tokens).any():
            why = f"the model reads at most {self._format.longest} tokens: no room for a passage beside this text"
            return ClaimSupport(None, reason=why)
        inside = tokens[(tokens[:, 0] < end) & (tokens[:, 1] > start)]
        if not len(inside):
            return ClaimSupport(None, reason="the model's tokenizer reads nothing of this claim")
        value = round(1 - float(inside[:, 2].max()), DECIMALS)
        words = tuple(_runs(asked.text, span, inside))
        said = ", ".join(f'"{asked.text[start + each.start : start + each.end]}"' for each in words)
        alone = 0 if len(asked.passages) == 1 and value > SUPPORTED_ABOVE else None
        return ClaimSupport(value, alone, f"not supported: {said}" if said else "", words)

    def _prompts(self, question: str, text: str, passages: Sequence[str]) -> list[str]:
        """Return what the text is compared with, where all passages do not fit into one input.

        No prompt, where the text leaves no room for a passage.
        """
        used, longest = self.loaded.counts([text])[0] + _SPARE, self.loaded.longest
        room = longest - used - self.loaded.counts([_prompt(question, [""] * len(passages))])[0]
        if room < longest // 4:
            return []
        pieces = [piece for passage in passages for piece in chunk_pieces(passage, self.loaded.counts, room)]
        sizes = self.loaded.counts(pieces)
        groups: list[list[str]] = []
        left = 0
        for piece, size in zip(pieces, sizes, strict=True):
            if not groups or size + 1 > left:
                groups.append([])
                left = room
            groups[-1].append(piece)
            # Each further passage of a prompt has a line of its own, with its number.
            left -= size + _SPARE
        return [_prompt(question, group) for group in groups]

    def _encoded(self, pairs: Sequence[tuple[str, str]]) -> list[Any]:
        """Return the tokens of each (prompt, text): ids, places, and which of the two each is of."""
        if not pairs:
            return []
        prompts, texts = ([self.loaded.plain(text) for text in side] for side in zip(*pairs, strict=True))
        options = {"return_offsets_mapping": True, "verbose": False}
        return list(self.loaded.tokenizer(prompts, texts, **options).encodings)

    def _unsupported(self, inputs: Sequence[Any]) -> Iterator[tuple[int, Readings]]:
        for number, logits in self.loaded.run([each.ids for each in inputs], self._forward):
            inside = np.array([side == 1 for side in inputs[number].sequence_ids])
            places = np.array(inputs[number].offsets, np.float64)[inside]
            unsupported = 1 - probabilities(logits[: len(inside)][inside])[:, self._supporting]
            rows = np.column_stack([places, unsupported])
            yield number, rows[rows[:, 1] > rows[:, 0]]

    def _forward(self, ids: Any, mask: Any) -> Any:
        return self.loaded.model(input_ids=ids, attention_mask=mask).logits


def _prompt(question: str, passages: Sequence[str]) -> str:
    lines = "\n".join(f"passage {number}: {passage}" for number, passage in enumerate(passages, 1))
    if not question.strip():
        return _SUMMARISING.format(passages=lines)
    return _ANSWERING.format(question=question, count=len(passages), passages=lines)


def _lowest(rows: Readings, others: Readings) -> Readings:
    """Return the tokens of a text with the lower of two probabilities. Its tokens are the same in each input."""
    lowest = rows.copy()
    lowest[:, 2] = np.minimum(rows[:, 2], others[:, 2])
    return lowest


def _rounded(rows: Readings) -> Readings:
    found: Readings = rows.round(DECIMALS)
    return found


def _runs(text: str, span: tuple[int, int], tokens: Readings) -> Iterator[UnsupportedWords]:
    """Yield each run of unsupported tokens of a claim, without blank space around it."""
    run: list[tuple[int, int, float]] = []
    for start, end, probability in [*tokens.tolist(), (0, 0, 0.0)]:
        if probability > SUPPORTED_ABOVE:
            run.append((max(int(start), span[0]), min(int(end), span[1]), probability))
        elif run:
            yield from _trimmed(text, span[0], run[0][0], run[-1][1], max(each for *_, each in run))
            run = []


def _trimmed(text: str, claim: int, start: int, end: int, probability: float) -> Iterator[UnsupportedWords]:
    words = text[start:end].strip()
    if words:
        first = text.index(words, start) - claim
        yield UnsupportedWords(first, first + len(words), probability)
