"""Says what no figure and no gate of a run shows: answers after the first, and calls that were tried again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.report.wording import counted
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.gates.grammar import Gate
    from rag_harness.report.noise import Noise
    from rag_harness.report.suite_table import SuiteTable


def missing_said(noises: Sequence[Noise], output: str) -> Iterator[str]:
    """Yield how many answers after the first did not come, for each experiment that lacks some.

    Args:
        noises: what is known of the repeats.
        output: the folder of the run's files.
    """
    for noise in noises:
        if noise.missing:
            where = f"{output}/derived/{noise.experiment}+repeat2.jsonl"
            n = counted(noise.missing, "answer")
            yield f"{noise.experiment}: {n} after the first did not come; {where} and those beside it say why"


def first_answers_said(noises: Sequence[Noise], gates: Sequence[Gate]) -> Iterator[str]:
    """Yield which answers figures and gates are of, where there are several to a question."""
    most = max((noise.answers for noise in noises), default=1)
    on_answers = [gate for gate in gates if gate.suite != GOLDEN]
    if most < 2 or (on_answers and all(gate.over is not None for gate in on_answers)):
        return
    others = any(gate.over is not None for gate in on_answers)
    gated = ", and gates that are no promise over repeats," if others else " and gates" if on_answers else ""
    yield f"figures{gated} are of the first of {most} answers to a question; -v compares them"


def retries_said(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Yield how many tries after the first the calls of this run needed."""
    n = sum(table.totals.retries for name, table in tables.items() if name != GOLDEN)
    if n:
        yield "1 call was tried again" if n == 1 else f"calls were tried again {n:,} times"
