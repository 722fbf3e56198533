"""Questions to a judge's model: claims, support, citations, criteria, levels and similarity, and their replies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from rag_harness.core.concurrency import on_local_thread
from rag_harness.core.errors import ModelOutputError
from rag_harness.core.files import json_digest
from rag_harness.core.protocols import Embedder, JudgeParts
from rag_harness.core.types import Matrix
from rag_harness.evaluation.expectations.rubrics import Criterion
from rag_harness.evaluation.judges.client import (
    BOOLEAN,
    NUMBER,
    TEXT,
    JudgeChat,
    MarkedText,
    Missing,
    PassageVerdict,
    Schema,
    asking_of,
    entries_of,
    list_schema,
    numbered,
    object_schema,
    objects_of,
    offered,
    prompt,
    read_verdicts,
    revision_of,
    verdict_of,
    whole_number,
    words_of,
)
from rag_harness.evaluation.measures.opinion import (
    Claim,
    CriterionVerdict,
    LevelReached,
    Relevancy,
)
from rag_harness.models.array_store import key_of
from rag_harness.models.prompts import json_of

_ENOUGH = 0.5
"""Probability that the numbers of levels must have together. Below it, the model was about to say something else."""


async def ask_level(asking: JudgeChat, question: str, answer: str, scale: Criterion) -> LevelReached | None:
    """Return how far up the scale an answer is, from one call; None where the model states no probabilities."""
    sections = [
        ("question", question),
        ("answer", answer),
        ("scale", scale.text),
        *numbered("level", scale.levels),
    ]
    return level_of(await asking.first_token(prompt("fused_scale"), sections), scale.levels)


def level_of(logprobs: Mapping[str, float], levels: Sequence[str]) -> LevelReached | None:
    """Return the mean level by the probabilities of their numbers; None where these are not most of the probability.

    Args:
        logprobs: natural logarithm of the probability of each first token of the reply.
        levels: names of the levels, the worst first.
    """
    found = [0.0] * len(levels)
    for token, logprob in logprobs.items():
        number = token.strip()
        if number.isascii() and number.isdigit() and 1 <= int(number) <= len(levels):
            found[int(number) - 1] += exp(logprob)
    total = sum(found)
    if total < _ENOUGH:
        return None
    value = sum(place * p for place, p in enumerate(found)) / (total * (len(levels) - 1))
    likely = max(range(len(levels)), key=lambda place: found[place])
    return LevelReached(value, f"{levels[likely]} (p = {found[likely] / total:.2f})")


# Cosines between questions. Rows that ask at the same time are embedded in one batch, off the event loop.

_TOGETHER = 32
"""Most texts in one batch, unless one row has more."""
NOT_A_NUMBER = "a cosine is not a number: the embedder gave a vector without a length"

WaitingTexts = tuple[Sequence[str], "asyncio.Future[Matrix]"]


class Nearness:
    """Measures the similarity of questions.

    Args:
        embedder: returns the embedder; called for the first text.
    """

    def __init__(self, embedder: Callable[[], Embedder]) -> None:
        self._embedder = embedder
        self._waiting: list[WaitingTexts] = []
        self._busy: asyncio.Task[None] | None = None

    async def relevancy(self, question: str, asked: Sequence[str], noncommittal: bool) -> Relevancy:
        """Return the mean cosine of ``asked`` with ``question``; None where a cosine is NaN.

        Raises:
            RagHarnessError: any error of the embedder.
        """
        vectors = await self._embedded([question, *asked])
        cosines = _cosines(np.asarray(vectors, np.float64))
        detail = {"questions": list(asked), "cosines": [value if np.isfinite(value) else None for value in cosines]}
        if not np.isfinite(cosines).all():
            return Relevancy(None, noncommittal, NOT_A_NUMBER, detail)
        return Relevancy(float(np.mean(cosines)), noncommittal, detail=detail)

    async def _embedded(self, texts: Sequence[str]) -> Matrix:
        future: asyncio.Future[Matrix] = asyncio.get_running_loop().create_future()
        self._waiting.append((texts, future))
        if self._busy is None:
            self._busy = asyncio.create_task(self._work_off())
        return await future

    async def _work_off(self) -> None:
        try:
            while self._waiting:
                await self._do(self._next())
        finally:
            self._busy = None

    def _next(self) -> list[WaitingTexts]:
        batch = [self._waiting.pop(0)]
        while self._waiting and sum(len(texts) for texts, _ in batch) + len(self._waiting[0][0]) <= _TOGETHER:
            batch.append(self._waiting.pop(0))
        return batch

    async def _do(self, batch: list[WaitingTexts]) -> None:
        texts = [text for each, _ in batch for text in each]
        try:
            vectors = await on_local_thread(lambda: self._embedder().embed_queries(texts))
        except Exception as error:
            await self._fail(batch, error)
            return
        for wanted, future in batch:
            own, vectors = vectors[: len(wanted)], vectors[len(wanted) :]
            if not future.done():  # its row may have been cancelled
                future.set_result(own)

    async def _fail(self, batch: list[WaitingTexts], error: Exception) -> None:
        if len(batch) > 1:
            # A text that cannot be embedded must not make the others fail.
            for each in batch:
                await self._do([each])
        elif not batch[0][1].done():
            batch[0][1].set_exception(error)


class AskingJudge:
    """What all judges share that ask the model of role ``judge``.

    Args:
        parts: parts of the run.
        shares: whether equal requests are sent only once in this process.
    """

    name = ""
    asks_model = True
    deterministic = False
    reads_conversation = True

    def __init__(self, parts: JudgeParts, shares: bool) -> None:
        self._parts, self.asking, self.nearness = parts, asking_of(parts, shares), Nearness(parts.embedder)

    @property
    def model(self) -> str:
        return self.asking.chat.model

    @cached_property
    def revision(self) -> str:
        """Digest of prompts and source, and of the embedder that relevancy is measured with."""
        embedder = self._parts.embedder()
        return json_digest([revision_of(self.name), embedder.model, embedder.revision])


def _cosines(vectors: Matrix) -> list[float]:
    """Return the cosine of each vector with the first; NaN for a vector of length 0."""
    first, others = vectors[0], vectors[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = others @ first / (np.linalg.norm(others, axis=1) * np.linalg.norm(first))
    return [float(value) for value in cosines]


def placed(said: Sequence[tuple[str, str]], text: str) -> tuple[Claim, ...]:
    """Return claims with the positions of their quotes in ``text``, or of the claims where a quote is missing.

    Two claims with the same quote have the same position, unless the words occur again later.
    """
    claims: list[Claim] = []
    at = 0
    for claim, quote in said:
        start, end = find_quote(quote or claim, text, at)
        if start < 0 and quote:
            start, end = find_quote(claim, text, at)
        claims.append(Claim(claim, start, end))
        at = max(at, start)
    return tuple(claims)


def find_quote(words: str, text: str, after: int = 0) -> tuple[int, int]:
    """Return start and end of ``words`` in ``text``, at or after ``after`` if possible; -1 where they are not there.

    Blanks and line ends count as equal.
    """
    if not words.strip():
        return -1, -1
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())))
    found = pattern.search(text, after) or pattern.search(text)
    return found.span() if found else (-1, -1)


DEGREES = {"full": 1.0, "partial": 0.5}
NOT_THERE = "the words that the judge quoted are not in the source"


@dataclass(frozen=True, slots=True)
class PassageSupport(PassageVerdict):
    """A verdict by all passages together, and those that support the claim alone.

    Attributes:
        by: value, quote and remark of each passage that supports the claim, by its number from 1; None where they
            cannot be read; ``missing`` then explains it.
        needs: whether the claim needs a source.
    """

    by: Mapping[int, tuple[float, str, str]] | None = None
    needs: bool = True


def read_cited(text: str, count: int, words: Mapping[str, float], passages: Sequence[str]) -> list[PassageSupport]:
    """Return the verdicts of a reply on claims 1 to ``count``, in their order."""
    found = entries_of(text, count)
    if isinstance(found, Missing):
        return [PassageSupport(missing=found)] * count
    return [_support(entries, words, passages) for entries in found]


def _support(
    entries: Sequence[Mapping[str, Any]], words: Mapping[str, float], passages: Sequence[str]
) -> PassageSupport:
    verdict = verdict_of(entries, words, len(passages))
    if len(entries) != 1:
        return PassageSupport(missing=verdict.missing)
    by, needs = _by_passage(entries[0], passages), entries[0].get("needs_source")
    if isinstance(by, Missing) or not isinstance(needs, bool):
        missing = by if isinstance(by, Missing) else Missing.WORD
        return PassageSupport(verdict.value, verdict.passage, verdict.missing or missing)
    return PassageSupport(verdict.value, verdict.passage, verdict.missing, by, needs)


def _by_passage(entry: Mapping[str, Any], passages: Sequence[str]) -> Mapping[int, tuple[float, str, str]] | Missing:
    listed = objects_of(entry, "support")
    if listed is None:
        return Missing.UNREADABLE
    found: dict[int, tuple[float, str, str]] = {}
    for each in listed:
        number, value = whole_number(each.get("passage")), offered(each.get("degree"), DEGREES)
        if number is None or not 1 <= number <= len(passages):
            return Missing.PASSAGE
        if value is None or number in found:
            return Missing.WORD if value is None else Missing.TWICE
        found[number] = (value, *_quote(words_of(each.get("quote")), passages[number - 1]))
    return found


def _quote(said: str, passage: str) -> tuple[str, str]:
    """Return the quoted words as the passage has them; no words and a remark where it has not."""
    start, end = find_quote(said, passage)
    return (passage[start:end], "") if start >= 0 else ("", NOT_THERE)


# Asks the judge about numbered items, all in one call, and once more about those without a verdict.

SUPPORTED = {"supported": 1.0, "unsupported": 0.0}
USEFULNESS_VALUES = {"useful": 1.0, "useless": 0.0}

SaidT = TypeVar("SaidT", bound=PassageVerdict)

AskAboutTexts = Callable[[Sequence[str], bool], Awaitable[Sequence[SaidT]]]
"""Takes texts, and whether they are asked about again; returns the verdict on each."""

AskedSupport = Callable[[JudgeChat, Sequence[str], Sequence[str], bool], Awaitable[Sequence[PassageVerdict]]]
"""Takes claims and passages, and whether they are asked about again: ``support`` or ``support_by_each``."""


@dataclass(frozen=True, slots=True)
class JudgedTexts(Generic[SaidT]):
    """The verdict on each text; ``again`` says that the judge was asked a second time."""

    each: tuple[SaidT, ...]
    again: bool = False


async def asked_twice(
    texts: Sequence[str], ask: AskAboutTexts[SaidT], may_ask_again: Callable[[], Awaitable[bool]]
) -> JudgedTexts[SaidT]:
    """Ask about ``texts``, and once more about those without a verdict, where that is allowed."""
    said = list(await ask(texts, False))
    missing = [place for place, each in enumerate(said) if each.missing]
    if not missing or not await may_ask_again():
        return JudgedTexts(tuple(said))
    for place, each in zip(missing, await ask([texts[place] for place in missing], True), strict=True):
        said[place] = each
    return JudgedTexts(tuple(said), again=True)


async def ask_support(
    asking: JudgeChat, claims: Sequence[str], passages: Sequence[str], again: bool
) -> Sequence[PassageVerdict]:
    """Return which of ``claims`` the ``passages`` support."""
    sections = [*numbered("passage", passages), *numbered("claim", claims)]
    reply = _reply(len(claims), SUPPORTED, {"passage": NUMBER})
    text = await asking.ask(prompt("fused_verdicts"), sections, reply, _end(again))
    return read_verdicts(text, len(claims), SUPPORTED, len(passages))


async def ask_support_by_each(
    asking: JudgeChat, claims: Sequence[str], passages: Sequence[str], again: bool
) -> Sequence[PassageSupport]:
    """Return the same, and for each claim the passages that support it alone, with their words."""
    sections = [*numbered("passage", passages), *numbered("claim", claims)]
    task = f"{prompt('fused_verdicts')}\n\n{prompt('fused_citations')}"
    text = await asking.ask(task, sections, _cited_reply(len(claims), len(passages)), _end(again))
    return read_cited(text, len(claims), SUPPORTED, passages)


async def ask_usefulness(
    asking: JudgeChat, question: str, ground_truth: str, chunks: Sequence[str], again: bool
) -> Sequence[PassageVerdict]:
    """Return which of ``chunks`` were useful for arriving at ``ground_truth``."""
    given: list[MarkedText] = [("question", question), ("right answer", ground_truth)]
    sections = [*given, *numbered("passage", chunks)]
    reply = _reply(len(chunks), USEFULNESS_VALUES, {})
    text = await asking.ask(prompt("fused_usefulness"), sections, reply, _end(again))
    return read_verdicts(text, len(chunks), USEFULNESS_VALUES)


_BY_PASSAGE = {"passage": NUMBER, "quote": TEXT, "degree": {"type": "string", "enum": list(DEGREES)}}


def _cited_reply(count: int, passages: int) -> Mapping[str, Schema]:
    verdict = {
        "index": NUMBER,
        "needs_source": BOOLEAN,
        "support": list_schema(object_schema(_BY_PASSAGE), passages),
        "verdict": {"type": "string", "enum": list(SUPPORTED)},
        "passage": NUMBER,
    }
    return {"verdicts": list_schema(object_schema(verdict), count, count)}


def _reply(count: int, words: Mapping[str, float], more: Mapping[str, Schema]) -> Mapping[str, Schema]:
    verdict = {"index": NUMBER, "verdict": {"type": "string", "enum": list(words)}, **more}
    return {"verdicts": list_schema(object_schema(verdict), count, count)}


def _end(again: bool) -> str:
    return prompt("fused_again") if again else ""


CANNOT_TELL = "the judge cannot tell"
CRITERION_NOT_THERE = "the words that the judge quoted are not in the answer"
_VALUES = {"met": 1.0, "not met": 0.0, "cannot tell": None}
_VERDICT = object_schema({"index": NUMBER, "quote": TEXT, "verdict": {"type": "string", "enum": list(_VALUES)}})


@dataclass(frozen=True, slots=True)
class CriterionReply(PassageVerdict):
    """A verdict on a criterion: 1, 0 or none, with the words of the answer that decide it, or why there is none."""

    quote: str = ""
    why: str = ""


async def ask_criteria(
    asking: JudgeChat, question: str, answer: str, criteria: Sequence[str], again: bool
) -> list[CriterionReply]:
    """Return the reply on each criterion, from one call."""
    sections = [("question", question), ("answer", answer), *numbered("criterion", criteria)]
    end = prompt("fused_again") if again else ""
    reply = {"verdicts": list_schema(_VERDICT, len(criteria), len(criteria))}
    text = await asking.ask(prompt("fused_criteria"), sections, reply, end)
    found = entries_of(text, len(criteria))
    if isinstance(found, Missing):
        return [CriterionReply(missing=found)] * len(criteria)
    return [_criterion_reply(entries) for entries in found]


def _criterion_reply(entries: Sequence[Mapping[str, Any]]) -> CriterionReply:
    if len(entries) != 1:
        return CriterionReply(missing=Missing.TWICE if entries else Missing.LEFT_OUT)
    said = entries[0].get("verdict")
    word = " ".join(said.split()).lower() if isinstance(said, str) else ""
    if word not in _VALUES:
        return CriterionReply(missing=Missing.WORD)
    value = _VALUES[word]
    return CriterionReply(value, quote=words_of(entries[0].get("quote")), why=CANNOT_TELL if value is None else "")


def verdict_on(criterion: str, said: CriterionReply, answer: str) -> CriterionVerdict:
    """Return a reply as a verdict. A quote that the answer does not contain is not evidence, and gives no verdict."""
    if said.missing:
        return CriterionVerdict(criterion, None, reason=said.missing.value)
    start, end = find_quote(said.quote, answer)
    found = CriterionVerdict(criterion, said.value, answer[start:end] if start >= 0 else "", start, end, said.why)
    if said.quote and start < 0 and said.value is not None:
        return replace(found, value=None, reason=CRITERION_NOT_THERE)
    return found


def in_any_order(criteria: Sequence[str], answer: str, repeat: int) -> list[str]:
    """Return criteria in an order of their own for each answer and repeat, so that no place favours one of them."""
    return sorted(criteria, key=lambda each: key_of(str(repeat), answer, each))


# Limits on what is judged. A larger text gets no score, with a reason, and causes no call.

LONGEST_TEXT = 40_000
"""Most characters of a text that is split into claims."""
MOST_CLAIMS = 100
"""Most claims of a text that are judged. A reply with more is not trusted."""
_SHORTEST_CLAIM = 4
"""Characters of a text that make a claim at least: an item of a list, ``UK, ``."""
_FEWEST = 3


def check_length(what: str, text: str) -> None:
    """Refuse to split a text that is too long for an answer.

    Raises:
        ModelOutputError: the text is too long; says how long it is.
    """
    if len(text) > LONGEST_TEXT:
        raise ModelOutputError(f"{what} of {len(text):,} characters: at most {LONGEST_TEXT:,} are judged")


def most_claims(text: str) -> int:
    """Return the most claims that a reply about ``text`` may have, one more than are judged: a cut list would pass."""
    return min(MOST_CLAIMS + 1, max(_FEWEST, len(text) // _SHORTEST_CLAIM))


def too_many(count: int) -> str:
    """Say that a reply has too many claims; empty where it has not."""
    return f"the judge found {count:,} claims: at most {MOST_CLAIMS} are judged" if count > MOST_CLAIMS else ""


SplitPart = Literal["claims", "questions"]
SplitParts = tuple[SplitPart, ...]
FORMS: tuple[SplitParts, ...] = (("claims",), ("questions",), ("claims", "questions"))
QUESTIONS_OF_AN_ANSWER = 3
"""As in RAGAS: relevancy is the mean over these questions."""

_CLAIM = object_schema({"quote": TEXT, "claim": TEXT})
_QUESTIONS = list_schema(TEXT, QUESTIONS_OF_AN_ANSWER, QUESTIONS_OF_AN_ANSWER)


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of a text.

    ``claims`` and ``questions`` are None where they were not requested, or cannot be read; ``again`` says that the
    judge was asked a second time.
    """

    claims: tuple[Claim, ...] | None = None
    questions: tuple[str, ...] | None = None
    noncommittal: bool = False
    again: bool = False

    def lacks(self, wanted: SplitParts) -> SplitParts:
        """Return the parts of ``wanted`` that are missing."""
        found: Mapping[SplitPart, object] = {"claims": self.claims, "questions": self.questions}
        return tuple(part for part in wanted if found[part] is None)


