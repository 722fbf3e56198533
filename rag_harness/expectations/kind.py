"""The base class of a kind of expectation, what it is shown of an answer, and what it says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

from rag_harness.types import Expectation
from rag_harness.words.citation_marks import CITATION
from rag_harness.words.comparison import ComparableText, comparable_text

LONGEST = 200_000
"""The most characters of an answer that are looked at. Longer ones are not checked, and that is said."""


AsksFor: TypeAlias = Literal["nothing", "criterion", "similarity"]
"""What a kind needs a model for: nothing, a judge's verdict on a criterion, or the vectors of an embedder."""


@dataclass(frozen=True)
class Source:
    """A chunk of the prompt: its document, and its text."""

    document: str
    text: str


@dataclass(frozen=True)
class AnswerSeen:
    """What expectations are set against.

    Attributes:
        text: the answer as the user gets it.
        declined: whether it says that it does not know.
        sources: chunks of the prompt, in their order; None where the pipeline reports none.
        cited: numbers of the sources that the answer cites, from 1.
        cited_wrongly: numbers that it cites, and that no source has.
        decision: what a pipeline that decides has decided: pass, warn, abstain; empty where it does not.
        confidence: from 0 to 1; None where the pipeline states none.
        ms: time of the whole trial, in milliseconds.
        usd: cost in US dollars; None where it is not known.
        tokens: tokens of all calls; None where no call reported any.
        finish_reason: why the model stopped; empty where it does not say.
        explained: whether to look for what stands there instead of a missing text, which takes longest.
    """

    text: str
    declined: bool = False
    sources: Sequence[Source] | None = ()
    cited: Sequence[int] = ()
    cited_wrongly: Sequence[int] = ()
    decision: str = ""
    confidence: float | None = None
    ms: float = 0.0
    usd: float | None = None
    tokens: int | None = None
    finish_reason: str = ""
    explained: bool = True

    @cached_property
    def words(self) -> str:
        """The text with blanks in place of citation marks: as long as the text, so that positions are the same."""
        return CITATION.sub(lambda mark: " " * len(mark[0]), self.text)

    @cached_property
    def plain(self) -> ComparableText:
        """The words as they are compared, and where they stand in the text."""
        return comparable_text(self.words)

    @property
    def documents_cited(self) -> list[str]:
        """The documents that the answer cites, each once, in the order of the citations."""
        sources = self.sources or ()
        return list(dict.fromkeys(sources[n - 1].document for n in self.cited if 1 <= n <= len(sources)))


@dataclass(frozen=True)
class Finding:
    """What a kind found in an answer.

    Attributes:
        does: whether the answer does what the kind is about; None where that cannot be told.
        said: what stands in the answer, or why it cannot be told; it ends a sentence that begins with the demand.
        start: where in the answer the place begins; -1 where there is none.
        end: where the place ends.
    """

    does: bool | None
    said: str = ""
    start: int = -1
    end: int = -1


class ExpectationKind(ABC):
    """A kind of expectation. Derive from it and register the class; one object serves all cases.

    Its docstring's first line says in the list of kinds what an answer does that keeps to it.
    """

    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {}
    """Values that may stand beside the demand, by name, with their types."""
    of_words: ClassVar[bool] = False
    """Whether it looks at the words alone, so that a right answer written by a person keeps to it, too.

    Checks of questions set such a kind against the ground truth.
    """

    of_content: ClassVar[bool] = True
    """Whether an answer that keeps to it is right, as far as it goes; False for form, time, cost, or what was found."""

    asks: ClassVar[AsksFor] = "nothing"
    """What it needs a model for. Where it needs one, ``look`` is not asked: the answer is judged."""

    def criterion(self, demand: Expectation) -> str:
        """Return the criterion that a judge is asked about, for a kind that asks for one."""
        return str(demand.wanted)

    @abstractmethod
    def problem(self, demand: Expectation) -> str:
        """Return what is wrong with a demand; empty where it can be checked."""

    @abstractmethod
    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        """Return what an answer does, for a demand without a problem."""
