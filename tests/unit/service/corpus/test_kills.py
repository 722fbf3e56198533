"""A server is killed at random moments: whatever it has answered is there, and nothing is half there."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from rag_harness.service.corpus import document_table
from rag_harness.service.corpus.tenant_collections import Corpora
from tests.unit.service.corpus.corpora import check_finds, opened
from tests.unit.service.corpus.forked import started
from tests.unit.service.corpus.killed import NAMES, TENANT, change_until_killed, text_of, what_may_be

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGPROF")


def kill_once(root: Path, notes: Path, seed: int) -> None:
    """Start a server, and let it work until it is killed."""
    server = started(change_until_killed, root, notes, seed)
    server.join(120)
    assert server.exitcode == -signal.SIGPROF


async def looked_at(root: Path, notes: Path) -> None:
    """Open what the killed server left, hold it to its answers, and note what is there."""
    may = what_may_be(notes)
    async with opened(root) as corpora:
        collection = await corpora.create(TENANT)
        there = {each.name: collection.serving.document(each.name).text
                 for each in collection.documents() if each.status == "ready"}  # fmt: skip
        assert [name for name in NAMES if there.get(name, "") not in may[name]] == []
        assert {each.status for each in collection.documents()} <= {"ready", "failed"}
        check_finds(collection, there)
        check_rows(corpora, collection.number)
    with notes.open("a", encoding="utf-8") as told:
        told.writelines(f"begin {name} {_version(notes, name, there.get(name, ''))}\ndone\n" for name in NAMES)


def _version(notes: Path, name: str, text: str) -> str:
    """Return the newest version of that text; 0 of none."""
    begun = [line for line in notes.read_text(encoding="utf-8").splitlines() if line.startswith(f"begin {name} ")]
    return next((line.split()[2] for line in reversed(begun) if _text(line) == text), "0")


def _text(line: str) -> str:
    _, name, version = line.split()
    return text_of(name, int(version)) if version != "0" else ""


def check_rows(corpora: Corpora, number: int) -> None:
    """Hold the index to the rows: a point for each that questions find, and no other anywhere."""
    database = corpora._state.database
    ready = database.read(lambda c: set(document_table.ready_points(c, number)))
    every = database.read(lambda c: {row["id"] for row in c.execute("SELECT id FROM points")})
    assert corpora.get(TENANT)._lasting.points.ids() == ready == every
    assert not list((corpora._state.path / "incoming").iterdir())


def kills(root: Path, seeds: range) -> None:
    for seed in seeds:
        kill_once(root, root / "notes", seed)
        asyncio.run(looked_at(root, root / "notes"))
    assert (root / "notes").read_text(encoding="utf-8").count("done") > len(seeds) * len(NAMES)


def test_ten_kills(tmp_path: Path) -> None:
    kills(tmp_path, range(10))


@pytest.mark.long
def test_two_hundred_kills(tmp_path: Path) -> None:
    kills(tmp_path, range(1_000, 1_200))
