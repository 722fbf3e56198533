"""What the golden suite found, in counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wording import counted
from rag_harness.types import GOLDEN


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What the golden suite found.

    Attributes:
        asked: number of questions that the run was to look up.
        found: number of questions with an expected document among the first ``k`` hits.
        errors: number of questions that ended with an error.
        lost: number of questions without a row.
        k: the cutoff.
        mean: mean of ``recall@k``, a share; None where no question has a value.
        interval: its 95 % interval; None where ``no_interval`` says why.
        mrr: mean of ``mrr@k``; None where no question has a value.
    """

    asked: int
    found: int
    errors: int
    lost: int
    k: int
    mean: float | None = None
    interval: tuple[float, float] | None = None
    no_interval: str = ""
    mrr: float | None = None

    @property
    def missed(self) -> int:
        """The number of questions without an expected document among the first ``k`` hits."""
        return self.asked - self.found

    @property
    def measure(self) -> str:
        """The measure of ``mean``."""
        return f"recall@{self.k}"

    @property
    def where(self) -> str:
        """Where an expected document counts as found: ``among the first 3 hits``."""
        return place_said(self.k)

    @property
    def broken(self) -> list[str]:
        """How many questions ended with an error, and how many without a row; for people."""
        errors = [counted(self.errors, "error")] if self.errors else []
        return errors + ([f"{self.lost:,} without a result"] if self.lost else [])


def place_said(k: int) -> str:
    """Say where an expected document counts as found, by the cutoff ``k``."""
    return f"among the first {k} hits" if k > 1 else "at rank 1"


def looked_up(tables: Mapping[str, SuiteTable], k: int) -> LookedUp | None:
    """Return what the golden suite found; None where none of its questions was selected."""
    table = tables.get(GOLDEN)
    if table is None:
        return None
    first, recall = f"mrr@{k}", f"recall@{k}"
    # The reciprocal rank is above 0 where something expected is among the first k.
    ranks = table.values(first, {}).values() if table.has(first) else ()
    has_recall = table.has(recall)
    return LookedUp(
        asked=table.selected_of({}),
        found=sum(value > 0 for value in ranks),
        errors=table.totals.errors,
        lost=table.lost_of({}),
        k=k,
        mean=table.aggregate([recall])[recall] if has_recall else None,
        interval=table.interval(recall) if has_recall else None,
        no_interval=table.no_interval_said(recall) if has_recall else "",
        mrr=table.aggregate([first])[first] if table.has(first) else None,
    )
