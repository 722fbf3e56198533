"""Files of records: CSV, JSON, JSONL, Parquet and YAML."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from rag_harness.core.errors import DataError, PrerequisiteError
from rag_harness.core.json_text import DEEPEST_JSON, after_blanks, is_deep, read_json
from rag_harness.core.registry import missing_package
from rag_harness.data.source_records import SourceRecord, check_there, field_meant, not_utf8, text_of

# Records of a CSV file: with commas, semicolons or tabs, a byte order mark or none, as spreadsheets write them.

_DELIMITERS = ",;\t"
_LONGEST_CELL = 16 << 20
_QUOTE = "Put cells with separators in quotes, and double the quotes inside."


def csv_records(file: Path) -> Iterator[SourceRecord]:
    """Yield a record for each row that is not blank. The file is read row by row.

    Raises:
        DataError: the file is missing, empty, not UTF-8 or no CSV; the header lacks a name or has one twice, or there
            are two; a row has more or fewer cells than the header.
    """
    check_there(file)
    # A cell may hold a whole list of contexts; the module's own limit is 128 kB. It is one for the whole process.
    csv.field_size_limit(max(_LONGEST_CELL, csv.field_size_limit()))
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = _rows(file, stream)
            line, header = next(rows, (1, []))
            names = _checked(header, f"{file}:{line}")
            for number, (line, row) in enumerate(rows):
                if _is_header(row, names, is_first=not number):
                    raise DataError(f"{file}:{line}: a second header: {', '.join(row)}. Remove one of the two.")
                if len(row) != len(header):
                    raise DataError(f"{file}:{line}: {len(row)} cells under a header of {len(header)}. {_QUOTE}")
                values = {name: cell or None for name, cell in zip(names, row, strict=True) if name}
                yield SourceRecord(f"{file}:{line}", values, line)
    except UnicodeDecodeError:
        raise not_utf8(file, _first_undecoded(file)) from None


def _rows(file: Path, stream: IO[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its first line."""
    begin, delimiter = 1, ","
    head = stream.readline()
    if head.lower().startswith("sep=") and len(head.strip()) == len("sep=;"):  # Excel's own line about the separator
        begin, delimiter = 2, head.strip()[-1]
    else:
        delimiter = max(_DELIMITERS, key=_outside_quotes(head).count)
        stream.seek(0)
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    line = begin
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield line, row
            line = begin + reader.line_num
    except csv.Error as error:
        raise DataError(f"{file}:{line}: no CSV: {error}. {_QUOTE}") from None


def _outside_quotes(text: str) -> str:
    return "".join(text.split('"')[::2])


def _is_header(row: Sequence[str], names: Sequence[str], *, is_first: bool) -> bool:
    """Return whether a row names columns: those of the header again, or, as the first row, a question and its gold."""
    if row[0].strip() == names[0] and [cell.strip() for cell in row] == names:
        return True
    if not is_first:
        return False
    meant = {field_meant(cell) for cell in row} - {""}
    return len(meant) > 1 and "query" in meant


def _checked(header: Sequence[str], where: str) -> list[str]:
    """Return the names of the columns. The first may have none: pandas writes the index of a frame there."""
    names = [name.strip() for name in header]
    unnamed = [place for place, name in enumerate(names, 1) if not name and place > 1]
    if unnamed:
        raise DataError(f"{where}: column {unnamed[0]} has no name. Name it, or remove it.")
    twice = [name for name, count in Counter(filter(None, names)).items() if count > 1]
    if twice:
        raise DataError(f"{where}: column {twice[0]!r} is there twice. Rename one.")
    if not any(names):
        raise DataError(f"{where}: no header. The first row names the columns.")
    return names


def _first_undecoded(file: Path) -> int:
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode("utf-8-sig")
            except UnicodeDecodeError:
                return number
    return 1


# Records that an object of JSON holds: itself, the items of its list, or its columns, a record an index.
#
# ``{"results": [{…}, {…}]}``, ``{"question": [a, b], "answer": [c, d]}``, and a frame of pandas in any of its forms.

