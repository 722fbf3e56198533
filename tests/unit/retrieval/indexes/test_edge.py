"""A shard that would crash its process crashes a child process first."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core import cache
from rag_harness.core.errors import CriticalError
from rag_harness.core.log import log
from rag_harness.core.protocols import PersistentIndex
from rag_harness.core.settings import Settings
from rag_harness.core.types import Chunk, Matrix
from rag_harness.retrieval.indexes import LiveIndexError, edge, shard_files
from rag_harness.retrieval.indexes.edge import EdgeIndex, EdgePoints, create
from rag_harness.retrieval.indexes.edge_trial import shard_fault
from rag_harness.retrieval.indexes.shard_files import MARKER, ShardFolder
from tests.unit.retrieval.indexes.random_vectors import check_order_is_that_of_the_cosine, named, random_rows

DIGEST = "0123456789abcdef" * 2


def index_in(folder: Path, **options: Any) -> EdgeIndex:
    return EdgeIndex(ShardFolder(folder / "shard", DIGEST), **options)


def built(folder: Path, rows: Matrix, **options: Any) -> EdgeIndex:
    index = index_in(folder, **options)
    index.upsert(named(len(rows)), rows)
    return index


def texts(index: EdgeIndex, query: Any, k: int) -> list[str]:
    return [hit.chunk.text for hit in index.search(np.asarray(query, np.float32), k)]


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(file): (file.stat().st_mtime_ns, file.stat().st_ino, file.read_bytes() if file.is_file() else b"")
        for file in folder.rglob("*")
    }


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    # The harness's log writes to its file alone, so it does not reach caplog by itself.
    log.addHandler(caplog.handler)
    yield caplog
    log.removeHandler(caplog.handler)


def warnings_in(logged: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in logged.records if record.levelno >= logging.WARNING]


# Results


def test_order_is_that_of_the_cosine(tmp_path: Path) -> None:
    rows = random_rows(2500)  # more than two batches
    check_order_is_that_of_the_cosine(built(tmp_path, rows), rows)


def test_equal_scores_keep_the_order_of_the_chunks_where_the_list_is_cut(tmp_path: Path) -> None:
    index = built(tmp_path, np.ones((200, 3), np.float32))
    for k in (1, 5, 60, 200):
        assert texts(index, [1, 1, 1], k) == [f"text {n}" for n in range(k)]


@given(
    directions=st.lists(st.tuples(*[st.integers(-2, 2)] * 3).filter(any), min_size=1, max_size=40),
    query=st.tuples(*[st.integers(-2, 2)] * 3).filter(any),
    k=st.integers(1, 45),
)
@settings(max_examples=25)
def test_equals_numpy_ties_and_all(
    tmp_path_factory: pytest.TempPathFactory, directions: list[Any], query: Any, k: int
) -> None:
    rows = np.array(directions, np.float32)
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float64)
    # Few directions, so many are equal; rounding keeps the last bits of either side out of the order.
    cosines = np.round(unit @ np.array(query) / np.linalg.norm(query), 5)
    hits = built(tmp_path_factory.mktemp("index"), rows).search(np.array(query, np.float32), k)
    np.testing.assert_allclose([hit.score for hit in hits], np.sort(cosines)[::-1][:k], atol=2e-5)
    positions = [int(hit.chunk.text.split()[1]) for hit in hits]
    assert len(set(positions)) == len(positions) == min(k, len(rows))
    equal = [(rows[a] == rows[b]).all() and a > b for a, b in pairwise(positions)]
    assert not any(equal)
    left_out = set(range(len(rows))) - set(positions)
    assert not [a for a in left_out for b in positions if a < b and (rows[a] == rows[b]).all()]


def test_k_beyond_the_index_and_chunks_of_one_id(tmp_path: Path) -> None:
    chunks = [Chunk("a.md#chunk_0", "a.md", text, 0, 5) for text in ("one", "two")]
    index = index_in(tmp_path)
    index.upsert(chunks, np.eye(2, dtype=np.float32))
    assert texts(index, [0, 1], 10) == ["two", "one"]
    assert len(index) == 2


def test_empty_index_needs_no_shard(tmp_path: Path) -> None:
    index = built(tmp_path, np.empty((0, 4), np.float32))
    assert index.search(np.ones(4, np.float32), 5) == []
    assert len(index) == 0
    assert index_in(tmp_path).open([])
    assert list(tmp_path.iterdir()) == []


def test_vector_of_another_length_is_an_error_that_says_so(tmp_path: Path) -> None:
    index = built(tmp_path, random_rows(3))
    with pytest.raises(CriticalError, match=r"does not answer: .*expected dim: 24, got 5"):
        index.search(random_rows(1, 5)[0], 1)


def test_graph_from_the_threshold_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "GRAPH_FROM", 3000)
    rows, queries = random_rows(3000), random_rows(50, seed=1)
    index, below = built(tmp_path / "graph", rows), built(tmp_path / "exact", rows[:2999])
    assert index._shard is not None
    assert index._shard.info().indexed_vectors_count == 3000
    assert below._shard is not None
    assert below._shard.info().indexed_vectors_count == 0
    exact = np.argsort(-(rows / np.linalg.norm(rows, axis=1, keepdims=True) @ queries.T), axis=0)[:10].T
    shared = [
        len({f"text {n}" for n in best} & set(texts(index, q, 10))) for best, q in zip(exact, queries, strict=True)
    ]
    assert sum(shared) / 500 >= 0.99


def test_scores_of_the_graph_are_those_of_the_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(300)
    exact = built(tmp_path / "exact", rows).search(rows[7], 5)
    monkeypatch.setattr(edge, "GRAPH_FROM", 300)
    assert built(tmp_path / "graph", rows).search(rows[7], 5) == exact


def test_record_and_replay_compare_with_every_vector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "GRAPH_FROM", 2)
    modes = {mode: create(parts_of(tmp_path, mode=mode)) for mode in ("auto", "live", "record", "replay")}
    for index in modes.values():
        index._chunks = named(2)
    assert {mode: index.compares_all for mode, index in modes.items()} == {
        "auto": False, "live": False, "record": True, "replay": True,
    }  # fmt: skip


# What is kept


def test_a_second_process_needs_no_vectors(tmp_path: Path) -> None:
    rows = random_rows(50)
    first = built(tmp_path, rows)
    again = index_in(tmp_path)
    assert isinstance(again, PersistentIndex)
    assert again.open(named(50))
    assert [again.search(row, 3) for row in rows] == [first.search(row, 3) for row in rows]


def test_nothing_there_is_no_damage(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    assert not index_in(tmp_path).open(named(2))
    assert warnings_in(logged) == []


def test_what_is_there_is_not_built_again(tmp_path: Path) -> None:
    built(tmp_path, random_rows(5))
    before = (tmp_path / "shard" / MARKER).stat().st_mtime_ns
    again = built(tmp_path, -random_rows(5))
    assert (tmp_path / "shard" / MARKER).stat().st_mtime_ns == before
    assert texts(again, random_rows(5)[3], 1) == ["text 3"]


def test_other_content_in_a_folder_of_that_name_is_not_taken(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    built(tmp_path, random_rows(5))
    assert not EdgeIndex(ShardFolder(tmp_path / "shard", "f" * 32)).open(named(5))
    assert not index_in(tmp_path).open(named(4))
    assert f"holds 5 points of {DIGEST}, not 5 of ffff" in warnings_in(logged)[0]
    assert "not 4 of" in warnings_in(logged)[1]


FILES = ("edge_config.json", "segment.json", "chunk_0.mmap", "mutable_id_tracker.mappings", "tracker.dat", MARKER)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["deleted", pytest.param("truncated", marks=pytest.mark.long), "zeros"])
def test_damaged_shard_is_built_again_and_the_log_says_why(
    tmp_path: Path, logged: pytest.LogCaptureFixture, name: str, how: str
) -> None:
    rows = random_rows(20)
    built(tmp_path, rows)
    (file,) = (tmp_path / "shard").rglob(name)
    content = file.read_bytes()
    if how == "deleted":
        file.unlink()
    else:
        file.write_bytes(content[: len(content) // 2] if how == "truncated" else bytes(len(content)))
    index = index_in(tmp_path)
    harmless = (name, how) == ("tracker.dat", "zeros")  # of payloads, and there are none
    assert index.open(named(20)) == harmless
    index.upsert(named(20), rows)
    assert [texts(index, row, 1) for row in rows] == [[f"text {n}"] for n in range(20)]
    said = warnings_in(logged)
    assert len(said) == (not harmless)
    if not harmless:
        assert "is damaged and is built again: " in said[0]
        assert how == "zeros" or file.name in said[0]
        assert index_in(tmp_path).open(named(20))


def test_a_panic_of_the_engine_is_damage(tmp_path: Path, logged: pytest.LogCaptureFixture, monkeypatch: Any) -> None:
    monkeypatch.setattr(edge, "GRAPH_FROM", 20)
    monkeypatch.setattr(shard_files, "_NUMBERS", ())  # or the damage would be seen before the engine is asked
    rows = random_rows(20)
    built(tmp_path, rows)
    (file,) = (tmp_path / "shard").rglob("id_tracker.mappings")
    file.write_bytes((b"\xff\x13{" * file.stat().st_size)[: file.stat().st_size])
    assert not index_in(tmp_path).open(named(20))
    assert "PanicException" in warnings_in(logged)[0]


def test_points_at_a_place_that_none_has_do_not_meet_the_engine(
    tmp_path: Path, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = random_rows(20)
    built(tmp_path, rows)
    (file,) = (tmp_path / "shard").rglob("mutable_id_tracker.mappings")
    # The engine would ask for 100 GB, and end the process.
    file.write_bytes(file.read_bytes()[:-4] + b"\xf0\xff\xff\xff")
    with monkeypatch.context() as patched:
        patched.setattr(edge, "load_shard", lambda *_: pytest.fail("the engine was asked"))
        assert not index_in(tmp_path).open(named(20))
    assert "the numbers of its points are damaged" in warnings_in(logged)[0]
    assert len(texts(built(tmp_path, rows), rows[3], 1)) == 1


READ = """
import sys
from pathlib import Path
import numpy as np
from rag_harness.retrieval.indexes.edge import EdgeIndex
from rag_harness.retrieval.indexes.shard_files import ShardFolder
from tests.unit.hits import chunks_of
rows = np.random.default_rng(0).normal(size=(50, 24)).astype(np.float32)
index = EdgeIndex(ShardFolder(Path(sys.argv[1]) / "shard", "0123456789abcdef" * 2))
chunks = chunks_of([f"text {n}" for n in range(50)])
"""


def run_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    root = Path(__file__).parents[4]
    command = [sys.executable, "-c", READ + code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_several_processes_open_one_shard_at_once(tmp_path: Path) -> None:
    built(tmp_path, random_rows(50))
    code = """
