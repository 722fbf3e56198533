"""Features of the sentence model: one row for each sentence of the answer, one column for each feature. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_harness.judges.embedded.alignment import Alignment, EncodedSource, align
from rag_harness.judges.embedded.encoding import Encoded, Float32s
from rag_harness.judges.embedded.lexical import NAMES as LEXICAL
from rag_harness.judges.embedded.lexical import lexical, near_pairs, same
from rag_harness.judges.embedded.rules import NAMES as RULES
from rag_harness.judges.embedded.rules import SourceFacts, rules
from rag_harness.judges.embedded.words import Bools, Ints

_WINDOWS = (2, 5)
_NEAREST = ("all", "top1", "top3", *(f"window{reach}" for reach in _WINDOWS), "same_stem", "question")
_WORD_NAMES = (*LEXICAL, *_NEAREST)
_WAYS = ("mean", "min", "max", "content", "weighted", "low")
_SENTENCE_NAMES = (
    *("cosine", "cosine_top3", "cosine_best", "margin", "max_sim", "max_sim_top3", "score_top3", "same_passage"),
    *("recall_all", "recall_top1", "recall_top3", "recall_question", "pairs_all", "unknown_content", "in_question"),
    *("log_words", "log_content", "log_source", "log_sentences", "structured"),
)
NAMES = (*(f"{name}:{way}" for way in _WAYS for name in _WORD_NAMES), *_SENTENCE_NAMES, *RULES)
"""The columns of ``features``."""


def features(answer: Encoded, source: EncodedSource, question: Encoded) -> tuple[Float32s, Alignment]:
    """Return the value of each of NAMES for each sentence of ``answer``, shape (sentences, names), and its alignment.

    Neither the answer nor the source may be empty; the question may.
    """
    found = align(answer, source)
    exact, stems = same(answer.text.words, source.words), same(answer.text.stems, source.stems)
    words = np.concatenate([lexical(answer.text, exact, stems), _nearest(answer, found, stems, question)], axis=1)
    columns = [*_over_sentences(words, answer), _sentences(answer, source, found, stems, question)]
    columns.append(_rules(answer, source, found))
    return np.concatenate(columns, axis=1).astype(np.float32), found


def _nearest(answer: Encoded, found: Alignment, stems: Bools, question: Encoded) -> Float32s:
    """Return how near each word is to the source, and to which part of it; shape (n, _NEAREST)."""
    sims, asked = found.sims, question.vectors
    top = found.top[answer.text.sentence_of]
    near = found.best[np.arange(len(top))[:, None], top]
    columns = (
        sims.max(axis=1),
        near[:, 0],
        near.max(axis=1),
        *(_windowed(sims, reach) for reach in _WINDOWS),
        np.where(stems, sims, 0).max(axis=1),
        (answer.vectors @ asked.T).max(axis=1) if len(asked) else np.zeros(len(sims), np.float32),
    )
    return np.stack(columns, axis=1)


def _windowed(sims: Float32s, reach: int) -> Float32s:
    """Return for each word how well its neighbours match within ``reach`` of one position of the source."""
    wide = sims.copy()
    for shift in range(1, reach + 1):
        np.maximum(wide[:, shift:], sims[:, :-shift], out=wide[:, shift:])
        np.maximum(wide[:, :-shift], sims[:, shift:], out=wide[:, :-shift])
    summed = np.concatenate([np.zeros((1, wide.shape[1]), np.float32), np.cumsum(wide, axis=0)])
    places = np.arange(len(sims))
    low, high = np.maximum(places - reach, 0), np.minimum(places + reach + 1, len(sims))
    best: Float32s = ((summed[high] - summed[low]) / (high - low)[:, None]).max(axis=1)
    return best


def _over_sentences(words: Float32s, answer: Encoded) -> list[Float32s]:
    """Return word values aggregated over each sentence, in each of _WAYS."""
    firsts, weights = answer.text.firsts, answer.weights[:, None]
    content = answer.text.content[:, None].astype(np.float32)
    counts = np.diff([*firsts, len(words)])[:, None]
    mean = np.asarray(np.add.reduceat(words, firsts, axis=0) / counts, np.float32)
    return [mean, np.minimum.reduceat(words, firsts, axis=0), np.maximum.reduceat(words, firsts, axis=0),
            _weighted(words, content, firsts, mean), _weighted(words, weights, firsts, mean),
            _lowest(words, answer)]  # fmt: skip


def _weighted(words: Float32s, weights: Float32s, firsts: Ints, otherwise: Float32s) -> Float32s:
    total = np.add.reduceat(weights, firsts, axis=0)
    summed = np.add.reduceat(words * weights, firsts, axis=0)
    mean: Float32s = np.where(total > 0, summed / np.maximum(total, 1e-9), otherwise)
    return mean


def _lowest(words: Float32s, answer: Encoded) -> Float32s:
    """Return the mean of the three lowest values of each sentence's content words; 1 where it has none."""
    rows = []
    for sentence in range(len(answer.text.sentences)):
        places = answer.text.words_of(sentence)
        chosen = words[places.start : places.stop][answer.text.content[places.start : places.stop]]
        rows.append(np.sort(chosen, axis=0)[:3].mean(axis=0) if len(chosen) else np.ones(words.shape[1]))
    return np.array(rows, np.float32)


