"""Writes the files that a run leaves after its gates: summary, saved run, files of the golden suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from pathlib import Path

    from rag_harness.gates import Verdict
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.settings import Settings


def leave_behind(
    settings: Settings,
    findings: RunFindings,
    verdicts: Sequence[Verdict],
    unchecked: Mapping[str, int],
    replaced: Sequence[str] = (),
) -> None:
    """Write the summary, and the files that options ask for.

    ``unchecked`` counts what fails the run though no gate has failed; ``replaced`` says which gates others replace.

    Raises:
        OSError: a file cannot be written.
    """
    from rag_harness.report.baseline import save, saved_run
    from rag_harness.report.provenance import provenance_json
    from rag_harness.report.summary_file import write_summary_file

    said, origins = findings.manifest.settings, provenance_json(findings.tables)
    more = {"run": findings.manifest.date, "provenance": origins, **findings.found}
    more |= {"unchecked": {**unchecked}} if unchecked else {}
    more |= {"replaced": [*replaced]} if replaced else {}
    write_summary_file(findings.output, findings.tables, verdicts, said, more)
    _leave_golden_files(settings, findings)
    if settings.save:
        save(baseline_file(settings, settings.save), saved_run(findings.manifest, findings.tables))


def _leave_golden_files(settings: Settings, findings: RunFindings) -> None:
    from rag_harness.report.golden_files import export_trec, trec_folder, write_misses

    folder = trec_folder(settings.export) if settings.export else ""
    if settings.misses and GOLDEN in findings.tables:
        write_misses(settings.path(settings.misses), findings.retrievals, findings.tables[GOLDEN])
    if folder and GOLDEN in findings.tables:
        export_trec(settings.path(folder), findings.retrievals, settings.retriever)


def baseline_file(settings: Settings, name: str) -> Path:
    """Return the place of the saved run of that name."""
    return settings.folder("baselines") / f"{name}.json"
