"""The judge ``encoder``: a local classifier of one of three families says whether a chunk supports a claim."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from rag_harness.core.concurrency import on_local_thread, paused
from rag_harness.core.errors import NotJudgedError, PrerequisiteError, RecordingMissError
from rag_harness.core.files import text_digest
from rag_harness.core.protocols import JudgeParts, Store
from rag_harness.core.registry import REVISIONS
from rag_harness.core.settings import access_of
from rag_harness.core.text.comparison import quotable
from rag_harness.core.text.language_detection import answer_not_judged
from rag_harness.core.text.sentences import Span, sentence_spans
from rag_harness.evaluation.judges.encoder_models import (
    InputFormat,
    LoadedClassifier,
    NamedModel,
    TokenIds,
    load_classifier,
    named_model,
    probabilities,
)
from rag_harness.evaluation.measures.opinion import (
    Claim,
    ClaimedText,
    JudgeQuestion,
    Material,
    Relevancy,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
    passages_of,
    texts_of,
    unjudged,
)
from rag_harness.models.array_store import key_of

__all__ = ["EncoderJudge", "create"]


# What a family of models is asked, and what it says: plain values, and the protocol of a family.

DECIMALS = 4
"""Decimals of a kept probability. Further ones depend on the batch that an input was in."""
SUPPORTED_ABOVE = 0.5
"""A claim is called supported above this probability, as the authors of the models have it."""

Readings = npt.NDArray[np.float64]
TextKey = tuple[str, ...]
"""The texts that one reading is made of. Equal texts are read once."""


class AskedSupport(NamedTuple):
    """Claims of one text, and the passages that may support them.

    Attributes:
        question: the question that the text answers.
        text: the text.
        spans: start and end of each claim in it.
        passages: the passages; none is empty.
    """

    question: str
    text: str
    spans: tuple[tuple[int, int], ...]
    passages: tuple[str, ...]


class UnsupportedWords(NamedTuple):
    """Words of a claim that no passage supports: their place in the claim, and the probability of that."""

    start: int
    end: int
    probability: float


class ClaimSupport(NamedTuple):
    """The support of one claim: a probability, the passage that supports it, and words that nothing supports."""

    value: float | None
    passage: int | None = None
    reason: str = ""
    unsupported: tuple[UnsupportedWords, ...] = ()


class EncoderFamily(Protocol):
    """A family of models. ``texts`` and ``supports`` need no model; ``read`` loads it."""

    def texts(self, asked: AskedSupport) -> list[TextKey]:
        """Return the texts of each reading that ``asked`` needs."""
        ...

    def read(self, texts: Sequence[TextKey]) -> list[Readings]:
        """Return the reading of each of ``texts``, by the model."""
        ...

    def supports(self, asked: AskedSupport, readings: Sequence[Any]) -> list[ClaimSupport]:
        """Return the support of each claim, from the readings of ``texts(asked)``."""
        ...


MOST_TOGETHER = 512
"""Most readings at once. More would fill no batch better, and a killed run would lose more."""


class PooledReadings:
    """Readings of one model.

    Args:
        store: arrays by key.
        read: has the model read texts; synchronous.
        refusal: why this mode may not ask the model, and what to do; empty where it may.
    """

    def __init__(self, store: Store, read: Callable[[Sequence[TextKey]], list[Readings]], refusal: str) -> None:
        self._store, self._read, self._refusal = store, read, refusal
        self._waiting: dict[bytes, TextKey] = {}
        self._lock = Lock()

    async def of(self, texts: Sequence[TextKey]) -> list[Any]:
        """Return the reading of each of ``texts``.

        Raises:
            RecordingMissError: one is not stored and this mode may not ask the model.
        """
        keys = [key_of(*each) for each in texts]
        kept = dict(zip(keys, self._store.get(keys), strict=True))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if kept[key] is None}
        if missing:
            if self._refusal:
                first = next(iter(missing.values()))
                raise RecordingMissError(
                    f"No recorded judgement of {first[0][:80]!r} by the encoder judge. {self._refusal}", [first[0]]
                )
            with self._lock:
                self._waiting |= missing
            # One thread reads for all. Waiting for it is waiting for a limit of the run.
            with paused():
                kept |= await on_local_thread(lambda: self._of_all(missing))
        return [kept[key] for key in keys]

    def _of_all(self, own: dict[bytes, TextKey]) -> dict[bytes, Any]:
        """Read ``own``, and what others wait for. What those before have read is there already."""
        found = dict(zip(own, self._store.get([*own]), strict=True))
        wanted = {key: text for key, text in own.items() if found[key] is None}
        with self._lock:
            others = ((key, text) for key, text in self._waiting.items() if key not in own)
            more = dict(islice(others, max(0, MOST_TOGETHER - len(wanted)))) if wanted else {}
            for key in (*own, *more):
                self._waiting.pop(key, None)
        return found | self._new(wanted, more)

    def _new(self, wanted: dict[bytes, TextKey], more: dict[bytes, TextKey]) -> dict[bytes, Any]:
        """Read texts and keep the readings. Where a text of another answer cannot be read, that is for the other."""
        if not wanted:
            return {}
        together = wanted | more
        try:
            read = dict(zip(together, self._read([*together.values()]), strict=True))
        except Exception:
            if not more:
                raise
            read = dict(zip(wanted, self._read([*wanted.values()]), strict=True))
        self._store.put(read)
        return {key: read[key] for key in wanted}


MOST_CLAIMS = 200
"""Most sentences of a text that are judged."""
MOST_CHARACTERS = 400_000
"""Most characters of a text and its passages together."""
ONLY_SUPPORT = "not judged: an encoder says whether a text supports a claim, and nothing else"
NO_QUOTES = f"{ONLY_SUPPORT}; quotes of the evidence say which chunks are useful, and there are none"


@dataclass(frozen=True)
class EncoderOpinion:
    """Sentences are claims; a verdict is the probability that a passage supports one.

    It has no opinion of relevancy. Of chunks it knows those useful that have a quote of the evidence, without a model.

    Attributes:
        material: the answer.
        family: the family of the model, with its input.
        readings: the stored results of the model for texts.
        english: whether the model was trained on English alone. Other languages are then not judged.
    """

    material: Material
    family: EncoderFamily
    readings: PooledReadings
    english: bool

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        self._check_language()
        passages = passages_of(self.material, source)
        if not passages:
            return unjudged(claims)
        each = [
            verdict
            for text in filter(str.strip, texts_of(self.material, claims))
            for verdict in await self._verdicts(text, passages, whole=claims == "nuggets")
        ]
        verdicts = tuple(verdict for verdict, _ in each)
        return Verdicts(verdicts, detail=_detail(each) if claims == "answer" else {})

    async def usefulness(self) -> Sequence[Usefulness]:
        quotes = [quotable(quote) for quote in self.material.quotes if quote.strip()]
        if not quotes:
            raise NotJudgedError(NO_QUOTES)
        return [Usefulness(float(any(quote in quotable(text) for quote in quotes))) for text in self.material.contexts]

    async def relevancy(self) -> Relevancy:
        raise NotJudgedError(f"{ONLY_SUPPORT}; relevancy needs another judge")

    async def _verdicts(self, text: str, passages: dict[int, str], whole: bool) -> list[tuple[Verdict, ClaimSupport]]:
        found = [(0, len(text))] if whole else list(_sentences(text))
        asked = AskedSupport(self.material.question, text, tuple(found[:MOST_CLAIMS]), tuple(passages.values()))
        if not asked.spans:
            return []
        said = await self._said(asked)
        said += [ClaimSupport(None, reason=f"the first {MOST_CLAIMS} sentences are judged")] * len(found[MOST_CLAIMS:])
        places = [*passages]
        claims = [Claim(text) if whole else Claim(text[start:end], start, end) for start, end in found]
        return [(_verdict(claim, one, places), one) for claim, one in zip(claims, said, strict=True)]

    async def _said(self, asked: AskedSupport) -> list[ClaimSupport]:
        characters = len(asked.text) + sum(map(len, asked.passages))
        if characters > MOST_CHARACTERS:
            why = f"{characters:,} characters of text and passages: at most {MOST_CHARACTERS:,} are judged"
            return [ClaimSupport(None, reason=why)] * len(asked.spans)
        return self.family.supports(asked, await self.readings.of(self.family.texts(asked)))

    @cached_property
    def _foreign(self) -> str:
        material = self.material
        return answer_not_judged(material.question, material.answer, material.contexts) if self.english else ""

    def _check_language(self) -> None:
        if self._foreign:
            raise NotJudgedError(self._foreign)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the place of each sentence that has a letter or a figure."""
    return (span for span in sentence_spans(text) if any(map(str.isalnum, text[span[0] : span[1]])))


