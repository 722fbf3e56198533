"""Tests of promptfoo as questions, and their assertions as expectations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.authoring.importing import promptfoo_files
from rag_harness.authoring.importing.field_mapping import likely_question
from rag_harness.authoring.importing.promptfoo_files import (
    FoundTest,
    TemplateLeftError,
    UnreadFileError,
    filled,
    is_file,
    tests_in,
    text_beside,
    value_beside,
)
from rag_harness.authoring.importing.records import (
    Demand,
    ImportedQuestion,
    Notes,
    contexts_of,
    kept_demands,
    labels_of,
    noted_flag,
)
from rag_harness.core.errors import DataError
from rag_harness.core.files import FILE
from rag_harness.core.json_text import number_as_text
from rag_harness.data.source_records import MEANINGS, ListCellError, field_meant, given, plain_text, texts_of
from rag_harness.records.row import storable

_USUAL_LIKENESS = 0.75
_SHOWN = 40
_CHANGED = ("transform", "contextTransform")
"""Keys by which another text than the answer is looked at."""


@dataclass
class Asserted:
    """What assertions ask for: expectations, and the right answer where one states it."""

    expect: list[Demand] = field(default_factory=list)
    ground_truth: str = ""


class Assertions:
    """Reads the assertions of one test.

    Args:
        variables: the variables of the test, for templates.
        folder: the folder of the config, for values in files.
        where: the place of the test.
        notes: takes the parts without a counterpart.
    """

    def __init__(self, variables: Mapping[str, Any], folder: Path, where: str, notes: Notes) -> None:
        self._variables, self._folder, self._where, self._notes = variables, folder, where, notes
        self._ground_truth = ""

    def read(self, asserted: Sequence[Any]) -> Asserted:
        """Return what they ask for."""
        demands = [demand for each in asserted for demand in self._demands(each)]
        return Asserted(kept_demands(demands, self._where, self._notes), self._ground_truth)

    def _demands(self, raw: Any) -> Iterator[Demand]:
        if not isinstance(raw, Mapping) or not isinstance(raw.get("type"), str):
            self._lose("an assertion without a type")
            return
        kind, negated = raw["type"].removeprefix("not-"), raw["type"].startswith("not-")
        if kind == "assert-set":
            yield from self._of_set(raw)
            return
        try:
            value = filled(self._value(raw), self._variables)
        except TemplateLeftError as error:
            self._lose(f"{raw['type']}: {error}")
            return
        except UnreadFileError as error:
            self._lose(f"{raw['type']} with a value in a file: {error}")
            return
        if changed := [key for key in _CHANGED if raw.get(key)]:
            self._lose(f"{raw['type']} with {changed[0]}: answers are looked at as they are")
        elif raw.get("weight") == 0:
            self._notes.tell(f"{raw['type']} with weight 0: it is shown and does not count", self._where)
        elif kind == "word-count" and negated and not isinstance(value, Mapping):
            self._lose("not-word-count of a number: state min or max")
        else:
            if kind in promptfoo_files.WITH_REFERENCE and not negated:
                self._ground_truth = self._ground_truth or plain_text(value)
            found = list(self._of_type(kind, value, raw))
            beside = {} if raw.get("weight") in (None, 1) else {"weight": raw["weight"]}
            yield from ({**({"not": each} if negated else each), **beside} for each in found)

    def _value(self, raw: Mapping[str, Any]) -> Any:
        """Return the value of an assertion; values in files are read.

        Raises:
            UnreadFileError: a file cannot be read.
        """
        value = raw.get("value")
        if isinstance(value, list):
            return [value_beside(each, self._folder) if is_file(each) else each for each in value]
        return value_beside(value, self._folder) if is_file(value) else value

    def _of_set(self, raw: Mapping[str, Any]) -> Iterator[Demand]:
        """Yield the demands of a set. Each of its assertions gets its weight, times their own."""
        inner, weight = raw.get("assert"), raw.get("weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            self._lose(f"assert-set with the weight {str(weight)[:_SHOWN]!r}, which is not a number")
        elif weight == 0:
            self._notes.tell("assert-set with weight 0: it is shown and does not count", self._where)
        elif raw.get("threshold") not in (None, 1):
            self._lose("assert-set with a threshold: so many of several have no counterpart. State what must be kept")
        elif isinstance(inner, list):
            found = (demand for each in inner for demand in self._demands(each))
            yield from ({**each, "weight": weight * each.get("weight", 1)} if weight != 1 else each for each in found)

    def _of_type(self, kind: str, value: Any, raw: Mapping[str, Any]) -> Iterator[Demand]:
        if kind == "equals" and isinstance(value, (dict, list)):
            yield {"json": {"const": value}}
        elif kind in promptfoo_files.OF_TEXT:
            ours, options = promptfoo_files.OF_TEXT[kind]
            yield {ours: number_as_text(value), **options}
        elif kind in promptfoo_files.OF_TEXTS:
            ours, options = promptfoo_files.OF_TEXTS[kind]
            yield {ours: [number_as_text(each) for each in value] if isinstance(value, list) else value, **options}
        elif kind in promptfoo_files.OF_LIKENESS:
            yield {promptfoo_files.OF_LIKENESS[kind]: value, "at_least": raw.get("threshold", _USUAL_LIKENESS)}
        else:
            yield from self._others(kind, value, raw)

    def _others(self, kind: str, value: Any, raw: Mapping[str, Any]) -> Iterator[Demand]:
        threshold = raw.get("threshold")
        if kind in promptfoo_files.OF_THRESHOLD and threshold is None:
            self._notes.tell(f"{kind} without a threshold: every row has it", self._where)
        elif kind in promptfoo_files.OF_THRESHOLD:
            yield {promptfoo_files.OF_THRESHOLD[kind]: threshold}
        elif kind in promptfoo_files.OF_CRITERION:
            if threshold is not None:
                self._notes.tell(f"{kind} with a threshold: a rubric is met or not", self._where)
            yield from ({"rubric": each} for each in (value if isinstance(value, list) else [value]))
        elif kind == "is-json":
            yield {"is_json": True} if value in (None, "") else {"json": value}
        elif kind == "is-refusal":
            yield {"declines": True}
        elif kind == "word-count":
            yield from self._word_count(value)
        else:
            self._judged_or_lost(kind)

    def _word_count(self, value: Any) -> Iterator[Demand]:
        limits = value if isinstance(value, Mapping) else {"min": _number(value), "max": _number(value)}
        yield from ({f"{end}_words": limits[end]} for end in ("min", "max") if limits.get(end) is not None)

    def _judged_or_lost(self, kind: str) -> None:
        if kind in promptfoo_files.JUDGED:
            name = promptfoo_files.JUDGED[kind]
            self._lose(
                f"{kind}: a judged measure here: --rag-measures={name}, and a gate on it (docs/explanation/judging.md)"
            )
        else:
            self._lose(f"{kind}: {promptfoo_files.why_unmatched(kind)}")

    def _lose(self, what: str) -> None:
        self._notes.lose(what, self._where)


def _number(value: Any) -> Any:
    text = plain_text(value)
    return int(text) if text.isascii() and text.isdecimal() else value


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
    for ours, name in chosen.items():
        if name not in named:
            notes.lose(f"--map {ours}={name}: no test has it", str(file))


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
        folder: the folder of the config.
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
        notes.lose(f"{names['evidence']}: items that are neither a text nor an object with one", where)
    return contexts, documents


def _labels(test: Mapping[str, Any], variables: Mapping[str, Any], chosen: Mapping[str, str]) -> dict[str, Any]:
    metadata = test.get("metadata")
    own = {ours.removeprefix("metadata."): variables.get(name) for ours, name in chosen.items() if "metadata." in ours}
    description = test.get("description") or test.get("__description")
    return {**(metadata if isinstance(metadata, dict) else {}), "description": description, **own}


def _inputs(variables: Mapping[str, Any], names: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables that are not a field: the user's other inputs."""
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
