"""One writer: what is committed stays, what fails takes nothing with it, and a damaged file is named."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.service.corpus.document_table import _SHOWN
from rag_harness.service.database import DATABASE, Database, StateError, StateFolder, Work

TRACE = "INSERT INTO traces (id, collection, began, ms, body) VALUES (?, 'default', 0.0, 1.0, '{}')"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "service.sqlite3")
    yield made
    made.close()


def add(name: str) -> Work[int]:
    return lambda connection: connection.execute(TRACE, (name,)).rowcount


def names(database: Database) -> list[str]:
    return database.read(
        lambda connection: [row["id"] for row in connection.execute("SELECT id FROM traces ORDER BY id")]
    )


def test_what_is_written_is_read(database: Database) -> None:
    assert asyncio.run(database.write(add("a"))) == 1
    assert names(database) == ["a"]


def test_works_that_wait_together_share_a_transaction(database: Database) -> None:
    begun: list[str] = []
    database._writer.set_trace_callback(lambda said: begun.append(said) if said.startswith("BEGIN") else None)
    held = threading.Event()
    first = database._submit(lambda _: held.wait(5))
    futures = [database._submit(add(f"{n:02}")) for n in range(20)]
    held.set()
    assert first.result(5)
    assert [future.result(5) for future in futures] == [1] * 20
    assert len(begun) <= 2


def test_a_work_that_fails_undoes_itself_alone(database: Database) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        connection.execute(TRACE, ("half",))
        raise ValueError("no")

    async def together() -> list[object]:
        works = [database.write(add("a")), database.write(fails), database.write(add("b"))]
        return list(await asyncio.gather(*works, return_exceptions=True))

    first, failed, last = asyncio.run(together())
    assert (first, last) == (1, 1)
    assert isinstance(failed, ValueError)
    assert names(database) == ["a", "b"]


def test_a_constraint_is_the_callers_error(database: Database) -> None:
    database.write_now(add("a"))
    with pytest.raises(sqlite3.IntegrityError):
        database.write_now(add("a"))
    assert names(database) == ["a"]


def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(StateError, match=r"readonly"):
        database.read(add("a"))


def test_a_reader_does_not_wait_for_the_writer(database: Database) -> None:
    held, inside = threading.Event(), threading.Event()

    def holds(connection: sqlite3.Connection) -> None:
        connection.execute(TRACE, ("late",))
        inside.set()
        held.wait(5)

    future = database._submit(holds)
    assert inside.wait(5)
    assert names(database) == []
    held.set()
    future.result(5)
    assert names(database) == ["late"]


_WRITES = """
import sys
from pathlib import Path
from rag_harness.service.database import Database, Work
database = Database(Path(sys.argv[1]))
for number in range(100_000):
    row = (f"{number:06}", "default", 0.0, 1.0, "{}")
    insert = "INSERT INTO traces (id, collection, began, ms, body) VALUES (?, ?, ?, ?, ?)"
    database.write_now(lambda connection: connection.execute(insert, row))
    print(number, flush=True)
"""


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "service.sqlite3"
    process = subprocess.Popen([sys.executable, "-c", _WRITES, str(file)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    last = -1
    for line in process.stdout:
        last = int(line)
        if last >= 50:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.stdout.close()
    process.wait(10)
    reopened = Database(file)
    found = names(reopened)
    reopened.close()
    assert found == [f"{n:06}" for n in range(len(found))]
    assert len(found) > last


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "service.sqlite3"
    file.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 64)
    with pytest.raises(StateError, match=r"service\.sqlite3 is damaged.*move the file away"):
        Database(file)


def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "service.sqlite3"
    Database(file).close()
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StateError, match=r"of form 99.*newer release"):
        Database(file)


def test_a_second_opening_finds_everything_as_it_is(tmp_path: Path) -> None:
    first = Database(tmp_path / "a.sqlite3")
    first.write_now(add("a"))
    first.close()
    second = Database(tmp_path / "a.sqlite3")
    assert names(second) == ["a"]
    second.close()


def test_a_full_disk_is_named_and_changes_nothing(database: Database) -> None:
    database.write_now(add("a"))
    pages = database.read(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
    database._writer.execute(f"PRAGMA max_page_count = {pages}")

    def grows(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE traces SET body = ?", ("x" * 1_000_000,))

    with pytest.raises(StateError, match="make room on the disk"):
        database.write_now(grows)
    database._writer.execute("PRAGMA max_page_count = 1000000")
    assert database.write_now(add("b")) == 1
    assert names(database) == ["a", "b"]


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    with StateFolder(tmp_path / "state") as state:
        with pytest.raises(StateError, match="Another server is running on state/"):
            StateFolder(tmp_path / "state")
        assert (state.path / DATABASE).is_file()
        assert state.path.stat().st_mode & 0o077 == 0
    with StateFolder(tmp_path / "state"):
        pass


def test_lists_and_counts_do_not_read_through_texts(database: Database) -> None:
    """SQLite walks through a long column to whatever stands behind it: 1,500 texts of 0.4 MB made a list take 0.3 s."""
    table = database.read(lambda connection: connection.execute("PRAGMA table_info(documents)").fetchall())
    columns = [row["name"] for row in table]
    listed = {name.strip() for name in _SHOWN.split(",")}
    assert listed <= set(columns)
    assert listed.isdisjoint(columns[columns.index("text") :])


@pytest.mark.skipif(sys.platform == "win32", reason="rights are others there")
def test_in_a_folder_that_others_may_read_they_read_nothing_of_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with StateFolder(tmp_path) as state:
        state.database.write_now(add("a"))
        state.of_collection(1)
        open_to_others = [each.name for each in tmp_path.iterdir() if each.stat().st_mode & 0o077]
    assert open_to_others in ([], ["owner.lock"])


def test_what_a_killed_server_had_begun_to_read_is_removed(tmp_path: Path) -> None:
    with StateFolder(tmp_path) as state:
        (state.incoming / "left").write_bytes(b"half a file")
    with StateFolder(tmp_path) as state:
        assert list(state.incoming.iterdir()) == []
