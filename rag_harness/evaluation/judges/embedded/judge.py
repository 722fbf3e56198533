"""The judge ``embedded/alignment``, deterministic, from words and their MiniLM vectors."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property, partial

from rag_harness.core.errors import NotJudgedError
from rag_harness.core.files import text_digest
from rag_harness.core.protocols import JudgeParts, TextEmbedder
from rag_harness.core.registry import REVISIONS
from rag_harness.core.settings import access_of
from rag_harness.core.text.comparison import ComparableText, quotable, readable_text
from rag_harness.core.text.language_detection import answer_not_judged, foreign, not_judged, told
from rag_harness.core.text.languages import has_rules
from rag_harness.evaluation.judges.embedded.alignment import (
    MOST_SOURCE_CHARACTERS,
    SplitText,
    beyond,
    split_text,
    too_long_to_judge,
)
from rag_harness.evaluation.judges.embedded.judgement import (
    ALLOWED,
    JudgementReading,
    KeptJudgements,
    coefficients,
    digest,
    ended_in_time,
    is_hallucinated,
    missed,
    parts_of,
    read_as_source,
    score_of,
)
from rag_harness.evaluation.judges.embedded.short_answers import Decision, decide, decide_in, is_short, repeats_question
from rag_harness.evaluation.measures.opinion import (
    NO_SUMMARY,
    REPEATS,
    Claim,
    JudgeQuestion,
    Material,
    Relevancy,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
)
from rag_harness.evaluation.measures.opinion import ClaimedText as Claims
from rag_harness.models.array_store import key_of
from rag_harness.models.embedders import DEFAULT_MODEL

__all__ = ["EmbeddedJudge", "create"]


USEFUL_FROM = 0.55
"""Alignment with the ground truth from which a chunk is called useful; chosen in docs/dev/results/embedded-judge.md."""
_SUMMARY = re.compile(r"\bsummar(?:y|ies|i[sz]e[ds]?|i[sz]ing)\b|\btl;?dr\b", re.I)
NO_SOURCE = "there is no text that could support it"


class EmbeddedOpinion:
    """An opinion without an LLM: sentences are claims, verdicts are probabilities.

    The sentence model was fitted to answers and the passages of their prompts. With short sources (a ground truth, an
    answer) it has the same features: shares of words and figures that are found, alignment, negation. There the opinion
    has only the sentences' own probabilities, without a score of the whole: the response model was fitted to answers to
    prompts alone. Short answers and short ground truths are judged by rules, or not at all.

    Stems, negations and coefficients are for English. Where question, answer or contexts are in another language, all
    questions raise NotJudgedError, except the usefulness of chunks that evidence quotes decide.
    """

    def __init__(self, material: Material, reading: JudgementReading, kept: KeptJudgements) -> None:
        self._written, self._material, self._long = material, readable_material(material), material.is_long
        self._reading, self._kept = reading, kept

    async def supported(self, claims: Claims, source: SupportSource) -> Verdicts:
        if (own := self._in_own_language()) and (claims, source) == ("answer", "contexts"):
            return own
        self._check_language()
        found = await self._supported(claims, source)
        if source == "contexts" and self._unread and any((one.value or 0) < ALLOWED for one in found.each):
            raise NotJudgedError(self._unread)
        return found

    async def _supported(self, claims: Claims, source: SupportSource) -> Verdicts:
        passages = self._passages(source)
        of_passages = source in ("contexts", "gold_pages")
        if claims == "answer" and of_passages and _SUMMARY.search(self._material.question):
            raise NotJudgedError(NO_SUMMARY)
        if claims == "nuggets":
            return Verdicts(tuple([await self._nugget(quote, passages) for quote in self._material.quotes]))
        written = self._written.answer if claims == "answer" else self._written.ground_truth
        read = readable_text(written)
        short = self._short(read.text, passages) if of_passages else None
        found = short or await self._verdicts(read.text, passages, whole=claims == "answer" and of_passages)
        return found if read.text == written else _as_written(found, read, written)

    async def usefulness(self) -> Sequence[Usefulness]:
        material = self._material
        if material.quotes:
            quotes = [quotable(quote) for quote in material.quotes]
            return [Usefulness(float(any(quote in quotable(text) for quote in quotes))) for text in material.contexts]
        self._check_language()
        if self._unread:
            raise NotJudgedError(self._unread)
        if not split_text(material.ground_truth).sentences:
            return [Usefulness(None, "neither an evidence quote nor a ground truth to compare with")] * len(
                material.contexts
            )
        key = key_of("alignments", material.ground_truth, *material.contexts)
        wanted, contexts = material.ground_truth, material.contexts
        found = await self._kept.array(key, wanted, partial(self._reading.alignments, wanted, contexts), self._long)
        return [Usefulness(float(value >= USEFUL_FROM)) for value, _ in found.tolist()]

    async def relevancy(self) -> Relevancy:
        question, answer = self._material.question, self._material.answer
        if not answer.strip() or not question.strip():
            return Relevancy(None, reason="no answer" if question.strip() else "no question")
        self._check_language()
        if repeats_question(question, answer):
            return Relevancy(None, noncommittal=True, detail={"repeats_question": True})
        key = key_of("cosine", question, answer)
        found = await self._kept.array(key, answer, partial(self._reading.cosine, question, answer), self._long)
        cosine, blocks = found[0].tolist()
        return Relevancy(cosine, self._material.abstained, detail={"cosine": cosine, "blocks": int(blocks)})

    @cached_property
    def _not_judged(self) -> str:
        material = self._material
        return answer_not_judged(material.question, material.answer, [text for text in self._contexts if text])

    @cached_property
    def _contexts(self) -> tuple[str, ...]:
        """The passages, those in another language than English empty; all of them where none is English."""
        contexts = self._material.contexts
        english = tuple("" if foreign(text) else text for text in contexts)
        return english if any(map(str.strip, english)) else contexts

    @cached_property
    def _unread(self) -> str:
        """Why what English passages do not say is not judged: one in another language may say it; empty for none."""
        return not_judged(*self._material.contexts)

    def _in_own_language(self) -> Verdicts | None:
        """Return the verdict of a short answer in the language of its question and of a passage, where it is right."""
        question, answer = self._material.question, self._written.answer
        language = foreign(question)
        if not language or not has_rules(language) or told(answer) not in ("", language):
            return None
        passages = [text if told(text) == language else "" for text in self._material.contexts]
        claimed = split_text(readable_text(answer).text)
        if not any(passages) or not is_short(claimed.text, len(claimed.sentences)):
            return None
        found = decide_in(language, question, claimed.text, [read_as_source(passage).text for passage in passages])
        if found.value is None:
            return None
        said = _ruled(claimed, found)
        return said if claimed.text == answer else _as_written(said, readable_text(answer), answer)

    def _check_language(self) -> None:
        if self._not_judged:
            raise NotJudgedError(self._not_judged)

    def _short(self, text: str, passages: Sequence[str]) -> Verdicts | None:
        """Return the verdict of the rules for short answers; None where ``text`` is none, or has no source."""
        claimed, question = split_text(text), self._material.question
        if _unreadable(passages) or not question.strip():
            return None
        if repeats_question(question, text):
            return Verdicts(tuple(Verdict(claim, None, reason=REPEATS) for claim in _claims(claimed)))
        if not is_short(text, len(claimed.sentences)):
            return None
        found = decide(question, text, [read_as_source(passage).text for passage in passages])
        return _ruled(claimed, found)

    async def _verdicts(self, text: str, passages: Sequence[str], whole: bool) -> Verdicts:
        claimed = split_text(text)
        if not claimed.sentences:
            return Verdicts(())
        missing = _unreadable(passages)
        if missing:
            return Verdicts(tuple(Verdict(claim, *missing) for claim in _claims(claimed)))
        found = await self._judged(text, passages)
        each = tuple(_each(claimed, found, await self._reasons(claimed, passages, found)))
        return _with_score(each, found) if whole else Verdicts(each)

    async def _nugget(self, quote: str, passages: Sequence[str]) -> Verdict:
        """Return the verdict of a whole quote: the mean over its sentences."""
        found = await self._verdicts(quote, passages, whole=False)
        claim, values = Claim(quote), [verdict.value for verdict in found.each]
        missing = next((verdict for verdict in found.each if verdict.value is None), None)
        if missing or not values:
            return Verdict(claim, None, reason=missing.reason if missing else "the quote holds no word")
        mean = sum(value for value in values if value is not None) / len(values)
        return Verdict(claim, round(mean, 6), found.each[0].passage, found.each[0].reason)

    async def _reasons(self, text: SplitText, passages: Sequence[str], rows: Sequence[Sequence[float]]) -> list[str]:
        """Return the parts of each sentence that the rules miss in the source; none if all verdicts are higher."""
        if all(p < 1 - ALLOWED for p, _ in rows[:-1]):
            return [""] * len(text.sentences)
        look = partial(missed, text.text, passages, self._material.question)
        return await ended_in_time(look, text.text) if self._long else look()

    async def _judged(self, text: str, passages: Sequence[str]) -> Sequence[Sequence[float]]:
        question = self._material.question
        key = key_of("judged", question, text, *passages)
        found = await self._kept.array(key, text, partial(self._reading.judged, text, passages, question), self._long)
        rows: Sequence[Sequence[float]] = found.tolist()
        return rows

    def _passages(self, source: SupportSource) -> tuple[str, ...]:
        material = self._material
        return {"contexts": self._contexts, "gold_pages": material.gold_pages,
                "answer": (material.answer,), "ground_truth": (material.ground_truth,)}[source]  # fmt: skip


def _ruled(claimed: SplitText, found: Decision) -> Verdicts:
    """Return the verdict of the rules for short answers, with its score."""
    verdict = Verdict(_claims(claimed)[0], found.value, found.passage, found.reason)
    if found.value is None:
        return Verdicts((verdict,))
    p = round(1 - found.value, 6)
    score = score_of(p, coefficients().threshold)
    return Verdicts((verdict,), score, {"hallucinated": is_hallucinated(score), "p_hallucinated": p})


def _with_score(each: tuple[Verdict, ...], rows: Sequence[Sequence[float]]) -> Verdicts:
    if not rows:
        return Verdicts(each)
    _, hallucinated, score = parts_of(rows)
    return Verdicts(each, score, {"hallucinated": is_hallucinated(score), "p_hallucinated": hallucinated})


def _each(text: SplitText, rows: Sequence[Sequence[float]], reasons: Sequence[str]) -> list[Verdict]:
    claims = _claims(text)
    sentences = parts_of(rows)[0] if rows else []
    said = [
        Verdict(claim, round(1 - p, 6), passage, why)
        for claim, (p, passage), why in zip(claims, sentences, reasons, strict=False)
    ]
    return [*said, *(Verdict(claim, None, reason=beyond()) for claim in claims[len(said) :])]


def readable_material(material: Material) -> Material:
    """Return the material as the rules read it: an accent in a character of its own would divide a word."""

    def read(text: str) -> str:
        return readable_text(text).text

    return replace(
        material,
        question=read(material.question),
        answer=read(material.answer),
        contexts=tuple(map(read, material.contexts)),
        ground_truth=read(material.ground_truth),
        gold_pages=tuple(map(read, material.gold_pages)),
        quotes=tuple(map(read, material.quotes)),
    )


def _as_written(found: Verdicts, read: ComparableText, written: str) -> Verdicts:
    """Return the verdicts on claims, with the claims as the original text has them."""
    spans = [read.span(verdict.claim.start, verdict.claim.end) for verdict in found.each]
    claims = [Claim(written[start:end], start, end) for start, end in spans]
    each = tuple(replace(verdict, claim=claim) for verdict, claim in zip(found.each, claims, strict=True))
    return replace(found, each=each)


def _claims(text: SplitText) -> list[Claim]:
    return [Claim(text.text[start:end], start, end) for start, end in text.sentences]


def _unreadable(passages: Sequence[str]) -> tuple[float | None, None, str] | None:
    """Return value, passage and reason of every verdict where the source cannot be read; None where it can."""
    characters = sum(map(len, passages))
    if characters > MOST_SOURCE_CHARACTERS:
        return None, None, too_long_to_judge(characters)
    if not any(any(map(str.isalnum, passage)) for passage in passages):
        return 0.0, None, NO_SOURCE
    return None


# ``embedded/alignment``: a deterministic judge without an LLM, from words and their MiniLM vectors.
#
# It estimates; it does not understand. docs/dev/results/embedded-judge.md has its accuracy, and the accuracy of a model
# that never reads the source.

MODEL = "embedded/alignment"


class EmbeddedJudge:
    """Judges by a few hundred coefficients over lexical and MiniLM features, whatever the run's embedder is."""

    name = "embedded"
    model = MODEL
    asks_model = False
    deterministic = True
    reads_conversation = False

    def __init__(self, parts: JudgeParts) -> None:
        self._parts = parts

    @cached_property
    def revision(self) -> str:
        """Digest of coefficients, rules and embedder; known without loading a model."""
        return text_digest("\0".join([digest(), REVISIONS["judges/embedded"], self._embedder.revision]))

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> EmbeddedOpinion:  # noqa: ARG002 - all are cheap
        return EmbeddedOpinion(material, self._reading, self._kept)

    @cached_property
    def _embedder(self) -> TextEmbedder:
        return self._parts.embedder(DEFAULT_MODEL)

    @cached_property
    def _reading(self) -> JudgementReading:
        return JudgementReading(lambda: self._embedder)

    @cached_property
    def _kept(self) -> KeptJudgements:
        access = access_of(self._parts.settings)
        store = self._parts.stores.open("judged", self.model, self.revision)
        refusal = access.refusal(local=True, profile=self._parts.settings.profile)
        return KeptJudgements(store, access.keeps != "nothing", refusal, self._reading.load)


def create(parts: JudgeParts) -> EmbeddedJudge:
    """Return the embedded judge of a run."""
    return EmbeddedJudge(parts)
