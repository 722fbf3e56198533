"""Tables, made as a run makes them: from files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_harness.core.types import GOLDEN, Case, Query
from rag_harness.evaluation.measures import columns_of, default_measures, measure_named
from rag_harness.records.cases import StoredCase, stored_case, write_cases
from rag_harness.records.manifest import QUERIES, RunManifest, SuiteRecord, write_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import SCORES, ScoreLine
from rag_harness.tables.reader import read_tables
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.rows import make_row


def case(case_id: str, gold: Iterable[str] = (), **fields: Any) -> Case:
    """Return a case whose relevant documents are ``gold``."""
    return Case(Query(case_id, "?"), **({"qrels": dict.fromkeys(gold, 1)} | fields))


def case_of(row: ExperimentResult) -> Case:
    """Return the case that a row says it is of."""
    return Case(
        Query(row.query_id, row.query),
        row.query_type,
        row.ground_truth,
        dict.fromkeys(row.context_reference, 1),
        answerable=row.answerable,
        metadata=row.metadata,
    )


def golden_row(case_id: str, ranked: Sequence[str], **changes: Any) -> ExperimentResult:
    """Return what a retriever found, as a row."""
    nothing: dict[str, Any] = {"retrieved_chunks": [], "candidates": [], "citations": [], "llm_answer": ""}
    return make_row(query_id=case_id, ranking=ranked, **({"experiment": GOLDEN} | nothing | changes))


def write_run(
    output: Path,
    rows: Sequence[ExperimentResult],
    cases: Sequence[Case | StoredCase] = (),
    selected: Mapping[str, Sequence[str]] | None = None,
    scores: Sequence[ScoreLine] = (),
    **more: Mapping[str, Sequence[str]],
) -> None:
    """Write what a run leaves behind; without ``cases`` those of the rows, without ``selected`` all of them.

    ``more`` are ``not_run`` and ``resumed``, by experiment. Of ``scores`` those of the first one's author count.
    """
    known = cases or list({row.query_id: case_of(row) for row in rows}.values())
    kept_cases = [each if isinstance(each, StoredCase) else stored_case(each) for each in known]
    ids = [each.case.query.query_id for each in kept_cases]
    names = {row.experiment for row in rows} | set(selected or {})
    suites = {
        name: SuiteRecord(
            data=GOLDEN if name == GOLDEN else QUERIES,
            file=f"{name}.jsonl",
            fingerprints=sorted({row.fingerprint for row in rows}),
            total=len(ids),
            selected=list((selected or {}).get(name, [])) or "all",
            not_run=list(more.get("not_run", {}).get(name, ())),
            resumed=list(more.get("resumed", {}).get(name, ())),
            judged=columns_of([score.measure for score in scores]),
            authors=[(who.judge, who.model, who.revision) for who in (score.author for score in scores[:1])],
        )
        for name in names
    }
    for record in suites.values():
        write_cases(output, record.data, kept_cases)
    for name in names:
        (output / f"{name}.jsonl").write_text("".join(row.line() for row in rows if row.experiment == name))
    write_scores(output, scores)
    # Rows that tests make are about one page, unless they say otherwise; turns are of several conversations.
    settings = {"k": 10, "retriever": "dense", "profile": "mock", "mode": "auto"}
    settings |= {} if any(each.case.query.place for each in kept_cases) else {"cluster": "none"}
    write_manifest(output, RunManifest(date="2026-01-01T00:00:00+00:00", settings=settings, suites=suites))


def write_scores(output: Path, scores: Sequence[ScoreLine]) -> None:
    """Write the files of judged scores."""
    for name in {score.experiment for score in scores}:
        (output / SCORES).mkdir(exist_ok=True)
        lines = [score.line() for score in scores if score.experiment == name]
        (output / SCORES / f"{name}.jsonl").write_bytes(b"".join(lines))


def tables_of(
    rows: Sequence[ExperimentResult], cases: Sequence[Case | StoredCase] = (), measures: Sequence[str] = (), **more: Any
) -> dict[str, SuiteTable]:
    """Return the tables of a run that left these rows; ``measures`` are read beside the usual ones."""
    with tempfile.TemporaryDirectory() as folder:
        write_run(Path(folder), rows, cases, **more)
        return read_tables(
            Path(folder), lambda suite: [*default_measures(suite == GOLDEN, 10), *map(measure_named, measures)]
        )


def table_of(rows: Sequence[ExperimentResult], *args: Any, **more: Any) -> SuiteTable:
    """Return the one table of a run of one suite."""
    (table,) = tables_of(rows, *args, **more).values()
    return table
