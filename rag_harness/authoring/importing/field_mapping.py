"""Makes a question of a record, by the fields of its tool and by what ``--map`` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_harness.authoring.importing.demands import Demand, kept_demands
from rag_harness.authoring.importing.field_values import contexts_of, noted_flag, object_text
from rag_harness.authoring.importing.imported import ImportedQuestion
from rag_harness.authoring.importing.labels import labels_of
from rag_harness.authoring.importing.messages import Dialogue, are_messages, dialogue_of, structured
from rag_harness.authoring.importing.notes import Notes
from rag_harness.authoring.importing.source_fields import SourceFields
from rag_harness.authoring.importing.wanted_tools import wanted_tools
from rag_harness.dataset.records.field_names import value_at
from rag_harness.dataset.records.list_cells import ListCellError, texts_of
from rag_harness.dataset.records.source_record import SourceRecord, given, plain_text
from rag_harness.errors import DataError

MAPPED = (
    "query_id", "query", "ground_truth", "evidence", "context_reference", "query_type", "answerable", "conversation",
    "tools",
)  # fmt: skip
"""Our fields that a column of a file may be."""
_SCORED = (
    "answers and what they were made of: they are scored, not asked (rag-harness judge score). The lines have questions"
)
_ALONE = (
    "a reply to a question that stands alone: it is no ground truth unless you say so, e.g. --map "
    "reference=messages.1.content"
)


class RecordMapping:
    """Makes questions of the records of one file.

    Args:
        source: the fields of its tool.
        chosen: which column or path is which of our fields, as ``--map`` says.
        notes: takes what is not taken over.
    """

    def __init__(self, source: SourceFields, chosen: Mapping[str, str], notes: Notes) -> None:
        self._source, self._chosen, self._notes = source, chosen, notes
        self._found: set[str] = set()

    def note_unfound(self, file: Path) -> None:
        """Note what ``--map`` names and no record has. It is for the end."""
        for field, path in self._chosen.items():
            if field not in self._found:
                self._notes.lose(f"--map {field}={path}: no record has it", str(file))

    def question_of(self, record: SourceRecord) -> ImportedQuestion | None:
        """Return the question of a record; None where it has none, which is noted.

        Raises:
            DataError: an object holds several texts, and nothing says which is meant.
        """
        values, where = record.values, record.where
        if why := self._source.left_out(values):
            self._notes.tell(why, where)
            return None
        said = self._dialogue(values, where)
        if said is None:
            self._notes.lose(self._source.no_question, where)
            return None
        self._note_others(values, where)
        return self._made(record, said)

    def _made(self, record: SourceRecord, said: Dialogue) -> ImportedQuestion:
        values, where = record.values, record.where
        documents = self._documents(values, where)
        ground_truth = self._ground_truth(values, where)
        if said.reply and not (said.before or ground_truth):
            self._notes.tell(_ALONE, where)
        about = documents[0] if len(documents) == 1 else ""
        contexts = self._contexts(values, where)
        return ImportedQuestion(
            where,
            said.query,
            plain_text(self._value(values, "query_id")),
            ground_truth,
            [(text, document or about) for text, document in contexts],
            documents,
            kept_demands(self._expected(values, where), where, self._notes),
            wanted_tools(self._value(values, "tools"), self._used(values, "tools"), where, self._notes),
            query_type=plain_text(self._value(values, "query_type")) or self._source.type_of(values),
            answerable=noted_flag(
                self._value(values, "answerable"), self._used(values, "answerable"), where, self._notes
            ),
            metadata=labels_of(self._labels(values), where, self._notes),
            inputs={**self._beside("query", values), **dict(self._below("inputs", values))},
            before=said.before,
            reply=said.reply,
            conversation=plain_text(self._value(values, "conversation")),
            synthetic=self._source.is_synthetic(values),
        )

    def _dialogue(self, values: Mapping[str, Any], where: str) -> Dialogue | None:
        value = structured(self._value(values, "query"))
        if isinstance(value, dict) and are_messages(value.get("messages")):
            value = value["messages"]
        if are_messages(value):
            return dialogue_of(value, where, self._notes)
        text = self._text(value, "query", values, where)
        return Dialogue((), text) if text else None

    def _ground_truth(self, values: Mapping[str, Any], where: str) -> str:
        value = structured(self._value(values, "ground_truth"))
        if isinstance(value, list):
            found = [self._text(each, "ground_truth", values, where) for each in value]
            if len(set(found)) > 1:
                self._notes.tell("further right answers: the first is the ground truth", where)
            return next(filter(None, found), "")
        return self._text(value, "ground_truth", values, where)

    def _text(self, value: Any, field: str, values: Mapping[str, Any], where: str) -> str:
        if not isinstance(value, dict):
            return plain_text(value)
        text, key = object_text(value)
        if key is None:
            name, keys = self._used(values, field), ", ".join(map(repr, value))
            said, option = ("question", "question") if field == "query" else ("ground truth", field)
            raise DataError(
                f"{where}: {name} is an object with {keys}. Say where the {said} is: "
                f"--map {option}={name}.{next(iter(value), 'KEY')}"
            )
        return text

    def _contexts(self, values: Mapping[str, Any], where: str) -> list[tuple[str, str]]:
        try:
            return contexts_of(self._value(values, "evidence"), self._source.separator)
        except ListCellError as error:
            raise DataError(f"{where}: {self._used(values, 'evidence')}: {error}.") from None

    def _expected(self, values: Mapping[str, Any], where: str) -> Sequence[Demand]:
        try:
            return self._source.expected(values)
        except ListCellError as error:
            raise DataError(f"{where}: what is expected: {error}.") from None

    def _documents(self, values: Mapping[str, Any], where: str) -> list[str]:
        try:
            return texts_of(self._value(values, "context_reference"), "|")
        except ListCellError as error:
            raise DataError(f"{where}: {self._used(values, 'context_reference')}: {error}.") from None

    def _value(self, values: Mapping[str, Any], field: str) -> Any:
        value = value_at(values, name) if (name := self._used(values, field)) else None
        if value is not None:
            self._found.add(field)
        return value

    def _used(self, values: Mapping[str, Any], field: str) -> str:
        """Return the column or path that a field is read from; "" where the record has none."""
        if field in self._chosen:
            return self._chosen[field]
        return next((name for name in self._source.fields.get(field, ()) if given(values.get(name)) is not None), "")

    def _below(self, above: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for ours, path in self._chosen.items():
            if ours.startswith(f"{above}.") and (value := value_at(values, path)) is not None:
                self._found.add(ours)
                yield ours.removeprefix(f"{above}."), value

    def _beside(self, field: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what else stands in the object that a chosen path leads into."""
        above, _, key = self._chosen.get(field, "").rpartition(".")
        holder = structured(value_at(values, above)) if above else None
        taken = {key, *(path.removeprefix(f"{above}.") for path in self._chosen.values())}
        return {k: v for k, v in holder.items() if k not in taken} if isinstance(holder, dict) else {}

    def _labels(self, values: Mapping[str, Any]) -> dict[str, Any]:
        source = self._source
        used = {self._used(values, field) for field in MAPPED} | {*self._chosen.values()}
        taken = used | {path.partition(".")[0] for path in used}
        others = {*source.scored, *source.unmatched, *source.unread, *source.objects} | taken
        found: dict[str, Any] = {}
        for name in source.objects:
            inner = structured(values.get(name))
            found |= inner if isinstance(inner, dict) else {name: inner}
        found |= {name: value for name, value in values.items() if name not in others}
        return found | dict(self._below("metadata", values))

    def _note_others(self, values: Mapping[str, Any], where: str) -> None:
        if any(_has(values, name) for name in self._source.scored):
            self._notes.tell(_SCORED, where)
        for name in self._beside("ground_truth", values):
            self._notes.tell(f"{name}: it stands beside the ground truth, and is left out", where)
        for name, why in self._source.unmatched.items():
            if _has(values, name):
                self._notes.lose(f"{name}: {why}", where)


def _has(values: Mapping[str, Any], name: str) -> bool:
    value = structured(values.get(name))
    return value not in (None, "") and not (isinstance(value, (list, dict)) and not value)


def lacking_question(source: SourceFields, chosen: Mapping[str, str], names: Sequence[str]) -> str:
    """Return what to do where no column of a file is the question; "" where one is."""
    if "query" in chosen or any(name in names for name in source.fields.get("query", ())):
        return ""
    first = next(iter(names), "COLUMN")
    return f"none of its columns is the question: {', '.join(names)}. Say which: --map question={first}"
