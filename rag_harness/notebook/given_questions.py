"""Questions as a person hands them over -> a file that the reader of ``queries.jsonl`` takes.

A file is read where it lies. Anything else becomes lines of ``<output>/asked/queries.jsonl``, so that a run of pytest
can be asked the same: ``--rag-queries=output/asked/queries.jsonl``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isnan
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from rag_harness.dataset.expected_tools import tools_as_json
from rag_harness.dataset.query_tables import columns_of, line_of_cells
from rag_harness.dataset.records.field_names import field_meant
from rag_harness.errors import CriticalError, DataError
from rag_harness.expectations import as_json
from rag_harness.files.atomic import write_atomically
from rag_harness.types import Case

ASKED = "asked"
"""Folder beside the result files of questions that were no file."""
_WANTED = "a path, a DataFrame, or a list of questions, (question, expected answer), dicts or Case"
_PAIR = ("query", "ground_truth")


def questions_file(queries: object, output: Path) -> Path:
    """Return the file of questions; write it where they are no file.

    Args:
        queries: the path of a JSONL file or a table; a DataFrame, whose columns are known as those of tables; or a
            list: texts, pairs of question and expected answer, dicts with the fields of a question, ``Case``.
        output: folder of the result files.

    Raises:
        DataError: there is no question, or one has a form that is none of these; says which.
        CriticalError: the file cannot be written.
    """
    if isinstance(queries, (str, PathLike)):
        return Path(fspath(queries)).absolute()
    lines = [_line(number, each) for number, each in enumerate(_items(queries), 1)]
    if not lines:
        raise DataError(f"evaluate: there is no question. Expected {_WANTED}.")
    file = output / ASKED / "queries.jsonl"
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_bytes() != text.encode():
            write_atomically(file, text.encode())
    except (OSError, UnicodeEncodeError) as error:
        raise CriticalError(
            f"The questions cannot be written to {file}: {error}. Choose another folder: output="
        ) from None
    return file.absolute()


def _items(queries: object) -> Iterable[object]:
    """Return the questions of a list, or the rows of a frame as lines.

    Raises:
        DataError: it is neither.
    """
    rows = _rows(queries)
    if rows is not None:
        return rows
    if isinstance(queries, (Mapping, bytes)) or not isinstance(queries, Iterable):
        raise DataError(f"evaluate: queries is {type(queries).__name__}: expected {_WANTED}.")
    return queries


def _rows(queries: object) -> list[object] | None:
    """Return the rows of a frame of pandas or polars as lines; None where it is no frame."""
    of_polars, of_pandas = getattr(queries, "to_dicts", None), getattr(queries, "to_dict", None)
    if not (hasattr(queries, "columns") and (callable(of_polars) or callable(of_pandas))):
        return None
    records: list[dict[Any, Any]] = of_polars() if callable(of_polars) else of_pandas("records")  # type: ignore[misc]
    columns = columns_of("the frame", [str(name) for name in queries.columns], {})
    found: list[object] = []
    for number, record in enumerate(records, 1):
        line, problems = line_of_cells({str(name): _cell(value) for name, value in record.items()}, columns)
        _refuse(f"row {number} of the frame", problems)
        found.append(line)
    return found


def _cell(value: Any) -> Any:
    """Return a cell in types of JSON. A missing value of pandas is no number and no text, and unlike itself."""
    if hasattr(value, "tolist"):  # of NumPy: a scalar or an array
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_cell(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _cell(each) for name, each in value.items()}
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return None if isnan(value) else value
    return None if type(value).__name__ in ("NAType", "NaTType") else str(value)


def _line(number: int, question: object) -> dict[str, Any]:
    """Return a question as a line of ``queries.jsonl``.

    Raises:
        DataError: it has another form.
    """
    if isinstance(question, Case):
        return _line_of_case(number, question)
    if isinstance(question, str):
        question = {"query": question}
    elif (
        isinstance(question, tuple) and len(question) == len(_PAIR) and all(isinstance(each, str) for each in question)
    ):
        question = dict(zip(_PAIR, question, strict=True))
    if not isinstance(question, Mapping):
        raise DataError(f"evaluate: question {number} is {question!r:.80}: expected a text, a pair, a dict or a Case.")
    values = {str(name): _cell(value) for name, value in question.items()}
    # A name that means none of our fields stays: the reader of the line names it, and the nearest field.
    columns = {field_meant(name) or name: name for name in values}
    if len(columns) < len(values):
        raise DataError(f"evaluate: question {number}: two of {', '.join(values)} mean the same field. Leave one out.")
    line, problems = line_of_cells(values, columns)
    _refuse(f"question {number}", problems)
    return line


def _line_of_case(number: int, case: Case) -> dict[str, Any]:
    if case.scenario is not None:
        raise DataError(f"evaluate: question {number} is a turn that a simulated user says, which pytest plays.")
    if case.query.place:
        raise DataError(
            f"evaluate: question {number} is a turn of a conversation, whose history is made of the turns before it. "
            f"Name the file of the conversation."
        )
    return {
        "query_id": case.query.query_id,
        "query": case.query.text,
        "inputs": dict(case.query.inputs),
        "query_type": case.query_type,
        "answerable": case.answerable,
        "ground_truth": case.ground_truth,
        "qrels": dict(case.qrels),
        "evidence": [{"filename": each.filename, "quote": each.quote} for each in case.evidence],
        "metadata": dict(case.metadata),
        **({"expect": [as_json(each) for each in case.expect]} if case.expect else {}),
        **({} if case.tools is None else {"tools": tools_as_json(case.tools)}),
    }


def _refuse(where: str, problems: list[str]) -> None:
    if problems:
        raise DataError("\n".join(f"evaluate: {where}: {each}" for each in problems))
