"""No row is ever lost: it is in the file, in ``previous/``, or a newer row of the same query took its place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.core.errors import CriticalError
from rag_harness.core.types import Message
from rag_harness.records import files as result_file
from rag_harness.records.files import (
    PREVIOUS,
    PromptFiles,
    ResultFile,
    finished_rows,
    named_prompt,
    set_torn_apart,
    take_over,
)
from rag_harness.records.row import ExperimentResult, parse_row, rows_in
from tests.unit.rows import failed_row, make_row

if TYPE_CHECKING:
    from typing import IO


# No row is ever lost: it is in the file, in ``previous/``, or a newer row of the same query took its place.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "output" / "e3.jsonl"


def write(file: Path, *rows: ExperimentResult, overwrite: bool = False) -> ResultFile:
    """Write ``rows`` as one run does."""
    written = ResultFile(file, overwrite)
    for row in rows:
        written.append(row)
    written.close()
    return written


def aside(file: Path) -> dict[str, list[bytes]]:
    folder = file.parent / PREVIOUS
    return {each.name: each.read_bytes().splitlines() for each in folder.glob("*")} if folder.is_dir() else {}


def test_a_second_run_goes_on_where_the_first_ended(file: Path) -> None:
    rows = [make_row(query_id=f"q{n}") for n in range(3)]
    write(file, *rows[:2])
    before = file.read_bytes()
    assert finished_rows(file, "aaaa") == {"q0": rows[0], "q1": rows[1]}
    write(file, rows[2])
    assert file.read_bytes() == before + rows[2].line().encode()
    assert aside(file) == {}


def test_rows_are_with_the_system_at_once_and_on_disk_when_the_file_is_closed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    rows, written = [make_row(query_id="q1"), make_row(query_id="q2")], ResultFile(file)
    for row in rows:
        written.append(row)
    assert list(rows_in(file)) == rows
    written.close()
    assert synced == [file.stat().st_size]


def test_a_missing_file_has_nothing_finished(file: Path) -> None:
    assert finished_rows(file, "aaaa") == {}


def test_errors_are_not_finished(file: Path) -> None:
    write(file, make_row(query_id="q1"), failed_row(query_id="q2"))
    assert set(finished_rows(file, "aaaa")) == {"q1"}


def test_a_retried_error_leaves_in_one_atomic_step(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file, failed_row(query_id="q1"), make_row(query_id="q2"))
    retried = make_row(query_id="q1")

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(SystemExit):
            write(file, retried)
    assert [(row.query_id, row.ok) for row in list(rows_in(file))] == [("q1", False), ("q2", True), ("q1", True)]
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    write(file, make_row(query_id="q3"))
    assert [(row.query_id, row.ok) for row in list(rows_in(file))] == [("q1", True), ("q2", True), ("q3", True)]
    assert list(aside(file)) == ["e3-duplicates.jsonl"]


def test_rows_of_another_fingerprint_are_set_aside(file: Path) -> None:
    old = [make_row(query_id=f"q{n}", fingerprint="aaaa") for n in range(2)]
    write(file, *old)
    new = make_row(query_id="q0", fingerprint="bbbb")
    assert write(file, new).set_aside == 2
    assert list(rows_in(file)) == [new]
    assert aside(file) == {"e3-aaaa.jsonl": [row.line().encode().rstrip() for row in old]}


def test_going_back_and_forth_loses_nothing(file: Path) -> None:
    for number, fingerprint in enumerate("abab"):
        write(file, make_row(query_id=f"q{number}", fingerprint=fingerprint))
    kept = {name: [parse_row(line).query_id for line in lines] for name, lines in aside(file).items()}
    assert kept == {"e3-a.jsonl": ["q0", "q2"], "e3-b.jsonl": ["q1"]}
    assert [row.query_id for row in list(rows_in(file))] == ["q3"]


@pytest.mark.parametrize("fingerprint", ["../../escaped", "", "a/b", "x" * 300, "nul\0"])
def test_a_fingerprint_does_not_choose_the_path(file: Path, fingerprint: str) -> None:
    stray = make_row(fingerprint=fingerprint)
    file.parent.mkdir()
    file.write_text(stray.line())
    write(file, make_row(fingerprint="bbbb"))
    assert aside(file) == {"e3-other.jsonl": [stray.line().encode().rstrip()]}


@pytest.mark.parametrize("cut", [1, 30, -2])
def test_a_torn_last_line_is_kept_aside(file: Path, cut: int) -> None:
    first, torn = make_row(query_id="q1"), make_row(query_id="q2").line().encode()[:cut]
    write(file, first)
    file.write_bytes(file.read_bytes() + torn)
    assert set(finished_rows(file, "aaaa")) == {"q1"}
    last = make_row(query_id="q3")
    written = write(file, last)
    assert (written.set_aside, written.repaired) == (0, 1)
    assert list(rows_in(file)) == [first, last]
    assert aside(file) == {"e3-damaged.jsonl": [torn]}


def test_a_last_line_that_only_lacks_its_newline_counts(file: Path) -> None:
    first, last = make_row(query_id="q1"), make_row(query_id="q2")
    file.parent.mkdir()
    file.write_text(first.line().rstrip("\n"))
    assert write(file, last).set_aside == 0
    assert list(rows_in(file)) == [first, last]


def test_overwrite_starts_anew_once(file: Path) -> None:
    write(file, make_row(query_id="q1"), make_row(query_id="q2"))
    new = [make_row(query_id="q2", llm_answer="new"), make_row(query_id="q3")]
    write(file, *new, overwrite=True)
    assert list(rows_in(file)) == new


def test_of_duplicates_the_last_stays(file: Path) -> None:
    rows = [make_row(query_id="q1", llm_answer=each) for each in ("old", "new")]
    file.parent.mkdir()
    file.write_text("".join(row.line() for row in rows))
    assert finished_rows(file, "aaaa")["q1"].llm_answer == "new"
    write(file, make_row(query_id="q2"))
    first, second = list(rows_in(file))
    assert (first.llm_answer, second.query_id) == ("new", "q2")
    assert aside(file) == {"e3-duplicates.jsonl": [rows[0].line().encode().rstrip()]}


def test_take_over_adds_what_is_not_there(file: Path) -> None:
    write(file, make_row(query_id="q1"), failed_row(query_id="q2"), failed_row(query_id="q3"))
    torn = make_row(query_id="q9").line().encode()[:20]
    file.write_bytes(file.read_bytes() + torn)
    found = [
        failed_row(query_id="q1"),
        make_row(query_id="q2"),
        failed_row(query_id="q3"),
        failed_row(query_id="q4"),
        make_row(query_id="q4"),
        make_row(query_id="q1", fingerprint="bbbb"),
    ]
    lines = [(row, row.line().encode()) for row in found]
    assert take_over(file, lines) == 3
    assert take_over(file, lines) == 0
    write(file, make_row(query_id="q5"))
    assert [(row.query_id, row.ok) for row in list(rows_in(file))] == [
        ("q1", True), ("q2", True), ("q3", False), ("q4", True), ("q5", True)
    ]  # fmt: skip
    assert aside(file)["e3-damaged.jsonl"] == [torn]
    assert [parse_row(line).query_id for line in aside(file)["e3-bbbb.jsonl"]] == ["q1"]


def test_keys_of_a_newer_release_survive_a_rewrite(file: Path) -> None:
    newer = json.loads(make_row(query_id="q1").line()) | {"cost_usd": 0.1}
    file.parent.mkdir()
    file.write_text(json.dumps(newer) + "\n" + failed_row(query_id="q2").line())
    write(file, make_row(query_id="q2"))
    assert json.loads(file.read_bytes().splitlines()[0]) == newer


runs = st.lists(
    st.tuples(
        st.sampled_from("ab"),  # fingerprint
        st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=4),  # query, does it succeed
        st.integers(0, 60),  # bytes of a torn write left behind
        st.booleans(),  # does it end, or is it killed
    ),
    max_size=5,
)


@given(runs)
def test_every_line_ever_written_is_somewhere(story: list[tuple[str, list[tuple[int, bool]], int, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        file = Path(folder) / "e3.jsonl"
        written: list[ExperimentResult] = []
        for fingerprint, trials, torn, closed in story:
            run = ResultFile(file)
            for query, succeeds in trials:
                make = make_row if succeeds else failed_row
                row = make(query_id=f"q{query}", fingerprint=fingerprint, finished_at=str(len(written)))
                run.append(row)
                written.append(row)
            if closed:
                run.close()
            elif run._stream:
                run._stream.close()
            with file.open("ab") as stream:
                stream.write(written[-1].line().encode()[:torn])
        if story:
            # The next run opens the file, whatever the one before left.
            written.append(make_row(query_id="last", fingerprint=story[-1][0], finished_at=str(len(written))))
            write(file, written[-1])
        whole = file.read_bytes().split(b"\n")[:-1] if story else []
        kept = [line for name, lines in aside(file).items() if "damaged" not in name for line in lines]
        found = [parse_row(line) for line in [*whole, *kept]]
        newest_here = {row.query_id for row in map(parse_row, whole)}
        assert len(newest_here) == len(whole)
        assert {row.fingerprint for row in map(parse_row, whole)} <= {story[-1][0]} if story else True
        for number, row in enumerate(written):
            newer = [each for each in written[number + 1 :] if _same_query(each, row)]
            assert row in found or newer


def _same_query(one: ExperimentResult, other: ExperimentResult) -> bool:
    return (one.query_id, one.fingerprint) == (other.query_id, other.fingerprint)


_WRITER = """
import sys
from itertools import count
from pathlib import Path
from rag_harness.records.files import ResultFile
from tests.unit.rows import failed_row, make_row
run, file = sys.argv[1], ResultFile(Path(sys.argv[2]))
for number in count():
    # Two rows of three replace the one before, so the kill may fall into a rewrite too.
    query_id = f"{run}-{number - number % 3}"
    file.append(failed_row(query_id=query_id) if number % 3 else make_row(query_id=query_id))
    print(query_id, flush=True)