_WRAPPERS = frozenset(
    {"data", "items", "examples", "goldens", "samples", "records", "rows", "questions", "results", "queries",
     "dataset", "instances", "entries", "tests", "cases", "test_cases", "qas", "train", "test", "dev", "validation"}
)  # fmt: skip
"""Names under which an object holds the records of a file."""
_ASKED = ("query", "turns", "scenario")
_HOLDERS = ("inputs", "vars", "data", "fields", "row", "item")
"""Names under which a record has its question one level lower."""
_SEVERAL_WORDS = 2


def whole_records(value: Mapping[str, Any], file: str) -> Iterator[SourceRecord]:
    """Yield the records of an object that is all of a file.

    Raises:
        DataError: a record is not an object, columns have unequal lengths, or several lists contain records.
    """
    key = _list_of_records(value, file) or _only_list(value)
    inner = next((each for name, each in value.items() if name in _WRAPPERS and _is_wrapper(each)), None)
    if key:
        beside = [name for name, each in value.items() if name != key and each not in (None, "", [], {})]
        for number, each in enumerate(value[key]):
            for record in held_records(each, f"{file}, {key}[{number}]"):
                yield replace(record, beside=beside) if beside else record
                beside = []
    elif inner is not None and not _asks(value):
        yield from whole_records(inner, file)
    else:
        yield from held_records(value, f"{file}:1")


def held_records(value: Any, where: str) -> Iterator[SourceRecord]:
    """Yield the records of one object of several: the rows of its columns, else itself.

    Raises:
        DataError: the value is not an object, or its columns have unequal lengths.
    """
    if not isinstance(value, dict):
        raise DataError(f"{where}: an object was expected, found {json.dumps(value)[:60]}.")
    if (key := _list_of_records(value, where)) is not None:
        for number, each in enumerate(value[key]):
            yield from held_records(each, f"{where}, {key}[{number}]")
        return
    columns = _columns(value)
    if columns is None:
        row = value.get("row")
        # The service of data sets at Hugging Face puts each row below its number.
        yield SourceRecord(where, row if isinstance(row, dict) and "row_idx" in value else value)
    else:
        yield from _records_of_columns(columns, value, where)


def _list_of_records(value: Mapping[str, Any], where: str) -> str | None:
    """Return the list whose items ask; None where the object itself asks, or no list does.

    Raises:
        DataError: several lists do.
    """
    if _asks(value):
        return None
    asking = [name for name, each in value.items() if _is_listed(each) and any(map(_asks, each))]
    if len(asking) > 1:
        raise DataError(f"{where}: several lists hold questions: {', '.join(asking)}. Write each into a file.")
    return asking[0] if asking else None


def _only_list(value: Mapping[str, Any]) -> str | None:
    """Return the list that probably is the records of a file, though no item has a name that means a question."""
    if _asks(value):
        return None
    lists = [name for name, each in value.items() if _is_listed(each)]
    named = [name for name in lists if name in _WRAPPERS]
    if len(named or lists) != 1:
        return None
    # A text of several words may be a question under a name that is not known; then the list is the record's own.
    says = any(isinstance(each, str) and len(each.split()) >= _SEVERAL_WORDS for each in value.values())
    return next(iter(named), None) or (None if says else lists[0])


