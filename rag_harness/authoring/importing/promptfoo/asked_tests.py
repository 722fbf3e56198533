"""Makes questions of the tests of promptfoo: a variable is the question, assertions are expectations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_harness.authoring.importing.field_values import contexts_of, noted_flag
from rag_harness.authoring.importing.imported import ImportedQuestion
from rag_harness.authoring.importing.labels import labels_of
from rag_harness.authoring.importing.likely_columns import likely_question
from rag_harness.authoring.importing.notes import Notes
from rag_harness.authoring.importing.promptfoo.assertions import Assertions
from rag_harness.authoring.importing.promptfoo.config_tests import FoundTest, tests_in
from rag_harness.authoring.importing.promptfoo.files_beside import UnreadFileError, is_file, text_beside
from rag_harness.authoring.importing.promptfoo.templates import TemplateLeftError, filled
from rag_harness.dataset.records.field_names import MEANINGS, field_meant
from rag_harness.dataset.records.list_cells import ListCellError, texts_of
from rag_harness.dataset.records.source_record import given, plain_text
from rag_harness.errors import DataError
from rag_harness.files.referenced_files import FILE
from rag_harness.results.storable import storable

_FIELDS = ("query_id", "query", "ground_truth", "evidence", "context_reference", "query_type", "answerable")
_TOLD = {
    "threshold": "the threshold of a test: a gate says it, e.g. --rag-gate 'NAME: expectations >= 0.8'",
    "providerOutput": "answers: they are scored, not asked (rag-harness judge score)",
    "provider": "the provider of a test: an experiment is asked (docs/how-to/endpoints.md)",
}
_LOST = {"assertScoringFunction": "code, which is not run"}
_OPTIONS_LOST = {
    "transform": "code that changes answers before they are looked at",
    "transformVars": "code that changes variables",
    "prefix": "words before each prompt: they belong to the pipeline",
    "suffix": "words behind each prompt: they belong to the pipeline",
}


def promptfoo_questions(file: Path, chosen: Mapping[str, str], notes: Notes) -> Iterator[ImportedQuestion]:
    """Yield the questions of a config or a file of tests.

    Args:
        file: YAML, JSON, JSONL or CSV.
        chosen: which variable is which of our fields, as ``--map`` says.
        notes: takes what is not taken over.

    Raises:
        DataError: a file is missing or malformed, or it cannot be told which variable is the question.
    """
    named: set[str] = set()
    for found in tests_in(file, notes):
        variables = found.test.get("vars")
        named |= variables.keys() if isinstance(variables, dict) else set()
        if (question := _question(found, chosen, file.parent, notes)) is not None:
            yield question
    for field, name in chosen.items():
        if name not in named:
            notes.lose(f"--map {field}={name}: no test has it", str(file))


def _question(found: FoundTest, chosen: Mapping[str, str], folder: Path, notes: Notes) -> ImportedQuestion | None:
    where, test = found
    stated = test.get("vars")
    raw = {str(name): value for name, value in stated.items()} if isinstance(stated, dict) else {}
    names = {field: _name_of(field, raw, chosen) for field in _FIELDS}
    names["query"] = names["query"] or _only(raw, names, where)
    variables = _known(raw, (names["evidence"], names["context_reference"]), folder, where, notes)
    query = _text(variables, names["query"])
    if not query:
        notes.lose("a test without a question", where)
        return None
    _note(test, where, notes)
    asserted = Assertions(variables, folder, where, notes).read(test.get("assert") or ())
    contexts, documents = _gold(variables, names, where, notes)
    return ImportedQuestion(
        where,
        query,
        _text(variables, names["query_id"]),
        _text(variables, names["ground_truth"]) or asserted.ground_truth,
        contexts,
        documents,
        asserted.expect,
        query_type=_text(variables, names["query_type"]),
        answerable=noted_flag(variables.get(names["answerable"]), names["answerable"], where, notes),
        metadata=labels_of(_labels(test, variables, chosen), where, notes),
        inputs=_inputs(variables, names, chosen),
    )


def _known(raw: Mapping[str, Any], documents: Sequence[str], folder: Path, where: str, notes: Notes) -> dict[str, Any]:
    """Return the variables of a test, each with the others filled in, without those that cannot be read.

    Args:
        raw: the variables.
        documents: those of them whose files are documents, which are named and not read.
        folder: that of the config.
        where: the place of the test.
        notes: takes what cannot be read.
    """
    known: dict[str, Any] = {}
    for name, value in raw.items():
        try:
            known[name] = text_beside(value, folder) if is_file(value) and name not in documents else given(value)
        except UnreadFileError as error:
            notes.lose(f"the variable {name!r} in a file: {error}", where)
    found: dict[str, Any] = {}
    for name, value in known.items():
        try:
            found[name] = filled(value, known)
        except TemplateLeftError as error:
            notes.lose(f"the variable {name!r}: {error}", where)
    return found


def _name_of(field: str, variables: Mapping[str, Any], chosen: Mapping[str, str]) -> str:
    """Return the variable that is a field: the one that is chosen, else the one whose name means it most."""
    if field in chosen:
        return chosen[field]
    meant = [name for name in variables if field_meant(name) == field]
    ranks = {name: rank for rank, name in enumerate(MEANINGS[field])}
    return min(meant, key=lambda name: ranks.get(name, len(ranks)), default="")


def _only(variables: Mapping[str, Any], names: Mapping[str, str], where: str) -> str:
    """Return the only variable that is no other field.

    Raises:
        DataError: there are several, or none.
    """
    free = [name for name in variables if name not in names.values()]
    if len(free) == 1:
        return free[0]
    if not variables:
        return ""
    listed = ", ".join(variables)
    likely = likely_question([{name: variables[name] for name in free}]) or next(iter(free or variables))
    raise DataError(f"{where}: which of its variables is the question: {listed}? Say which: --map question={likely}")


def _text(variables: Mapping[str, Any], name: str) -> str:
    return plain_text(variables.get(name)) if name else ""


def _gold(
    variables: Mapping[str, Any], names: Mapping[str, str], where: str, notes: Notes
) -> tuple[Sequence[tuple[str, str]], Sequence[str]]:
    """Return contexts and documents. A context in a file is that document."""
    context: Any = variables.get(names["evidence"])
    try:
        documents = [each.removeprefix(FILE) for each in texts_of(variables.get(names["context_reference"]), "|")]
        if is_file(context):
            return (), [*documents, context.removeprefix(FILE)]
        contexts, unread = contexts_of(context)
    except ListCellError as error:
        raise DataError(f"{where}: {error}.") from None
    if unread:
        notes.lose(f"{names['evidence']}: items that are no text, and no object with one", where)
    return contexts, documents


def _labels(test: Mapping[str, Any], variables: Mapping[str, Any], chosen: Mapping[str, str]) -> dict[str, Any]:
    metadata = test.get("metadata")
    own = {ours.removeprefix("metadata."): variables.get(name) for ours, name in chosen.items() if "metadata." in ours}
    description = test.get("description") or test.get("__description")
    return {**(metadata if isinstance(metadata, dict) else {}), "description": description, **own}


def _inputs(variables: Mapping[str, Any], names: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables that are no field: what else the user sends."""
    taken = {*names.values(), *chosen.values()}
    own = {ours.removeprefix("inputs."): variables.get(name) for ours, name in chosen.items() if "inputs." in ours}
    rest = {name: value for name, value in variables.items() if name not in taken}
    return {name: storable(value) for name, value in (rest | own).items() if value not in (None, "")}


def _note(test: Mapping[str, Any], where: str, notes: Notes) -> None:
    options = test.get("options") if isinstance(test.get("options"), dict) else {}
    for key, why in _TOLD.items():
        if test.get(key) is not None:
            notes.tell(why, where)
    lost = [f"{key}: {why}" for key, why in _LOST.items() if test.get(key)]
    lost += [f"options.{key}: {why}" for key, why in _OPTIONS_LOST.items() if options and options.get(key)]
    for each in lost:
        notes.lose(each, where)
