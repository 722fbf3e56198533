"""Makes plain records of the nested ones that well-known files have. All else of a record stays in it as a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from rag_harness.authoring.importing.notes import Notes
from rag_harness.authoring.importing.published.annotations import of_argilla, of_label_studio
from rag_harness.authoring.importing.published.mlflow import of_mlflow
from rag_harness.authoring.importing.published.reading_tests import of_hotpot, of_musique, of_squad
from rag_harness.dataset.records.reading import records_in
from rag_harness.dataset.records.source_record import SourceRecord

Plain = Sequence[Mapping[str, Any]]
_FORMS: Sequence[Callable[[Mapping[str, Any]], Plain | None]] = (of_squad, of_mlflow)
"""Each returns the plain records of a nested one; None where the record has another form."""
_NOTING: Sequence[Callable[[Mapping[str, Any], str, Notes], Plain | None]] = (
    of_hotpot,
    of_musique,
    of_label_studio,
    of_argilla,
)
"""Those that have something to note of a record."""


def records_to_import(file: Path, notes: Notes) -> Iterator[SourceRecord]:
    """Yield the records of a file, nested ones as plain ones.

    Raises:
        DataError: the file cannot be read.
        PrerequisiteError: a package is missing that the file needs.
    """
    for record in records_in(file):
        for name in record.beside:
            notes.leave(f"{name}: it stands beside the records", record.where)
        made = _plain(record, notes)
        if made is None:
            yield record
            continue
        if not made:
            notes.lose("a record that holds no question", record.where)
        for number, values in enumerate(made):
            where = f"{record.where}, question {number + 1}" if len(made) > 1 else record.where
            yield SourceRecord(where, values, record.number)


def _plain(record: SourceRecord, notes: Notes) -> Plain | None:
    quiet = (form(record.values) for form in _FORMS)
    noting = (form(record.values, record.where, notes) for form in _NOTING)
    return next((found for found in chain(quiet, noting) if found is not None), None)