async def split(asking: JudgeChat, question: str, text: str, wanted: SplitParts) -> Split:
    """Return the parts of ``text``. Unreadable parts are requested once more.

    Raises:
        ModelOutputError: the text is too long.
        RagHarnessError: any error of the chat model.
    """
    if not text.strip():
        return Split((), ())
    check_length("a text", text)
    first = await _asked(asking, question, text, wanted)
    missing = first.lacks(wanted)
    if not missing:
        return first
    second = await _asked(asking, question, text, missing, prompt("fused_again"))
    return Split(
        second.claims if "claims" in missing else first.claims,
        second.questions if "questions" in missing else first.questions,
        second.noncommittal if "questions" in missing else first.noncommittal,
        again=True,
    )


async def _asked(asking: JudgeChat, question: str, text: str, wanted: SplitParts, end: str = "") -> Split:
    """Ask for ``wanted``. Questions come from the text alone: the real one is shown only where claims are wanted."""
    sections = [("question", question)] if "claims" in wanted else []
    task = "\n\n".join(["You are given a text.", *(prompt(f"fused_{part}") for part in wanted)])
    reply = {name: schema for part in wanted for name, schema in _split_schema(part, text).items()}
    found = json_of(await asking.ask(task, [*sections, ("text", text)], reply, end)) or {}
    return Split(_claims(found, text), *_questions(found))