def _is_wrapper(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return any(name in _WRAPPERS and _is_listed(each) for name, each in value.items()) or _columns(value) is not None


def _is_listed(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


def _asks(value: Any) -> bool:
    """Return whether an object has a question, itself or in the object that holds its fields."""
    if not isinstance(value, Mapping):
        return False
    inner = [each for name in _HOLDERS if isinstance(each := value.get(name), Mapping)]
    return any(
        each not in (None, "", [], {}) and field_meant(name) in _ASKED and not _is_column(each)
        for values in (value, *inner)
        for name, each in values.items()
    )


def _is_column(value: Any) -> bool:
    """Return whether a value is texts by their index, and no list of messages."""
    if isinstance(value, Mapping):
        return bool(value) and all(name.isdecimal() for name in value)
    return isinstance(value, list) and bool(value) and all(each is None or isinstance(each, str) for each in value)


def _columns(value: Mapping[str, Any]) -> Mapping[str, list[Any]] | None:
    """Return columns by name; None where an object has none."""
    names, rows = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(rows, list) and all(isinstance(row, list) for row in rows):
        return {str(name): [row[at] for row in rows if at < len(row)] for at, name in enumerate(names)}
    is_asked = any(_is_column(each) and field_meant(name) == "query" for name, each in value.items())
    is_table = len(value) > 1 and all(_is_column(each) for each in value.values())
    if not is_asked and not is_table:
        return None
    listed = {
        name: [*each.values()] if isinstance(each, dict) and _is_column(each) else each for name, each in value.items()
    }
    return {name: each for name, each in listed.items() if isinstance(each, list)}


def _records_of_columns(
    columns: Mapping[str, list[Any]], value: Mapping[str, Any], where: str
) -> Iterator[SourceRecord]:
    lengths = {name: len(each) for name, each in columns.items()}
    if len({*lengths.values()}) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"{where}: columns of unequal length: {said}. Each needs a value a row.")
    others = {name: each for name, each in value.items() if name not in columns}
    if "columns" in others:  # a frame split into names, index and cells
        others = {}
    for number, cells in enumerate(zip(*columns.values(), strict=True)):
        yield SourceRecord(f"{where}, row {number + 1}", {**others, **dict(zip(columns, cells, strict=True))})


MOST_JSON = 512 << 20
"""The most bytes of a JSON file: it is read whole, and its values take several times its size."""
_DECODER = json.JSONDecoder()


def json_records(file: Path) -> Iterator[SourceRecord]:
    """Yield the records of a JSON or JSONL file, whichever its content is.

    Raises:
        DataError: the file is missing, empty, too large, not UTF-8 or not JSON, a record is not an object, columns
            have unequal lengths, or several lists contain records.
    """
    text = text_of(file, MOST_JSON)
    begin = after_blanks(text, 0)
    first, _, others = text[begin:].partition("\n")
    if text[begin] == "[":
        yield from _items(file, text, begin)
    elif text[begin] == "{" and not (others.strip() and _is_json(first)):
        yield from whole_records(_whole(file, text), str(file))
    else:
        yield from _lines(file, text)


def _lines(file: Path, text: str) -> Iterator[SourceRecord]:
    # split("\n") and not splitlines(): a U+2028 inside a JSON string does not end a line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{file}:{number}"
            try:
                value = read_json(line)
            except ValueError as error:
                raise DataError(f"{where}: no JSON: {error}. Was the file cut short?") from None
            yield from held_records(value, where)


def _whole(file: Path, text: str) -> Any:
    try:
        return read_json(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{file}:{error.lineno}: no JSON: {error.msg} at column {error.colno}. Was the file cut short?"
        ) from None


def _items(file: Path, text: str, begin: int) -> Iterator[SourceRecord]:
    """Yield the items of a list, one decoded at a time, with their lines."""
    place, counted, line = after_blanks(text, begin + 1), 0, 1
    while text[place : place + 1] not in ("]", ""):
        line += text.count("\n", counted, place)
        counted, where = place, f"{file}:{line}"
        try:
            value, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: no JSON: {error}. Was the file cut short?") from None
        if is_deep(value):
            raise DataError(f"{where}: nested too deeply.")
        yield from held_records(value, where)
        place = after_blanks(text, place)
        if text[place : place + 1] == ",":
            place = after_blanks(text, place + 1)
        elif text[place : place + 1] != "]":
            raise DataError(f"{where}: no JSON: a comma or ] is missing behind this item. Was the file cut short?")
    if text[place : place + 1] != "]" or text[place + 1 :].strip():
        raise DataError(f"{file}: no JSON: one list was expected, and it ends early or something follows it.")


def _is_json(line: str) -> bool:
    try:
        read_json(line)
    except ValueError:
        return False
    return True


_READ = 256
"""Rows to read at a time."""


def parquet_records(file: Path) -> Iterator[SourceRecord]:
    """Yield a record for each row.

    Raises:
        DataError: the file is missing, empty or no Parquet.
        PrerequisiteError: pyarrow is not installed; names the extra.
    """
    check_there(file)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise PrerequisiteError(missing_package(f"Parquet file {file}", error)) from None
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=_READ, use_threads=False):
                for row in batch.to_pylist():
                    number += 1
                    yield SourceRecord(f"{file}, row {number}", row, number)
    except (pyarrow.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{file} cannot be read as Parquet: {said} Was it cut short?") from None


READERS: Mapping[str, Callable[[Path], Iterator[SourceRecord]]] = {
    ".csv": csv_records,
    ".tsv": csv_records,
    ".json": json_records,
    ".jsonl": json_records,
    ".ndjson": json_records,
    ".parquet": parquet_records,
}
"""How a file is read, by its ending."""
TABLES = (".csv", ".tsv", ".parquet")
"""Endings of tables: their rows have the same columns."""


def records_in(file: Path) -> Iterator[SourceRecord]:
    """Yield the records of ``file``, in their order.

    Raises:
        DataError: the file is missing, empty or malformed, or of a kind that is not read; names file and line or row.
        PrerequisiteError: a package is missing that the file needs.
    """
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise DataError(f"{file} ends in none of {', '.join(READERS)}, so it cannot be told what it is. Rename it.")
    yield from reader(file)


def is_table(file: Path) -> bool:
    """Return whether a file is a table, by its ending."""
    return file.suffix.lower() in TABLES


# Values of YAML from outside, as YAML 1.2 has them: ``yes``, ``12:30`` and ``2024-03-01`` are texts.
#
# PyYAML reads YAML 1.1, where these are true, 750 and a date: an assertion ``contains: no`` would ask for ``False``.

MOST_YAML = 32 << 20
"""The most bytes of a YAML file."""
_MOST_NODES = 2_000_000
"""The most values, each counted as often as an alias names it."""
_RESOLVED = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
    ("merge", r"<<", "<"),
)


