"""The golden suite in figures: counts, aggregates, misses, and files for trec_eval."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_harness.core.errors import SettingsError
from rag_harness.core.files import write_atomically
from rag_harness.core.types import GOLDEN, TrialId
from rag_harness.data.beir import write_qrels, write_run
from rag_harness.records.cases import CaseFile, StoredCase
from rag_harness.records.golden_result import RetrievalCase, RetrievalResult, retrieval_result
from rag_harness.records.manifest import RunManifest, SuiteRecord, of_run
from rag_harness.records.row import ExperimentResult, rows_in
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import table as aligned
from rag_harness.tables.wording import counted, explain_miss, missed


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


# The golden suite's aggregates: by query type and in total, and the first misses with what was retrieved instead.

GOLDEN_MEASURES = ("recall@1", "recall@3", "recall@5", "recall@10", "mrr@10", "ndcg@10")
SLICE = "query_type"
MOST_SLICES = 8
_MOST_MISSES = 5


def golden_lines(table: SuiteTable, results: Sequence[RetrievalResult]) -> list[str]:
    """Return the table of measures and the misses."""
    slices = sorted(table.slices().get(SLICE, set()))[:MOST_SLICES]
    rows = [_row(table, {SLICE: each}, each) for each in slices if table.selected_of({SLICE: each})]
    misses = [result for result in results if not result.found]
    lines = aligned([("golden", "n", *GOLDEN_MEASURES), *rows, _row(table, {}, "all")])
    cut = _cut(table, results)
    lines += [f"{cut} of all: 95 % interval {_interval(table, cut)}", _ranks(results)]
    for result in misses[:_MOST_MISSES]:
        lines += missed(result)
    if len(misses) > _MOST_MISSES:
        lines.append(
            f"… and {len(misses) - _MOST_MISSES} more misses; --rag-misses=FILE writes all, --rag-strict fails on each"
        )
    return lines


def _row(table: SuiteTable, where: dict[str, str], name: str) -> tuple[str, ...]:
    values = table.aggregate(GOLDEN_MEASURES, where)
    shown = (f"{value:.3f}" if value is not None else "-" for value in values.values())
    return (name, str(table.selected_of(where)), *shown)


def _cut(table: SuiteTable, results: Sequence[RetrievalResult]) -> str:
    """Return the recall that the run is about: at its k, where that is a column."""
    names = [f"recall@{results[0].k}"] if results else []
    return next((name for name in names if name in GOLDEN_MEASURES and table.has(name)), "recall@10")


def _interval(table: SuiteTable, measure: str) -> str:
    found = table.interval(measure) if table.has(measure) else None
    return f"{found[0]:.3f} to {found[1]:.3f}" if found else "-"


def _ranks(results: Sequence[RetrievalResult]) -> str:
    """Return a histogram of the ranks of the first expected document."""
    borders = ((1, 1), (2, 3), (4, 5), (6, 10), (11, 100))
    ranks = [result.rank for result in results if result.rank is not None]
    counts = [
        (f"{low}-{high}" if low != high else f"{low}", sum(low <= r <= high for r in ranks)) for low, high in borders
    ]
    shown = ", ".join(f"{name}: {count}" for name, count in counts if count)
    return f"first found at rank {shown or '-'}; never: {len(results) - len(ranks)}"


_PLACE = "\0"
"""What names of hits begin with that only keep a place."""


def write_misses(file: Path, results: Sequence[RetrievalResult], table: SuiteTable) -> None:
    """Write the misses as JSONL, each with its values of all measures.

    In ``ranked``, null is a further hit of a document that is already listed.
    """
    values = {measure: table.values(measure, {}) for measure in table.columns}
    lines = [
        json.dumps(
            {
                **result.model_dump(mode="json"),
                "ranked": [None if name.startswith(_PLACE) else name for name in result.ranked],
                "measures": {name: found[result.case_id] for name, found in values.items() if result.case_id in found},
            },
            ensure_ascii=False,
        )
        for result in results
        if not result.found
    ]
    write_atomically(file, "".join(f"{line}\n" for line in lines).encode())


def trec_folder(export: str) -> str:
    """Return the folder in an export option.

    Raises:
        SettingsError: the export is not of the form ``trec:DIR``.
    """
    kind, _, folder = export.partition(":")
    if kind != "trec" or not folder:
        raise SettingsError(f"rag_export is {export!r}. Name a folder: trec:DIR")
    return folder


def export_trec(folder: Path, results: Sequence[RetrievalResult], retriever: str) -> None:
    """Write run and qrels for trec_eval."""
    # A second hit of one document keeps its place, under a name that no judgement has.
    run = {result.case_id: [name.replace("\0", "").replace(" ", "_") for name in result.ranked] for result in results}
    qrels = {
        result.case_id: {name.replace(" ", "_"): gain for name, gain in result.relevant.items()} for result in results
    }
    write_run(folder / "run.trec", run, retriever)
    write_qrels(folder / "qrels.trec", qrels)


def read_retrievals(output: Path, manifest: RunManifest) -> Iterator[RetrievalResult]:
    """Yield the retrieval result of each golden entry of the run, in the order of the entries.

    Raises:
        DataError: the cases are missing or damaged.
    """
    record = manifest.suites.get(GOLDEN)
    if record is None:
        return
    cases = CaseFile(output, record.cases)
    k, retriever = int(manifest.settings.get("k") or 10), str(manifest.settings.get("retriever") or "")
    try:
        for row in sorted(_rows(output, record, cases), key=lambda row: cases.position[row.query_id]):
            yield _result(row, cases[cases.position[row.query_id]], retriever, k)
    finally:
        cases.close()


def _rows(output: Path, record: SuiteRecord, cases: CaseFile) -> Iterator[ExperimentResult]:
    is_of_run = of_run(record)
    return (row for row in rows_in(output / record.file) if is_of_run(row) and row.query_id in cases.position)


def _result(row: ExperimentResult, kept: StoredCase, retriever: str, k: int) -> RetrievalResult:
    entry = RetrievalCase(
        row.query_id,
        row.query,
        kept.case.qrels,
        expected=kept.expected,
        justification=kept.justification,
        passage=kept.passage,
        slices=kept.labels,
    )
    return retrieval_result(entry, row, retriever, k)


# What ``rag-harness explain`` says of the golden suite: every miss, or one question whole.

_MOST = 40


def every_miss(output: Path, manifest: RunManifest) -> list[str]:
    """Return the misses of the golden suite, each with what was expected, at which rank it was, and what came instead.

    Empty where the suite did not run.

    Raises:
        DataError: the cases are missing or damaged.
    """
    if GOLDEN not in manifest.suites:
        return []
    where = place_said(int(manifest.settings.get("k") or 10))
    results = list(read_retrievals(output, manifest))
    misses, lost = [result for result in results if not result.found], manifest.suites[GOLDEN].lost
    lines = [f"golden: {len(misses):,} of {counted(len(results), 'question')} missed: no expected document {where}"]
    lines += [f"golden: {counted(len(lost), 'question')} left no result; the log says why"] if lost else []
    return [*lines, *(line for result in misses[:_MOST] for line in missed(result)), *_where_all(misses, output)]


def one_question(output: Path, manifest: RunManifest, trial: str) -> list[str]:
    """Return what was looked up for a question of the golden suite, by its id ``golden-q1``; empty if there is none.

    Raises:
        DataError: the cases are missing or damaged.
    """
    for result in read_retrievals(output, manifest) if trial.startswith(f"{GOLDEN}-") else ():
        if str(TrialId(GOLDEN, result.case_id)) == trial:
            return [
                *([f"{trial} is not a miss: rank {result.rank}"] if result.found else []),
                *explain_miss(result).split("\n"),
            ]
    return []


def _where_all(misses: list[RetrievalResult], output: Path) -> Iterator[str]:
    if misses:
        more = f"{len(misses) - _MOST} more misses are not shown; " if len(misses) > _MOST else ""
        yield ""
        yield f"{more}a file of all misses: run again with --rag-misses=misses.jsonl"
        yield f"one whole: rag-harness explain {output} {TrialId(GOLDEN, misses[0].case_id)}"
