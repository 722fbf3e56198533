"""Alignment of an answer with its source: their sentences and words, and the vectors and weights of words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.text.sentences import Span, sentence_spans
from rag_harness.core.text.terms import STOPWORDS, stem
from rag_harness.core.types import Pieces

# Divides a text into sentences and words, each with its position. Pure; comparisons use lower-case words and stems.

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LONGEST_SENTENCE = 100
"""Most words of a sentence. A longer one is divided into parts, each a claim of its own."""

_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True)
class SplitText:
    """A text with its sentences and words.

    Attributes:
        text: the text as written.
        sentences: start and end of each sentence with a word.
        spans: start and end of each word, shape (n, 2).
        firsts: first word of each sentence, shape (sentences,).
    """

    text: str
    sentences: tuple[Span, ...]
    spans: Ints
    firsts: Ints

    @cached_property
    def written(self) -> list[str]:
        """The words as written."""
        return [self.text[start:end] for start, end in self.spans.tolist()]

    @cached_property
    def words(self) -> list[str]:
        """The words in lower case; figures without their thousands separators."""
        return [_folded(word) for word in self.written]

    @cached_property
    def stems(self) -> list[str]:
        """The stem of each word."""
        return [stem(word.removesuffix("'s")) for word in self.words]

    @cached_property
    def content(self) -> Bools:
        """Whether each word is more than a function word."""
        return np.array([word not in STOPWORDS for word in self.words], bool)

    @cached_property
    def sentence_of(self) -> Ints:
        """The sentence of each word."""
        counts = np.diff([*self.firsts.tolist(), len(self.spans)])
        return np.repeat(np.arange(len(self.firsts)), counts)

    def words_of(self, sentence: int) -> range:
        """Return the positions of a sentence's words."""
        after = self.firsts[sentence + 1] if sentence + 1 < len(self.firsts) else len(self.spans)
        return range(int(self.firsts[sentence]), int(after))


def split_text(text: str) -> SplitText:
    """Return ``text`` with its sentences and words. A sentence without a word, e.g. an emoji, is left out."""
    found = [word.span() for word in _WORD.finditer(text)]
    spans = np.array(found, np.int64).reshape(-1, 2)
    sentences, firsts = [], []
    for start, end in sentence_spans(text):
        here = range(*np.searchsorted(spans[:, 0], [start, end]).tolist())
        for first in here[::LONGEST_SENTENCE]:
            last = min(first + LONGEST_SENTENCE, here.stop)
            sentences.append((start if first == here.start else found[first][0], _end(found, last, here.stop, end)))
            firsts.append(first)
    return SplitText(text, tuple(sentences), spans, np.array(firsts, np.int64))


def _end(found: list[Span], last: int, stop: int, end: int) -> int:
    return end if last == stop else found[last - 1][1]


def _folded(word: str) -> str:
    lower = word.lower().replace("’", "'")
    return lower.replace(",", "") if lower[0].isdigit() else lower