def _sentences(answer: Encoded, source: EncodedSource, found: Alignment, stems: Bools, question: Encoded) -> Float32s:
    rows = np.arange(len(found.top))[:, None]
    cosine, max_sim = found.cosine[rows, found.top], found.max_sim[rows, found.top]
    score, passages = found.score[rows, found.top], source.passage_of[found.top]
    counts = np.diff([*answer.text.firsts, len(answer.text.spans)])
    content = np.add.reduceat(answer.text.content.astype(np.float32), answer.text.firsts)
    of_source = (np.log1p(len(source.words)), np.log1p(len(found.top)), source.structured)
    columns = [
        cosine[:, 0], cosine.mean(axis=1), found.cosine.max(axis=1), score[:, 0] - score[:, -1], max_sim[:, 0],
        max_sim.mean(axis=1), score.mean(axis=1), (passages == passages[:, :1]).mean(axis=1),
        *_recalls(answer, source, found, stems, question),
        np.log1p(counts), np.log1p(content),
        *(np.full(len(rows), value) for value in of_source),
    ]  # fmt: skip
    return np.stack(columns, axis=1)


def _recalls(
    answer: Encoded, source: EncodedSource, found: Alignment, stems: Bools, question: Encoded
) -> list[Float32s]:
    """Return the weighted share of each sentence's words that are found: anywhere, nearby, in the question."""
    there = np.logical_or.reduceat(stems, source.firsts, axis=1)
    top = found.top[answer.text.sentence_of]
    near = there[np.arange(len(top))[:, None], top]
    asked = (
        same(answer.text.stems, question.text.stems).any(axis=1)
        if len(question.text.spans)
        else np.zeros(len(top), bool)
    )
    known = stems.any(axis=1)
    words = np.stack([known, near[:, 0], near.any(axis=1), known | asked, near_pairs(stems)], axis=1)
    shares = _weighted(
        words.astype(np.float32), answer.weights[:, None], answer.text.firsts, np.ones((1, 5), np.float32)
    )
    unknown = np.add.reduceat((~known & answer.text.content).astype(np.float32), answer.text.firsts)
    said = np.add.reduceat((asked & answer.text.content).astype(np.float32), answer.text.firsts)
    return [*shares.T, np.log1p(unknown), np.log1p(said)]


def _rules(answer: Encoded, source: EncodedSource, found: Alignment) -> Float32s:
    facts = SourceFacts(source.sentences, source.fields)
    rows = [
        rules(answer.text.text[start:end], [source.sentences[place] for place in top], facts, _cited(source, top))
        for (start, end), top in zip(answer.text.sentences, found.top, strict=True)
    ]
    return np.array(rows, np.float32).reshape(-1, len(RULES))


def _cited(source: EncodedSource, top: Sequence[int]) -> tuple[int, int]:
    return int(source.passage_of[top[0]]), len(source.passages)