class YamlText(NamedTuple):
    """A value, and the node that it was made of, which knows the lines of its parts."""

    value: Any
    node: Any

    def line_of(self, *path: str | int) -> int:
        """Return the line, from 1, of the part below ``path``, or of the last part on the way that there is."""
        node = self.node
        for step in path:
            node = _below(node, step) or node
        return int(node.start_mark.line) + 1 if node else 1


def read_yaml(text: str, where: str) -> YamlText:
    """Return the value that a YAML text encodes. ``where``, its place, begins a message.

    Raises:
        DataError: the text is not YAML, is nested too deeply, or its aliases expand to more than fits in memory.
    """
    import yaml

    loader = _loader()
    try:
        _check_depth(yaml.parse(text, loader), where)
        made = loader(text)
        try:
            node = made.get_single_node()
            if node is None:
                return YamlText(None, None)
            if _count(node, {}) > _MOST_NODES:
                raise DataError(f"{where}: its aliases mean more than {_MOST_NODES:,} values. Write them out.")
            return YamlText(made.construct_document(node), node)
        finally:
            made.dispose()
    except (yaml.YAMLError, ValueError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise DataError(f"{where}{line}: no YAML: {getattr(error, 'problem', None) or error}.") from None


@lru_cache(1)
def _loader() -> Any:
    import yaml

    loader: Any = type("Yaml12Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.yaml_implicit_resolvers = {}
    for kind, pattern, first in _RESOLVED:
        tag, compiled = f"tag:yaml.org,2002:{kind}", re.compile(rf"(?:{pattern})\Z")
        loader.add_implicit_resolver(tag, compiled, [*first.replace("\0", ""), *([""] if "\0" in first else [])])
    return loader


def _check_depth(events: Any, where: str) -> None:
    """Refuse a value that is nested too deeply, before a recursive function walks through it."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        if depth > DEEPEST_JSON:
            raise DataError(f"{where}:{event.start_mark.line + 1}: nested deeper than {DEEPEST_JSON} levels.")


def _count(node: Any, known: dict[int, int]) -> int:
    """Return how many values a node has with all aliases followed; a node that holds itself has too many."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = _MOST_NODES + 1
    found = 1 + sum(_count(each, known) for each in _parts(node))
    known[id(node)] = found
    return found


def _parts(node: Any) -> Sequence[Any]:
    if node.id == "mapping":
        return [part for pair in node.value for part in pair]
    return node.value if node.id == "sequence" else ()


def _below(node: Any, step: str | int) -> Any:
    if node is None:
        return None
    if isinstance(step, int):
        return node.value[step] if node.id == "sequence" and step < len(node.value) else None
    if node.id != "mapping":
        return None
    return next((value for key, value in node.value if key.value == step), None)