_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HOURS = re.compile(r"(\d{1,2}):(\d{1,2})-(\d{1,2}):(\d{1,2})")
_SPOKEN = {"yes": True, "true": True, "free": True, "paid": True, "no": False, "false": False, "none": False}
_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class JsonLeaf:
    """A leaf of a JSON passage with yes, no or null: ``path`` in words, the value True, False or None."""

    path: tuple[tuple[str, ...], ...]
    value: bool | None


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A passage in readable sentences, and the yes-or-no fields where it was JSON."""

    text: str
    fields: tuple[JsonLeaf, ...] = ()
    structured: bool = False


Path = tuple[tuple[str, ...], ...]


def passage_of(text: str) -> ReadPassage:
    """Return ``text`` in readable form. A JSON object or list becomes lines of the form "path words: value"."""
    found = _parsed(text)
    if found is None:
        return ReadPassage(text)
    leaves = list(_leaves(found, ()))
    fields = tuple(JsonLeaf(path, _truth(value)) for path, value in leaves if path and _is_field(value))
    return ReadPassage("\n".join(_line(path, value) for path, value in leaves), fields, structured=True)


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if len(path) > _MAX_DEPTH:
        yield path, json.dumps(value)
    elif isinstance(value, dict):
        for name, below in value.items():
            yield from _leaves(below, (*path, _words(name)))
    elif isinstance(value, list):
        for below in value:
            yield from _leaves(below, path)
    else:
        yield path, value


def _words(name: str) -> tuple[str, ...]:
    """Return the words of a key: ``OutdoorSeating`` and ``outdoor_seating`` are outdoor, seating."""
    return tuple(word.lower() for word in _CAMEL.findall(name)) or (name,)


def _line(path: Path, value: Any) -> str:
    return f"{' '.join(word for part in path for word in part)}: {_said(value)}"


def _said(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    hours = _HOURS.fullmatch(str(value))
    if hours:
        return f"{_clock(hours[1], hours[2])} to {_clock(hours[3], hours[4])}"
    return str(value)


def _clock(hour: str, minute: str) -> str:
    """Return a time in words, as answers have it: 17 and 0 are ``5:00 pm``."""
    twelve = int(hour) % 12 or 12
    return f"{twelve}:{int(minute):02d} {'am' if int(hour) % 24 < 12 else 'pm'}"


def _is_field(value: Any) -> bool:
    return value is None or isinstance(value, bool) or (isinstance(value, str) and value.lower() in _SPOKEN)


def _truth(value: Any) -> bool | None:
    return _SPOKEN[value.lower()] if isinstance(value, str) else value


# Limits on the texts that the judge reads. Text beyond them has no verdict, with a reason.

MOST_SENTENCES = 200
"""Most sentences of a judged text."""
MOST_WORDS = 4_000
"""Most words of a judged text."""
MOST_CHARACTERS = 40_000
"""Most characters of a judged text: a text without blanks has few words of any length."""
MOST_SOURCE_CHARACTERS = 200_000
"""Most characters of all passages of a source together."""


def readable_sentences(text: SplitText) -> int:
    """Return how many sentences from the beginning of ``text`` are within the limits."""
    ends = [*text.firsts.tolist()[1:], len(text.spans)]
    within = [
        last <= MOST_WORDS and end <= MOST_CHARACTERS
        for (_, end), last in zip(text.sentences[:MOST_SENTENCES], ends, strict=False)
    ]
    return sum(within)


def beyond() -> str:
    """Return why a sentence has no verdict."""
    return (
        f"the embedded judge reads the first {MOST_SENTENCES} sentences, {MOST_WORDS:,} words and "
        f"{MOST_CHARACTERS:,} characters of a text"
    )


def too_long_to_judge(characters: int) -> str:
    """Return why no sentence has a verdict."""
    return f"the source has {characters:,} characters and the embedded judge reads {MOST_SOURCE_CHARACTERS:,}"


# Word vectors and word weights. A vector is the mean of the hidden states of a word's pieces in MiniLM.

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
    text = split_text(encodable(passage.text))
    if not len(text.spans):
        empty = np.zeros((0, _WIDTH), np.float16)
        return Encoded(text, empty, np.zeros(0, np.float32), passage.fields, passage.structured)
    pieces = pieces_of(text.text, _borders(text))
    if not np.isfinite(pieces.vectors).all():
        raise ModelOutputError(f"The vectors of {text.text[:60]!r} hold values that are not numbers.")
    vectors, rarest = _by_word(pieces, text.spans)
    return Encoded(text, vectors.astype(np.float16), weights_of(text, rarest), passage.fields, passage.structured)


def encodable(text: str) -> str:
    """Return a text with a question mark in place of each lone surrogate: a tokenizer accepts none."""
    return text.encode("utf-8", "replace").decode()


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


# Aligns an answer with its source: the nearest sentence of the source for each sentence, and the nearest words.
#
# The nearness of two sentences is their cosine plus their MaxSim. MaxSim takes for each word of the answer the best
# cosine with a word of the source's sentence, weighted by the word's rarity (Khattab & Zaharia, "ColBERT", 2020).

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
