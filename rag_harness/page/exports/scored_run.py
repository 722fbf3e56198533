"""The scores of a run for other tools: means, verdicts and trials, their destination, and files of tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_harness.core.errors import DataError
from rag_harness.core.files import json_digest
from rag_harness.records.manifest import RunManifest, read_manifest
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import SUMMARY_FILE
from rag_harness.tables.trials import FlatTable, Kind, Records, TrialRecords, read_trials, write_records

_SCORES: Mapping[str, Kind] = {
    "experiment": "name", "slice": "text", "measure": "name", "value": "number", "low": "number", "high": "number",
    "n": "count", "unmeasured": "count",
}  # fmt: skip
_GATES: Mapping[str, Kind] = {
    "experiment": "name", "gate": "text", "state": "name", "value": "number", "threshold": "number", "low": "number",
    "high": "number", "n": "count", "confidence": "number", "reason": "text",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeanScore:
    """The mean of a measure over the cases of an experiment, or of a slice of them.

    Attributes:
        experiment: the experiment, or ``golden``.
        slice: ``query_type=direct``; empty for all cases.
        measure: its name.
        value: the mean.
        interval: the 95 % interval of the mean; None where the cases allow none.
        n: the cases with a value.
        unmeasured: the cases that should have one and have none.
    """

    experiment: str
    slice: str
    measure: str
    value: float
    interval: tuple[float, float] | None
    n: int
    unmeasured: int


@dataclass(frozen=True)
class ScoredRun:
    """A run as it is exported.

    Attributes:
        manifest: what the run was.
        trials: its trials.
        gates: the verdicts, as ``summary.json`` has them.
    """

    manifest: RunManifest
    trials: TrialRecords
    gates: Sequence[Mapping[str, Any]]

    @cached_property
    def scores(self) -> Sequence[MeanScore]:
        """The mean of each measure that has one: of all cases of an experiment, then of each type of question."""
        return [score for name in self.trials.experiments for score in _scores(name, self.trials.tables[name])]

    @cached_property
    def identity(self) -> str:
        """A digest of all scores and verdicts: an export of the same has the same."""
        return json_digest([self.manifest.date, [*self.score_table], [*self.gate_table]])

    def gates_of(self, experiment: str) -> Sequence[Mapping[str, Any]]:
        """Return the verdicts of the gates on an experiment."""
        return [gate for gate in self.gates if _gated(gate) == experiment]

    @property
    def score_table(self) -> FlatTable:
        """A line a mean."""
        lines = [
            (each.experiment, each.slice or None, each.measure, each.value, *(each.interval or (None, None)), each.n,
             each.unmeasured)
            for each in self.scores
        ]  # fmt: skip
        return FlatTable(_SCORES, [dict(zip(_SCORES, line, strict=True)) for line in lines])

    @property
    def gate_table(self) -> FlatTable:
        """A line a verdict."""
        lines = []
        for gate in self.gates:
            low, high = gate.get("interval") or (None, None)
            known = {"experiment": _gated(gate), "low": low, "high": high}
            lines.append({name: known.get(name, gate.get(name)) for name in _GATES})
        return FlatTable(_GATES, lines)


def read_scored_run(output: Path) -> ScoredRun:
    """Read the last run in ``output``.

    Raises:
        DataError: the folder holds no run, a file of it is damaged, or ``summary.json`` is missing or of another run.
        SettingsError: the run was judged on a measure that is not registered here.
    """
    trials, manifest = read_trials(output), read_manifest(output)
    return ScoredRun(manifest, trials, _gates(output / SUMMARY_FILE, manifest))


def _gates(file: Path, manifest: RunManifest) -> Sequence[Mapping[str, Any]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(
            f"No file {file}, which has the verdicts: the run did not come to its end. Run it again."
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read: {error}. Run again.") from None
    if found.get("run") != manifest.date:
        raise DataError(f"{file} is of another run than run.json, so its verdicts are too. Run again.")
    gates: Sequence[Mapping[str, Any]] = found.get("gates", [])
    return gates


def _gated(gate: Mapping[str, Any]) -> str:
    """Return the experiment of a gate: ``e3`` of ``e3[golden=yes]: recall@5 >= 0.9``."""
    return str(gate.get("gate", "")).partition(":")[0].partition("[")[0].strip()


def _scores(name: str, table: SuiteTable) -> Iterator[MeanScore]:
    kinds = sorted(table.slices().get("query_type", ()))
    for where in ({}, *({"query_type": kind} for kind in kinds)):
        said = "".join(f"{key}={value}" for key, value in where.items())
        for measure in table.columns:
            values = table.values(measure, where)
            mean = table.aggregate([measure], where)[measure]
            if values and mean is not None:
                between, missing = table.interval(measure, where), table.unmeasured(measure, where)
                yield MeanScore(name, said, measure, mean, between, len(values), missing)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where scores go.

    Attributes:
        output: the output folder of the run.
        place: file or folder, for targets that are files.
        url: the address of a server; empty: as the tool's own client finds it.
        project: the name under which the tool keeps them.
    """

    output: Path
    place: Path
    url: str = ""
    project: str = "rag-harness"


Target = Callable[[ScoredRun, Destination], Sequence[str]]
"""Exports a run, and returns what to say of it. What is there already is left as it is."""


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
