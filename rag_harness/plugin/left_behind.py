"""Writes the files that a run leaves after its gates: summary, saved run, files of the golden suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from pathlib import Path

    from rag_harness.gates import Verdict
    from rag_harness.plugin.run_record import RunRecord
    from rag_harness.settings import Settings


def leave_behind(settings: Settings, record: RunRecord, verdicts: Sequence[Verdict]) -> None:
    """Write the summary, and the files that options ask for.

    Raises:
        OSError: a file cannot be written.
    """
    from rag_harness.report.baseline import save, saved_run
    from rag_harness.report.provenance import provenance_json
    from rag_harness.report.summary_file import write_summary_file

    said, origins = record.manifest.settings, provenance_json(record.tables)
    more = {"run": record.manifest.date, "provenance": origins, **record.found}
    write_summary_file(record.output, record.tables, verdicts, said, more)
    _leave_golden_files(settings, record)
    if settings.save:
        save(baseline_file(settings, settings.save), saved_run(record.manifest, record.tables))


def _leave_golden_files(settings: Settings, record: RunRecord) -> None:
    from rag_harness.report.golden_files import export_trec, trec_folder, write_misses

    folder = trec_folder(settings.export) if settings.export else ""
    if settings.misses and GOLDEN in record.tables:
        write_misses(settings.path(settings.misses), record.retrievals, record.tables[GOLDEN])
    if folder and GOLDEN in record.tables:
        export_trec(settings.path(folder), record.retrievals, settings.retriever)


def baseline_file(settings: Settings, name: str) -> Path:
    """Return the place of the saved run of that name."""
    return settings.path(settings.baselines) / f"{name}.json"
