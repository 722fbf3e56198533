"""Computes the arrays of a judgement from texts, and keeps the vectors of sources in memory.

All arrays have two columns, because a store holds one width.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from rag_harness.errors import ModelOutputError
from rag_harness.judges.embedded.absent import absent
from rag_harness.judges.embedded.absent.sentences import sentence_of
from rag_harness.judges.embedded.absent.stated import restated
from rag_harness.judges.embedded.alignment import EncodedSource
from rag_harness.judges.embedded.encoding import Encoded, encode
from rag_harness.judges.embedded.judgement import DECIMALS, Doubles, alignment_with, judge
from rag_harness.judges.embedded.model import Coefficients, coefficients
from rag_harness.judges.embedded.source import ReadPassage, passage_of
from rag_harness.judges.embedded.text_limits import readable_sentences
from rag_harness.judges.embedded.words import SplitText, split_text
from rag_harness.protocols import TextEmbedder

_REMEMBERED = 160_000
"""Number of source words whose vectors are in memory: 123 MB. Experiments often retrieve the same chunks."""


class JudgementReading:
    """Computes judgements; synchronous, for one thread.

    Args:
        embedder: makes the embedder that the coefficients were fitted with; called for the first text.
    """

    def __init__(self, embedder: Callable[[], TextEmbedder]) -> None:
        self._make, self._sources, self._held = embedder, OrderedDict[str, Encoded](), 0
        self._answers: dict[str, Encoded] = {}

    @cached_property
    def _embedder(self) -> TextEmbedder:
        return self._make()

    @cached_property
    def _fitted(self) -> Coefficients:
        return coefficients()

    def judged(self, text: str, passages: Sequence[str], question: str) -> Doubles:
        """Return (P(unsupported), passage) of each read sentence, then (P(hallucinated), score); shape (n + 1, 2).

        Where text or passages cannot be read, the array has no rows.
        """
        source = EncodedSource(tuple(self._source(passage) for passage in passages))
        answer = self._answer(text)
        if source.empty or not answer.text.sentences:
            return np.zeros((0, 2))
        found = judge(self._restated(answer, source), source, self._source(question), self._fitted, answer.text)
        rows = zip(found.unsupported, found.passages, strict=True)
        return np.array([*rows, (found.hallucinated, found.score)], np.float64)

    def missed(self, text: SplitText, passages: Sequence[str], question: str) -> list[str]:
        """Return for each read sentence what the rules miss in the passages. No model is called."""
        head = split_text(_head(text.text))
        return absent(head, [read_as_source(passage) for passage in passages], question)

    def alignments(self, wanted: str, passages: Sequence[str]) -> Doubles:
        """Return (share of ``wanted`` that it has, its position) for each passage, shape (n, 2)."""
        text = self._source(wanted)
        rows = [(alignment_with(text, self._source(passage)), place) for place, passage in enumerate(passages)]
        return np.array(rows, np.float64).reshape(-1, 2)

    def cosine(self, question: str, answer: str) -> Doubles:
        """Return the cosine of question and answer, and the number of blocks of the answer; shape (1, 2).

        Raises:
            ModelOutputError: a vector contains NaN or infinity.
        """
        blocks = self._blocks(answer)
        asked = self._embedder.embed_queries([question])[0].astype(np.float64)
        said = self._embedder.embed_documents(blocks).astype(np.float64).sum(axis=0)
        length = np.linalg.norm(said) * np.linalg.norm(asked)
        if not np.isfinite(length) or not length:
            raise ModelOutputError(f"{self._embedder.model} gave no vector that has a direction for {answer[:60]!r}.")
        return np.array([[round(float(asked @ said / length), DECIMALS), len(blocks)]])

    def _blocks(self, text: str) -> list[str]:
        """Return ``text`` in blocks of sentences that fit the embedder's limit."""
        count = self._embedder.tokenizer().count
        if count([text])[0] <= self._embedder.max_tokens:
            return [text]
        sentences = [text[start:end] for start, end in split_text(text).sentences]
        return _packed(sentences, count(sentences), self._embedder.max_tokens)

    def _answer(self, text: str) -> Encoded:
        """Return the readable part of ``text``. The last text is cached, for it is compared with several sources."""
        if text not in self._answers:
            self._answers = {text: encode(ReadPassage(_head(text)), self._embedder.pieces)}
        return self._answers[text]

    def _restated(self, answer: Encoded, source: EncodedSource) -> Encoded:
        """Return the answer with its values as the source writes them; as it is where sentences would change."""
        written = (passage.text for passage in source.passages)
        sentences = [sentence_of(one.text[start:end]) for one in written for start, end in one.sentences]
        text = restated(answer.text.text, sentences)
        if text == answer.text.text:
            return answer
        found = encode(ReadPassage(text), self._embedder.pieces)
        return found if len(found.text.sentences) == len(answer.text.sentences) else answer

    def _source(self, text: str) -> Encoded:
        if text not in self._sources:
            self._sources[text] = encode(passage_of(text), self._embedder.pieces)
            self._held += len(self._sources[text].weights)
        self._sources.move_to_end(text)
        while self._held > _REMEMBERED and len(self._sources) > 1:
            self._held -= len(self._sources.popitem(last=False)[1].weights)
        return self._sources[text]


@lru_cache(maxsize=256)
def read_as_source(passage: str) -> SplitText:
    """Return a passage in the form that ``encode`` takes."""
    return split_text(passage_of(passage).text.encode("utf-8", "replace").decode())


def _head(text: str) -> str:
    """Return the readable beginning of ``text``."""
    found = split_text(text)
    count = readable_sentences(found)
    return text if count == len(found.sentences) else text[: found.sentences[count - 1][1]] if count else ""


def _packed(sentences: Sequence[str], counts: Sequence[int], most: int) -> list[str]:
    """Return sentences joined to blocks of at most ``most`` tokens. A longer sentence is left out."""
    blocks: list[list[str]] = [[]]
    room = most
    for sentence, count in zip(sentences, counts, strict=True):
        if count > most:
            continue
        if count > room:
            blocks, room = [*blocks, []], most
        blocks[-1].append(sentence)
        room -= count
    return [" ".join(block) for block in blocks if block]


def parts_of(found: Any) -> tuple[list[tuple[float, int]], float, float]:
    """Return the sentences, P(hallucinated) and the score from the result of ``JudgementReading.judged``."""
    rows = [(round(float(p), DECIMALS), int(place)) for p, place in found[:-1]]
    hallucinated, score = (round(float(value), DECIMALS) for value in found[-1])
    return rows, hallucinated, score
