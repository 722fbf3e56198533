"""Base classes and protocol of measures, and composites over other measures of a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

from rag_harness.core.errors import SettingsError
from rag_harness.core.processes import Unchecked, checked, is_long
from rag_harness.core.registry import is_own, resolve
from rag_harness.core.types import Case

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rag_harness.evaluation.measures.ranking_arrays import Found
    from rag_harness.records.row import ExperimentResult


# The base classes and the protocol of measures. Importing this imports neither NumPy nor pydantic.

Unit: TypeAlias = Literal["share", "ms", "usd", "tokens", "count", "score"]
"""``share`` lies in [0, 1]; ``score`` is a number without a unit."""
Better: TypeAlias = Literal["higher", "lower"]
Need: TypeAlias = Literal["retrieval", "answer"]
"""What an experiment must do for a measure to be defined."""
NO_RELEVANT = "no relevant document"
"""The reason for cases without a relevant document: no ranking can be measured."""


@dataclass(frozen=True, slots=True)
class Score:
    """One measure of one row. ``value`` is None where it could not be measured; ``reason`` then explains it.

    ``undefined`` says that the measure has no meaning for this row ("no context"), so that there was nothing to
    measure.

    Raises:
        ValueError: ``value`` is NaN or infinite.
    """

    value: float | None
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    undefined: bool = False

    def __post_init__(self) -> None:
        if self.value is not None and not isfinite(self.value):
            raise ValueError(f"a score is a number or None; got {self.value}. None says that it was not measured.")


class Measure(Protocol):
    """What gates, summaries, baselines and comparisons know of a measure.

    Attributes:
        name: name with its cutoff, ``recall@5``.
        version: a number that is raised when the same row gets another value.
        unit: unit of a value, and of the mean.
        better: "higher" or "lower": which values are better.
        worst: value of a case without an answer (error, lost); None leaves such a case out.
        needs: the tasks that an experiment must do: retrieval, answer. Where it does not, no case has a value.
        cutoff: number of hits that count; None where the measure has no such limit.
    """

    name: str
    version: int
    unit: Unit
    better: Better
    worst: float | None
    needs: tuple[Need, ...]
    cutoff: int | None

    def applies(self, case: Case) -> str:
        """Return why the measure is undefined for ``case``, e.g. "no ground truth"; empty where it is defined."""
        ...


class NamedMeasure:
    """The common part of all measures: those of a row, judged ones, composites and checks.

    Args:
        cutoff: number after the ``@`` of the name.

    Raises:
        SettingsError: there is a cutoff where ``takes_cutoff`` is False, or none where it is True.
    """

    called: ClassVar[str]
    """The registered name, without a cutoff."""
    takes_cutoff: ClassVar[bool] = False
    version: int = 1
    unit: Unit = "share"
    better: Better = "higher"
    worst: float | None = 0.0
    needs: tuple[Need, ...] = ()
    by_name: ClassVar[bool] = False
    """Whether it goes by the names of pages, and not by the texts of contexts."""
    of_conversation: ClassVar[bool] = False
    """Whether a conversation has one value: the best of its turns, which is at the first of them."""

    def __init__(self, cutoff: int | None = None) -> None:
        if cutoff is not None and not self.takes_cutoff:
            raise SettingsError(
                f"Measure '{self.called}@{cutoff}' has a cutoff, but {self.called} takes none. Write {self.called!r}."
            )
        if self.takes_cutoff and (cutoff is None or cutoff < 1):
            found = "" if cutoff is None else str(cutoff)
            raise SettingsError(
                f"Measure {self.called!r} needs a cutoff of 1 or more, e.g. '{self.called}@10'; found {found!r}."
            )
        self.cutoff: int | None = cutoff
        self.name: str = self.called if cutoff is None else f"{self.called}@{cutoff}"

    def applies(self, case: Case) -> str:  # noqa: ARG002 - those that depend on the case say so
        """Return why the measure is undefined for ``case``; empty where it applies."""
        return ""


class RowMeasure(NamedMeasure, ABC):
    """A measure that is computed from a row. Derive from it, set what differs, and register the class."""

    looks_by_expectations: ClassVar[bool] = False
    """Whether it looks at the answer with expectations alone, of which a user's own may be one."""

    @abstractmethod
    def score(self, case: Case, row: ExperimentResult) -> Score:
        """Return the score of a row with an answer, of a case that the measure applies to."""