assert index.open(chunks)
print("open", flush=True)
sys.stdin.readline()
print([index.search(row, 1)[0].chunk.text for row in rows] == [f"text {n}" for n in range(50)])
"""
    processes = [run_python(code, tmp_path) for _ in range(2)]
    try:
        said = [process.stdout.readline() for process in processes if process.stdout]
        assert said == ["open\n"] * 2  # both have it open now, and so has this one
        assert index_in(tmp_path).open(named(50))
        assert [process.communicate("\n", timeout=60)[0] for process in processes] == ["True\n"] * 2
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_processes_that_start_together_build_once(tmp_path: Path) -> None:
    code = """
from rag_harness.retrieval.indexes import edge
write = edge.write_shard
edge.write_shard = lambda *given: (print("builds"), write(*given))
assert not index.open(chunks)
print("ready", flush=True)
sys.stdin.readline()
index.open = lambda chunks: False  # both have looked before either has built
index.upsert(chunks, rows)
print(index.search(rows[7], 1)[0].chunk.text)
"""
    processes = [run_python(code, tmp_path) for _ in range(2)]
    assert [process.stdout.readline() for process in processes if process.stdout] == ["ready\n"] * 2
    said = [process.communicate("\n", timeout=60)[0].split("\n") for process in processes]
    assert sorted(len(lines) for lines in said) == [2, 3]
    assert [lines[-2] for lines in said] == ["text 7"] * 2
    assert sum("builds" in lines for lines in said) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shard", "shard.lock"]


def test_a_killed_build_leaves_nothing_half(tmp_path: Path) -> None:
    code = """
