"""Tables of questions, CSV and Parquet, as lines of ``queries.jsonl``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.core.errors import DataError
from rag_harness.core.files import text_digest
from rag_harness.core.json_text import read_json
from rag_harness.data.record_files import records_in
from rag_harness.data.source_records import field_meant, plain_text, said_flag, texts_of, value_at

# Ids of questions whose file has none: digests, so that the same question has the same id in every file.

_LONGEST = 100
_OTHERS = re.compile(r"[^A-Za-z0-9_.\-]+")


def id_of_question(text: str, kind: str = "q") -> str:
    """Return an id made of a question's text; white space does not count. ``kind`` is its prefix."""
    return f"{kind}_{text_digest(' '.join(text.split()))[:12]}"


def as_id(name: str) -> str:
    """Return a name in the letters that an id may have; empty where none is left."""
    return _OTHERS.sub("-", name.strip())[:_LONGEST].strip("-")


# Tables of questions, CSV and Parquet, as lines of ``queries.jsonl``: a row a question.
#
# Columns are known by their names, those of other tools among them (``user_input`` is ``query``), or by ``--rag-map``.
# Any other column is a label. A question without an id has a digest of its text.

_TEXTS = ("query_id", "query", "query_type", "ground_truth", "conversation", "reply", "standalone")
_JSON = ("expect", "tools", "qrels", "turns", "scenario")
_OBJECTS = ("metadata", "inputs")
_BELOW = ("metadata.", "inputs.")


class QuestionRow(NamedTuple):
    """A row as a line of ``queries.jsonl``, with the number of its line or row and the faults of its cells."""

    number: int
    text: str
    problems: list[str]


def rows_of_table(file: Path, mapped: Mapping[str, str]) -> Iterator[QuestionRow]:
    """Yield the rows of a table of questions.

    Args:
        file: CSV, TSV or Parquet.
        mapped: the column or path of each field that is not known by its column's name.

    Raises:
        DataError: the file cannot be read, no column is the question, two are one field, or a named one is not there.
    """
    columns: dict[str, str] | None = None
    for record in records_in(file):
        if columns is None:
            columns = columns_of(str(file), list(record.values), mapped)
        line, problems = line_of_cells(record.values, columns)
        yield QuestionRow(record.number, json.dumps(line, ensure_ascii=False, default=str), problems)


def columns_of(where: str, names: list[str], mapped: Mapping[str, str]) -> dict[str, str]:
    """Return the column or path of each field. Labels and inputs are ``metadata.NAME`` and ``inputs.NAME``.

    Args:
        where: the file or frame, for messages.
        names: of its columns.
        mapped: the column or path of each field that is not known by its column's name.

    Raises:
        DataError: no column is the question, two are one field, or a named one is not there.
    """
    listed = ", ".join(names)
    for field, path in mapped.items():
        if path not in names and path.partition(".")[0] not in names:
            raise DataError(f"{where}: rag_map says {field}={path}, and there is no such column. There are: {listed}.")
    found, taken = dict(mapped), {*mapped.values(), *(path.partition(".")[0] for path in mapped.values())}
    for name in names:
        if name in taken:
            continue
        below = name if name.startswith(_BELOW) else ""
        field = below or field_meant(name) or f"metadata.{name}"
        if field in found and field in mapped:
            field = f"metadata.{name}"
        if field in found:
            raise DataError(
                f"{where}: columns {found[field]!r} and {name!r} are both {field}. Say which one counts: "
                f"--rag-map {field}={found[field]}"
            )
        found[field] = name
    if "query" not in found and not {"turns", "scenario"} & found.keys():
        raise DataError(f"{where}: no column is the question: {listed}. Say which: --rag-map question={names[0]}")
    return found


def line_of_cells(values: Mapping[str, Any], columns: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the cells of a row as a line of ``queries.jsonl``, and their faults.

    Args:
        values: the cells by column.
        columns: the column or path of each field.
    """
    problems: list[str] = []
    line: dict[str, Any] = {}
    below: dict[str, dict[str, Any]] = {}
    for field, path in columns.items():
        value = value_at(values, path)
        if value in (None, ""):
            continue
        above, _, name = field.partition(".")
        try:
            if name:
                below.setdefault(above, {})[name] = value
            elif field in _OBJECTS:
                line[field] = _named_values(field, path, value)
            else:
                line[field] = _value(field, value)
        except ValueError as error:
            problems.append(f"{path}: {error}")
    # What a column says of one row counts more than an object that says it, too.
    line |= {above: {**line.get(above, {}), **found} for above, found in below.items()}
    _quote(line, problems)
    if "query" in line and not {"query_id", "conversation"} & line.keys():
        line["query_id"] = id_of_question(str(line["query"]))
    return line, problems


def _value(field: str, value: Any) -> Any:
    """Return the value of a cell as its field has it.

    Raises:
        ValueError: the value has another form. The message has the expected one.
    """
    if field in _TEXTS:
        return _one_text(value)
    if field == "context_reference":
        return texts_of(value, "|")
    if field == "evidence":
        return _evidence(value)
    if field == "answerable":
        if (flag := said_flag(value)) is None:
            raise ValueError(f"yes or no was expected, found {plain_text(value)[:40]!r}")
        return flag
    if field == "turn":
        return int(plain_text(value).removesuffix(".0"))
    return _of_json(value) if field in _JSON else value


def _named_values(field: str, path: str, value: Any) -> dict[str, Any]:
    """Return the object that a cell holds. Labels that are none are a label of the column's name.

    Raises:
        ValueError: it is broken JSON, or inputs without names.
    """
    is_plain = isinstance(value, str) and value.lstrip()[:1] not in ("{", "[")
    found = value if is_plain else _of_json(value)
    if isinstance(found, dict):
        return found
    if field == "inputs":
        raise ValueError(f"an object was expected, found {found!r:.40}")
    return {path: found}


def _one_text(value: Any) -> str:
    if isinstance(value, (list, dict)):
        raise ValueError("a text was expected, found a list or an object. Name its place: --rag-map FIELD=COLUMN.KEY")
    return plain_text(value)


def _evidence(value: Any) -> list[Any]:
    """Return quotes: texts, or objects with filename and quote."""
    if isinstance(value, str) and value.lstrip()[:1] == "[" and value.lstrip()[1:].lstrip()[:1] == "{":
        value = _of_json(value)
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return value
    return texts_of(value, "|")


def _of_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from None


def _quote(line: dict[str, Any], problems: list[str]) -> None:
    """Give each quote that is a text its document: the only one of the row."""
    quotes = line.get("evidence", [])
    if not any(isinstance(each, str) for each in quotes):
        return
    pages = line.get("context_reference", [])
    if len(pages) != 1:
        problems.append(
            f"evidence: quotes of {len(pages)} documents. Name the one document of the row, write "
            '[{"filename": …, "quote": …}], or have them looked for: rag-harness queries import FILE --kb DIR'
        )
        del line["evidence"]
        return
    line["evidence"] = [{"filename": pages[0], "quote": each} if isinstance(each, str) else each for each in quotes]
