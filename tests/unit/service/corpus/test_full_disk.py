"""A disk that fills ends no server: what finds no room is refused before anything is written, and a start goes on."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.core import cache
from rag_harness.core.errors import NoRoomError
from rag_harness.retrieval.indexes import edge
from rag_harness.service.corpus.intake import SPARE
from rag_harness.service.problems import ProblemError
from tests.unit.service.corpus.corpora import DEFAULT, PAGES, check_finds, opened, write_pages
from tests.unit.service.corpus.filling import live
from tests.unit.service.corpus.forked import started

MIB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 MiB in memory, where a file system can be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def leave(disk: Path, left: int) -> None:
    """Have others fill the disk until ``left`` bytes are free."""
    (disk / "ballast").unlink(missing_ok=True)
    with (disk / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - left)


def lived(disk: Path, life: str, most: int) -> tuple[int | None, list[str]]:
    """Return how a server ended that was sent documents, and what it said."""
    said = disk.with_name(life)
    process = started(live, disk, life, most, said)
    process.join(120)
    return process.exitcode, said.read_text(encoding="utf-8").splitlines()


def test_a_disk_in_memory_that_fills(small_disk: Path) -> None:
    status, said = lived(small_disk, "a", 1)
    assert (status, said[1]) == (0, "took a0.md"), said
    reserved = cache.missing(small_disk.glob("state/collections/1/shard/segments/*/vector_storage/vectors/*.mmap"))
    leave(small_disk, SPARE + reserved // 2 + 12 * MIB)
    status, said = lived(small_disk, "b", 50)
    assert status == 0, (status, said)
    assert said[-2:] == ["refused 507", "found 3"]
    kept = ["a0.md", *(line.split()[1] for line in said if line.startswith("took"))]
    # Others write, too, and leave nothing.
    leave(small_disk, MIB // 2)
    status, said = lived(small_disk, "c", 1)
    assert status == 0, (status, said)
    assert said[-1].startswith("no room: There is no room below shard/")
    (small_disk / "ballast").unlink()
    status, said = lived(small_disk, "d", 0)
    assert (status, said[0]) == (0, " ".join(["holds", *sorted(kept)])), said


def test_an_upload_is_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, write_pages(tmp_path / "kb")) as corpora:
            collection = corpora.get(DEFAULT)
            before = collection._lasting.points.ids()
            with monkeypatch.context() as patched:
                patched.setattr(cache, "free", lambda _folder: SPARE)
                with pytest.raises(ProblemError) as refused:
                    await collection.ingest("stoves.md", b"# Stoves\n\nA stove burns gas.\n")
                assert (refused.value.status, refused.value.code) == (507, "no_room")
                assert collection._lasting.points.ids() == before
                check_finds(collection, PAGES)
                # What takes room away from nobody goes on.
                await collection.delete(
                    next(each.doc_id for each in collection.documents() if each.name == "warranty.md")
                )
            assert len(collection._lasting.points.ids()) < len(before)

    asyncio.run(scenario())


def test_room_is_set_aside_before_a_map_is_written(tmp_path: Path) -> None:
    file = tmp_path / "map"
    with file.open("wb") as made:
        made.truncate(8 * MIB)
        made.write(b"x" * 4096)
    cache.reserve(tmp_path, MIB)
    assert cache.used_bytes(tmp_path) >= MIB
    assert (file.stat().st_size, file.read_bytes()[:4097]) == (8 * MIB, b"x" * 4096 + b"\0")


def test_what_a_quota_refuses_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "map").open("wb") as made:
        made.truncate(MIB)

    def refuses(*_: object) -> None:
        raise OSError(122, "Disk quota exceeded")

    monkeypatch.setattr(os, "posix_fallocate", refuses)
    with pytest.raises(NoRoomError, match=r"map \(Disk quota exceeded\)"):
        cache.reserve(tmp_path, 4096)


def test_a_graph_that_finds_no_room_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    monkeypatch.setattr(edge, "LIVE_GRAPH_FROM", 10)
    points = edge.EdgePoints(tmp_path / "shard")
    points.add(list(range(20)), np.eye(20, dtype=np.float32))
    monkeypatch.setattr(cache, "free", lambda _folder: edge._LIVE_EDGE_SPARE)
    points.tidy()
    assert points.nearest(np.eye(20, dtype=np.float32)[3], 1)[0][1] == 3
    monkeypatch.undo()
    points.close()
