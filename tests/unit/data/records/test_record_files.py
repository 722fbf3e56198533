"""Files of other tools are read record by record; what cannot be read is named with its file and line."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import DataError, PrerequisiteError, SettingsError
from rag_harness.data.queries import QueryLine
from rag_harness.data.record_files import read_yaml, records_in
from rag_harness.data.source_records import (
    MEANINGS,
    ListCellError,
    field_meant,
    nearest_field,
    read_map,
    texts_of,
    value_at,
)
from tests.effort import bounded

# Files of other tools are read record by record; what cannot be read is named with its file and line.


def values_in(file: Path) -> list[dict[str, Any]]:
    return [dict(record.values) for record in records_in(file)]


def refused(file: Path) -> str:
    with pytest.raises(DataError) as caught:
        values_in(file)
    return str(caught.value).removeprefix(str(file.parent) + "/")


@pytest.mark.parametrize(
    "content",
    [
        "question,answer\nWhy?,\n",
        "\ufeffquestion,answer\r\nWhy?,\r\n",
        "question;answer\nWhy?;\n",
        "question\tanswer\nWhy?\t\n",
        "sep=;\r\nquestion;answer\r\nWhy?;\r\n",
        '"question","answer"\n\n"Why?",""\n\n',
    ],
)
def test_csv_is_read_however_a_spreadsheet_writes_it(tmp_path: Path, content: str) -> None:
    (tmp_path / "q.csv").write_bytes(content.encode())
    assert values_in(tmp_path / "q.csv") == [{"question": "Why?", "answer": None}]


def test_a_record_has_the_line_that_it_begins_on(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text('question,answer\n"Why\nnot?",1\nWho?,2\n')
    assert [each.where.rpartition(":")[2] for each in records_in(tmp_path / "q.csv")] == ["2", "4"]
    (tmp_path / "q.json").write_text('[\n {"a": 1},\n {"a":\n 2}, {"a": 3}\n]\n')
    assert [each.where.rpartition(":")[2] for each in records_in(tmp_path / "q.json")] == ["2", "3", "4"]


def test_the_index_of_a_frame_is_no_column(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text(",question\n0,Why?\n1,Who?\n")
    assert values_in(tmp_path / "q.csv") == [{"question": "Why?"}, {"question": "Who?"}]


def test_a_cell_may_be_longer_than_the_modules_limit(tmp_path: Path) -> None:
    long = "word " * 60_000
    (tmp_path / "q.csv").write_text(f"question,contexts\nWhy?,{long}\n")
    assert values_in(tmp_path / "q.csv")[0]["contexts"] == long


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("q.csv", b"", "q.csv is empty."),
        ("q.csv", b"\xef\xbb\xbf", "q.csv:1: no header"),
        ("q.csv", b"question,answer\nWhy?,Because, so\n", "q.csv:2: 3 cells under a header of 2."),
        ("q.csv", b"question,answer\nWhy?\n", "q.csv:2: 1 cells under a header of 2."),
        ("q.csv", b"question,answer,question\nWhy?,1,2\n", "q.csv:1: column 'question' is there twice."),
        ("q.csv", b"question,,x\nWhy?,1,2\n", "q.csv:1: column 2 has no name."),
        ("q.csv", b'question\n"Why?\n', "q.csv:2: no CSV: unexpected end of data."),
        ("q.csv", "question\nWhy?\nCaf\xe9?\n".encode("latin-1"), "q.csv:3: not UTF-8."),
        ("q.json", b" \n ", "q.json is empty."),
        ("q.json", b'[{"a": 1},\n{"a": 2}', "q.json:2: no JSON: a comma or ] is missing"),
        ("q.json", b'[{"a": 1},\n', "q.json: no JSON: one list was expected, and it ends early"),
        ("q.json", b'[{"a": 1}] x', "q.json: no JSON: one list was expected"),
        ("q.json", b'[{"a": 1},\n 7]', "q.json:2: an object was expected, found 7."),
        ("q.json", b'[{"a": 1},\n {"a": }]', "q.json:2: no JSON"),
        ("q.json", b"[" + b"[" * 100_000, "q.json:1: no JSON"),
        ("q.json", b'[{"a": ' + b"[" * 200 + b"]" * 200 + b"}]", "q.json:1: nested too deeply."),
        ("q.jsonl", b'{"a": 1}\n{"a": 1,}\n', "q.jsonl:2: no JSON"),
        ("q.jsonl", b'{"a": 1}\n\n[1]\n', "q.jsonl:3: an object was expected, found [1]."),
        ("q.jsonl", '{"a": "é"}\n{"a": "\xe9"}'.encode("latin-1"), "q.jsonl:1: not UTF-8."),
        ("q.parquet", b"PAR1 nothing", "q.parquet cannot be read as Parquet"),
        ("q.docx", b"x", "q.docx ends in none of .csv"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert refused(tmp_path / name).startswith(said)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert refused(tmp_path / "folder.csv") == "folder.csv is a folder. Name a file in it."
    assert refused(tmp_path / "gone.csv") == f"No file {tmp_path / 'gone.csv'}."


def test_json_is_a_list_or_lines_or_an_object_with_one_list(tmp_path: Path) -> None:
    wanted = [{"a": 1}, {"a": 2}]
    for text in (json.dumps(wanted), '{"a": 1}\n{"a": 2}\n', json.dumps({"name": "x", "items": wanted}, indent=1)):
        for name in ("q.json", "q.jsonl"):
            (tmp_path / name).write_text(text)
            assert values_in(tmp_path / name) == wanted
    (tmp_path / "q.json").write_text(json.dumps({"a": [{"b": 1}], "c": [{"b": 2}]}))
    assert values_in(tmp_path / "q.json") == [{"a": [{"b": 1}], "c": [{"b": 2}]}]


def test_parquet_gives_lists_objects_and_nothing_for_null(tmp_path: Path) -> None:
    rows = [{"question": "Why?", "contexts": ["a", "b"], "more": {"n": 1}}, {"question": None, "contexts": None}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "q.parquet")
    found = list(records_in(tmp_path / "q.parquet"))
    assert found[0].values == rows[0]
    assert found[1].values["contexts"] is None
    assert found[1].where.endswith("q.parquet, row 2")


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "q.parquet").write_bytes(b"PAR1")
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError("No module named 'pyarrow'", name="pyarrow")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PrerequisiteError, match=r"pytest-rag-harness\[parquet\]"):
        values_in(tmp_path / "q.parquet")


ASKED = [{"query": "Fee?", "ground_truth": "9.90"}, {"query": "Days?", "ground_truth": "45"}]
COLUMNS = {"query": ["Fee?", "Days?"], "ground_truth": ["9.90", "45"]}


@pytest.mark.parametrize("name", ["q.json", "q.jsonl"])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "written",
    [
        {"results": ASKED},
        {"run": "a run of 2024", "faelle": ASKED, "meta": {"page": 1}},
        {"data": {"examples": ASKED}},
        {"features": [{"name": "query"}], "rows": [{"row_idx": at, "row": each} for at, each in enumerate(ASKED)]},
        COLUMNS,
        {"data": COLUMNS},
        {name: dict(zip("37", cells, strict=True)) for name, cells in COLUMNS.items()},
        {"columns": [*COLUMNS], "index": [0, 1], "data": [[*each.values()] for each in ASKED]},
    ],
)
def test_a_wrapper_and_columns_read_alike_however_they_are_written(
    tmp_path: Path, name: str, indent: int | None, written: object
) -> None:
    (tmp_path / name).write_text(json.dumps(written, indent=indent))
    assert values_in(tmp_path / name) == ASKED


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "record",
    [
        {"query": "Fee?", "expected_tools": [{"name": "price"}], "data": [{"a": 1}]},
        {"input": [{"role": "user", "content": "Fee?"}], "ideal": "9.90"},
        {"messages": [{"role": "user", "content": "Fee?"}]},
        {"vars": {"query": "Fee?"}, "assert": [{"type": "equals"}]},
        {"frage": "Was kostet das?", "belege": [{"text": "9.90"}]},
    ],
)
def test_an_object_that_asks_is_one_record(tmp_path: Path, indent: int | None, record: object) -> None:
    (tmp_path / "q.json").write_text(json.dumps(record, indent=indent))
    assert values_in(tmp_path / "q.json") == [record]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"question": ["a", "b"], "answer": ["c"]}, "q.json:1: columns of unequal length: question 2, answer 1."),
        ({"train": ASKED, "test": ASKED}, "q.json: several lists hold questions: train, test."),
        ({"data": [*ASKED, "x"]}, 'q.json, data[2]: an object was expected, found "x".'),
    ],
)
def test_what_an_object_holds_amiss_is_named(tmp_path: Path, written: object, said: str) -> None:
    (tmp_path / "q.json").write_text(json.dumps(written))
    assert refused(tmp_path / "q.json").startswith(said)


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("written", [ASKED, {"data": ASKED}, COLUMNS])
def test_a_file_that_is_cut_is_named_with_its_line(
    tmp_path: Path, written: object, indent: int | None, cut: float
) -> None:
    text = json.dumps(written, indent=indent)
    (tmp_path / "q.json").write_text(text[: int(len(text) * cut)])
    assert refused(tmp_path / "q.json").startswith("q.json")
    assert "no JSON" in refused(tmp_path / "q.json")


@pytest.mark.parametrize("second", ["question,answer", "Query,Ground Truth"])
def test_two_headers_are_one_too_many(tmp_path: Path, second: str) -> None:
    (tmp_path / "q.csv").write_text(f"question,answer\n{second}\nWhy?,So.\n")
    assert refused(tmp_path / "q.csv").startswith("q.csv:2: a second header: ")


# YAML of other tools is read as YAML 1.2, with lines, and cannot blow up.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2024-03-01", "2024-03-01"),
        ("1_000", "1_000"),
        ("010", "010"),
        ("0x1f", "0x1f"),
        ("82,959 million", "82,959 million"),
        ("true", True),
        ("False", False),
        ("42", 42),
        ("-1", -1),
        ("0.8", 0.8),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("~", None),
        ("null", None),
        ("", None),
        ("''", ""),
        ("{a: {<<: {b: 1}, c: 2}}", {"a": {"b": 1, "c": 2}}),
        ("a:", {"a": None}),
    ],
)
def test_a_value_is_what_yaml_1_2_says(text: str, value: object) -> None:
    assert read_yaml(text, "c.yaml").value == value


def test_lines_of_parts_are_known() -> None:
    found = read_yaml("prompts:\n  - a\ntests:\n  - vars: {q: 1}\n\n  - vars:\n      q: 2\n", "c.yaml")
    assert [found.line_of("tests", n) for n in (0, 1)] == [4, 6]
    assert found.line_of("tests", 1, "vars", "q") == 7
    assert found.line_of("nothing") == 1


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "a0: &a0 {x0: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], x{n}: 1}}\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAUGHS, "c.yaml: its aliases mean more than"),
        (MERGES, "c.yaml: its aliases mean more than"),
        ("a: &a [*a]", "c.yaml: its aliases mean more than"),
        ("[" * 50_000, "c.yaml:1: "),  # libyaml has a limit of its own, and versions of it differ
        ("- " * 2_000 + "x", "c.yaml:1: "),
        ("[" * 200, "c.yaml:1: nested deeper than 100 levels."),
        ("a: 1\nb: [\n", "c.yaml:3: no YAML"),
        ("a: !!python/object/apply:os.system [ls]", "c.yaml:1: no YAML: could not determine a constructor"),
        ("a: 1\n---\nb: 2\n", "c.yaml:2: no YAML: but found another document"),
        ("? {a: 1}\n: 2", "c.yaml:1: no YAML: found unhashable key"),
    ],
)
def test_what_cannot_be_meant_is_named_soon(text: str, said: str) -> None:
    with bounded(5), pytest.raises(DataError) as caught:
        read_yaml(text, "c.yaml")
    assert str(caught.value).startswith(said)


# Names of other tools are known by their meaning, and --map says which column is which field.

# Names of other tools are known by their meaning, and --map says which column is which field.


def test_every_field_of_a_line_is_known() -> None:
    assert set(MEANINGS) == {*QueryLine.model_fields, "turns"}


def test_no_name_means_two_fields() -> None:
    names = [name for each in MEANINGS.values() for name in each]
    assert len(names) == len(set(names))
    assert {name: field_meant(name) for name in names} == {
        name: ours for ours, each in MEANINGS.items() for name in each
    }


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("question", "query"),
        ("input", "query"),
        ("user_input", "query"),
        ("expected_output", "ground_truth"),
        ("expectedOutput", "ground_truth"),
        ("reference", "ground_truth"),
        ("answer", "ground_truth"),
        ("qurey", "query"),
        ("banana", ""),
    ],
)
def test_the_nearest_field(name: str, wanted: str) -> None:
    assert nearest_field(name, QueryLine.model_fields) == wanted


def test_a_map_is_read() -> None:
    assert read_map(["question=user_input, id=key", "metadata.topic=inputs.topic"], "--map") == {
        "query": "user_input",
        "query_id": "key",
        "metadata.topic": "inputs.topic",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("question", "FIELD=COLUMN was expected"),
        ("=x", "FIELD=COLUMN was expected"),
        ("qurey=x", "Did you mean 'query'?"),
        ("question=x,query=y", "query is named twice, as 'x' and as 'y'"),
        ("metadata=x", "metadata.NAME=COLUMN"),
    ],
)
def test_a_map_that_cannot_be_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=r"^--map") as caught:
        read_map([text], "--map")
    assert said in str(caught.value)


def test_a_path_leads_into_objects_lists_and_json_in_a_cell() -> None:
    values = {
        "a.b": 1,
        "input": {"question": ["x", {"text": "y"}]},
        "cell": '{"q": "z"}',
        "bad": "{",
        "n": float("nan"),
    }
    assert value_at(values, "a.b") == 1
    assert value_at(values, "input.question.1.text") == "y"
    assert value_at(values, "cell.q") == "z"
    assert [value_at(values, path) for path in ("bad.q", "input.answer", "input.question.9", "n")] == [None] * 4


# A cell may hold a list: as JSON, as Python prints it, with a separator.

LISTS = st.lists(st.text(min_size=1).map(str.strip).filter(bool), min_size=1, max_size=5)


@given(LISTS)
def test_a_list_comes_back_from_json_and_from_python(texts: list[str]) -> None:
    assert texts_of(texts) == texts_of(json.dumps(texts)) == texts_of(repr(texts)) == texts


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, []),
        (float("nan"), []),
        ("", []),
        ("  ", []),
        ("[]", []),
        ("[ ]", []),
        ("a | b||c", ["a", "b", "c"]),
        ("[1] says so", ["[1] says so"]),
        ("[a link](x.md) and [b]", ["[a link](x.md) and [b]"]),
        ("['it\\'s', \"b\"]", ["it's", "b"]),
        (["a", None, " ", 3], ["a", "3"]),
    ],
)
def test_what_a_value_holds(value: Any, wanted: list[str]) -> None:
    assert texts_of(value, "|") == wanted


def test_a_list_as_numpy_prints_it_is_not_joined_to_one_text() -> None:
    assert len(eval(str(np.array(["one", "two"])))) == 1  # what Python makes of it
    with pytest.raises(ListCellError, match="NumPy"):
        texts_of(str(np.array(["one", "two"])))


@pytest.mark.parametrize("text", ["['a', b]", "['a' + 'b']", "['a]", "['a', __import__('os')]"])
def test_what_is_no_list_of_texts_is_refused(text: str) -> None:
    with pytest.raises(ListCellError):
        texts_of(text if text.endswith("]") else f"{text}]")