from rag_harness.retrieval.indexes import edge
def vectors_digest(*_):
    print("building", flush=True)
    sys.stdin.readline()
edge.vectors_digest = vectors_digest
index.upsert(chunks, rows)
"""
    process = run_python(code, tmp_path)
    assert process.stdout
    assert process.stdout.readline() == "building\n"
    process.kill()
    process.communicate()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".shard.")]
    assert not (tmp_path / "shard").exists()
    index = built(tmp_path, random_rows(50))
    assert texts(index, random_rows(50)[7], 1) == ["text 7"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shard", "shard.lock"]


def test_a_failed_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "vectors_digest", lambda *_: 1 / 0)
    with pytest.raises(CriticalError, match="cannot be built: ZeroDivisionError"):
        built(tmp_path, random_rows(5))
    assert [path.name for path in tmp_path.iterdir()] == ["shard.lock"]


# Where nothing may be written


def test_replay_builds_elsewhere_and_removes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    index = built(tmp_path, random_rows(20), keeps=False)
    assert texts(index, random_rows(20)[7], 1) == ["text 7"]
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    del index
    assert list((tmp_path / "temporary").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


@pytest.mark.parametrize("damaged", [False, True])
def test_replay_leaves_a_shard_as_it_is(tmp_path: Path, damaged: bool) -> None:
    rows = random_rows(20)
    built(tmp_path, rows)
    if damaged:
        next((tmp_path / "shard").rglob("segment.json")).unlink()
    before = state(tmp_path)
    index = index_in(tmp_path, keeps=False)
    assert index.open(named(20)) != damaged
    index.upsert(named(20), rows)
    assert [texts(index, row, 1) for row in rows] == [[f"text {n}"] for n in range(20)]
    assert state(tmp_path) == before


def test_temporary_shard_gets_no_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "GRAPH_FROM", 20)
    index = built(tmp_path, random_rows(20), keeps=False)
    assert index._shard is not None
    assert index._shard.info().indexed_vectors_count == 0
    assert texts(index, random_rows(20)[7], 1) == ["text 7"]


def test_cache_that_cannot_be_written_is_said_and_done_without(tmp_path: Path, logged: Any) -> None:
    (tmp_path / "file").write_text("in the way")
    index = built(tmp_path / "file", random_rows(20))
    assert texts(index, random_rows(20)[7], 1) == ["text 7"]
    assert "cannot be kept in" in warnings_in(logged)[0]


def test_shard_that_cannot_be_written_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(tmp_path, random_rows(20))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    before = state(tmp_path)
    index = index_in(tmp_path)
    assert index.open(named(20))
    assert texts(index, random_rows(20)[7], 1) == ["text 7"]
    assert state(tmp_path) == before


# The settings


def parts_of(folder: Path, **options: Any) -> Any:
    return SimpleNamespace(
        embedder=SimpleNamespace(model="hashing", revision="1"),
        settings=Settings(rootdir=str(folder), **options),
        content_digest=DIGEST,
    )


def test_kept_below_the_cache_under_the_digest_and_the_engines_version(tmp_path: Path) -> None:
    create(parts_of(tmp_path)).upsert(named(2), random_rows(2))
    (shard,) = [path for path in (tmp_path / ".rag_cache" / "indexes").iterdir() if path.is_dir()]
    assert shard.name.startswith("0123456789abcdef-edge0.")
    assert json.loads((shard / MARKER).read_text())["digest"] == DIGEST


def test_replay_writes_nothing(tmp_path: Path) -> None:
    index = create(parts_of(tmp_path, mode="replay", overwrite=True))
    assert not index.open(named(2))
    index.upsert(named(2), random_rows(2))
    assert len(index.search(random_rows(1)[0], 5)) == 2
    assert list(tmp_path.iterdir()) == []


def test_overwrite_builds_once_a_run_and_not_once_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "yesterday")
    create(parts_of(tmp_path)).upsert(named(5), -random_rows(5))
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "today")
    first = create(parts_of(tmp_path, overwrite=True))
    assert not first.open(named(5))
    first.upsert(named(5), random_rows(5))
    assert texts(first, random_rows(5)[3], 1) == ["text 3"]
    built_at = time.time_ns()
    second = create(parts_of(tmp_path, overwrite=True))
    assert second.open(named(5))
    (marker,) = (tmp_path / ".rag_cache").rglob(MARKER)
    assert marker.stat().st_mtime_ns <= built_at


def test_a_shard_that_finds_no_room_is_built_for_this_process_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture
) -> None:
    rows = random_rows(20)
    with monkeypatch.context() as patched:
        patched.setattr(cache, "free", lambda folder: 0 if folder.is_relative_to(tmp_path) else 1 << 40)
        assert texts(built(tmp_path, rows), rows[3], 1) == ["text 3"]
    assert "cannot be kept" in warnings_in(logged)[0]
    monkeypatch.setattr(cache, "free", lambda _: 0)
    with pytest.raises(CriticalError, match="cannot be built: NoRoomError: There is no room below"):
        built(tmp_path / "other", rows)


# A shard that would crash its process crashes a child process first.


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    points = EdgePoints(tmp_path / "shard")
    points.add(list(range(100)), np.eye(100, dtype=np.float32))
    points.close()
    return tmp_path / "shard"


def test_a_whole_shard_has_no_fault_and_is_left_as_it_is(shard: Path) -> None:
    assert shard_fault(shard) == ""
    points = EdgePoints(shard)
    assert points.ids() == set(range(100))
    points.close()


@pytest.mark.parametrize("place", [b"\xff\xff\xff\x7f", b"\xf0\xff\xff\xff"])
def test_a_point_at_a_place_that_none_has_is_a_fault(shard: Path, place: bytes) -> None:
    for file in shard.glob("segments/*/mutable_id_tracker.mappings"):
        file.write_bytes(file.read_bytes()[:-4] + place)
    assert "the engine ended with status" in shard_fault(shard)
    with pytest.raises(LiveIndexError, match="cannot be opened: the engine ended"):
        EdgePoints(shard)


def test_a_shard_that_never_opens_is_not_waited_for(shard: Path) -> None:
    assert shard_fault(shard, seconds=0.001) == "it was not open after 0.001 s"
