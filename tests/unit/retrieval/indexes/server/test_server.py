"""The index on a cluster: its options, its connection, its status, as far as a stub of its REST API can show."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from json import JSONDecodeError
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from httpx import ConnectError, Headers, ReadTimeout
from pydantic_core import ValidationError
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_client.models import Distance

from rag_harness.__main__ import main
from rag_harness.core.errors import CriticalError, PrerequisiteError, SettingsError
from rag_harness.core.protocols import PersistentIndex
from rag_harness.core.settings import Settings
from rag_harness.core.types import Hit, Matrix
from rag_harness.retrieval.indexes.edge import EdgeIndex
from rag_harness.retrieval.indexes.server import QdrantIndex
from rag_harness.retrieval.indexes.server_collection import RETRIES, CollectionContent, ServerCollection
from rag_harness.retrieval.indexes.server_connection import (
    ClusterOptions,
    GraphOptions,
    check_client,
    cluster_options,
    connect,
    explained,
    graph_options,
    speaking,
)
from rag_harness.retrieval.indexes.shard_files import ShardFolder
from tests.unit.retrieval.indexes.random_vectors import check_order_is_that_of_the_cosine, named, random_rows
from tests.unit.retrieval.indexes.server.made import DIGEST, NAME, POINTS, FastClock, index_on
from tests.unit.retrieval.indexes.server.stub import Answer, Call, ClusterStub, cluster_stub

# The index on a cluster, as far as a stub of its REST API can show.


def served(stub: ClusterStub, rows: Matrix, *cluster: str, **more: Any) -> QdrantIndex:
    index = index_on(stub, *cluster, **more)
    index.upsert(named(len(rows)), rows)
    return index


def shown(hits: list[Hit]) -> list[tuple[str, int]]:
    return [(hit.chunk.chunk_id, hit.rank) for hit in hits]


def test_what_is_found_is_what_edge_finds_and_what_is_nearest(tmp_path: Path) -> None:
    rows = random_rows(90, size=6)
    rows[10:40] = rows[:30]  # ties, more than are asked for at first
    rows[60:] = rows[5]
    edge = EdgeIndex(ShardFolder(tmp_path / "shard", DIGEST))
    edge.upsert(named(90), rows)
    with cluster_stub() as stub:
        index = served(stub, rows, "batch=16")
        queries = [*random_rows(10, size=6, seed=1), rows[5], rows[3]]
        for k in (1, 4, 31, 200):
            found = index.search_many(queries, k)
            assert [shown(hits) for hits in found] == [shown(edge.search(query, k)) for query in queries]
            assert [shown(index.search(query, k)) for query in queries[:3]] == [shown(hits) for hits in found[:3]]
        index.close()
    with cluster_stub() as stub:
        index = served(stub, random_rows(60))
        check_order_is_that_of_the_cosine(index, random_rows(60))
        index.close()


def test_queries_go_together_and_points_in_batches() -> None:
    rows = random_rows(600)
    with cluster_stub() as stub:
        index = served(stub, rows, "read_consistency=majority")
        assert sorted(stub.batches(POINTS)) == [88, 256, 256]
        stub.calls.clear()
        hits = index.search_many(list(rows[:100]), 3)
        assert [each[0].chunk.text for each in hits] == [f"text {n}" for n in range(100)]
        assert stub.whats() == ["POST /points/query/batch"] * 2
        assert [len(call.asked.searches) for call in stub.calls] == [64, 36]
        assert stub.calls[0].query == {"consistency": "majority"}
        asked = stub.calls[0].asked.searches[0]
        assert (asked.limit, asked.params.exact, asked.with_payload) == (4, True, False)
        index.close()


def test_a_collection_is_made_as_the_options_say() -> None:
    with cluster_stub(nodes=3) as stub:
        given = "shards=6 replicas=2 write_consistency=2 tenant=customer on_disk=yes"
        served(stub, random_rows(5), given).close()
        made = next(call.asked for call in stub.calls if (call.what, call.collection) == ("PUT /", POINTS))
        assert (made.shard_number, made.replication_factor, made.write_consistency_factor) == (6, 2, 2)
        assert (made.vectors.size, made.vectors.on_disk) == (24, True)
        assert (made.hnsw_config.m, made.quantization_config) == (0, None)  # nobody asks for a graph
        assert made.metadata == {
            "rag_harness": {"digest": DIGEST, "model": "tiny@1", "chunks": 5, "dimension": 24},
        }
        indexed = [(call.asked.field_name, call.asked.field_schema.is_tenant)
                   for call in stub.calls if (call.what, call.collection) == ("PUT /index", POINTS)]  # fmt: skip
        assert indexed == [("doc_id", None), ("metadata.customer", True)]


@pytest.mark.parametrize("quantize", ["none", "int8", "binary"])
def test_a_graph_is_made_and_searched_as_the_options_say(quantize: str) -> None:
    graph = f"m=32 ef_construct=200 ef=256 quantize={quantize} oversampling=3"
    with cluster_stub() as stub:
        index = served(stub, random_rows(5), clock=FastClock(), qdrant_graph=(graph,))
        name = index._collection.name
        assert name.startswith(f"{NAME}_")
        made = next(call.asked for call in stub.calls if (call.what, call.collection) == ("PUT /", f"{name}_points"))
        assert (made.hnsw_config.m, made.hnsw_config.ef_construct) == (32, 200)
        kept = made.quantization_config.model_dump(mode="json", exclude_none=True) if made.quantization_config else None
        assert (
            kept
            == {
                "none": None,
                "int8": {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}},
                "binary": {"binary": {"always_ram": True}},
            }[quantize]
        )
        index.search(random_rows(1)[0], 3)
        params = stub.calls[-1].asked.searches[0].params.model_dump(exclude_none=True)
        rescored = {"quantization": {"ignore": False, "rescore": True, "oversampling": 3}}
        smaller = {} if quantize == "none" else rescored
        assert params == {"hnsw_ef": 256, "exact": False, "indexed_only": False, **smaller}
        index.close()


def test_a_server_that_has_the_collection_needs_no_vectors_and_is_not_written() -> None:
    with cluster_stub() as stub:
        served(stub, random_rows(5)).close()
        again = index_on(stub)
        stub.calls.clear()
        assert isinstance(again, PersistentIndex)
        assert again.open(named(5))
        assert not [what for what in stub.whats() if what.startswith(("PUT", "DELETE", "PATCH", "POST /points"))][1:]
        assert again.search(random_rows(5)[3], 1)[0].chunk.text == "text 3"
        again.close()


def test_a_key_that_may_only_read_reads_what_is_whole_and_makes_nothing() -> None:
    with cluster_stub(read_key="planted-key-r", write_key="planted-key-w") as stub:
        served(stub, random_rows(5), qdrant_api_key="planted-key-w").close()
        reader = index_on(stub, qdrant_api_key="planted-key-r")
        assert reader.open(named(5))
        with pytest.raises(CriticalError, match=r"refuses the key \(403\): Write access.*may do this") as caught:
            reader.upsert(named(6), random_rows(6))
        assert "planted" not in str(caught.value)
        reader.close()


def test_what_two_runs_send_at_once_is_there_once() -> None:
    rows, together = random_rows(120), Barrier(2)
    with cluster_stub() as stub:

        def run(number: int) -> list[str]:
            index = index_on(stub, "batch=8")
            assert not index.open(named(120))
            together.wait()
            index.upsert(named(120), rows)
            found = [hit.chunk.text for hit in index.search(rows[number], 3)]
            index.close()
            return found

        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(run, [0, 1]))
        assert [each[0] for each in found] == ["text 0", "text 1"]
        assert stub.engine.count(POINTS).count == 120
        assert stub.engine.aliases == {NAME: POINTS}


def test_half_a_collection_is_not_searched_and_is_sent_again() -> None:
    rows = random_rows(100)
    with cluster_stub() as stub:
        stub.fault = lambda call: (400, "killed") if len(stub.batches(POINTS)) > 4 else None
        with pytest.raises(CriticalError, match=r"cannot be built: .* answers 400: killed"):
            served(stub, rows, "batch=10")
        stub.fault = lambda _: None
        assert stub.engine.count(POINTS).count == 40
        assert not stub.engine.aliases
        index = index_on(stub)
        assert not index.open(named(100))
        index.upsert(named(100), rows)
        assert stub.engine.count(POINTS).count == 100
        assert index.search(rows[77], 1)[0].chunk.text == "text 77"
        index.close()


@pytest.mark.parametrize("each", [2, pytest.param(1, marks=pytest.mark.long)])
def test_a_run_may_die_at_any_call(each: int) -> None:
    rows, names = random_rows(12), [f"text {n}" for n in range(12)]
    with cluster_stub() as stub:
        client = connect(stub.url, "")  # one for all of them: making one takes longer than a run

        def run() -> QdrantIndex:
            collection = ServerCollection(client, NAME, stub.url, ClusterOptions(batch=4))
            index = QdrantIndex(collection, CollectionContent(DIGEST, "tiny@1", 0), FastClock().clock)
            index.upsert(named(12), rows)
            return index

        run()
        # What is found in the end must be the same, whichever call was the last that was answered.
        for last in range(1, len(stub.calls), each):
            stub.engine.delete_collection(POINTS)
            stub.calls.clear()
            stub.fault = lambda _, last=last: (400, "dead") if len(stub.calls) > last else None  # type: ignore[misc]
            with pytest.raises(CriticalError, match="dead"):
                run()
            stub.fault = lambda _: None
            found = run().search_many(list(rows), 1)
            assert [hits[0].chunk.text for hits in found] == names
            assert stub.engine.count(POINTS).count == 12
        client.close()


# What is wrong is said before anybody has paid for vectors


def refusal(stub: ClusterStub, *cluster: str, **more: Any) -> str:
    """Return what ``open`` says, which is asked before there are any vectors."""
    index = index_on(stub, *cluster, clock=FastClock(), **more)
    with pytest.raises(CriticalError) as caught:
        index.open(named(5))
    index.close()
    return str(caught.value)


def test_a_server_that_is_not_there() -> None:
    said = refusal(ClusterStub("http://127.0.0.1:1"))
    assert "The Qdrant index does not answer: http://127.0.0.1:1 cannot be reached (ConnectError" in said
    assert "Is it running" in said


def test_a_server_that_is_too_old() -> None:
    with cluster_stub(version="1.15.4") as stub:
        said = refusal(stub)
        assert "is version 1.15.4; 1.16 or newer is needed" in said
        stub.version = "1.16.0-dev"
        index = index_on(stub)
        assert not index.open(named(5))
        index.close()


def test_a_wrong_key() -> None:
    with cluster_stub(read_key="planted-key-1", write_key="planted-key-2") as stub:
        said = refusal(stub, qdrant_api_key="planted-key-3")
        assert "refuses the key (401): Must provide an API key" in said
        assert "planted" not in said


def test_more_copies_than_nodes() -> None:
    with cluster_stub(nodes=2) as stub:
        assert "has 2 nodes: a node keeps one copy" in refusal(stub, "replicas=3")
        stub.nodes = 1
        assert "has 1 node:" in refusal(stub, "replicas=2")
        index = index_on(stub, "replicas=1")
        assert not index.open(named(5))
        index.close()


@pytest.mark.parametrize("state", ["Dead", "Partial", "Initializing"])
def test_a_shard_that_is_down(state: str) -> None:
    with cluster_stub() as stub:
        served(stub, random_rows(5)).close()
        stub.shards = {0: ["Active"], 1: [state, state]}
        assert f"is not whole: shard 1 ({state} on node 1, {state} on node 2)" in refusal(stub)
        stub.shards = {0: ["Active"], 1: [state, "Active"]}
        assert index_on(stub).open(named(5))  # another copy answers


def test_a_collection_that_failed() -> None:
    with cluster_stub() as stub:
        served(stub, random_rows(5)).close()
        stub.status = "red"
        assert "has failed (status red)" in refusal(stub)


def test_a_collection_that_is_none_of_ours() -> None:
    with cluster_stub() as stub:
        served(stub, random_rows(5)).close()
        stub.engine.update_collection(POINTS, metadata={"rag_harness": None})
        said = refusal(stub)
        assert f"Collection {NAME} at" in said
        assert "has no digest of this package's" in said
        assert f"rag-harness index drop {NAME}" in said


def test_a_collection_of_another_content() -> None:
    with cluster_stub() as stub:
        served(stub, random_rows(5)).close()
        other = {"digest": DIGEST[:16] + "0" * 16, "model": "tiny@1", "chunks": 5, "dimension": 24}
        stub.engine.update_collection(POINTS, metadata={"rag_harness": other})
        assert f"holds content {DIGEST[:16]}0" in refusal(stub)


def test_a_collection_of_other_dimensions_or_another_distance() -> None:
    with cluster_stub() as stub:
        served(stub, random_rows(5)).close()
        index = index_on(stub)
        with pytest.raises(CriticalError, match="holds vectors of 24 numbers, not 7"):
            index.upsert(named(6), random_rows(6, size=7))
        index.close()
        stub.engine.collections[POINTS].config.vectors.distance = Distance.DOT
        assert "compares by Dot, not by Cosine" in refusal(stub)


# What goes wrong while points are sent


def failing(stub: ClusterStub, what: str, status: int, said: str, times: int = 99) -> None:
    left = [times]

    def fault(call: Call) -> Answer | None:
        if (call.what, call.collection) == (what, POINTS) and left[0]:
            left[0] -= 1
            return status, said
        return None

    stub.fault = fault


@pytest.mark.parametrize(("status", "said"), [(507, "Out of disk"), (500, "WAL: No space left on device")])
def test_a_disk_that_is_full(status: int, said: str) -> None:
    with cluster_stub() as stub:
        failing(stub, "PUT /points", status, said)
        with pytest.raises(CriticalError, match=rf"has no room left \({status}\): .*; the next run sends"):
            served(stub, random_rows(5))
        stub.fault = lambda _: None
        served(stub, random_rows(5)).close()


def test_a_request_without_an_answer_is_sent_again() -> None:
    with cluster_stub() as stub:
        failing(stub, "PUT /points", 0, "the connection goes without an answer", times=RETRIES)
        index = served(stub, random_rows(30), "batch=10")
        assert stub.engine.count(POINTS).count == 30
        assert stub.whats(POINTS).count("PUT /points") == 3 + RETRIES
        index.close()


def test_points_of_no_chunk_are_named() -> None:
    with cluster_stub() as stub:
        stub.fault = lambda call: (200, {"count": 9}) if call.what == "POST /points/count" else None
        with pytest.raises(CriticalError, match=rf"has 4 points that belong to no chunk\..*index drop {NAME}"):
            served(stub, random_rows(5))
        assert not stub.engine.aliases


def test_points_that_do_not_come_to_be_read_are_waited_for_and_named() -> None:
    with cluster_stub() as stub:
        counted = iter([2, 2, 5])
        stub.fault = lambda call: (200, {"count": next(counted)}) if call.what == "POST /points/count" else None
        served(stub, random_rows(5), clock=(clock := FastClock())).close()
        assert clock.slept == [1.0, 1.0]
        stub.fault = lambda call: (200, {"count": 2}) if call.what == "POST /points/count" else None
        with pytest.raises(CriticalError, match=r"not ready after 30 s: 2 of 5 points can be read\. Run again"):
            served(stub, random_rows(5), "wait=30", clock=FastClock())


def test_requests_that_wait_to_be_written_are_waited_for() -> None:
    with cluster_stub() as stub:
        queues = iter([{"length": 3}, {"length": 0, "deferred_points": 9}, {"length": 0, "deferred_points": 0}])
        told = stub.listed
        stub.listed = lambda call: (200, {**told(call)[1], "update_queue": next(queues)})  # type: ignore[method-assign]
        served(stub, random_rows(5), clock=(clock := FastClock())).close()
        assert clock.slept == [1.0, 1.0]


def test_a_graph_is_there_when_the_server_says_so_more_than_once() -> None:
    with cluster_stub() as stub:
        statuses = iter(["green", "yellow", "green", "green", "green"])
        told = stub.listed
        stub.listed = lambda call: (200, {**told(call)[1], "status": next(statuses)})  # type: ignore[method-assign]
        served(stub, random_rows(5), clock=(clock := FastClock()), qdrant_graph=("m=8",)).close()
        assert clock.seconds == 4
        assert not list(statuses)


def test_a_request_that_is_too_large() -> None:
    with cluster_stub() as stub:
        failing(stub, "PUT /points", 413, "Payload too large")
        with pytest.raises(CriticalError, match=r"no request as large \(Payload too large\)\. Lower .* batch="):
            served(stub, random_rows(5))


@pytest.mark.parametrize(("graph", "waits"), [((), False), (("m=8",), True)])
def test_a_graph_is_waited_for_where_it_is_searched(graph: tuple[str, ...], waits: bool) -> None:
    with cluster_stub(status="yellow") as stub:
        index = index_on(stub, "wait=5", clock=(clock := FastClock()), qdrant_graph=graph)
        says = r"its graph is being made \(status yellow"
        with pytest.raises(CriticalError, match=says) if waits else nullcontext():
            index.upsert(named(5), random_rows(5))
        assert clock.seconds == (5 if waits else 0)
        index.close()


def test_a_collection_that_is_removed_while_it_is_searched() -> None:
    with cluster_stub() as stub:
        index = served(stub, random_rows(5))
        stub.engine.delete_collection(POINTS)
        with pytest.raises(CriticalError, match=r"does not answer: .* answers 404: .*doesn't exist"):
            index.search(np.ones(24, np.float32), 1)
        index.close()


def test_the_stub_refuses_what_is_not_valid() -> None:
    with cluster_stub() as stub:
        assert stub.answer("PUT", f"/collections/{NAME}", "", b'{"vectors": {"size": "3"}}')[0] == 422
        assert stub.answer("POST", f"/collections/{NAME}/points/query/batch", "", b"[]")[0] == 422
        assert stub.answer("POST", f"/collections/{NAME}/points/search", "", b"{}")[0] == 404
        assert stub.answer("GET", f"/collections/{NAME}", "", b"")[0] == 404


URL = "https://qdrant.example:6333"


def answer(status: int, content: bytes = b'{"status": {"error": "Wrong input: no."}}') -> Exception:
    return UnexpectedResponse(status, "", content, Headers())


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            answer(401),
            f"{URL} refuses the key (401): Wrong input: no. Set QDRANT_API_KEY to one that may read and write.",
        ),
        (answer(403), f"{URL} refuses the key (403): Wrong input: no. Set QDRANT_API_KEY to one that may do this."),
        (answer(400), f"{URL} answers 400: Wrong input: no."),
        (answer(502, b"<html>Bad gateway</html>"), f"{URL} answers 502: <html>Bad gateway</html>."),
        (answer(500, b"\xff" * 900), f"{URL} answers 500: {chr(0xFFFD) * 300}."),
        (
            answer(507),
            f"{URL} has no room left (507): Wrong input: no. Enlarge its volumes; the next run sends the points again.",
        ),
        (ResourceExhaustedResponse("too many requests", 3), f"{URL} answers 429: too many requests."),
        (
            ResponseHandlingException(ReadTimeout("")),
            f"{URL} took too long (ReadTimeout). Raise qdrant_cluster timeout=, or look at the server's load.",
        ),
        (
            ResponseHandlingException(ConnectError("Connection refused")),
            f"{URL} cannot be reached (ConnectError: Connection refused). Is it running, and is rag_qdrant_url right?",
        ),
        (
            JSONDecodeError("Expecting value", "<html>", 0),
            f"{URL} answers, and not as Qdrant does (JSONDecodeError). Is rag_qdrant_url right?",
        ),
        (
            ResponseHandlingException(ValidationError.from_exception_data("VersionInfo", [])),
            f"{URL} answers, and not as Qdrant does (ValidationError). Is rag_qdrant_url right?",
        ),
        (KeyError("x"), "KeyError: 'x'"),
    ],
)
def test_a_failure_says_what_was_found_and_what_to_do(error: Exception, says: str) -> None:
    assert explained(error, URL) == says
    with pytest.raises(CriticalError) as caught, speaking("does not answer", URL):
        raise error
    assert str(caught.value) == f"The Qdrant index does not answer: {says}"


def test_an_error_of_ours_goes_through() -> None:
    with pytest.raises(SettingsError, match=r"^ours$"), speaking("does not answer", URL):
        raise SettingsError("ours")


@pytest.mark.parametrize(("url", "verifies"), [("https://127.0.0.1:1", True), ("http://127.0.0.1:1", False)])
def test_a_server_over_tls_is_verified(url: str, verifies: bool) -> None:
    client = connect(url, "")
    context = client._client.http.client._client._transport._pool._ssl_context
    assert (context.verify_mode == ssl.CERT_REQUIRED) == verifies
    assert context.check_hostname == verifies
    client.close()


@pytest.mark.parametrize("url", [URL, ""])
def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    wanted = f"index on the Qdrant server {URL}" if url else "index 'memory'"
    says = f"The {wanted} needs the package 'qdrant_client', which is not installed. Install it: pip install "
    with pytest.raises(PrerequisiteError) as caught:
        connect(url, "")
    assert str(caught.value) == f"{says}'pytest-rag-harness[qdrant]'"


def test_the_client_is_asked_for_only_where_a_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_client(Settings(qdrant_url=URL))
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    check_client(Settings())
    check_client(Settings(qdrant_url=URL, index="mine"))
    with pytest.raises(PrerequisiteError, match=r"pip install 'pytest-rag-harness\[qdrant\]'"):
        check_client(Settings(qdrant_url=URL))


SERVER_OPTIONS_URL = "http://127.0.0.1:6333"


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
    asked = Settings(qdrant_url=SERVER_OPTIONS_URL, qdrant_graph=given)
    assert graph_options(asked) == GraphOptions(m=32, ef=64, quantize="int8", rescore=False, oversampling=1.5)
    assert graph_options(Settings(qdrant_url=SERVER_OPTIONS_URL)) is None
    assert graph_options(Settings(qdrant_graph=given)) is None  # the index of this process has its own


@pytest.mark.parametrize(("mode", "exact"), [("auto", False), ("live", False), ("record", True), ("replay", True)])
def test_what_is_recorded_is_found_exactly(mode: Any, exact: bool) -> None:
    asked = Settings(qdrant_url=SERVER_OPTIONS_URL, qdrant_graph=("m=32",), mode=mode)
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


# ``rag-harness index`` against a stub of a cluster.


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAG_QDRANT_URL", raising=False)


@pytest.fixture
def stub() -> Iterator[ClusterStub]:
    with cluster_stub() as stub:
        index = index_on(stub, "replicas=2")
        index.upsert(named(5), random_rows(5))
        index.close()
        stub.engine.create_collection("somebody_elses", vectors_config={})
        stub.shards = {0: ["Active", "Active"], 1: ["Active", "Dead"]}
        yield stub


def test_what_is_there_is_said(stub: ClusterStub, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "status", stub.url]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "collection"
    # 5 vectors of 24 numbers of 4 bytes; memory mode says one copy
    for cell in (NAME, "5 of 5", "2 x 1, 3 of 4 active", "green", "24, none", "480 B", "tiny@1"):
        assert f"{cell}  " in row
    assert row.endswith(DIGEST)
    assert "somebody_elses" not in row


def test_a_url_may_be_that_of_the_settings(
    stub: ClusterStub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_QDRANT_URL", stub.url)
    assert main(["index", "status", NAME]) == 0
    assert NAME in capsys.readouterr().out
    assert main(["index", "status", "rag_harness_other"]) == 2
    assert f"There is no collection rag_harness_other. There are: {NAME}." in capsys.readouterr().err


def test_what_keeps_a_run_from_it_is_named(stub: ClusterStub, capsys: pytest.CaptureFixture[str]) -> None:
    stub.status = "red"
    stub.shards = {0: ["Active"], 1: ["Dead", "Partial"]}
    stub.engine.delete(POINTS, points_selector=[stub.engine.scroll(POINTS, limit=1)[0][0].id])
    stub.engine.aliases.clear()
    assert main(["index", "status", stub.url]) == 1
    said = capsys.readouterr().out.splitlines()[-1]
    alias = "not searched yet: its alias is switched when all points are there"
    assert said == f"{NAME}: shards without a living copy: 1; status red; 1 chunks missing; {alias}"


def test_a_collection_that_is_none_of_ours_is_said_to_be(stub: ClusterStub, capsys: pytest.CaptureFixture[str]) -> None:
    stub.engine.update_collection(POINTS, metadata={"rag_harness": None})
    assert main(["index", "status", stub.url]) == 1
    assert "no digest of this package's" in capsys.readouterr().out


def test_a_server_without_collections_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with cluster_stub() as stub:
        assert main(["index", "status", stub.url]) == 0
    assert "has no collection of this package's: the first run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["status"], "No Qdrant server is named: rag-harness index status http"),
        (["status", "http://127.0.0.1:1"], "does not answer: http://127.0.0.1:1 cannot be reached"),
        (["status", "http://a", "http://b"], "http://a and http://b are two servers"),
        (["drop", "http://127.0.0.1:1"], "Name the collection to remove"),
        (["drop", NAME, "--wait", "70"], "nothing locks a collection, so index drop removes it at once"),
        (["status", "file:///var/qdrant"], "not a URL of a server"),
    ],
)
def test_what_cannot_be_asked_is_named(asked: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", *asked]) == 2
    assert says in capsys.readouterr().err


def test_a_collection_is_removed_with_its_alias(stub: ClusterStub, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "drop", stub.url, NAME]) == 0
    assert f"Collection {NAME} at {stub.url} is gone" in capsys.readouterr().out
    assert not stub.engine.collection_exists(POINTS)
    assert not stub.engine.aliases
    again = index_on(stub)
    again.upsert(named(5), random_rows(5))
    assert len(again.search(random_rows(1)[0], 9)) == 5
    again.close()


@pytest.mark.parametrize("name", ["somebody_elses", "rag_harness_none"])
def test_what_is_not_ours_is_not_removed(stub: ClusterStub, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "drop", stub.url, name]) == 2
    assert f"There is no collection {name}" in capsys.readouterr().err
    assert stub.engine.collection_exists("somebody_elses")
