"""Both kinds of an index that changes, against a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_harness.core.settings import Settings
from rag_harness.core.types import Vector
from rag_harness.retrieval.indexes import LiveIndexError, LivePoints, edge
from rag_harness.retrieval.indexes.edge import EdgePoints
from rag_harness.retrieval.indexes.qdrant import open_points
from rag_harness.retrieval.indexes.server import ServerPoints
from tests.unit.retrieval.indexes.random_vectors import random_rows
from tests.unit.retrieval.indexes.server.stub import cluster_stub

Opener = Callable[[Path], LivePoints]


def on_server(_folder: Path) -> LivePoints:
    return ServerPoints.at("", "", "mine")


@pytest.fixture(params=[EdgePoints, on_server], ids=["edge", "server"])
def opener(request: pytest.FixtureRequest) -> Iterator[Opener]:
    made: list[LivePoints] = []

    def make(folder: Path) -> LivePoints:
        made.append(request.param(folder))
        return made[-1]

    yield make
    for each in made:
        each.close()


def nearest_of(known: dict[int, Vector], query: Vector) -> list[int]:
    return sorted(known, key=lambda point: -float(known[point] @ query / np.linalg.norm(known[point])))


def test_what_is_added_is_found_and_what_is_removed_is_not(tmp_path: Path, opener: Opener) -> None:
    points, rows = opener(tmp_path / "shard"), random_rows(200)
    assert (points.ids(), points.nearest(rows[0], 3), points.vectors([1])) == (set(), [], {})
    points.add(range(1, 201), rows)
    points.remove([7, 8, 4_000])
    (anew,) = random_rows(1, seed=2)
    points.add([9], anew[None])
    known = {n: rows[n - 1] for n in range(1, 201) if n not in (7, 8)} | {9: anew}
    assert points.ids() == set(known)
    for query in random_rows(10, seed=1):
        assert [point for _, point in points.nearest(query, 5)] == nearest_of(known, query)[:5]
    found = points.vectors([1, 7])
    assert list(found) == [1]
    np.testing.assert_allclose(found[1], rows[0] / np.linalg.norm(rows[0]), atol=1e-5)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(1, 30), min_size=1)), max_size=8), st.integers(0, 2**31))
def test_a_shard_is_after_a_restart_what_it_was(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[bool, set[int]]], seed: int
) -> None:
    folder, rows, known = tmp_path_factory.mktemp("live") / "shard", random_rows(31, seed=seed), dict[int, Vector]()
    points = EdgePoints(folder)
    for adds, ids in changes:
        if adds:
            points.add(sorted(ids), rows[sorted(ids)])
            known |= {n: rows[n] for n in ids}
        else:
            points.remove(sorted(ids))
            known = {n: row for n, row in known.items() if n not in ids}
    points.close()
    points = EdgePoints(folder)
    assert points.ids() == set(known)
    assert [point for _, point in points.nearest(rows[0], 40)] == nearest_of(known, rows[0])
    points.close()


def test_a_shard_has_one_owner(tmp_path: Path) -> None:
    first = EdgePoints(tmp_path / "shard")
    first.add([1], random_rows(1))
    with pytest.raises(LiveIndexError, match="cannot be opened"):
        EdgePoints(tmp_path / "shard")
    first.close()
    EdgePoints(tmp_path / "shard").close()


def test_what_a_killed_process_had_begun_to_make_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "shard" / "segments").mkdir(parents=True)
    points = EdgePoints(tmp_path / "shard")
    points.add([1], random_rows(1))
    assert points.ids() == {1}
    points.close()


def test_a_damaged_shard_says_so(tmp_path: Path) -> None:
    points = EdgePoints(tmp_path / "shard")
    points.add([1], random_rows(1))
    points.close()
    (tmp_path / "shard" / "edge_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(LiveIndexError, match="cannot be opened"):
        EdgePoints(tmp_path / "shard")


def test_a_url_is_for_the_server(tmp_path: Path) -> None:
    with cluster_stub() as stub:
        points = open_points(Settings(qdrant_url=stub.url), tmp_path / "shard", "mine")
        rows = random_rows(600)
        points.add(range(1, 601), rows)
        assert stub.batches("mine") == [256, 256, 88]
        points.remove([2])
        assert points.ids() == {1, *range(3, 601)}
        assert [point for _, point in points.nearest(rows[0], 1)] == [1]
        assert stub.calls[-1].asked.params.exact
        assert set(points.vectors([1, 2])) == {1}
        points.close()
        changes = [call.query for call in stub.calls if call.what in ("PUT /points", "POST /points/delete")]
        assert changes == [{"wait": "true"}] * 4  # what was added is there, what was removed is gone
    assert not (tmp_path / "shard").exists()


def test_a_dead_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(LiveIndexError, match="does not answer"):
        open_points(Settings(qdrant_url="http://127.0.0.1:1"), tmp_path, "mine")


def test_a_graph_is_made_where_it_is_worth_it_and_what_comes_later_is_found_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "LIVE_GRAPH_FROM", 500)
    rows, points = random_rows(700), EdgePoints(tmp_path / "shard")
    points.add(range(499), rows[:499])
    points.tidy()
    assert points._shard is not None
    assert (points._graph, points._shard.info().indexed_vectors_count) == (False, 0)
    points.add(range(499, 600), rows[499:600])
    points.tidy()
    assert (points._graph, points._shard.info().indexed_vectors_count) == (True, 600)
    points.add(range(600, 700), rows[600:])
    points.remove([3, 650])
    points.close()
    points = EdgePoints(tmp_path / "shard")
    points.tidy()
    known = {n: rows[n] for n in range(700) if n not in (3, 650)}
    assert points.ids() == set(known)
    found = [[point for _, point in points.nearest(query, 10)] for query in random_rows(50, seed=1)]
    right = [nearest_of(known, query)[:10] for query in random_rows(50, seed=1)]
    recall = sum(len(set(one) & set(other)) for one, other in zip(found, right, strict=True)) / 500
    assert recall > 0.98
    points.close()
    exact = EdgePoints(tmp_path / "shard", exact=True)
    exact.tidy()
    assert [[point for _, point in exact.nearest(query, 10)] for query in random_rows(50, seed=1)] == right
    exact.close()
