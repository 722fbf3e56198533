"""The encoder judge's opinion of one answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rag_harness.errors import NotJudgedError
from rag_harness.judges.encoder.asked_support import SUPPORTED_ABOVE, AskedSupport, ClaimSupport, EncoderFamily
from rag_harness.judges.encoder.pooled_readings import PooledReadings
from rag_harness.measures.judged import (
    Claim,
    ClaimedText,
    Material,
    Relevancy,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
)
from rag_harness.words.comparison import quotable
from rag_harness.words.language import answer_not_judged
from rag_harness.words.sentence_ends import sentence_spans

MOST_CLAIMS = 200
"""Most sentences of a text that are judged."""
MOST_CHARACTERS = 400_000
"""Most characters of a text and its passages together."""
NO_PASSAGE = "no text to judge by"
ONLY_SUPPORT = "not judged: an encoder says whether a text supports a claim, and nothing else"
NO_QUOTES = f"{ONLY_SUPPORT}; quotes of the evidence say which chunks are useful, and there are none"


@dataclass(frozen=True)
class EncoderOpinion:
    """Sentences are claims; a verdict is the probability that a passage supports one.

    It has no opinion of relevancy. Of chunks it knows those useful that have a quote of the evidence, without a model.

    Attributes:
        material: the answer.
        family: knows what the model is asked.
        readings: what the model has said of texts.
        english: whether the model was trained on English alone. Other languages are then not judged.
    """

    material: Material
    family: EncoderFamily
    readings: PooledReadings
    english: bool

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        self._check_language()
        passages = {place: text for place, text in enumerate(self._texts(source)) if text.strip()}
        if not passages:
            return Verdicts((Verdict(Claim(claims), None, reason=NO_PASSAGE),))
        each = [
            verdict
            for text in self._texts(claims)
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

    def _texts(self, which: ClaimedText | SupportSource) -> tuple[str, ...]:
        material = self.material
        quotes = tuple(quote for quote in material.quotes if quote.strip())
        of = {"answer": (material.answer,), "ground_truth": (material.ground_truth,), "nuggets": quotes}
        return {**of, "contexts": material.contexts, "gold_pages": material.gold_pages}[which]

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
