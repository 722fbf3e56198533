"""Judgement of a text and its source by two logistic models, computed or stored."""

from __future__ import annotations

import json
import pickle
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rag_harness.core.blas import one_thread
from rag_harness.core.concurrency import in_a_thread, on_local_thread, paused
from rag_harness.core.errors import ModelOutputError, NotJudgedError, RecordingMissError
from rag_harness.core.files import file_digest
from rag_harness.core.processes import Unchecked, checked
from rag_harness.core.protocols import Store, TextEmbedder
from rag_harness.evaluation.judges.embedded.alignment import (
    Encoded,
    EncodedSource,
    Float32s,
    ReadPassage,
    SplitText,
    encodable,
    encode,
    passage_of,
    readable_sentences,
    split_text,
)
from rag_harness.evaluation.judges.embedded.features import features, response_features
from rag_harness.evaluation.judges.embedded.quantities import sentence_of
from rag_harness.evaluation.judges.embedded.unsupported_details import absent
from rag_harness.evaluation.judges.embedded.values import restated

# Two logistic models: of a sentence, and of an answer.
#
# ``benchmarks/faithfulness_training.py`` fits the coefficients. They are in ``coefficients.json``, with the digest of
# their training data.

COEFFICIENTS_FILE = Path(__file__).with_name("coefficients.json")
BOUND = 4.0
"""Features are cut at so many standard deviations, so that no value outside the training data decides alone."""

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Logistic:
    """A logistic model of standardised features.

    Attributes:
        names: names of the features.
        mean: mean of each in training.
        scale: standard deviation of each in training, 1 where it did not vary.
        weights: weight of each.
        bias: bias of the model.
    """

    names: tuple[str, ...]
    mean: Doubles
    scale: Doubles
    weights: Doubles
    bias: float

    def probabilities(self, rows: npt.ArrayLike) -> Doubles:
        """Return the probability of each row, shape (n,). NaN counts as the mean."""
        raw = np.asarray(rows, np.float64)
        values = standardised(raw, self.mean, self.scale)
        found: Doubles = 1 / (1 + np.exp(-(values @ self.weights + self.bias)))
        return found


def standardised(rows: Doubles, mean: Doubles, scale: Doubles) -> Doubles:
    """Return standardised features, shape (n, names)."""
    values: Doubles = np.clip(np.where(np.isfinite(rows), (rows - mean) / scale, 0), -BOUND, BOUND)
    return values


@dataclass(frozen=True)
class Coefficients:
    """The fitted coefficients.

    Attributes:
        sentence: P(a sentence contains something that the source does not support).
        response: P(an answer does).
        base: share of sentences in the data with something unsupported.
        threshold: probability from which an answer is called hallucinated.
        data: sha256 of the training data, by file.
    """

    sentence: Logistic
    response: Logistic
    base: float
    threshold: float
    data: dict[str, str]


def at_even_odds(p: Doubles, base: float) -> Doubles:
    """Return probabilities for a prior of 0.5, so that 0.5 means no evidence either way.

    The true rate of the pipeline at hand is not known. In the data nine sentences in ten are supported. With that prior
    a judge would call an invented sentence more likely supported than not.
    """
    odds = p / (1 - p) * (1 - base) / base
    even: Doubles = odds / (1 + odds)
    return even


@lru_cache
def coefficients() -> Coefficients:
    """Return the coefficients that are shipped with the package."""
    said = json.loads(COEFFICIENTS_FILE.read_text(encoding="utf-8"))
    return Coefficients(
        sentence=_logistic(said["sentence"]),
        response=_logistic(said["response"]),
        base=said["base"],
        threshold=said["threshold"],
        data=said["data"],
    )


@lru_cache
def digest() -> str:
    """Return the digest of the coefficients."""
    return file_digest(COEFFICIENTS_FILE)


def _logistic(said: dict[str, Any]) -> Logistic:
    columns = said["features"]
    mean, scale, weights = np.array(list(columns.values()), np.float64).T
    return Logistic(tuple(columns), mean, scale, weights, said["bias"])


DECIMALS = 6
"""Decimals of all kept and returned numbers. Further ones depend on the number of threads, in single precision."""
TOGETHER = 400
"""About as many words of a text are aligned with its source at once: 60 MB against 10,000 words."""
ALLOWED = 0.5
"""Highest support of a sentence where a rule has found something that the source does not say."""
MISSED, MOST_MISSED = 0.5, 3
"""Log odds that each such sentence adds to a hallucinated text, and the most sentences that add.

Chosen, not fitted: on RAGTruth 0.5 and 1 do about equally well.
"""
HALLUCINATION_BELOW = 0.4
"""Score below which an answer is called hallucinated, here and among the kinds of answers."""

JudgementArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """The results of the models.

    Attributes:
        unsupported: P(a sentence contains something that the source does not support), at even odds, in the text's
            order; at least 1 - ALLOWED where a rule has found such a thing.
        passages: the passage that each sentence is nearest to.
        hallucinated: P(the text contains something that the source does not support).
        score: the same as support, see ``score_of``.
    """

    unsupported: tuple[float, ...]
    passages: tuple[int, ...]
    hallucinated: float
    score: float


def judge(
    text: Encoded, source: EncodedSource, question: Encoded, fitted: Coefficients, written: SplitText
) -> Judgement:
    """Compare ``text`` with ``source``. Neither may be empty. The rules read ``written``, of the same sentences."""
    held = [features(part, source, question) for part in parts(text)]
    rows = np.concatenate([values for values, _ in held])
    passages = [place for _, found in held for place in source.passage_of[found.top[:, 0]].tolist()]
    unsupported = fitted.sentence.probabilities(rows)
    missed = np.array(
        [bool(why) for why in absent(written, [each.text for each in source.passages], question.text.text)]
    )
    known = fitted.response.probabilities(response_features(unsupported, rows)[None])
    hallucinated = float(with_missed(known, missed.sum(), fitted.threshold)[0])
    even = at_even_odds(unsupported, fitted.base)
    return Judgement(
        tuple(np.where(missed, np.maximum(even, 1 - ALLOWED), even).round(DECIMALS).tolist()),
        tuple(passages),
        round(hallucinated, DECIMALS),
        score_of(hallucinated, fitted.threshold),
    )


def score_of(hallucinated: float, threshold: float) -> float:
    """Return the support of a text as it is printed, from P(hallucinated): it ranks as that does.

    The odds are moved so that the threshold is at HALLUCINATION_BELOW: score, ``hallucinated``, kinds of answers and
    gates are one number.
    """
    moved = (1 - threshold) / threshold * (1 - HALLUCINATION_BELOW) / HALLUCINATION_BELOW
    odds = hallucinated / max(1 - hallucinated, 1e-9) * moved
    return round(1 / (1 + odds), DECIMALS)


def is_hallucinated(score: float) -> bool:
    """Return whether an answer with a score is called hallucinated."""
    return score < HALLUCINATION_BELOW


def parts(text: Encoded) -> list[Encoded]:
    """Return ``text`` in parts of whole sentences, so that memory does not grow with it."""
    count = len(text.text.spans)
    if count <= 2 * TOGETHER:
        return [text]
    ends, begin = [], 0
    for first in [*text.text.firsts.tolist(), count]:
        if first - begin >= TOGETHER or first == count:
            ends.append((begin, first))
            begin = first
    return [_part(text, first, last) for first, last in ends if last > first]


def _part(text: Encoded, first: int, last: int) -> Encoded:
    whole = text.text
    chosen = np.flatnonzero((whole.firsts >= first) & (whole.firsts < last))
    sentences = tuple(whole.sentences[place] for place in chosen)
    cut = SplitText(whole.text, sentences, whole.spans[first:last], whole.firsts[chosen] - first)
    return replace(text, text=cut, halves=text.halves[first:last], weights=text.weights[first:last])


def with_missed(hallucinated: JudgementArray, missed: npt.ArrayLike, threshold: float) -> JudgementArray:
    """Return P(hallucinated) of texts, given the number of sentences in which rules found something.

    Any such sentence lifts it above the threshold: a claim that is capped is flagged everywhere.
    """
    count = np.asarray(missed)
    odds = hallucinated / (1 - hallucinated) * np.exp(MISSED * np.minimum(count, MOST_MISSED))
    found: JudgementArray = odds / (1 + odds)
    lifted: JudgementArray = np.where(count > 0, threshold + (1 - threshold) * found, found)
    return lifted


def alignment_with(wanted: Encoded, passage: Encoded) -> float:
    """Return how much of ``wanted`` a passage has: weighted mean of each word's best cosine there, in [-1, 1]."""
    if not len(wanted.text.spans) or not len(passage.text.spans):
        return 0.0
    best = (wanted.vectors @ passage.vectors.T).max(axis=1)
    weights: Float32s = wanted.weights + 1e-3
    return round(float((best * weights).sum() / weights.sum()), DECIMALS)


# Computes the arrays of a judgement from texts, and keeps the vectors of sources in memory.
#
# All arrays have two columns, because a store holds one width.

_T = TypeVar("_T")
_REMEMBERED = 160_000
"""Number of source words whose vectors are in memory: 123 MB. Experiments often retrieve the same chunks."""


