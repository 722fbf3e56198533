from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings
from rag_harness.retrieval.indexes.server_connection import ClusterOptions, GraphOptions, cluster_options, graph_options

URL = "http://127.0.0.1:6333"


def test_options_are_read_however_they_are_parted() -> None:
    given = (
        "shards=6 replicas=2,write_consistency=2",
        "read_consistency=majority on_disk=yes tenant=customer",
        "wait=0",
    )
    wanted = ClusterOptions(6, 2, 2, "majority", "customer", True, wait=0)
    assert cluster_options(Settings(qdrant_cluster=given)) == wanted
    assert cluster_options(Settings()) == ClusterOptions()


def test_a_graph_is_asked_for_by_its_option() -> None:
    given = ("m=32 ef=64 quantize=int8 oversampling=1.5 rescore=no",)
    asked = Settings(qdrant_url=URL, qdrant_graph=given)
    assert graph_options(asked) == GraphOptions(m=32, ef=64, quantize="int8", rescore=False, oversampling=1.5)
    assert graph_options(Settings(qdrant_url=URL)) is None
    assert graph_options(Settings(qdrant_graph=given)) is None  # the index of this process has its own


@pytest.mark.parametrize(("mode", "exact"), [("auto", False), ("live", False), ("record", True), ("replay", True)])
def test_what_is_recorded_is_found_exactly(mode: Any, exact: bool) -> None:
    asked = Settings(qdrant_url=URL, qdrant_graph=("m=32",), mode=mode)
    assert (graph_options(asked) is None) == exact


def test_another_graph_has_another_name() -> None:
    assert len({GraphOptions().name, GraphOptions(m=32).name, GraphOptions(quantize="binary").name}) == 3
    assert GraphOptions().name == GraphOptions(ef=512, oversampling=4, rescore=False).name


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("shard=6", r"qdrant_cluster has 'shard=6'\. Unknown name 'shard'\. Did you mean 'shards'\?"),
        ("shards", r"'shards'.*Write NAME=VALUE"),
        ("shards=six", r"'shards=six', but shards is a whole number"),
        ("replicas=0", r"replicas is a whole number from 1"),
        ("read_consistency=some", r"majority, quorum, all or a number"),
        ("on_disk=true", r"yes or no"),
        ("replicas=2 write_consistency=3", r"write_consistency=3 but replicas=2.*Make it 2"),
    ],
)
def test_what_cannot_be_is_named(given: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        cluster_options(Settings(qdrant_cluster=(given,)))


@pytest.mark.parametrize("given", ["quantize=int4", "m=0", "oversampling=0.5", "ef=fast"])
def test_a_graph_that_cannot_be_is_named(given: str) -> None:
    with pytest.raises(SettingsError, match=f"qdrant_graph has '{given}', but"):
        graph_options(Settings(qdrant_graph=(given,)))