def _split_schema(part: SplitPart, text: str) -> Mapping[str, Schema]:
    if part == "questions":
        return {"questions": _QUESTIONS, "noncommittal": BOOLEAN}
    return {"claims": list_schema(_CLAIM, most_claims(text))}


def _claims(found: Mapping[str, Any], text: str) -> tuple[Claim, ...] | None:
    """Read the claims. One unreadable claim makes the list invalid: without it the denominator would shrink."""
    listed = found.get("claims")
    if not isinstance(listed, list):
        return None
    said = [_claim(entry) for entry in listed]
    return placed(said, text) if all(claim for claim, _ in said) else None


def _claim(entry: object) -> tuple[str, str]:
    """Return a claim and its quote; the claim is empty where it cannot be read."""
    claim, quote = (entry.get("claim"), entry.get("quote")) if isinstance(entry, Mapping) else (entry, "")
    return words_of(claim), words_of(quote)


def _questions(found: Mapping[str, Any]) -> tuple[tuple[str, ...] | None, bool]:
    listed, noncommittal = found.get("questions"), found.get("noncommittal")
    questions = tuple(words_of(each) for each in listed) if isinstance(listed, list) else ()
    if len(questions) != QUESTIONS_OF_AN_ANSWER or not all(questions) or not isinstance(noncommittal, bool):
        return None, False
    return questions, noncommittal


def form_first(wanted: SplitParts, needed: SplitPart) -> Sequence[SplitParts]:
    """Return the forms that contain ``needed``, with ``wanted`` first where it is one of them."""
    return sorted((form for form in FORMS if needed in form), key=lambda form: form != wanted)