def _verdict(claim: Claim, said: ClaimSupport, places: Sequence[int]) -> Verdict:
    return Verdict(claim, said.value, None if said.passage is None else places[said.passage], said.reason)


def _detail(each: Sequence[tuple[Verdict, ClaimSupport]]) -> dict[str, Any]:
    """Return whether a claim of the answer is unsupported, and the unsupported words, by their place in the claim."""
    values = [verdict.value for verdict, _ in each if verdict.value is not None]
    spans = [
        {"claim": number, **words._asdict(), "text": verdict.claim.text[words.start : words.end]}
        for number, (verdict, said) in enumerate(each)
        for words in said.unsupported
    ]
    found = {"hallucinated": min(values) <= SUPPORTED_ABOVE} if len(values) == len(each) and values else {}
    return found | ({"unsupported": spans} if spans else {})


Count = Callable[[Sequence[str]], list[int]]
"""Counts tokens or words of each text."""
_WORD = re.compile(r"\S+")


def word_counts(texts: Sequence[str]) -> list[int]:
    """Return the number of words of each text."""
    return [len(text.split()) for text in texts]


def chunk_pieces(chunk: str, count: Count, most: int) -> list[str]:
    """Return ``chunk`` in pieces of at most ``most``, as ``count`` counts them. Nothing of it is left out.

    A piece ends with a sentence. A sentence that is too long by itself is cut between words, and a word within.
    """
    if count([chunk])[0] <= most:
        return [chunk]
    parts = [part for sentence in sentence_spans(chunk) for part in _short(chunk, sentence, count, most)]
    pieces: list[Span] = []
    room = 0
    for (start, end), size in zip(parts, count([chunk[start:end] for start, end in parts]), strict=True):
        # One more for what stands between two parts.
        if pieces and size + 1 <= room:
            pieces[-1] = (pieces[-1][0], end)
            room -= size + 1
        else:
            pieces.append((start, end))
            room = most - size
    return [chunk[start:end] for start, end in pieces]


