"""A shard that was made of an older one answers as one that is built anew."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.types import Matrix
from rag_harness.retrieval.indexes import edge
from rag_harness.retrieval.indexes.edge import EdgeIndex
from rag_harness.retrieval.indexes.shard_files import MARKER
from tests.unit.hits import chunks_of
from tests.unit.retrieval.indexes.random_vectors import random_rows
from tests.unit.retrieval.indexes.small_shards import WORDS, folder_of, indexed, rows_of


def answers(index: EdgeIndex, k: int = 12) -> list[list[tuple[str, str, float, int]]]:
    return [
        [(hit.chunk.chunk_id, hit.chunk.text, round(hit.score, 5), hit.rank) for hit in index.search(query, k)]
        for query in random_rows(6, seed=3)
    ]


@pytest.fixture(autouse=True)
def builds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give small shards a graph, and count the shards that are built anew."""
    monkeypatch.setattr(edge, "GRAPH_FROM", 5)
    counted, write = list[int](), edge.write_shard

    def counting(folder: Path, vectors: Matrix, graph: bool) -> None:
        counted.append(1)
        write(folder, vectors, graph)

    monkeypatch.setattr(edge, "write_shard", counting)
    return counted


def test_one_changed_document_makes_no_new_graph(tmp_path: Path, builds: list[int]) -> None:
    indexed(tmp_path, WORDS)
    texts = ["first", *WORDS[:20], "in the middle", *WORDS[22:]]
    assert answers(indexed(tmp_path, texts)) == answers(indexed(tmp_path / "new", texts))
    assert builds == [1, 1]
    again = EdgeIndex(folder_of(tmp_path, texts), exact=True)
    assert again.open(chunks_of(texts))
    assert answers(again) == answers(indexed(tmp_path / "new", texts))


def test_too_many_changes_or_another_embedder_make_a_new_graph(tmp_path: Path, builds: list[int]) -> None:
    indexed(tmp_path, WORDS)
    indexed(tmp_path, [*WORDS[:53], *(f"new {n}" for n in range(7))])
    indexed(tmp_path, [*WORDS, "another"], embedder="other")
    assert len(builds) == 3


def test_changes_add_up_until_a_new_graph_is_made(tmp_path: Path, builds: list[int]) -> None:
    texts = list(WORDS)
    indexed(tmp_path, texts)
    for number in range(4):  # two points beside the graph each: the old one, and the new one
        texts[number] = f"new {number}"
        folder = folder_of(tmp_path, texts)
        index = indexed(tmp_path, texts)
        assert answers(index) == answers(indexed(tmp_path / "anew", texts, embedder=""))
        for other in tmp_path.glob("*-edge"):
            if other != folder.path:
                (other / MARKER).unlink(missing_ok=True)  # so that the next one is made of this one
    assert len(builds) == 1 + 1 + 4


STEP = st.tuples(st.sampled_from(["add", "replace", "remove"]), st.integers(0, 70), st.sampled_from(WORDS[:9]))


@given(steps=st.lists(STEP, min_size=1, max_size=4))
@settings(max_examples=6, deadline=None)
def test_any_changes_in_any_order_come_to_what_a_new_index_is(steps: list[tuple[str, int, str]]) -> None:
    check_changes(steps)


@pytest.mark.long
@given(steps=st.lists(STEP, min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_a_hundred_changes_in_any_order_come_to_what_a_new_index_is(steps: list[tuple[str, int, str]]) -> None:
    check_changes(steps)


def check_changes(steps: list[tuple[str, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patched:
        patched.setattr(edge, "MOST_BESIDE", 10.0)
        folder, texts = Path(made), list(WORDS[:12])
        indexed(folder, texts)
        for how, at, text in steps:
            place = at % max(len(texts), 1)
            if how == "add":
                texts.insert(place, text)
            elif len(texts) > 5:
                texts[place : place + 1] = [text] if how == "replace" else []
            index = indexed(folder, texts)
        # Without an embedder's name nothing is made of something older.
        assert answers(index) == answers(indexed(folder / "new", texts, embedder=""))


def test_a_damaged_older_shard_is_passed_over(tmp_path: Path, builds: list[int]) -> None:
    indexed(tmp_path, WORDS)
    texts = [*WORDS, "another"]
    for file in folder_of(tmp_path, WORDS).path.rglob("*id_tracker.mappings"):
        file.write_bytes(bytes(file.stat().st_size))
    assert answers(indexed(tmp_path, texts)) == answers(indexed(tmp_path / "new", texts))
    assert len(builds) == 3


def test_the_graph_finds_what_comes_and_nothing_that_is_gone(tmp_path: Path) -> None:
    indexed(tmp_path, WORDS, exact=False)
    texts = [*WORDS[:30], "another", *WORDS[31:]]
    index = indexed(tmp_path, texts, exact=False)
    assert not index.compares_all
    for text, row in zip(texts, rows_of(texts), strict=True):
        assert index.search(row, 1)[0].chunk.text == text
    assert "text 30" not in {hit.chunk.text for row in rows_of(WORDS) for hit in index.search(row, 60)}


CHANGE = """
import sys
from pathlib import Path
from rag_harness.retrieval.indexes import edge
from tests.unit.retrieval.indexes.small_shards import WORDS, indexed
edge.GRAPH_FROM = 5
print("begins", flush=True)
indexed(Path(sys.argv[1]), [*WORDS, "another"])
"""


def test_a_kill_at_any_time_leaves_nothing_wrong(tmp_path: Path) -> None:
    texts = [*WORDS, "another"]
    wanted, old = answers(indexed(tmp_path / "new", texts)), answers(indexed(tmp_path, WORDS))
    for wait in (0.0, 0.02, 0.1):
        command: list[Any] = [sys.executable, "-c", CHANGE, tmp_path]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[4], stdout=subprocess.PIPE)
        assert process.stdout
        assert process.stdout.readline() == b"begins\n"
        time.sleep(wait)
        process.kill()
        process.communicate()
        assert answers(indexed(tmp_path, WORDS)) == old
    assert answers(indexed(tmp_path, texts)) == wanted
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []
