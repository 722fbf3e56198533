"""Records of files that other tools wrote, and the names that these tools give to the fields of a question."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rag_harness.core.errors import DataError, SettingsError, unknown
from rag_harness.core.json_text import read_json

_YES = frozenset({"true", "t", "yes", "y", "1", "1.0", "answerable", "partial", "conversational"})
_NO = frozenset({"false", "f", "no", "n", "0", "0.0", "unanswerable"})


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One record.

    Attributes:
        where: its place, for messages: ``goldens.csv:4``, ``part.parquet, row 7``.
        values: its values by column or key. A missing value is None.
        number: its line in a CSV file, its row in a Parquet file, from 1; 0 elsewhere.
        beside: for the first record, the other keys of the object that contains the list of records.
    """

    where: str
    values: Mapping[str, Any]
    number: int = 0
    beside: Sequence[str] = ()


def given(value: Any) -> Any:
    """Return a value; None for NaN, which pandas writes for a missing value."""
    return None if isinstance(value, float) and math.isnan(value) else value


def plain_text(value: Any) -> str:
    """Return a value as one text without white space at its ends; empty for None, NaN, lists and objects."""
    known = given(value)
    if known is None or isinstance(known, (list, tuple, dict)):
        return ""
    return str(known).strip()


def said_flag(value: Any) -> bool | None:
    """Return the flag that a value states: true, false, or None for neither. The first item of a list counts."""
    first = value[0] if isinstance(value, list) and value else value
    word = plain_text(first).casefold()
    return True if word in _YES else False if word in _NO else None


def text_of(file: Path, most: int) -> str:
    """Return the text of ``file`` without a byte order mark.

    Args:
        file: the file.
        most: the most bytes that may be read.

    Raises:
        DataError: the file is missing, empty, too large or not UTF-8.
    """
    size = check_there(file)
    if size > most:
        raise DataError(f"{file} has {size / 2**20:,.0f} MiB; {most >> 20} MiB are read at most. Split it.")
    content = file.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(file, content[: error.start].count(b"\n") + 1) from None
    if not text.strip():
        raise DataError(f"{file} is empty.")
    return text


def check_there(file: Path) -> int:
    """Return the bytes of ``file``.

    Raises:
        DataError: the file does not exist, or is empty.
    """
    if file.is_dir():
        raise DataError(f"{file} is a folder. Name a file in it.")
    if not file.is_file():
        raise DataError(f"No file {file}.")
    size = file.stat().st_size
    if not size:
        raise DataError(f"{file} is empty.")
    return size


def not_utf8(file: Path, line: int) -> DataError:
    """Return the error of a file with a line that is not UTF-8."""
    return DataError(f"{file}:{line}: not UTF-8. Save the file as UTF-8 (spreadsheets: “CSV UTF-8”).")


MEANINGS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "query_id": ("query_id", "id", "question_id", "qid", "_id", "task_id", "example_id", "item_id"),
        "query": ("query", "question", "user_input", "input", "prompt", "query_text", "question_text", "user_query"),
        "ground_truth": (
            "ground_truth", "reference", "expected_output", "expected_answer", "expected_response", "reference_answer",
            "reference_response", "gt_answer", "generation_gt", "ground_truths", "ideal", "ideal_answer", "gold_answer",
            "gold_answers", "golden_answer", "golden_answers", "correct_answer", "correct_answers", "answer",
            "answers.text", "answers", "expected", "gold", "target", "targets", "reference_output",
            "reference_outputs", "output.response", "output.answer",
        ),
        "evidence": ("evidence", "reference_contexts", "contexts", "context", "reference_context", "passages"),
        "context_reference": (
            "context_reference", "documents", "document", "doc_id", "doc_ids", "source_file", "sources", "source",
            "filename", "reference_context_ids", "expected_document_id", "relevant_documents",
            "retrieval_gt",
        ),
        "query_type": ("query_type", "question_type", "type", "kind"),
        "answerable": ("answerable", "is_answerable", "answerability"),
        "expect": ("expect", "assert", "asserts", "assertions", "expectations"),
        "conversation": ("conversation", "conversation_id", "session_id", "thread_id"),
        "turn": ("turn", "turn_id", "turn_number"),
        "turns": ("turns", "messages", "dialogue", "dialog"),
        "metadata": ("metadata", "meta", "additional_metadata", "labels", "tags"),
        "inputs": ("inputs", "variables", "vars"),
        "reply": ("reply",),
        "qrels": ("qrels", "relevance"),
        "standalone": ("standalone", "rewritten_query", "standalone_question"),
        "scenario": ("scenario",),
        "tools": ("tools", "expected_tools", "reference_tool_calls"),
    }
)  # fmt: skip
"""Names of each field of ours. The first is ours; an earlier name counts more. A dot leads into an object."""
_BELOW = ("metadata", "inputs")
"""Fields with names of their own: ``metadata.difficulty``."""