def scored(measure: RowMeasure, case: Case, row: ExperimentResult) -> Score:
    """Return the score of a row, also by a measure of a user's own that returns a plain number, or None for no value.

    A long answer is read in the time of an answer.

    Raises:
        TypeError: it returns something else.
    """
    said: object = _said(measure, case, row)
    if isinstance(said, Unchecked):
        return Score(None, said.why)
    if isinstance(said, Score):
        return said
    if said is None or (isinstance(said, (int, float)) and not isinstance(said, bool)):
        return Score(None if said is None else float(said))
    raise TypeError(f"{measure.name} returned {type(said).__name__}; a measure returns a Score, a number or None")


def _said(measure: RowMeasure, case: Case, row: ExperimentResult) -> object:
    is_read_here = is_own(type(measure).__module__) or measure.looks_by_expectations or "answer" not in measure.needs
    if is_read_here or not is_long(row.llm_answer):
        return measure.score(case, row)
    return checked(_score, [(measure, case)], row, row.llm_answer)[0]


def _score(asked: tuple[RowMeasure, Case], row: ExperimentResult) -> Score:
    measure, case = asked
    return measure.score(case, row)


class RankingMeasure(RowMeasure):
    """A measure of the ranking against the judged documents. It is computed for many rows at once, as arrays."""

    takes_cutoff: ClassVar[bool] = True
    by_name: ClassVar[bool] = True
    needs: tuple[Need, ...] = ("retrieval",)

    def applies(self, case: Case) -> str:
        """Return why the case lacks a relevant document."""
        return "" if case.context_reference else NO_RELEVANT

    @abstractmethod
    def batch(self, found: Found) -> npt.NDArray[np.float64]:
        """Return the value of each query, shape (found.n,)."""

    def score(self, case: Case, row: ExperimentResult) -> Score:
        """Return the score of one row: a batch of one."""
        from rag_harness.evaluation.measures.ranking_arrays import find_relevant
        from rag_harness.records.document_ranking import ranking_of

        found = find_relevant({"": ranking_of(row, case)}, {"": case.qrels}, None)
        return Score(float(self.batch(found)[0]))


def is_of_conversation(measure: object) -> bool:
    """Return whether a conversation has one value of a measure, which belongs to its first turn."""
    return bool(getattr(measure, "of_conversation", False))


def formula_of(measure: object) -> str:
    """Return a measure's formula: the first paragraph of its class's own docstring. Empty where it has none."""
    said = " ".join((type(measure).__doc__ or "").strip().partition("\n\n")[0].split()).replace("``", "")
    # Without a docstring of its own, a dataclass gets its signature as one.
    return "" if said.startswith(f"{type(measure).__name__}(") else said


class CompositeMeasure(NamedMeasure, ABC):
    """A formula over the scores of one row. Derive from it, set what differs, and register the class.

    Args:
        cutoff: number after the ``@`` of the name; composites take none.

    Raises:
        SettingsError: there is a cutoff.
    """

    parts: ClassVar[tuple[str, ...]]
    """Names of the measures in the formula."""
    needs: tuple[Need, ...] = ("answer",)

    def applies(self, case: Case) -> str:
        """Return why a part is undefined for ``case``; empty where all parts apply."""
        return next(filter(None, (part.applies(case) for part in self._made)), "")

    @cached_property
    def _made(self) -> tuple[Measure, ...]:
        """The measures of the formula, made once: they are needed for every row."""
        return tuple(resolve("measures", part)(None) for part in self.parts)

    def score(self, parts: Mapping[str, Score]) -> Score:
        """Return the score; None where a part is None, with that part's reason."""
        for name in self.parts:
            part = parts[name]
            if part.value is None:
                return Score(None, f"{name}: {part.reason}", undefined=part.undefined)
        return Score(self.combine({name: part.value for name, part in parts.items() if part.value is not None}))

    @abstractmethod
    def combine(self, values: Mapping[str, float]) -> float:
        """Return the value, from the values of the parts by name."""
