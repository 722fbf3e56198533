"""Rows -> the lines of the terminal summary: one line an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import mean

from rag_harness.measures.hits import place_documents
from rag_harness.measures.ranking import evaluate
from rag_harness.results.row import ExperimentResult

HEADER = (
    "experiment", "trials", "errors", "resumed", "recall@5", "mrr@10", "abstained", "tokens", "cost"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExperimentSummary:
    """Aggregates of one experiment. Means are over the cases that have gold; None where there is none.

    ``cost_usd`` is what its answers cost when they were asked for, in this run or before; None where no price is known.
    """

    experiment: str
    trials: int
    errors: int
    resumed: int
    recall_at_5: float | None
    mrr_at_10: float | None
    abstained: int
    tokens: int
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
            "-" if self.cost_usd is None else money(self.cost_usd),
        )


def summarise(rows: Iterable[ExperimentResult], resumed: set[str]) -> list[ExperimentSummary]:
    """Return the aggregates of each experiment, by its id."""
    return [_summary(name, each, resumed) for name, each in by_experiment(rows).items()]


def summary_lines(summaries: Sequence[ExperimentSummary]) -> list[str]:
    """Return the table, a line an experiment; without the cost where nothing is known to cost anything."""
    priced = any(each.cost_usd for each in summaries)
    width = len(HEADER) if priced else len(HEADER) - 1
    return table([each[:width] for each in (HEADER, *(each.cells() for each in summaries))])


def by_experiment(rows: Iterable[ExperimentResult]) -> dict[str, list[ExperimentResult]]:
    """Return the rows of each experiment, by its id."""
    found: dict[str, list[ExperimentResult]] = {}
    for row in rows:
        found.setdefault(row.experiment, []).append(row)
    return dict(sorted(found.items()))


def total_cost(rows: Iterable[ExperimentResult]) -> float | None:
    """Add up what is known of the costs, in US dollars; None where nothing is."""
    known = [row.cost_usd for row in rows if row.cost_usd is not None]
    return sum(known) if known else None


def money(dollars: float) -> str:
    """Return an amount for people to read: to the cent, and finer below a dollar."""
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"


def _summary(experiment: str, rows: list[ExperimentResult], resumed: set[str]) -> ExperimentSummary:
    recall, mrr = _retrieval(rows)
    return ExperimentSummary(
        experiment=experiment,
        trials=len(rows),
        errors=sum(not row.ok for row in rows),
        resumed=sum(row.trial_id in resumed for row in rows),
        recall_at_5=recall,
        mrr_at_10=mrr,
        abstained=sum(row.abstained for row in rows),
        tokens=sum(row.usage.prompt_tokens + row.usage.completion_tokens for row in rows),
        cost_usd=total_cost(rows),
    )


def _retrieval(rows: Sequence[ExperimentResult]) -> tuple[float | None, float | None]:
    """Return recall@5 and MRR@10 over the cases with gold; an error counts 0. None without retrieval or gold."""
    judged = [row for row in rows if row.context_reference]
    if not judged or all(row.retrieval_time_ms is None and not row.candidates for row in judged):
        return None, None
    values = evaluate(
        {row.query_id: ranking(row) if row.ok else [] for row in judged},
        {row.query_id: dict.fromkeys(row.context_reference, 1) for row in judged},
        ["recall@5", "mrr@10"],
    )
    return mean(values["recall@5"].values()), mean(values["mrr@10"].values())


def ranking(row: ExperimentResult) -> list[str]:
    """Return the documents of a row in their final order, the prompt's chunks first; a document's first hit counts."""
    prompt = [chunk.chunk_id for chunk in row.retrieved_chunks]
    rest = [each for each in row.candidates if each.chunk_id not in set(prompt)]
    if any(each.rerank_score is not None for each in rest):
        rest.sort(key=lambda each: -(each.rerank_score if each.rerank_score is not None else float("-inf")))
    ids = [*prompt, *(each.chunk_id for each in rest)]
    return place_documents(ids)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value that ``share`` of the ordered values do not exceed (nearest rank)."""
    if not ordered:
        return 0.0
    rank = ceil(round(share * len(ordered), 9))  # rounded, because 0.07 * 100 is a little more than 7
    return ordered[max(rank, 1) - 1]


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
