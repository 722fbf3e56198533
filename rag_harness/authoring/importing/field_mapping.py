"""The mapping of the fields of a record to a question, by its tool, by its columns, and by --map."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from rag_harness.authoring.importing.records import (
    DOCUMENT_NAMES,
    TEXT_NAMES,
    Demand,
    Dialogue,
    ImportedQuestion,
    Notes,
    are_messages,
    beside_texts,
    contexts_of,
    dialogue_of,
    documents_of,
    flat,
    kept_demands,
    labels_of,
    noted_flag,
    object_text,
    other_members,
    structured,
    wanted_tools,
)
from rag_harness.core.errors import DataError
from rag_harness.data.source_records import (
    MEANINGS,
    ListCellError,
    SourceRecord,
    given,
    plain_name,
    plain_text,
    value_at,
)

_BY_ANY_NAME = ("query", "ground_truth")


@dataclass(frozen=True, slots=True)
class SourceFields:
    """The fields of one tool.

    Attributes:
        name: the tool, as ``--from`` names it.
        fields: the tool's names for each of our fields; the first one in a record counts. A question and a ground truth
            may also have another name of ``MEANINGS``, except those with another meaning below.
        typical: names that only this tool has; one of them identifies its files.
        scored: names of answers and of their sources: these are scored, and are not gold.
        unmatched: names without a counterpart, each with the reason.
        unread: names of fields that do not describe a question, such as dates.
        read_otherwise: names that ``expected`` or ``left_out`` reads.
        objects: names of objects whose members are labels.
        separator: separates the texts in a cell of a CSV file.
        is_synthetic: whether a record says that no person wrote its question.
        type_of: the type of a question; "" where a record does not have it.
        left_out: why a record is not a question; "" where it is one.
        expected: the expectations on the answer.
        no_question: the message about a record without a question.
    """

    name: str
    fields: Mapping[str, Sequence[str]]
    typical: Sequence[str] = ()
    scored: Sequence[str] = ()
    unmatched: Mapping[str, str] = field(default_factory=dict)
    unread: Sequence[str] = ()
    read_otherwise: Sequence[str] = ()
    objects: Sequence[str] = ()
    separator: str = ""
    is_synthetic: Callable[[Mapping[str, Any]], bool] = lambda _: False
    type_of: Callable[[Mapping[str, Any]], str] = lambda _: ""
    left_out: Callable[[Mapping[str, Any]], str] = lambda _: ""
    expected: Callable[[Mapping[str, Any]], Sequence[Demand]] = lambda _: ()
    no_question: str = "a record without a question"

    def names_of(self, ours: str) -> Sequence[str]:
        """Return the names that a field of ours may have, those that count more first."""
        own = self.fields.get(ours, ())
        if ours not in _BY_ANY_NAME:
            return own
        others = {
            plain_name(name)
            for name in (*self.scored, *self.unmatched, *self.unread, *self.read_otherwise, *self.objects)
        }
        return (*own, *(name for name in MEANINGS[ours] if plain_name(name) not in others and name not in own))


LOOKED_AT = 50
"""The most records that are looked at."""
_GOLD = (
    "answer", "gold", "truth", "expected", "reference", "ideal", "correct", "solution", "target", "output", "response",
    "reply", "result",
)  # fmt: skip
_GOLD_WORDS = frozenset({"gt", "a", "label", "antwort", "respuesta", "reponse"})
_NO_GOLD = ("id", "score", "count", "date", "time", "type", "url", "source")
_MARKS = ("?", "？", "؟", ";")
_SENTENCE = 3
"""Words that make a text more than a name."""


def likely_question(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the column or path that probably holds the questions; "" where none looks like it."""
    ranked = [(_asking(texts), name) for name, texts in _texts_by_path(rows).items()]
    most, name = max(ranked, key=lambda each: each[0], default=(0.0, ""))
    return name if most else ""