def _short(chunk: str, part: Span, count: Count, most: int) -> Iterator[Span]:
    """Yield ``part`` in halves, until each is short enough."""
    start, end = part
    if count([chunk[start:end]])[0] <= most or end - start < 2:
        yield part
        return
    words = [found.start() for found in _WORD.finditer(chunk, start, end)]
    middle = words[len(words) // 2] if len(words) > 1 else (start + end) // 2
    yield from _short(chunk, (start, middle), count, most)
    yield from _short(chunk, (middle, end), count, most)


# Models that read one piece of a chunk and one claim at a time. A claim is supported where any piece supports it.

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


# Pair classifiers: MiniCheck's RoBERTa and DeBERTa, FactCG, and cross-encoders of natural language inference.


class PairClassifier(PairReading):
    """The softmax over a classifier's labels; the one that means support counts.

    Args:
        asked_as: how the model is asked.
        load: loads the model.
        supporting: place of the label that means support.
    """

    def __init__(self, asked_as: InputFormat, load: Callable[[], LoadedClassifier], supporting: int) -> None:
        super().__init__(asked_as, load)
        self._supporting = supporting

    def support_of(self, inputs: Sequence[TokenIds]) -> dict[int, float]:
        model, tokenizer = self.loaded.model, self.loaded.tokenizer
        # BERT was trained with two segments. RoBERTa's config has them too, and its tokenizer never tells them apart.
        trained = "token_type_ids" in tokenizer.model_input_names and not self._format.text
        has_segments = trained and getattr(model.config, "type_vocab_size", 0) > 1

        def forward(ids: Any, mask: Any) -> Any:
            said = {"token_type_ids": _segments(ids, tokenizer.sep_token_id)} if has_segments else {}
            return model(input_ids=ids, attention_mask=mask, **said).logits

        found = self.loaded.run(inputs, forward)
        return {place: float(probabilities(logits)[self._supporting]) for place, logits in found}


def _segments(ids: Any, separator: int) -> Any:
    """Return 0 up to the first separator and 1 behind it, as BERT was trained."""
    ends = (ids == separator).long()
    return (ends.cumsum(1) - ends).clamp(max=1)


# MiniCheck's Flan-T5: its first word is "1" for a supported claim. Nothing is generated; one step is looked at.

NO, YES = 3, 209
"""Ids of the two first words, by the authors' code."""
_WORDS = {NO: "▁", YES: "▁1"}
"""The words that a T5 has there: "0" is written as two, of which the first is the blank space."""


class SequenceToSequence(PairReading):
    """The softmax over two words of the first step of the decoder."""

    def support_of(self, inputs: Sequence[TokenIds]) -> dict[int, float]:
        model = self._checked

        def forward(ids: Any, mask: Any) -> Any:
            # The decoder begins with id 0, the padding.
            first = ids.new_zeros((len(ids), 1))
            return model(input_ids=ids, attention_mask=mask, decoder_input_ids=first).logits[:, 0, [NO, YES]]

        return {place: float(probabilities(logits)[1]) for place, logits in self.loaded.run(inputs, forward)}

    @cached_property
    def _checked(self) -> Any:
        """The model, whose vocabulary was looked at.

        Raises:
            PrerequisiteError: the two words are elsewhere: it is not the model that its name states.
        """
        there = dict(zip(_WORDS, self.loaded.tokenizer.convert_ids_to_tokens(list(_WORDS)), strict=True))
        if there != _WORDS:
            raise PrerequisiteError(
                f"This T5 has {there[NO]!r} and {there[YES]!r} where MiniCheck's has {_WORDS[NO]!r} and "
                f"{_WORDS[YES]!r} (ids {NO} and {YES}): its first word would mean nothing. It is another model."
            )
        return self.loaded.model


# Token classifiers: LettuceDetect. Each token of an answer is supported or not, given all passages at once.
#
# Where the passages do not fit into one input, there are several. A token is unsupported only where it is in each:
# another input may have the passage that supports it. (The authors' code takes the highest, and flags such tokens.)

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
        """Return the texts that the text is compared with, where all passages do not fit into one input.

        No prompt, where the text leaves no space for a passage.
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


# ``encoder``: a classifier of a few hundred million weights that was trained to see unsupported claims.
#
# It runs in this process. docs/explanation/encoder-judges.md says how, and what its authors have measured.


class EncoderJudge:
    """Asks a local classifier whether chunks support claims. Its weights are loaded for the first new claim.

    Args:
        parts: parts of the run.

    Raises:
        PrerequisiteError: the settings name no model that can judge. The message has the reason.
    """

    name = "encoder"
    asks_model = False
    deterministic = True
    reads_conversation = False

    def __init__(self, parts: JudgeParts) -> None:
        settings = parts.settings
        self._refusal = access_of(settings).refusal(local=True, profile=settings.profile)
        self._named: NamedModel = named_model(settings.judge_model, self._refusal)
        self._parts, self._settings = parts, settings

    @property
    def model(self) -> str:
        return self._named.name

    @cached_property
    def revision(self) -> str:
        """Digest of the model's files or commit, this part, precision and device; known without loading weights."""
        unusual = [each for each in (self._settings.precision, self._settings.device) if each not in ("float32", "cpu")]
        return text_digest("\0".join([self._named.revision, REVISIONS["judges/encoder"], *unusual]))

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> EncoderOpinion:  # noqa: ARG002 - texts are shared
        return EncoderOpinion(material, self._family, self._readings, self._named.format.english)

    @cached_property
    def _family(self) -> EncoderFamily:
        return family_for(self._named, self._load)

    @cached_property
    def _readings(self) -> PooledReadings:
        store = self._parts.stores.open("judged", self.model, self.revision)
        return PooledReadings(store, self._family.read, self._refusal)

    def _load(self) -> LoadedClassifier:
        return load_classifier(self._named, self._settings.precision, self._settings.device)


def family_for(named: NamedModel, load: Callable[[], LoadedClassifier]) -> EncoderFamily:
    """Return the family that asks a model."""
    if named.format.family == "token":
        return TokenClassifier(named.format, load, named.supporting)
    if named.format.family == "pair":
        return PairClassifier(named.format, load, named.supporting)
    return SequenceToSequence(named.format, load)


def create(parts: JudgeParts) -> EncoderJudge:
    """Return the judge that asks the classifier of the settings."""
    return EncoderJudge(parts)
