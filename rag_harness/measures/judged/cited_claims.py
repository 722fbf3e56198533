"""What a judge says of citations: each claim of an answer, and how far each source of its prompt supports it, alone.

The judge does not see what the answer cites. So it is not led by a citation, and a source that nobody cited is judged
like the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from rag_harness.errors import NotJudgedError
from rag_harness.measures.judged.opinion import Claim, JudgeQuestion, Opinion

CITATIONS = cast("JudgeQuestion", "citations")
"""A question to a judge: which sources support each claim of the answer? It is not in the alias ``JudgeQuestion``: the
shipped judgements are named by the text of that file."""
FULL, PARTIAL, NONE = "full", "partial", "none"
SUPPORTS_FROM = 0.5
"""Value from which a source supports a claim, at least in part."""


@dataclass(frozen=True, slots=True)
class SourceVerdict:
    """How far one source supports a claim.

    Attributes:
        source: number of the source in the prompt, from 1, as citations name it.
        value: 1 full, 0.5 partial, 0 none; some judges give a probability. None where there is no verdict.
        quote: the words of the source that support the claim; empty where none do, or the judge named none.
        reason: why there is no verdict, or no quote.
    """

    source: int
    value: float | None
    quote: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A claim of the answer, with a verdict for each source of the prompt.

    Attributes:
        claim: the claim; its ``citations`` are the sources that the answer names for it.
        sources: the verdicts, one a source. A source that is not among them does not exist, or has no text.
        needs: whether the claim needs a citation.
        together: 1 if all sources of the prompt together support the claim; None where the judge does not say.
    """

    claim: Claim
    sources: tuple[SourceVerdict, ...]
    needs: bool = True
    together: float | None = None

    def verdict(self, source: int) -> SourceVerdict:
        """Return the verdict on a source. A source that the prompt does not have supports nothing."""
        found = (each for each in self.sources if each.source == source)
        return next(found, SourceVerdict(source, 0.0, reason="no such source in the prompt"))

    @property
    def cited(self) -> tuple[SourceVerdict, ...]:
        """The verdicts on the sources that the answer cites for the claim."""
        return tuple(map(self.verdict, self.claim.citations))

    @property
    def others(self) -> tuple[SourceVerdict, ...]:
        """The verdicts on all other sources."""
        return tuple(each for each in self.sources if each.source not in self.claim.citations)


@runtime_checkable
class OpinionOfCitations(Protocol):
    """An opinion that answers the question ``CITATIONS``, too."""

    async def citations(self) -> Sequence[CitedClaim]:
        """Return each claim of the answer, in the order of the text, with a verdict for each source."""
        ...


async def cited_claims(opinion: Opinion) -> Sequence[CitedClaim]:
    """Return what ``opinion`` says of citations.

    Raises:
        NotJudgedError: its judge does not answer this question.
        RagHarnessError: the judge failed.
    """
    if not isinstance(opinion, OpinionOfCitations):
        raise NotJudgedError("cannot be measured: this judge does not say which source supports a claim")
    return await opinion.citations()


def word_of(value: float) -> str:
    """Return full, partial or none for a value; a probability from 0.5 is full, below it none."""
    return PARTIAL if value == 0.5 else FULL if value >= SUPPORTS_FROM else NONE
