"""``rag-harness index`` against a stub of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from tests.unit.retrieval.indexes.random_vectors import named, random_rows
from tests.unit.retrieval.indexes.server.made import DIGEST, NAME, POINTS, index_on
from tests.unit.retrieval.indexes.server.stub import ClusterStub, cluster_stub


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
        (["status", "file:///var/qdrant"], "no URL of a server"),
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
