"""The method behind the figures: formulas, statistics, limits, and commands to reproduce them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.measures import Measure
from rag_harness.measures.judged.categories import MEANINGS
from rag_harness.measures.measure import formula_of
from rag_harness.page.content import Block, Cell, More, Prose, Section, Table, word_cells
from rag_harness.page.figures import NONE, name_said
from rag_harness.page.run import Run
from rag_harness.page.sampled import sample_said
from rag_harness.page.sections.again import again
from rag_harness.page.sections.limits import limits
from rag_harness.page.sections.scorecard import measures_shown
from rag_harness.page.sections.statistics import statistics
from rag_harness.report.direction import better_of

_MEASURES = ("measure", "better", "unit", "version", "formula, of one case")


def method(runs: Sequence[Run]) -> Section:
    """Return the method of the first run's figures."""
    return Section("method", "Method", list(_blocks(runs[0], runs)))


def _blocks(run: Run, runs: Sequence[Run]) -> Iterator[Block]:
    shown = measures_shown(run)
    if shown:
        notes = [
            "R: the relevant documents of a case; k: the number behind the @. A version goes up when the same row "
            "gets another value."
        ]
        yield Table("measures", _MEASURES, [_row(measure) for measure in shown], "Measures", notes)
    if any(table.shares() for table in run.experiments.values()):
        rows = [[Cell(kind, kind=kind), Cell(meaning)] for kind, meaning in MEANINGS.items()]
        yield Table("kinds", ("category", "where"), rows, "Categories of answers, the first that holds")
    if run.experiments:
        yield More("Statistics", [Prose(sentence) for sentence in statistics(run, runs)])
        yield More("Limits", [Prose(sentence) for sentence in [*limits(run), *_sampled(runs)]])
    yield More("How to repeat this run", list(again(run)))


def _sampled(runs: Sequence[Run]) -> list[str]:
    said = sample_said(runs)
    return [said] if said else []


def _row(measure: Measure) -> list[Cell]:
    formula = formula_of(measure)
    said = Cell(formula) if formula else Cell("not said: its class has no docstring", "mute")
    return [*word_cells(name_said(measure.name), better_of(measure) or NONE, measure.unit, str(measure.version)), said]
