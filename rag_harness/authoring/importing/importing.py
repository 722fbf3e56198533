"""Imports the questions of a file: reads its records, places their evidence, writes their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from rag_harness.authoring.importing.context_places import ContextPlaces, PlacedGold
from rag_harness.authoring.importing.dataset_folder import files_of_dataset
from rag_harness.authoring.importing.field_mapping import RecordMapping, lacking_question
from rag_harness.authoring.importing.imported import ImportedQuestion
from rag_harness.authoring.importing.likely_columns import LOOKED_AT
from rag_harness.authoring.importing.notes import Notes
from rag_harness.authoring.importing.own_lines import OwnLine, own_line
from rag_harness.authoring.importing.promptfoo.asked_tests import promptfoo_questions
from rag_harness.authoring.importing.published.unfolding import records_to_import
from rag_harness.authoring.importing.query_line_writing import LineWriting, WrittenLine
from rag_harness.authoring.importing.source_fields import SourceFields
from rag_harness.authoring.importing.sources.deepeval import DEEPEVAL
from rag_harness.authoring.importing.sources.langfuse import LANGFUSE
from rag_harness.authoring.importing.sources.langsmith import LANGSMITH
from rag_harness.authoring.importing.sources.ragas import RAGAS
from rag_harness.authoring.importing.sources.tables import HUGGING_FACE, TABLE
from rag_harness.errors import DataError
from rag_harness.types import Document

Reader = Callable[[Path, Mapping[str, str], Notes], Iterator[ImportedQuestion | OwnLine]]
"""Reads the questions of a file, with what ``--map`` says; notes take what is not taken over."""
_UNPLACED = "contexts or documents that were not looked for: name the folder of the documents, --kb DIR"


class Part(NamedTuple):
    """A part of a data set in a folder; each name is empty where the only or usual one is meant."""

    subset: str = ""
    split: str = ""


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What came of a file: its lines, and what could not be taken over."""

    lines: Sequence[WrittenLine]
    notes: Notes


def import_questions(
    file: Path,
    source: str,
    chosen: Mapping[str, str],
    documents: Sequence[Document] = (),
    reviewed: str = "",
    part: Part = WHOLE,
) -> ImportedFile:
    """Return the questions of a file of another tool as lines of ``queries.jsonl``.

    Args:
        file: the file, or a folder of a data set.
        source: the tool, one of ``SOURCES``.
        chosen: which column or path is which of our fields.
        documents: where contexts are looked for; without any they are noted.
        reviewed: ``yes`` or ``no`` for all questions; "": what the file calls synthetic is a draft.
        part: which part of a folder is read.

    Raises:
        DataError: the file cannot be read, or holds no question.
        PrerequisiteError: a package is missing that the file needs.
    """
    notes = Notes()
    places = ContextPlaces(documents, notes) if documents else None
    writing, lines = LineWriting(source, reviewed, notes), list[WrittenLine]()
    for question in (each for one in files_of(file, part) for each in SOURCES[source](one, chosen, notes)):
        if isinstance(question, OwnLine):
            line = writing.kept(question)
            if places and line:
                places.check(question.pages(), question.where)
        else:
            line = writing.line_of(question, places.place(question) if places else _not_placed(question, notes))
        if line:
            lines.append(line)
    if not lines:
        raise DataError("\n".join([f"{file}: no question was found.", *notes.lines()]))
    return ImportedFile(lines, notes)


def files_of(file: Path, part: Part) -> list[Path]:
    """Return the files that hold the questions: the file itself, or those of a part of a folder.

    Raises:
        DataError: the folder is no data set, or it is not said which of its parts is meant.
    """
    if file.is_dir():
        return files_of_dataset(file, *part)
    if any(part):
        raise DataError(f"{file} is a file. --subset and --split choose from a folder.")
    return [file]


def _not_placed(question: ImportedQuestion, notes: Notes) -> PlacedGold:
    texts = [*question.documents, *(text or name for text, name in question.contexts)]
    if texts:
        notes.lose(_UNPLACED, question.where)
    return PlacedGold(lost=texts)


def _by_fields(source: SourceFields) -> Reader:
    def read(file: Path, chosen: Mapping[str, str], notes: Notes) -> Iterator[ImportedQuestion | OwnLine]:
        mapping = RecordMapping(source, chosen, notes)
        may_be_ours = source in (TABLE, HUGGING_FACE) and not chosen
        records = records_to_import(file, notes)
        first = [*islice(records, LOOKED_AT)]
        asked = [each.values for each in first if not (may_be_ours and own_line(each))]
        if asked and (lacks := lacking_question(source, chosen, asked)):
            raise DataError(f"{file}: {lacks}")
        for record in chain(first, records):
            if may_be_ours and (own := own_line(record)) is not None:
                yield own
                continue
            if (question := mapping.question_of(record)) is not None:
                yield question
        mapping.note_unfound(file)
        mapping.note_missing_gold(file)

    return read


FIELDS: Sequence[SourceFields] = (RAGAS, DEEPEVAL, LANGFUSE, LANGSMITH, TABLE, HUGGING_FACE)
"""The tools whose files are records with fields of their own."""
SOURCES: Mapping[str, Reader] = {
    **{source.name: _by_fields(source) for source in FIELDS},
    "promptfoo": promptfoo_questions,
}
"""How the file of a tool is read, by the tool's name."""