def plain_name(name: str) -> str:
    """Return a name as it is compared: ``expectedOutput`` and ``Expected output`` are ``expected_output``."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


@lru_cache(1)
def _by_meaning() -> Mapping[str, str]:
    return {plain_name(name): ours for ours, names in MEANINGS.items() for name in names}


def field_meant(name: str) -> str:
    """Return our field that another tool's name means; empty where it means none."""
    return _by_meaning().get(plain_name(name), "")


def nearest_field(name: str, known: Iterable[str]) -> str:
    """Return which of ``known`` a name probably is: by its meaning, else by its spelling; empty where it is none."""
    fields = [*known]
    meant = field_meant(name)
    return meant if meant in fields else next(iter(get_close_matches(name, fields, n=1)), "")


def read_map(texts: Iterable[str], where: str, known: Iterable[str] = MEANINGS) -> dict[str, str]:
    """Return which column or path is which of our fields, of texts such as ``question=user_input``.

    Args:
        texts: each may hold several, with commas between. The name on the left may be another tool's, too.
        where: the option, for messages.
        known: our fields that may be named.

    Raises:
        SettingsError: a text has another form, names no field, or a field is named twice.
    """
    found: dict[str, str] = {}
    for text in (part.strip() for each in texts for part in each.split(",") if part.strip()):
        name, equals, path = (part.strip() for part in text.partition("="))
        if not equals or not name or not path:
            raise SettingsError(f"{where} {text!r}: FIELD=COLUMN was expected, e.g. question=user_input.")
        ours = _ours(name, [*known], f"{where} {text!r}")
        if ours in found:
            raise SettingsError(f"{where}: {ours} is named twice, as {found[ours]!r} and as {path!r}. Leave one out.")
        found[ours] = path
    return found


def _ours(name: str, known: Sequence[str], where: str) -> str:
    above, dot, below = name.partition(".")
    if dot and above in _BELOW and below:
        return name
    meant = name if name in known else field_meant(name)
    if meant not in known or meant in _BELOW:
        raise SettingsError(f"{where}: {unknown('field', name, known)} For a label: metadata.NAME=COLUMN.")
    return meant


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value of a column, or of a path with dots into objects; None where there is none.

    A text on the way that holds JSON is looked into: exports as CSV have objects in their cells.
    """
    if path in values:
        return given(values[path])
    value: Any = values
    for step in path.split("."):
        if isinstance(value, str):
            value = _object_in(value)
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, (list, tuple)) and step.isascii() and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return given(value)


def _object_in(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return None


class ListCellError(ValueError):
    """A cell begins like a list and cannot be read as one. The message has the reason."""


def texts_of(value: Any, separator: str = "") -> list[str]:
    """Return the texts of a value, without empty ones.

    Args:
        value: a list, a text that holds one, or one text. None and NaN have no texts.
        separator: the separator of the texts in a cell that is not a list.

    Raises:
        ListCellError: a text begins like a list of texts, but is valid neither in JSON nor in Python.
    """
    known = given(value)
    if isinstance(known, (list, tuple)):
        return [text for each in known if (text := plain_text(each))]
    text = plain_text(known)
    if _is_listed(text):
        return [each for item in _listed(text) if (each := plain_text(item))]
    parts = text.split(separator) if separator else [text]
    return [part for each in parts if (part := each.strip())]


def _is_listed(text: str) -> bool:
    """Whether a text is a list, and not one that begins with a link or a number in brackets."""
    return text.startswith("[") and text.endswith("]") and text[1:].lstrip()[:1] in ("'", '"', "]")


def _listed(text: str) -> list[Any]:
    try:
        found = read_json(text)
    except ValueError:
        return [*_python_texts(text)]
    return found if isinstance(found, list) else [found]


def _python_texts(text: str) -> list[str]:
    """Return the texts of a list as Python prints one. NumPy prints no commas: these would join to one text."""
    found: list[str] = []
    place = _after_blanks(text, 1)
    while place < len(text) - 1:
        end = _end_of_literal(text, place)
        found.append(_evaluated(text[place:end]))
        place = _after_blanks(text, end)
        if text[place] == ",":
            place = _after_blanks(text, place + 1)
        elif place < len(text) - 1:
            raise ListCellError(
                f"no comma behind {found[-1][:40]!r}: a list as NumPy prints it. Write the lists as JSON"
            )
    return found


def _end_of_literal(text: str, start: int) -> int:
    """Return where the literal ends that begins at ``start``."""
    mark = text[start]
    if mark not in "'\"":
        raise ListCellError(f"{text[start : start + 40]!r} is not text in a list, neither in JSON nor in Python")
    place = start + 1
    while (end := text.find(mark, place)) >= 0:
        before = text[place:end]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return end + 1
        place = end + 1
    raise ListCellError(f"the text {text[start : start + 40]!r} does not end")


def _evaluated(literal: str) -> str:
    try:
        return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError) as error:
        raise ListCellError(f"{literal[:40]!r} is not text in Python: {error}") from None


def _after_blanks(text: str, place: int) -> int:
    while place < len(text) - 1 and text[place].isspace():
        place += 1
    return place
