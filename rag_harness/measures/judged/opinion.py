"""The interface between judged measures and judges: questions, material, verdicts. Pure; it imports no model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

ClaimedText: TypeAlias = Literal["answer", "ground_truth", "nuggets"]
"""The text that claims are taken from. In ``nuggets``, each quote of the evidence is one claim as it stands."""
SupportSource: TypeAlias = Literal["contexts", "gold_pages", "answer", "ground_truth"]
"""The text that may support claims."""


class Support(NamedTuple):
    """A question to a judge: which claims of ``claims`` does ``source`` support?"""

    claims: ClaimedText
    source: SupportSource


JudgeQuestion: TypeAlias = Support | Literal["usefulness", "relevancy"]
"""A question to a judge. ``usefulness``: was each chunk useful for arriving at the ground truth? ``relevancy``: is the
answer to the point?"""


@dataclass(frozen=True, slots=True)
class Material:
    """One answer, and the texts for judging it. Any may be empty; ``contexts`` are the chunks of its prompt, in order.

    ``gold_pages`` are the whole texts of the relevant documents, ``quotes`` the passages in them that carry the answer.
    ``retrieves`` is False where the experiment is declared to retrieve nothing.
    """

    question: str
    answer: str
    contexts: tuple[str, ...] = ()
    ground_truth: str = ""
    gold_pages: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    abstained: bool = False
    answerable: bool = True
    retrieves: bool = True

    @property
    def has_context(self) -> bool:
        """Whether a context has any text."""
        return any(context.strip() for context in self.contexts)


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a text.

    ``start`` and ``end`` are its position in that text; -1 where the judge has rephrased it. ``citations`` are the
    sources that the answer names for it, from 1; ``text`` does not contain their marks.
    """

    text: str
    start: int = -1
    end: int = -1
    citations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's verdict on one claim.

    ``value`` is 1 if the claim is supported, 0 if not; some judges give a probability. It is None where there is no
    verdict, and ``reason`` then says why. ``passage`` is the position of the supporting passage, from 0.
    """

    claim: Claim
    value: float | None
    passage: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A judge's verdicts on all claims of a text, in the order of the text.

    ``share`` is the judge's own estimate of the supported share, in [0, 1], where that is better than the mean of its
    verdicts. ``detail`` has further output of the judge, plain JSON by name.
    """

    each: tuple[Verdict, ...]
    share: float | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usefulness:
    """Whether one chunk was useful for arriving at the ground truth; None where there is no verdict."""

    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Relevancy:
    """The relevancy of an answer: ``value`` is a mean cosine, in [-1, 1]; None where it could not be computed."""

    value: float | None
    noncommittal: bool = False
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


class Opinion(Protocol):
    """One judge's view of one answer. Each question is asked once, however many measures use the result.

    A failure of the judge (no such model, unreadable even after it was asked again) is raised as a RagHarnessError. The
    scores that depend on it are then None, with that reason.
    """

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        """Return a verdict for each claim of ``claims``; none where the text has no claims."""
        ...

    async def usefulness(self) -> Sequence[Usefulness]:
        """Return one verdict a chunk, in the order of the contexts."""
        ...

    async def relevancy(self) -> Relevancy:
        """Return the relevancy of the answer."""
        ...


class Judge(Protocol):
    """Answers the questions of judged measures: an LLM of role ``judge``, or the embedded judge. Reports say which.

    ``asks_model``, ``deterministic`` and ``reads_conversation`` are read before the first question, of the class where
    all three stand there. A judge without them is taken as one that asks no model, may change its mind, and reads what
    was said before.
    """

    @property
    def name(self) -> str:
        """The kind of judge: fused, ragas, embedded."""
        ...

    @property
    def asks_model(self) -> bool:
        """Whether it asks the chat model of role ``judge``, whose server, key and price are then checked."""
        ...

    @property
    def deterministic(self) -> bool:
        """Whether it says the same of the same answer, however often it is asked."""
        ...

    @property
    def reads_conversation(self) -> bool:
        """Whether it understands a question with what was said before it; one that compares words does not."""
        ...

    @property
    def model(self) -> str:
        """The name of its chat model, or of the embedded model."""
        ...

    @property
    def revision(self) -> str:
        """Digest of its prompts or coefficients, which also decide its verdicts."""
        ...

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Opinion:
        """Return its opinion of ``material``. It may combine the questions ``asks``, which will be asked."""
        ...
