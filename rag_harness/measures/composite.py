"""Composite measures: formulas over other measures of the same row, without further calls of a judge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from rag_harness.measures.measure import Measure, NamedMeasure, Need, Score
from rag_harness.registry import resolve
from rag_harness.types import Case


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
