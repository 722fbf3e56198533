"""Packs all trials of all runs as JSON for the page's script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.measures.expectation_measures import found_in
from rag_harness.measures.judged.judged_expectations import EXPECTATIONS
from rag_harness.measures.judged.rubric_measure import kept_of_rubrics
from rag_harness.measures.quotes import as_shown
from rag_harness.page.payload.columns import Columns, of_row
from rag_harness.page.payload.details import Chunk, Details
from rag_harness.page.payload.listed_cases import Cases
from rag_harness.page.payload.listed_rows import rows_of
from rag_harness.page.payload.pool import Pool
from rag_harness.page.payload.prompt_pieces import Prompts
from rag_harness.page.run import Run
from rag_harness.page.sampled import Sample, sample_of
from rag_harness.report.suite_table import SuiteTable
from rag_harness.work.garbage import uncollected

BLOCK = 250
"""Trials whose details are unpacked together."""
Finished = Callable[[str, list[dict[str, Any]]], None]


@dataclass(frozen=True)
class Payload:
    """The script's data: JSON values by the name of their block. ``trials`` are the blocks of details.

    ``sampled`` says which trials are listed, where not all are.
    """

    index: dict[str, Any]
    texts: dict[str, Any]
    trials: list[list[dict[str, Any]]]
    sampled: str = ""

    def blocks(self) -> Iterator[tuple[str, Any]]:
        """Yield the blocks in the order in which the script reads them."""
        yield "index", self.index
        yield "texts", self.texts
        for number, block in enumerate(self.trials):
            yield _name(number), block


def payload_of(runs: Sequence[Run], sample: Sample | None = None, finished: Finished | None = None) -> Payload:
    """Return the trials of ``runs``, all or a sample, grouped by run and experiment.

    ``finished`` is called with name and content of each block of details as soon as that will not change.
    """
    with uncollected():  # all of it is kept, and the garbage collector would take a third of the time
        return _Gathering(runs, sample or sample_of(runs), finished).payload()


def _name(number: int) -> str:
    return f"trials-{number}"


class _Gathering:
    """The payload as it grows."""

    def __init__(self, runs: Sequence[Run], sample: Sample, finished: Finished | None) -> None:
        self._runs, self._sample, self._finished = runs, sample, finished
        self._chunks: Pool[Chunk] = Pool()
        self._strings: Pool[str] = Pool()
        self._names: Pool[str] = Pool()
        self._cases = Cases()
        self._columns = Columns(table for run in runs for table in run.experiments.values())
        self._details: list[list[dict[str, Any]]] = []

    def payload(self) -> Payload:
        """Return the finished payload."""
        suites = [(run, name) for run in self._runs for name in run.experiments]
        for number, (run, name) in enumerate(suites):
            self._add(number, run, name)
        index = {
            "version": 1,
            "block": BLOCK,
            "runs": [{"name": run.name, "date": run.manifest.date} for run in self._runs],
            "experiments": [_said(run, self._runs.index(run), name) for run, name in suites],
            "cases": self._cases.said,
            **self._columns.said(),
        }
        texts = {
            "chunks": [list(chunk) for chunk in self._chunks.values],
            "strings": self._strings.values,
            "names": self._names.values,
        }
        return Payload(index, texts, self._details, self._sample.said)

    def _add(self, number: int, run: Run, name: str) -> None:
        """Add the listed trials of an experiment: those with a row, and lost ones."""
        table, places = run.tables[name], self._sample.places[run.name, name].tolist()
        causes = {trial.query_id: line for trial, line in run.causes.items() if trial.experiment == name}
        details = Details(self._chunks, self._names, Prompts(run.output, self._strings), self._strings)
        cases = run.cases_of(name)
        found: dict[int, dict[str, Any]] = {}
        rows: dict[int, tuple[Any, ...]] = {}
        said_by_user: dict[int, str] = {}
        try:
            for position, row, judged in rows_of(run, name, places):
                asked = cases[position].case
                if asked.scenario is not None:
                    said_by_user[position] = row.query
                quotes = [quote.quote for quote in as_shown(asked, row).evidence]
                detail = {name: score.detail for name, score in judged.items()}
                expected = found_in(asked, row, judged=detail.get(EXPECTATIONS)) if row.ok and asked.expect else []
                expected += kept_of_rubrics(detail)
                found[position] = details.of(
                    row, judged, quotes, causes.get(row.query_id), _gaps(table, position), expected
                )
                rows[position] = of_row(row)
            for position in places:
                case = self._cases.number(run, name, cases, position, said_by_user.get(position, ""))
                line = causes.get(table.ids[position])
                said = rows.get(position, of_row(None))
                self._columns.add(number, case, table, position, said, line.cause if line else "")
                self._keep(found.pop(position, {}))
        finally:
            cases.close()

    def _keep(self, details: dict[str, Any]) -> None:
        if not self._details or len(self._details[-1]) == BLOCK:
            self._details.append([])
        block = self._details[-1]
        block.append(details)
        if len(block) == BLOCK and self._finished is not None:
            self._finished(_name(len(self._details) - 1), block)


def _said(run: Run, place: int, name: str) -> dict[str, Any]:
    history = run.suites[name].history
    return {"id": name, "run": place, **({"history": history} if history else {})}


def _gaps(table: SuiteTable, position: int) -> dict[str, str]:
    """Return why the case has no value, for each measure that could have one."""
    return {
        name: column.reasons[number]
        for name, column in table.columns.items()
        if column.unmeasured and (number := int(column.absent[position])) in column.unmeasured
    }
