"""The golden suite: its measures by type of question, and each question with what was found, misses first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest

from rag_harness.gates.units import value_said
from rag_harness.measures import Measure
from rag_harness.measures.golden_run import RetrievalResult
from rag_harness.page.content import (
    Block,
    Cell,
    LookedUpHit,
    LookedUpQuestion,
    LookedUpQuestions,
    More,
    Prose,
    Section,
    Table,
)
from rag_harness.page.figures import mean_cell, measure_title
from rag_harness.page.run import Run
from rag_harness.page.sections.scorecard import measures_of
from rag_harness.report.brief.sentences import found_said
from rag_harness.report.golden_summary import GOLDEN_MEASURES, MOST_SLICES, SLICE
from rag_harness.report.misses import cut, where_found
from rag_harness.report.retrieved import read_retrievals
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wording import counted
from rag_harness.types import GOLDEN

MOST_QUESTIONS = 200
"""Questions of the table; the others are counted."""
_MOST_RANKS, _LONGEST_NAME = 10, 60
_FOUND = "✓ marks what was expected. A rank that is left out is a further hit of a document that stands before it."
_MEANS = "Means ± half the width of their 95 % interval; the interval itself where it is lopsided"


def retrieval(runs: Sequence[Run]) -> Section | None:
    """Return what the golden suite of the first run found; None where it did not run."""
    run = runs[0]
    table = run.selected.get(GOLDEN)
    return None if table is None else Section("retrieval", "Retrieval suite", [*_blocks(run, table)])


def _blocks(run: Run, table: SuiteTable) -> Iterator[Block]:
    if (found := run.brief.golden) is not None:
        yield Prose(f"{'; '.join([found_said(found), *found.broken])}.", "bad" if found.broken else "")
    first = dict.fromkeys([*_of_cutoff(run), *GOLDEN_MEASURES])
    measures = {measure.name: measure for measure in measures_of([table])}
    yield _means(table, "golden", [measures[name] for name in first if name in measures])
    if rest := [measure for name, measure in measures.items() if name not in first]:
        yield More("Other measures of the retrieval suite", [_means(table, "golden-others", rest)])
    yield _questions(run, table)


def _of_cutoff(run: Run) -> list[str]:
    k = run.brief.golden.k if run.brief.golden is not None else 10
    return [f"recall@{k}", f"mrr@{k}"]


def _means(table: SuiteTable, name: str, measures: Sequence[Measure]) -> Table:
    """Return a row a measure, over all questions and over those of each type."""
    types = sorted(table.slices().get(SLICE, set()))[:MOST_SLICES]
    types = [kind for kind in types if table.selected_of({SLICE: kind})]
    slices = [{}, *({SLICE: kind} for kind in types if len(types) > 1)]
    names = [f"{' '.join(where.values()) or 'all'}, n = {table.selected_of(where):,}" for where in slices]
    rows = [
        [Cell(measure_title(each)), *(mean_cell(table, each.name, where=where) for where in slices)]
        for each in measures
    ]
    return Table(name, ("measure", *names), rows, f"The golden suite by type of question. {_MEANS}")


def _questions(run: Run, table: SuiteTable) -> LookedUpQuestions:
    """Return the questions: the misses first, then those of which the least was found."""
    measures = [name for name in dict.fromkeys([*_of_cutoff(run), "recall@10", "ndcg@10"]) if table.has(name)]
    values = {name: table.values(name, {}) for name in measures}
    recall = values.get(_of_cutoff(run)[0], {})
    every = list(read_retrievals(run.output, run.manifest))
    first = nsmallest(MOST_QUESTIONS, every, key=lambda result: _place(result, recall))
    left = len(every) - len(first)
    more = f"And {counted(left, 'more question')}: rag-harness report {run.output} -o report.csv has all."
    shown = f"{len(first):,} of {counted(len(every), 'question')}" if left else "Every question"
    return LookedUpQuestions(
        f"{shown}, misses first",
        [_question(result, values) for result in first],
        [_FOUND, *([more] if left else [])],
    )


def _place(result: RetrievalResult, recall: Mapping[str, float]) -> tuple[float, float]:
    # The recall of a miss is 0, and one that was never found is worse than one that was found too low.
    rank = float("inf") if result.rank is None else result.rank
    return recall.get(result.case_id, 0.0), -rank


def _question(result: RetrievalResult, values: Mapping[str, Mapping[str, float]]) -> LookedUpQuestion:
    measured = {name: found[result.case_id] for name, found in values.items() if result.case_id in found}
    figures = [f"{name} {value_said(value)}" for name, value in measured.items()]
    return LookedUpQuestion(
        ident=result.case_id,
        query=result.query,
        expected=", ".join(result.expected),
        outcome=f"rank {result.rank}" if result.found else where_found(result),
        tone="good" if result.found else "bad",
        hits=[*_hits(result)],
        figures=" · ".join([*filter(None, [result.slices.get(SLICE)]), *figures]),
        error=result.error,
    )


def _hits(result: RetrievalResult) -> Iterator[LookedUpHit]:
    """Yield the first documents with their ranks, and below them those that were expected."""
    for rank, name in enumerate(result.ranked, 1):
        is_expected = result.relevant.get(name, 0) > 0
        # A further hit of a document keeps its place, under a name that begins so.
        if not name.startswith("\0") and (rank <= _MOST_RANKS or is_expected):
            yield LookedUpHit(rank, cut(name, _LONGEST_NAME), is_expected)
