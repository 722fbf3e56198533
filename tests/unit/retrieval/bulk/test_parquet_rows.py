"""Parquet files as documents: what is found by name, what is refused before any work, and which rows are none."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from rag_harness.errors import DataError  # noqa: E402
from rag_harness.retrieval.bulk import parquet_rows  # noqa: E402
from rag_harness.retrieval.bulk.arrow_files import FilePlace, file_place_of, found, is_parquet  # noqa: E402
from rag_harness.retrieval.bulk.parquet_rows import looked_at, windows  # noqa: E402


def write(file: Path, columns: dict[str, Any], **options: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file, **options)
    return file


def names(places: list[FilePlace], folder: Path) -> list[str]:
    return [Path(place.path).relative_to(folder).as_posix() for place in places]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.parquet", "a.parquet", "c.txt", "x/d.parquet", "x/y/e.parquet", "whole.parquet/part-0.parquet"):
        write(tmp_path / name, {"id": [name], "text": ["words"]})
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("a.parquet", ["a.parquet"]),
        ("[ab].parquet", ["a.parquet", "b.parquet"]),
        ("*/d.parquet", ["x/d.parquet"]),
        ("x/**/*.parquet", ["x/d.parquet", "x/y/e.parquet"]),
        ("whole.parquet", ["whole.parquet/part-0.parquet"]),
    ],
)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_name_means_what_a_shell_means_by_it(tree: Path, pattern: str, wanted: list[str], scheme: str) -> None:
    assert names(found([f"{scheme}{tree}/{pattern}"]), tree) == wanted


def test_a_file_that_is_named_twice_is_read_once(tree: Path) -> None:
    assert names(found([f"{tree}/a.parquet", f"{tree}/*.parquet"]), tree).count("a.parquet") == 1


def test_a_pattern_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No Parquet file .*/none\*\.parquet\. Put a pattern in quotes"):
        found([f"{tmp_path}/none*.parquet"])


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(DataError, match=r"ftp://host/a\.parquet cannot be opened"):
        file_place_of("ftp://host/a.parquet")


def test_what_counts_as_parquet() -> None:
    assert [is_parquet(each) for each in ("a.parquet", "s3://b/docs", "docs", "a.md")] == [True, True, False, False]


def test_rows_become_documents(tmp_path: Path) -> None:
    columns = {
        "id": [1, 2, 3],
        "text": ["one", "two", "three"],
        "title": ["First", None, ""],
        "metadata": [{"lang": "en", "day": date(2024, 5, 1), "none": None}, None, {"lang": "de", "day": None}],
        "more": [b"not read", b"", b""],
    }
    [window] = windows(looked_at([file_place_of(str(write(tmp_path / "a.parquet", columns)))]))
    assert [each.doc_id for each in window.documents] == ["1", "2", "3"]
    assert [each.title for each in window.documents] == ["First", "2", "3"]
    assert [each.metadata for each in window.documents] == [{"lang": "en", "day": "2024-05-01"}, {}, {"lang": "de"}]


def test_metadata_may_be_json(tmp_path: Path) -> None:
    columns = {"id": ["a", "b", "c"], "text": ["one"] * 3, "metadata": ['{"title": "First"}', "[1]", "{"]}
    [window] = windows(looked_at([file_place_of(str(write(tmp_path / "a.parquet", columns)))]))
    assert [(each.title, each.metadata) for each in window.documents] == [("First", {"title": "First"})]
    assert [line.partition(", ")[2][:40] for line in window.failed] == [
        "row 2: metadata is no JSON object (it is",
        "row 3: metadata is no JSON object (Expec",
    ]


def test_a_row_without_text_is_named_and_no_other_is_lost(tmp_path: Path) -> None:
    columns = {"id": ["a", None, "c"], "text": ["one", "two", None]}
    file = write(tmp_path / "a.parquet", columns)
    [window] = windows(looked_at([file_place_of(str(file))]))
    assert [each.doc_id for each in window.documents] == ["a"]
    assert window.failed == [f"{file}, row 2: id is null.", f"{file}, row 3: text is null."]
    assert len(window) == 3


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["a"], "body": ["one"]}, "has no column text; it has id, body. .* rename them"),
        ({"name": ["a"]}, "has no column id and no column text; it has name"),
        ({"id": ["a"], "text": [1]}, "column text is int64, not text. Cast it to string"),
        ({"id": [1.5], "text": ["one"]}, "column id is double, not text"),
        ({"id": ["a"], "text": ["one"], "metadata": [3]}, "column metadata is int64. Make it a struct, a map, or JSON"),
        ({"id": ["a", "b", "a"], "text": ["one"] * 3}, "1 ids stand in several rows, e.g. 'a': 2 in "),
    ],
)
def test_a_file_that_is_none_of_documents_is_refused_before_a_row_is_read(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        looked_at([file_place_of(str(write(tmp_path / "a.parquet", columns)))])


def test_an_id_that_stands_in_two_files_is_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / name, {"id": [name, "both"], "text": ["one"] * 2}) for name in ("a.parquet", "b.parquet")]
    with pytest.raises(DataError, match=r"'both': 1 in .*a\.parquet, 1 in .*b\.parquet"):
        looked_at([file_place_of(str(file)) for file in files])


def test_a_file_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", {"id": ["a"], "text": ["one"]})
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"cannot be read as Parquet: .* Was it cut short"):
        looked_at([file_place_of(str(file))])


def test_a_file_that_is_damaged_within_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", {"id": ["a", "b"], "text": ["one", "two"]})
    begins = pq.read_metadata(file).row_group(0).column(1).dictionary_page_offset
    content = bytearray(file.read_bytes())
    content[begins : begins + 8] = b"\xff" * 8
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.parquet is damaged: .* Write it again"):
        list(windows(looked_at([file_place_of(str(file))])))


def test_windows_end_with_a_file_with_so_many_rows_or_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_rows, "ROWS", 3)
    monkeypatch.setattr(parquet_rows, "CHARACTERS", 100)
    monkeypatch.setattr(parquet_rows, "_READ", 2)
    texts = ["a", "a", "a", "a" * 60, "a" * 60, "a", "a"]
    write(tmp_path / "a.parquet", {"id": [f"a{n}" for n in range(7)], "text": texts}, row_group_size=4)
    write(tmp_path / "b.parquet", {"id": ["b0"], "text": ["b"]})
    made = list(windows(looked_at(found([f"{tmp_path}/*.parquet"]))))
    assert [[each.doc_id for each in window.documents] for window in made] == [
        ["a0", "a1", "a2"],
        ["a3", "a4"],
        ["a5", "a6"],
        ["b0"],
    ]
    assert [window.number for window in made] == [0, 1, 2, 3]