"""


def test_a_kill_loses_no_row_that_was_acknowledged(file: Path) -> None:
    acknowledged: set[str] = set()
    for run in range(3):
        command = [sys.executable, "-c", _WRITER, str(run), str(file)]
        root = Path(__file__).parents[3]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, text=True) as writer:
            assert writer.stdout is not None
            acknowledged |= set(_lines(writer.stdout, 40 + run))
            os.kill(writer.pid, signal.SIGKILL)
            acknowledged |= {each.strip() for each in writer.stdout if each.endswith("\n")}
    assert len(acknowledged) >= 40
    assert len(list(file.parent.glob(".e3*"))) <= 3  # what a kill within a rewrite may leave
    assert acknowledged <= {row.query_id for row in list(rows_in(file))}
    write(file, make_row(query_id="last"))
    assert acknowledged < {parse_row(line).query_id for line in file.read_bytes().splitlines()}


def _lines(stream: IO[str], number: int) -> list[str]:
    return [next(stream).strip() for _ in range(number)]


def test_previous_is_no_result_file(file: Path) -> None:
    write(file, make_row(fingerprint="a"))
    write(file, make_row(fingerprint="b"))
    assert list(file.parent.glob("*.jsonl")) == [file]
    assert result_file.PREVIOUS == "previous"


@pytest.mark.parametrize("before", [b"", b'{"a": 1}\n', b'{"a": "%s"}\n' % (b"x" * 200_000)])
@pytest.mark.parametrize(
    "torn", [b"{", b'{"a": "' + b"x" * 200_000, b'{"a": 1', b"\xff", b"\0" * 70_000, b"[" * 70_000]
)
def test_a_torn_line_is_moved_and_the_others_stay(tmp_path: Path, before: bytes, torn: bytes) -> None:
    file, aside = tmp_path / "e3.jsonl", tmp_path / "previous" / "torn.jsonl"
    file.write_bytes(before + torn)
    assert set_torn_apart(file, aside) == 1
    assert (file.read_bytes(), aside.read_bytes()) == (before, torn + b"\n")
    assert set_torn_apart(file, aside) == 0


def test_a_line_that_lacks_its_newline_alone_is_whole(tmp_path: Path) -> None:
    file, aside = tmp_path / "e3.jsonl", tmp_path / "previous" / "torn.jsonl"
    file.write_bytes(b'{"a": 1}\n{"a": 2}')
    assert set_torn_apart(file, aside) == 0
    assert file.read_bytes() == b'{"a": 1}\n{"a": 2}\n'
    assert not aside.exists()


# Prompts beside the rows: once each, by content, and whole after a kill.

ASKED = [Message("system", "Be brief."), Message("user", "Größe? \ud800")]


def read_prompt(output: Path, digest: str) -> list[Message]:
    said = json.loads((output / "prompts" / f"{digest}.json").read_text(encoding="ascii"))
    return [Message(message["role"], message["content"]) for message in said]


def test_a_prompt_is_kept_once_and_reads_back(tmp_path: Path) -> None:
    digest = PromptFiles(tmp_path).keep(ASKED)
    assert PromptFiles(tmp_path).keep(ASKED) == digest
    assert [file.name for file in (tmp_path / "prompts").iterdir()] == [f"{digest}.json"]
    assert read_prompt(tmp_path, digest) == ASKED
    assert PromptFiles(tmp_path).keep([*ASKED, Message("user", "And?")]) != digest


def test_what_a_kill_tore_is_written_again(tmp_path: Path) -> None:
    digest = PromptFiles(tmp_path).keep(ASKED)
    file = tmp_path / "prompts" / f"{digest}.json"
    file.write_bytes(file.read_bytes()[:20])
    PromptFiles(tmp_path).keep(ASKED)
    assert read_prompt(tmp_path, digest) == ASKED


def test_no_messages_are_no_prompt(tmp_path: Path) -> None:
    assert PromptFiles(tmp_path).keep([]) == ""
    assert not (tmp_path / "prompts").exists()


@given(st.lists(st.builds(Message, st.text(), st.text()), min_size=1, max_size=3))
def test_a_file_of_messages_is_written_as_by_json(messages: list[Message]) -> None:
    said = [{"role": each.role, "content": each.content} for each in messages]
    assert named_prompt(messages)[1] == json.dumps(said, indent=1)


def test_a_folder_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "prompts").write_text("a file")
    with pytest.raises(CriticalError, match="cannot be kept"):
        PromptFiles(tmp_path).keep(ASKED)


# A folder that holds no run is told with those beside it that hold one, and never as advice.


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_in(folder: Path, age: int = 0) -> None:
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    os.utime(folder / "run.json", (1_000_000 - age, 1_000_000 - age))


def said(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    assert main([*command]) == CANNOT_RUN
    return capsys.readouterr().err.strip()


def test_a_misspelt_folder_is_told_with_those_that_hold_a_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_in(here / "output", age=9)
    run_in(here / "nightly")
    (here / "outputs").mkdir()
    held = "Folders here that hold a run: nightly, output."
    assert said(capsys, "report", "outptu") == f"No folder outptu. Did you mean 'output'? {held}"
    assert said(capsys, "compare", "outptu", "output").endswith(f"Did you mean 'output'? {held}")
    there = "outputs/run.json does not describe a run: there is no such file."
    assert said(capsys, "report", "outputs") == f"{there} Run pytest with --rag-output=outputs first."
    assert said(capsys, "report", ".").endswith(held)


def test_without_any_run_the_next_step_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin = "No folder here holds a run: pytest writes one into output, or where --rag-output says."
    assert said(capsys, "report", "output") == f"No folder output. {begin}"
    (here / "output").mkdir()
    assert said(capsys, "report", "output").endswith("Run pytest with --rag-output=output first.")


def test_of_many_folders_a_few_are_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(9):
        run_in(here / f"o{n}", age=n)
    assert said(capsys, "report", "gone").endswith("hold a run: o0, o1, o2, o3, o4, and 4 more.")
