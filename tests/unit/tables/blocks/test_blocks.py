"""A table of kept blocks is the table of the rows, and nothing stale is ever taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_harness.evaluation.measures import default_measures, measure_named
from rag_harness.evaluation.measures.answers import TokenF1
from rag_harness.records.cases import CaseFile
from rag_harness.records.row import parse_row, rows_in
from rag_harness.tables import column_cache, reader
from rag_harness.tables.column_cache import COLUMNS_FOLDER, CacheWriter, block_of, row_kind, segments
from tests.unit.tables.blocks.large_run import PIECE, all_of, table_in, whole_table, write_large


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SEGMENT", PIECE)


@pytest.fixture
def made_again(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the blocks that were made of rows since it was last asked."""
    counted: list[int] = []

    def counting(*args: object) -> object:
        counted.append(1)
        return block_of(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(column_cache, "block_of", counting)

    def count() -> int:
        number = len(counted)
        counted.clear()
        return number

    return count


@pytest.fixture
def run(tmp_path: Path, made_again: Callable[[], int]) -> Path:
    """Write a run whose blocks are kept."""
    write_large(tmp_path, 2)
    table_in(tmp_path)
    assert made_again() > 5
    return tmp_path


@pytest.mark.parametrize("seed", range(6))
def test_a_table_of_blocks_is_that_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_again: Callable[[], int], seed: int
) -> None:
    write_large(tmp_path, seed)
    expected = all_of(whole_table(tmp_path, monkeypatch))
    assert not (tmp_path / COLUMNS_FOLDER).exists()
    assert all_of(table_in(tmp_path)) == expected
    made_again()
    assert all_of(table_in(tmp_path)) == expected
    assert made_again() == 0


def test_an_edited_line_makes_its_block_anew_and_no_other(
    run: Path, monkeypatch: pytest.MonkeyPatch, made_again: Callable[[], int]
) -> None:
    file = run / "e3.jsonl"
    content = file.read_bytes()
    place = content.index(b'"abstained":false', 3 * PIECE)
    file.write_bytes(content[:place] + b'"abstained":true ' + content[place + 17 :])
    assert all_of(table_in(run)) == all_of(whole_table(run, monkeypatch))
    assert made_again() == 1 + 1  # and the whole


def test_lines_that_are_added_make_the_last_block_anew(run: Path, made_again: Callable[[], int]) -> None:
    with (run / "e3.jsonl").open("ab") as stream:
        stream.write(b"\n{}\n")
    table_in(run)
    assert made_again() == 1


def test_blocks_of_lines_that_are_gone_are_deleted(run: Path) -> None:
    file, blocks = run / "e3.jsonl", run / COLUMNS_FOLDER / "e3"
    before = len(list(blocks.iterdir()))
    file.write_bytes(file.read_bytes()[: 3 * PIECE])
    table_in(run)
    assert len(list(blocks.iterdir())) == len(segments(file, PIECE)) < before


def test_other_cases_make_all_blocks_anew(
    run: Path, monkeypatch: pytest.MonkeyPatch, made_again: Callable[[], int]
) -> None:
    file = run / "cases" / "queries.jsonl"
    lines = [json.loads(line) | {"ground_truth": "lamps"} for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = table_in(run)
    assert made_again() > 5
    assert all_of(found) == all_of(whole_table(run, monkeypatch))


def test_a_measure_of_another_version_makes_them_anew(
    run: Path, monkeypatch: pytest.MonkeyPatch, made_again: Callable[[], int]
) -> None:
    monkeypatch.setattr(TokenF1, "version", 2)
    table_in(run)
    assert made_again() > 5


def test_other_code_makes_them_anew(run: Path, monkeypatch: pytest.MonkeyPatch, made_again: Callable[[], int]) -> None:
    monkeypatch.setattr(column_cache, "package_digest", lambda: "changed")
    table_in(run)
    assert made_again() > 5


def test_values_of_a_users_own_measure_are_kept_for_other_processes_only_with_a_fingerprint(
    run: Path, monkeypatch: pytest.MonkeyPatch, made_again: Callable[[], int]
) -> None:
    monkeypatch.setattr(TokenF1, "__module__", "my_measures")
    table_in(run)
    assert made_again() > 5
    monkeypatch.setattr(column_cache, "_PROCESS", "another")
    table_in(run)
    assert made_again() > 5
    monkeypatch.setattr(TokenF1, "fingerprint", "1", raising=False)
    table_in(run)
    assert made_again() > 5
    monkeypatch.setattr(column_cache, "_PROCESS", "a third")
    table_in(run)
    assert made_again() == 0


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda _: b"", lambda _: b"\0" * 99])
def test_a_damaged_block_is_made_again(
    run: Path, made_again: Callable[[], int], damage: Callable[[bytes], bytes]
) -> None:
    before = all_of(table_in(run))
    block = sorted((run / COLUMNS_FOLDER / "e3").iterdir())[2]
    block.write_bytes(damage(block.read_bytes()))
    assert all_of(table_in(run)) == before
    assert made_again() == 1
    table_in(run)
    assert made_again() == 0


def test_where_nothing_can_be_written_the_table_is_the_same(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = all_of(whole_table(run, monkeypatch))
    for file in (run / COLUMNS_FOLDER / "e3").iterdir():
        file.unlink()
    (run / COLUMNS_FOLDER / "e3").rmdir()
    (run / COLUMNS_FOLDER / "e3").write_text("in the way")
    assert all_of(table_in(run)) == expected


# Blocks that are made while rows come are those that a reader would make.


def written(output: Path, before: int = 0, spoilt_at: int = -1) -> None:
    """Write a run whose rows are looked at as they come, but for those ``before``."""
    write_large(output, 3)
    file, cases = output / "e3.jsonl", CaseFile(output, "queries")
    lines = [row.line().encode() for row in rows_in(file)]
    file.write_bytes(b"".join(lines[:before]))
    measures = [*default_measures(False, 10), measure_named("faithfulness"), measure_named("total_ms")]
    keeper = CacheWriter(file, row_kind(measures, cases, lambda: cases.digest), PIECE)
    for number, line in enumerate(lines[before:]):
        with file.open("ab") as stream:
            stream.write(b"{}\n" * (number == spoilt_at) + line)
        keeper.add(parse_row(line), line)
    keeper.seal()
    cases.close()


@pytest.mark.parametrize("before", [0, 3, 30])
def test_after_the_last_row_nothing_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    written(tmp_path, before)
    expected = all_of(whole_table(tmp_path, monkeypatch))
    whole = [piece for piece in segments(tmp_path / "e3.jsonl", PIECE) if piece.is_whole(PIECE)]
    assert len(whole) > 5
    again: list[int] = []
    monkeypatch.setattr(column_cache, "block_of", lambda *args: again.append(1) or block_of(*args))  # type: ignore[func-returns-value]
    assert all_of(table_in(tmp_path)) == expected
    # What stood in the file before is made by its first reader, but for the piece that rows were added to.
    assert len(again) == len(pieces_before_the_last(tmp_path, before))


def pieces_before_the_last(output: Path, rows: int) -> list[object]:
    """Return the pieces that were there when so many rows had come, but the last, with which the writer went on."""
    part = output / "part"
    part.write_bytes(b"".join(row.line().encode() for row in list(rows_in(output / "e3.jsonl"))[:rows]))
    return [*segments(part, PIECE)[:-1]]


def test_a_file_that_others_write_to_gets_no_wrong_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, spoilt_at=20)
    assert all_of(table_in(tmp_path)) == all_of(whole_table(tmp_path, monkeypatch))


def test_a_small_file_has_no_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_large(tmp_path, 1)
    whole_table(tmp_path, monkeypatch)
    assert not (tmp_path / COLUMNS_FOLDER).exists()


def test_a_piece_ends_with_the_line_that_fills_it_to_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b"123456789\n" * 5)
    assert [tuple(piece) for piece in segments(file, 20)] == [(0, 20), (20, 40), (40, 50)]
    assert [tuple(piece) for piece in segments(file, 21)] == [(0, 30), (30, 50)]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_pieces_are_the_file_and_stay_what_they_are(tmp_path: Path, size: int) -> None:
    file = tmp_path / "rows"
    content = b"".join(b"x" * (number * 37 % 90) + b"\n" for number in range(60)) + b"torn"
    file.write_bytes(content)
    found = segments(file, size)
    assert [piece.start for piece in found] == [0, *(piece.end for piece in found[:-1])]
    assert found[-1].end == len(content)
    assert all(content[piece.end - 1 : piece.end] == b"\n" and piece.is_whole(size) for piece in found[:-1])
    for end in (10, 500, 1500):
        file.write_bytes(content[:end])
        whole = [piece for piece in segments(file, size) if piece.is_whole(size) and content[piece.end - 1] == 10]
        assert whole == found[: len(whole)]