def likely_gold(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns or paths that may hold ground truths: those with such names first, then those of sentences."""
    found = {name: texts for name, texts in _texts_by_path(rows).items() if not _is_no_gold(name)}
    named = [name for name in found if _is_named_gold(name)]
    others = [
        name
        for name, texts in found.items()
        if name not in named and 2 * len(texts) > len(rows) and _share_distinct(texts) > 0.5 and _has_sentences(texts)
    ]
    return [*named, *others]


def _texts_by_path(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        for path, text in _texts(row):
            found.setdefault(path, []).append(text)
    return found


def _texts(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a row and of the objects in it, with their paths; of a list the first."""
    for name, value in values.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for key, each in inner.items():
            first = given(each[0] if isinstance(each, list) and each else each)
            if isinstance(first, (str, int, float)) and not isinstance(first, bool) and str(first).strip():
                yield f"{name}.{key}" if key else str(name), str(first).strip()


def _asking(texts: Sequence[str]) -> float:
    marked = sum(text.endswith(_MARKS) for text in texts) / len(texts)
    sentences = sum(len(text.split()) >= _SENTENCE for text in texts) / len(texts)
    shortness = 1 / (1 + sum(map(len, texts)) / len(texts) / 1000)
    return (2 * marked + sentences) * _share_distinct(texts) * shortness


def _share_distinct(texts: Sequence[str]) -> float:
    return len({*texts}) / len(texts)


def _has_sentences(texts: Sequence[str]) -> bool:
    return 2 * sum(len(text.split()) >= _SENTENCE for text in texts) >= len(texts)


def _is_named_gold(name: str) -> bool:
    words = name.replace(".", "_").replace("-", "_").replace(" ", "_").casefold().split("_")
    return any(each in plain_name(name) for each in _GOLD) or bool(_GOLD_WORDS & {*words})


def _is_no_gold(name: str) -> bool:
    last = name.replace(".", "_").replace("-", "_").replace(" ", "_").casefold().rpartition("_")[2]
    is_retrieved = "context" in plain_name(name) or "retriev" in plain_name(name)
    return is_retrieved or last in _NO_GOLD or last.removesuffix("s") in _NO_GOLD


_T = TypeVar("_T")
MAPPED = (
    "query_id", "query", "ground_truth", "evidence", "context_reference", "query_type", "answerable", "conversation",
    "tools",
)  # fmt: skip
"""Our fields that a column of a file may be."""
_SCORED = "answers and what they were made of, {}: they are scored, not asked (rag-harness judge score)"
_UNREAD = "{}: items that are neither a text nor an object with one"
_NO_TEXT = "{}: an object with {}, and no text that is known. Say where its texts are: --map {}={}.{}"
_ALONE = (
    "a reply to a question that stands alone: it is not ground truth unless you say so, e.g. --map "
    "reference=messages.1.content"
)


_EMPTY: Sequence[Any] = ("", [], {})


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
        self._known_paths: dict[tuple[str, tuple[str, ...]], Sequence[str]] = {}
        self._owing = 0
        self._unknown: list[Mapping[str, Any]] = []
        """Labels that have names of the file's own, of the first questions."""

    def note_unfound(self, file: Path) -> None:
        """Note what ``--map`` names and no record has. It is for the end."""
        for name, path in self._chosen.items():
            if name not in self._found:
                self._notes.lose(f"--map {name}={path}: no record has it", str(file))

    def note_missing_gold(self, file: Path) -> None:
        """Note that no question has a ground truth or owes anything, though columns may hold one. It is for the end."""
        if self._owing or not any(self._unknown):
            return
        if likely := likely_gold(self._unknown):
            asked = f"Is it {' or '.join(likely)}? Then say so: --map ground_truth={likely[0]}"
            self._notes.lose(f"no record has a ground truth. {asked}", str(file))
        else:
            names = dict.fromkeys(name for labels in self._unknown for name in labels if _has(labels, name))
            self._notes.tell(f"no record has a ground truth. Labels now: {', '.join(names) or 'none'}", str(file))

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
        made = self._made(record, said)
        self._owing += bool(made.ground_truth or made.expect or made.tools or made.answerable is False)
        return made

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
            self._plain("query_id", values, where),
            ground_truth,
            [(text, document or about) for text, document in contexts],
            documents,
            kept_demands(self._expected(values, where), where, self._notes),
            wanted_tools(self._value(values, "tools"), self._used(values, "tools"), where, self._notes),
            query_type=self._plain("query_type", values, where) or self._source.type_of(values),
            answerable=noted_flag(
                self._value(values, "answerable"), self._used(values, "answerable"), where, self._notes
            ),
            metadata=labels_of(self._labels(values), where, self._notes),
            inputs={**self._beside("query", values), **said.beside, **dict(self._below("inputs", values))},
            before=said.before,
            reply=said.reply,
            conversation=self._plain("conversation", values, where),
            synthetic=self._source.is_synthetic(values),
        )

    def _dialogue(self, values: Mapping[str, Any], where: str) -> Dialogue | None:
        value = structured(self._value(values, "query"))
        if isinstance(value, dict) and are_messages(value.get("messages")):
            others = {name: each for name, each in value.items() if name != "messages"}
            said = dialogue_of(value["messages"], where, self._notes)
            return said and replace(said, beside=others)
        if are_messages(value):
            return dialogue_of(value, where, self._notes)
        text = self._text(value, "query", values, where)
        return Dialogue((), text) if text else None

    def _ground_truth(self, values: Mapping[str, Any], where: str) -> str:
        value = structured(self._value(values, "ground_truth"))
        if isinstance(value, list):
            listed = flat(value)
            if all(isinstance(each, dict) and isinstance(each.get("text"), str) for each in listed):
                for name in other_members(listed, ("text", "role", "speaker")):
                    self._notes.leave(f"{name}: it is beside the ground truth, and is left out", where)
                listed = [each["text"] for each in listed]
            found = [self._text(each, "ground_truth", values, where) for each in listed]
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

    def _plain(self, field: str, values: Mapping[str, Any], where: str) -> str:
        value = self._value(values, field)
        if isinstance(value, (list, dict)) and value:
            name = self._used(values, field)
            self._notes.lose(f"{name}: expected a text, found a list or an object", where)
        return plain_text(value)

    def _contexts(self, values: Mapping[str, Any], where: str) -> list[tuple[str, str]]:
        self._note_beside("evidence", values, where, TEXT_NAMES, DOCUMENT_NAMES)
        return self._several("evidence", lambda value: contexts_of(value, self._source.separator), values, where)

    def _documents(self, values: Mapping[str, Any], where: str) -> list[str]:
        self._note_beside("context_reference", values, where, DOCUMENT_NAMES)
        return self._several("context_reference", lambda value: documents_of(value, "|"), values, where)

    def _note_beside(self, field: str, values: Mapping[str, Any], where: str, *read: Sequence[str]) -> None:
        if others := beside_texts(self._value(values, field), *read):
            self._notes.leave(f"{self._used(values, field)}: {', '.join(others)} beside the texts", where)

    def _several(
        self, field: str, read: Callable[[Any], tuple[list[_T], int]], values: Mapping[str, Any], where: str
    ) -> list[_T]:
        name = self._used(values, field)
        try:
            found, unread = read(self._value(values, field))
        except ListCellError as error:
            raise DataError(f"{where}: {name}: {error}.") from None
        if unread:
            self._notes.lose(self._unread(field, name, values), where)
        return found

    def _unread(self, field: str, name: str, values: Mapping[str, Any]) -> str:
        value = structured(self._value(values, field))
        if not isinstance(value, dict):
            return _UNREAD.format(name)
        texts = (key for key, each in value.items() if isinstance(next(iter(flat([each])), None), str))
        likely = next(texts, next(iter(value)))
        return _NO_TEXT.format(name, ", ".join(map(repr, value)), field, name, likely)

    def _expected(self, values: Mapping[str, Any], where: str) -> Sequence[Demand]:
        try:
            return self._source.expected(values)
        except ListCellError as error:
            raise DataError(f"{where}: what is expected: {error}.") from None

    def _value(self, values: Mapping[str, Any], field: str) -> Any:
        value = value_at(values, name) if (name := self._used(values, field)) else None
        if value is not None:
            self._found.add(field)
        return value

    def _used(self, values: Mapping[str, Any], field: str) -> str:
        """Return the column or path that a field is read from; "" where the record has none."""
        if field in self._chosen:
            return self._chosen[field]
        known = [path for path in self._paths(field, tuple(values)) if value_at(values, path) is not None]
        return next((path for path in known if value_at(values, path) not in _EMPTY), next(iter(known), ""))

    def _paths(self, field: str, names: tuple[str, ...]) -> Sequence[str]:
        """Return which columns and paths of a record with these columns may be a field, those that count more first."""
        if (field, names) not in self._known_paths:
            columns = columns_by_name(names)
            paths = [columns.get(plain_name(name), name) for name in self._source.names_of(field)]
            found = [path for path in paths if path in names or path.partition(".")[0] in names]
            self._known_paths[field, names] = found
        return self._known_paths[field, names]

    def _below(self, above: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for ours, path in self._chosen.items():
            if ours.startswith(f"{above}.") and (value := value_at(values, path)) is not None:
                self._found.add(ours)
                yield ours.removeprefix(f"{above}."), value

    def _beside(self, field: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other members of the object that a chosen path leads into."""
        above, _, key = self._used(values, field).rpartition(".")
        holder = structured(value_at(values, above)) if above else None
        taken = {key, *(path.removeprefix(f"{above}.") for path in self._chosen.values())}
        return {k: v for k, v in holder.items() if k not in taken} if isinstance(holder, dict) else {}

    def _labels(self, values: Mapping[str, Any]) -> dict[str, Any]:
        source = self._source
        used = {path for field in MAPPED if (path := self._used(values, field))} | {*self._chosen.values()}
        known = {*source.scored, *source.unmatched, *source.unread, *source.read_otherwise, *source.objects}
        taken = {
            name
            for name in values
            if name in known or name in used or any(each.startswith(f"{name}.") for each in used)
        }
        unknown = {name: value for name, value in values.items() if name not in taken}
        unknown |= self._rest(values, used)
        if len(self._unknown) < LOOKED_AT:
            # A table of no tool may have its gold under a name that others give to answers.
            answers = source.scored if not source.typical else ()
            self._unknown.append({**unknown, **{name: values[name] for name in answers if _has(values, name)}})
        found: dict[str, Any] = {}
        for name in source.objects:
            inner = structured(values.get(name)) if name not in used else None
            found |= inner if isinstance(inner, dict) else {name: inner}
        twice = {name: f"metadata.{name}" for name in found if name in unknown}
        found = {twice.get(name, name): value for name, value in found.items()}
        return found | unknown | dict(self._below("metadata", values))

    def _rest(self, values: Mapping[str, Any], used: Collection[str]) -> dict[str, Any]:
        """Return the members of objects of which a part is used, but not those beside a question or its answer."""
        beside = {self._used(values, field).rpartition(".")[0] for field in ("query", "ground_truth")}
        found: dict[str, Any] = {}
        above = {path.partition(".")[0] for path in used if "." in path and path not in values}
        level = [(name, structured(values.get(name))) for name in sorted(above)]
        while level:
            path, holder = level.pop()
            if path in used or not isinstance(holder, dict):
                continue
            for key, value in holder.items():
                below = f"{path}.{key}"
                if any(each.startswith(f"{below}.") for each in used):
                    level.append((below, structured(value)))
                elif below not in used and path not in beside:
                    found[below] = value
        return found

    def _note_others(self, values: Mapping[str, Any], where: str) -> None:
        used = {*self._chosen.values()}
        if scored := [name for name in self._source.scored if _has(values, name) and name not in used]:
            self._notes.leave(_SCORED.format(", ".join(scored)), where)
        for name in self._source.unread:
            if _has(values, name) and name not in used:
                self._notes.leave(f"{name}: it says nothing of a question", where)
        for name in self._beside("ground_truth", values):
            self._notes.leave(f"{name}: it is beside the ground truth, and is left out", where)
        for name, why in self._source.unmatched.items():
            if _has(values, name) and name not in used:
                self._notes.lose(f"{name}: {why}", where)


@lru_cache(256)
def columns_by_name(names: tuple[str, ...]) -> Mapping[str, str]:
    """Return the first column of each name, as names are compared."""
    return {plain_name(name): name for name in reversed(names)}


def _has(values: Mapping[str, Any], name: str) -> bool:
    value = structured(values.get(name))
    return value not in (None, "") and not (isinstance(value, (list, dict)) and not value)


def lacking_question(source: SourceFields, chosen: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what to do where no column of the first rows is the question; "" where one is."""
    names = [*dict.fromkeys(name for row in rows for name in row)]
    columns = columns_by_name(tuple(names))
    if "query" in chosen or any(plain_name(name) in columns for name in source.names_of("query")):
        return ""
    likely = likely_question(rows)
    return f"none of its columns is the question: {', '.join(names)}. Say which: --map question={likely or 'COLUMN'}"
