"""Writes tables as the lines of the terminal summary: one line for each experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rag_harness.report.money import money
from rag_harness.report.suite_table import SuiteTable
from rag_harness.results.manifest import SuiteRecord
from rag_harness.results.panel_names import panel_label
from rag_harness.settings.profiles import MOCK, SIMULATED

HEADER = (
    "experiment", "trials", "errors", "resumed", "recall@5", "mrr@10", "abstained", "tokens", "lost", "cost"
)  # fmt: skip
SUMMARY_MEASURES = ("recall@5", "mrr@10")
"""The measures that the lines show; a table must have them."""
SHORT_MEASURE_NAMES = {
    "context_precision": "CP",
    "faithfulness": "F",
    "answer_relevancy": "AR",
    "g_mean": "G_mean",
    "hri": "HRI",
    "hri_gold": "HRI_gold",
}
"""The study's names of its measures, for the heads of tables. Other measures keep their full names."""


@dataclass(frozen=True, slots=True)
class ExperimentSummary:
    """Aggregates of one experiment. Means are over the cases with gold, lost ones included; None where there is none.

    ``cost_usd`` is the cost of its answers when they were asked for, in this run or earlier; None where no price is
    known.
    """

    experiment: str
    trials: int
    errors: int
    resumed: int
    recall_at_5: float | None
    mrr_at_10: float | None
    abstained: int
    tokens: int
    lost: int
    cost_usd: float | None

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        return (
            self.experiment,
            str(self.trials),
            str(self.errors),
            str(self.resumed),
            _number(self.recall_at_5),
            _number(self.mrr_at_10),
            str(self.abstained),
            str(self.tokens),
            str(self.lost),
            "-" if self.cost_usd is None else money(self.cost_usd),
        )


def summarise(tables: Mapping[str, SuiteTable]) -> list[ExperimentSummary]:
    """Return the aggregates of each experiment with a row or a lost case, by its id."""
    return [_summary(name, suite) for name, suite in sorted(tables.items()) if suite.totals.rows or suite.lost_of({})]


def summary_lines(summaries: Sequence[ExperimentSummary]) -> list[str]:
    """Return the table, a line for each experiment. Columns of losses and costs are left out where all are empty."""
    hidden = {"lost"} if not any(summary.lost for summary in summaries) else set()
    hidden |= {"cost"} if not any(summary.cost_usd for summary in summaries) else set()
    columns = [n for n, name in enumerate(HEADER) if name not in hidden]
    return table([[row[n] for n in columns] for row in (HEADER, *(summary.cells() for summary in summaries))])


def answers_by(tables: Mapping[str, SuiteTable]) -> str:
    """Say which models gave the answers. A model that is not an LLM is not presented as one."""
    whose = {name: _whose(suite.totals.models) for name, suite in sorted(tables.items()) if suite.totals.models}
    if len(set(whose.values())) <= 1:
        return f"answers by {next(iter(whose.values()), 'nobody: no trial has one')}"
    by_author: dict[str, list[str]] = {}
    for name, author in whose.items():
        by_author.setdefault(author, []).append(name)
    return "; ".join(f"answers of {', '.join(names)} by {author}" for author, names in by_author.items())


def _whose(models: Counter[str]) -> str:
    return " and ".join(author(model) for model, _ in models.most_common())


def author(model: str) -> str:
    """Name the model that answered, for people."""
    if not model:
        return "a pipeline of your own"
    if model.startswith(SIMULATED):
        return f"{model} (SIMULATED, with planted faults, not an LLM)"
    if model.startswith(MOCK):
        return f"{model} (MOCK, placeholders of no meaning, not an LLM)"
    return f"{model} (a baseline reader, not an LLM)" if is_no_llm(model) else model


def made_up(author: str) -> str:
    """Return SIMULATED or MOCK where answers say nothing of a model that would be used; empty for any other author."""
    return next((word for word in ("SIMULATED", "MOCK") if f"({word}, " in author), "")


def is_no_llm(model: str) -> bool:
    """Return whether a model is code of this package, which quotes and does not reason."""
    return model.startswith(("embedded/", MOCK))


def judge_said(judge: str, model: str, asks_model: bool | None) -> str:
    """Name the judge for people. A judge that is not an LLM is not presented as one, nor one that does not say."""
    if not model:
        return "nobody: the judge cannot be had"
    if is_no_llm(model):
        return f"{model} (words and vectors compared, no LLM)"
    what = {True: f"an LLM, method {judge}", False: f"method {judge}, no LLM", None: f"method {judge}"}
    return f"{model} ({what[asks_model]})"


def judges_said(suites: Iterable[SuiteRecord]) -> list[str]:
    """Name the judges of suites for people, each once. A panel is one."""
    found: dict[str, None] = {}
    for suite in suites:
        pairs = [author[:2] for author in suite.authors]
        alone = [judge_said(judge, model, suite.asks_model.get(judge)) for judge, model in pairs]
        found |= dict.fromkeys([panel_label(suite.panel, pairs)] if suite.panel else alone)
    return list(found)


def _summary(experiment: str, suite: SuiteTable) -> ExperimentSummary:
    totals, means = suite.totals, suite.aggregate(SUMMARY_MEASURES)
    return ExperimentSummary(
        experiment=experiment,
        trials=totals.rows,
        errors=totals.errors,
        resumed=totals.resumed,
        recall_at_5=means["recall@5"],
        mrr_at_10=means["mrr@10"],
        abstained=totals.abstained,
        tokens=totals.tokens,
        lost=suite.lost_of({}),
        cost_usd=totals.cost_usd,
    )


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align cells: the first column left, numbers right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