class JudgementReading:
    """Computes judgements; synchronous, used by one thread.

    Args:
        embedder: makes the embedder that the coefficients were fitted with; called for the first text.
    """

    def __init__(self, embedder: Callable[[], TextEmbedder]) -> None:
        self._make, self._sources, self._held = embedder, OrderedDict[str, Encoded](), 0
        self._answers: dict[str, Encoded] = {}
        self._is_loaded = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as its embedder. Where that arrives, the sources that were read there are remembered."""
        return _reading_with, (self._embedder,)

    @cached_property
    def _embedder(self) -> TextEmbedder:
        return self._make()

    @cached_property
    def _fitted(self) -> Coefficients:
        return coefficients()

    def load(self) -> None:
        """Load the model, on the first call."""
        if not self._is_loaded:
            self._embedder.pieces("a", (0,))
            self._is_loaded = True

    def judged(self, text: str, passages: Sequence[str], question: str) -> JudgementArray:
        """Return (P(unsupported), passage) of each read sentence, then (P(hallucinated), score); shape (n + 1, 2).

        Where text or passages cannot be read, the array has no rows.
        """
        source = EncodedSource(tuple(self._source(passage) for passage in passages))
        answer = self._answer(text)
        if source.empty or not answer.text.sentences:
            return np.zeros((0, 2))
        restated_answer, asked = self._restated(answer, source), self._source(question)
        with one_thread():
            found = judge(restated_answer, source, asked, self._fitted, answer.text)
        rows = zip(found.unsupported, found.passages, strict=True)
        return np.array([*rows, (found.hallucinated, found.score)], np.float64)

    def alignments(self, wanted: str, passages: Sequence[str]) -> JudgementArray:
        """Return (share of ``wanted`` that it has, its position) for each passage, shape (n, 2)."""
        text, sources = self._source(wanted), [self._source(passage) for passage in passages]
        with one_thread():
            rows = [(alignment_with(text, source), place) for place, source in enumerate(sources)]
        return np.array(rows, np.float64).reshape(-1, 2)

    def cosine(self, question: str, answer: str) -> JudgementArray:
        """Return the cosine of question and answer, and the number of blocks of the answer; shape (1, 2).

        Raises:
            ModelOutputError: a vector contains NaN or infinity.
        """
        blocks = self._blocks(encodable(answer))
        asked = self._embedder.embed_queries([encodable(question)])[0].astype(np.float64)
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
        """Return the readable part of ``text``. The last text is cached: it is compared with several sources."""
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


_readings: dict[str, JudgementReading] = {}


def _reading_with(embedder: TextEmbedder) -> JudgementReading:
    """Return the reading of this process, with an embedder that has just arrived, and holds nothing yet."""
    found = _readings.setdefault(embedder.revision, JudgementReading(lambda: embedder))
    found._embedder = embedder
    return found


def missed(text: str, passages: Sequence[str], question: str) -> list[str]:
    """Return for each read sentence the parts that the rules miss in the passages. No model is called."""
    return absent(split_text(_head(text)), [read_as_source(passage) for passage in passages], question)


async def ended_in_time(work: Callable[[], _T], text: str) -> _T:
    """Return what ``work`` on a long text returns, from a process that is ended when its time is over.

    What cannot travel there, as a user's own embedder, is computed in the local thread.

    Raises:
        NotJudgedError: it was ended.
    """
    if not _travels(work):
        return await on_local_thread(work)
    (found,) = await in_a_thread(lambda: checked(_result, [work], None, text))
    if isinstance(found, Unchecked):
        raise NotJudgedError(found.why)
    return found


def _result(work: Callable[[], _T], _: None) -> _T:
    return work()


def _travels(work: Callable[[], Any]) -> bool:
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True


@lru_cache(maxsize=256)
def read_as_source(passage: str) -> SplitText:
    """Return a passage in the form that ``encode`` takes."""
    return split_text(encodable(passage_of(passage).text))


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


class KeptJudgements:
    """Judgements by content.

    Args:
        store: arrays by key; it belongs to one set of coefficients.
        keep: whether computed arrays are stored.
        refusal: why this mode may not compute, and what to do; empty where it may.
        load: loads what computes them, where it is not loaded yet.
    """

    def __init__(self, store: Store, keep: bool, refusal: str, load: Callable[[], None] = lambda: None) -> None:
        self._store, self._keep, self._refusal, self._load = store, keep, refusal, load

    async def array(self, key: bytes, of: str, compute: Callable[[], Any], long: bool) -> Any:
        """Return the array of ``key`` from the store, or compute it: of long texts in a process that can be ended.

        Raises:
            RecordingMissError: it is not stored and this mode may not compute. ``of`` names the missing array.
            NotJudgedError: the texts are long, and it was not computed in time.
        """
        found = self._store.get([key])[0]
        if found is not None:
            return found
        if self._refusal:
            raise RecordingMissError(
                f"No recorded judgement of {of[:80]!r} by the embedded judge. {self._refusal}", [of]
            )
        found = await (ended_in_time(compute, of) if long else self._here(compute))
        if self._keep:
            self._store.put({key: found})
        return found

    async def _here(self, compute: Callable[[], Any]) -> Any:
        with paused():  # a model is loaded once, and that is not the time of an answer
            await on_local_thread(self._load)
        return await on_local_thread(compute)
