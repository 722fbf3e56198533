"""A shard that would crash its process crashes a child process first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rag_harness.retrieval.indexes import LiveIndexError
from rag_harness.retrieval.indexes.edge import EdgePoints
from rag_harness.retrieval.indexes.edge_trial import shard_fault


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
