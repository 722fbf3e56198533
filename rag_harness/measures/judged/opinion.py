"""What a judge is given, and what it says: the nouns and verbs of judged measures. Pure; imports no model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

Text: TypeAlias = Literal["answer", "ground_truth", "nuggets"]
"""What claims are taken from. Of ``nuggets``, the quotes of the evidence, each is one claim as it stands."""
Source: TypeAlias = Literal["contexts", "gold_pages", "answer", "ground_truth"]
"""What may support them."""


class Support(NamedTuple):
    """A question to a judge: which claims of ``claims`` does ``source`` support?"""

    claims: Text
    source: Source


Ask: TypeAlias = Support | Literal["usefulness", "relevancy"]
"""A question to a judge. ``usefulness``: was each chunk useful for arriving at the ground truth? ``relevancy``: is the
answer to the point?"""


@dataclass(frozen=True, slots=True)
class Material:
    """One answer with what it is judged by. Texts may be empty; ``contexts`` are the chunks of its prompt, in order.

    ``gold_pages`` are the whole texts of the relevant documents, ``quotes`` the passages in them that carry the answer.
    """

    question: str
    answer: str
    contexts: tuple[str, ...] = ()
    ground_truth: str = ""
    gold_pages: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    abstained: bool = False
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a text says.

    ``start`` and ``end`` are where it stands in that text; -1 where the judge has put it into words of its own.
    ``citations`` are the sources that the answer names for it, from 1; their marks are no part of ``text``.
    """

    text: str
    start: int = -1
    end: int = -1
    citations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of one claim.

    ``value`` is 1 if it is supported, 0 if not; a judge that estimates gives the probability; None where there is no
    verdict, and ``reason`` then says why. ``passage`` is the place of the passage that supports it, from 0.
    """

    claim: Claim
    value: float | None
    passage: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a judge says of all claims of a text, in the order of the text.

    ``share`` is the judge's own estimate of the supported share, in [0, 1], where it has a better one than the mean of
    its verdicts. ``detail`` is what else it has to say, plain JSON by name.
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
    """How much to the point an answer is: ``value`` is a mean cosine, in [-1, 1]; None where it could not be had."""

    value: float | None
    noncommittal: bool = False
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


class Opinion(Protocol):
    """What one judge says about one answer. Each question is put once, however many measures need what it says.

    What is wrong with the judge (no such model, unreadable after it was asked again) is raised as a RagHarnessError:
    the scores that hang on it are then None, with that reason.
    """

    async def supported(self, claims: Text, source: Source) -> Verdicts:
        """Return a verdict for each claim of ``claims``; none where the text claims nothing."""
        ...

    async def usefulness(self) -> Sequence[Usefulness]:
        """Return one a chunk, in the order of the contexts."""
        ...

    async def relevancy(self) -> Relevancy:
        """Return how much to the point the answer is."""
        ...


class Judge(Protocol):
    """Answers judged measures: an LLM of role ``judge``, or the embedded one. Never presented as each other."""

    @property
    def name(self) -> str:
        """How it judges: fused, ragas, embedded."""
        ...

    @property
    def model(self) -> str:
        """Whose judgement it is: the name of the chat model, or of the embedded one."""
        ...

    @property
    def revision(self) -> str:
        """Digest of its prompts, or of its coefficients: what else decides its verdicts."""
        ...

    def opinion(self, material: Material, asks: Collection[Ask]) -> Opinion:
        """Return its opinion of ``material``, of which ``asks`` will be wanted, so that it can put them together."""
        ...
