"""The costs of a run's answers: tokens, money, calls, time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rag_harness.page.content import Cell, Table, word_cells
from rag_harness.page.figures import NONE
from rag_harness.page.run import Run
from rag_harness.report.money import money
from rag_harness.report.speed import stage_quantiles
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.totals import STAGES, Totals


def costs(run: Run) -> Table:
    """Return tokens, cost and calls of each experiment."""
    lines: dict[str, Callable[[Totals], str]] = {
        "answers": lambda totals: f"{totals.answered:,}",
        "model calls": lambda totals: f"{totals.calls:,}",
        "tokens in": lambda totals: f"{totals.prompt_tokens:,}",
        "tokens out": lambda totals: f"{totals.completion_tokens:,}",
        "tokens, all": lambda totals: f"{totals.tokens:,}",
        "cost": lambda totals: NONE if totals.cost_usd is None else money(totals.cost_usd),
        "cost a trial": lambda totals: NONE if totals.cost_usd is None else money(totals.cost_usd / totals.rows),
    }
    tables = run.experiments.values()
    rows = [[Cell(name), *word_cells(*(said(table.totals) for table in tables))] for name, said in lines.items()]
    notes = ["What the calls of the answers cost, judging apart; of a replayed answer, what the recorded call cost."]
    if any(table.totals.cost_usd is None for table in tables):
        notes.append(f"{NONE}: no price is known of the model.")
    return Table("costs", ("all trials together", *run.experiments), rows, "What the answers took", notes)


def times(run: Run) -> Table | None:
    """Return p50, p95 and p99 of each stage that some trial has a time of."""
    found = {name: stage_quantiles(table) for name, table in run.experiments.items()}
    stages = [stage for stage in STAGES if any(stage in each for each in found.values())]
    if not stages:
        return None
    rows = [
        [Cell(stage), *(_time(found[name].get(stage), run.tables[name], stage) for name in found)] for stage in stages
    ]
    notes = ["Times of trials in flight together; of a replayed answer, as recorded. first token: of streamed answers."]
    return Table("times", ("p50 / p95 / p99, ms", *found), rows, "Latency", notes)


def _time(quantiles: dict[str, float] | None, table: SuiteTable, stage: str) -> Cell:
    if not quantiles:
        return Cell(NONE, "mute", hint="no trial has a time of it")
    n = np.count_nonzero(~np.isnan(table.totals.times[stage]))
    return Cell(" / ".join(_ms(value) for value in quantiles.values()), hint=f"n = {n}")


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"
