"""Optional files of the golden suite: its misses, and run and qrels for trec_eval."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rag_harness.dataset.trec import write_qrels, write_run
from rag_harness.errors import SettingsError
from rag_harness.files.atomic import write_atomically
from rag_harness.measures.golden_run import RetrievalResult
from rag_harness.report.suite_table import SuiteTable

_PLACE = "\0"
"""What names of hits begin with that only keep a place."""


def write_misses(file: Path, results: Sequence[RetrievalResult], table: SuiteTable) -> None:
    """Write the misses as JSONL, each with its values of all measures.

    In ``ranked``, null stands for a hit of a document that stands above already.
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
