"""The judge ``mock/word-overlap``, for trial runs only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rag_harness.core.protocols import JudgeParts
from rag_harness.core.registry import REVISIONS
from rag_harness.core.text.comparison import compared_words
from rag_harness.core.text.sentences import sentence_spans
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
    texts_of,
)

_ENOUGH = 0.5


class MockJudge:
    """Counts shared words."""

    name = "mock"
    asks_model = False
    deterministic = True
    reads_conversation = False
    model = "mock/word-overlap"
    revision = REVISIONS["judges/mock"]

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> MockOpinion:  # noqa: ARG002 - nothing is put together
        return MockOpinion(material)


class MockOpinion:
    """The mock judge's opinion of one answer."""

    def __init__(self, material: Material) -> None:
        self._material = material

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        passages = texts_of(self._material, source)
        return Verdicts(tuple(_verdict(claim, passages) for claim in self._claims(claims)))

    def _claims(self, of: ClaimedText) -> list[Claim]:
        texts = texts_of(self._material, of)
        return [*map(Claim, texts)] if of == "nuggets" else [claim for text in texts for claim in _sentences(text)]

    async def usefulness(self) -> Sequence[Usefulness]:
        wanted = self._material.ground_truth
        return [Usefulness(float(_share(wanted, context) >= _ENOUGH)) for context in self._material.contexts]

    async def relevancy(self) -> Relevancy:
        return Relevancy(_share(self._material.question, self._material.answer))


def _sentences(text: str) -> Iterator[Claim]:
    return (Claim(text[start:end], start, end) for start, end in sentence_spans(text))


def _verdict(claim: Claim, passages: Sequence[str]) -> Verdict:
    shares = [_share(claim.text, passage) for passage in passages]
    best = max(shares, default=0.0)
    return Verdict(claim, float(best >= _ENOUGH), shares.index(best) if best >= _ENOUGH else None)


def _share(wanted: str, text: str) -> float:
    words = _words(wanted)
    return len(words & _words(text)) / len(words) if words else 0.0


def _words(text: str) -> set[str]:
    return set(compared_words(text))


def create(_parts: JudgeParts) -> MockJudge:
    """Return the mock judge."""
    return MockJudge()
