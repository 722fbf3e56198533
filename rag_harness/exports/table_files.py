"""Scores, verdicts and trials as tables in a folder: CSV or Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rag_harness.errors import DataError
from rag_harness.exports.destination import Destination
from rag_harness.exports.scored_run import ScoredRun
from rag_harness.report.flat_table import Records
from rag_harness.report.frames import write_records


def to_csv(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Write ``scores.csv``, ``gates.csv`` and ``trials.csv`` into a folder."""
    return write_tables(run, destination.place, "csv")


def to_parquet(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Write ``scores.parquet``, ``gates.parquet`` and ``trials.parquet`` into a folder."""
    return write_tables(run, destination.place, "parquet")


def write_tables(run: ScoredRun, folder: Path, ending: str) -> Sequence[str]:
    """Write the three tables, each into a file that ends in ``ending``, and return what to say of them.

    Raises:
        DataError: ``folder`` is a file.
        PrerequisiteError: a file cannot be written, or pyarrow is not installed.
    """
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file. Name a folder for the tables: -o FOLDER")
    tables: Mapping[str, Records] = {"scores": run.score_table, "gates": run.gate_table, "trials": run.trials}
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        write_records(table, folder / f"{name}.{ending}")
    lengths = {"scores": len(run.scores), "gates": len(run.gates), "trials": len(run.trials)}
    return [f"{folder / f'{name}.{ending}'}: {count:,} lines" for name, count in lengths.items()]
