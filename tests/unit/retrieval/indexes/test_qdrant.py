"""The index by Qdrant's client: in memory and as a server's; ``server/test_server.py`` has it on a cluster."""

from __future__ import annotations

import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import QdrantClient
from qdrant_client.local.local_collection import LocalCollection
from qdrant_client.local.qdrant_local import QdrantLocal

from rag_harness.core.errors import SettingsError
from rag_harness.core.log import log
from rag_harness.core.registry import resolve
from rag_harness.core.settings import Settings
from rag_harness.core.types import Chunk, Matrix
from rag_harness.retrieval.indexes import memory, qdrant
from rag_harness.retrieval.indexes.edge import EdgeIndex
from rag_harness.retrieval.indexes.server import QdrantIndex, create
from rag_harness.retrieval.indexes.server_collection import CollectionContent, ServerCollection, point_id
from rag_harness.retrieval.indexes.server_connection import ClusterOptions, connect
from tests.unit.retrieval.indexes.random_vectors import check_order_is_that_of_the_cosine, named, random_rows


def parts_of(folder: Path, **options: Any) -> Any:
    embedder = SimpleNamespace(model="tiny", revision="1")
    return SimpleNamespace(
        settings=Settings(rootdir=str(folder), **options), content_digest="ab" * 16, embedder=embedder
    )


def test_a_url_is_for_the_server_and_none_for_this_process(tmp_path: Path) -> None:
    assert resolve("indexes", "qdrant") is qdrant.create
    assert isinstance(qdrant.create(parts_of(tmp_path)), EdgeIndex)
    server = qdrant.create(parts_of(tmp_path, qdrant_url="http://127.0.0.1:1"))
    assert isinstance(server, QdrantIndex)
    server.close()


def test_without_edge_the_clients_memory_mode_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rag_harness.retrieval.indexes.edge")
    monkeypatch.delattr("rag_harness.retrieval.indexes.edge")
    monkeypatch.setitem(sys.modules, "qdrant_edge", None)
    index = qdrant.create(parts_of(tmp_path))
    assert isinstance(index, QdrantIndex)
    index.close()


def test_memory_is_the_clients_memory_mode_and_no_server(tmp_path: Path) -> None:
    create = resolve("indexes", "memory")
    assert create is memory.create
    index = create(parts_of(tmp_path))
    index.upsert(named(5), random_rows(5))
    assert isinstance(index, QdrantIndex)
    assert isinstance(index._collection.client._client, QdrantLocal)
    assert index.search(random_rows(5)[3], 1)[0].chunk.text == "text 3"
    index.close()
    with pytest.raises(SettingsError, match=r"--rag-index=memory is in this process.*http://q: leave one out"):
        create(parts_of(tmp_path, qdrant_url="http://q"))


def test_the_client_is_not_imported_where_edge_serves(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from types import SimpleNamespace
import numpy as np
from rag_harness.retrieval.indexes.qdrant import create
from rag_harness.core.settings import Settings
from tests.unit.retrieval.indexes.random_vectors import named, random_rows
from rag_harness.core.types import Chunk
embedder = SimpleNamespace(model="hashing", revision="1")
settings = Settings(rootdir={str(tmp_path)!r})
index = create(SimpleNamespace(settings=settings, embedder=embedder, content_digest="ab" * 16))
index.upsert([Chunk("a#0", "a", "Text.", 0, 5)], np.ones((1, 3), np.float32))
assert index.search(np.ones(3, np.float32), 1)
print([name for name in ("qdrant_client", "grpc", "httpx", "pydantic") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


# The index of a server, by the client in memory.


@pytest.fixture
def client() -> Iterator[QdrantClient]:
    client = QdrantClient(":memory:")
    yield client
    client.close()


def index_in(client: Any, **options: Any) -> QdrantIndex:
    return QdrantIndex(
        ServerCollection(client, "c", "", ClusterOptions()), CollectionContent("d", "tiny@1", 0), **options
    )


def built(client: Any, rows: Matrix, **options: Any) -> QdrantIndex:
    index = index_in(client, **options)
    index.upsert(named(len(rows)), rows)
    return index


def test_order_is_that_of_the_cosine(client: QdrantClient) -> None:
    rows = random_rows(600)  # more than two batches
    check_order_is_that_of_the_cosine(built(client, rows), rows)


def test_equal_scores_keep_the_order_of_the_chunks(client: QdrantClient) -> None:
    index = built(client, np.ones((8, 3), np.float32))
    for k in (1, 3, 8):
        assert [hit.chunk.text for hit in index.search(np.ones(3, np.float32), k)] == [f"text {n}" for n in range(k)]


def test_k_beyond_the_index(client: QdrantClient) -> None:
    index = built(client, random_rows(3))
    assert len(index.search(random_rows(1)[0], 10)) == len(index) == 3


def test_empty_index(client: QdrantClient) -> None:
    index = built(client, np.empty((0, 4), np.float32))
    assert index.search(np.ones(4, np.float32), 5) == []
    assert len(index) == 0


def test_point_carries_text_and_metadata(client: QdrantClient) -> None:
    chunk = Chunk("a.md#chunk_0", "a.md", "Text.", 0, 5, ("Fees", "Pick-up"), metadata={"version": "2"})
    index_in(client).upsert([chunk], random_rows(1))
    assert client.scroll("c")[0][0].payload == {
        "chunk_id": "a.md#chunk_0",
        "doc_id": "a.md",
        "text": "Text.",
        "section": ["Fees", "Pick-up"],
        "metadata": {"version": "2"},
    }


@given(
    st.lists(st.sampled_from("abc"), min_size=3, max_size=3), st.lists(st.sampled_from("abc"), min_size=3, max_size=3)
)
def test_points_have_the_same_id_exactly_where_content_and_model_are_the_same(one: list[str], other: list[str]) -> None:
    """Also a text with the mark that parts are joined by, which is in no name of a model or a chunk."""
    ids = [point_id(Chunk(name, "d", f"{text}\0{text}", 0, 1), model) for name, text, model in (one, other)]
    assert (ids[0] == ids[1]) == (one == other)


def test_count_is_logged(client: QdrantClient, caplog: pytest.LogCaptureFixture) -> None:
    # The harness's log writes to its file alone, so it does not reach caplog by itself.
    log.addHandler(caplog.handler)
    before = log.level
    log.setLevel(logging.INFO)
    try:
        built(client, random_rows(3))
    finally:
        log.removeHandler(caplog.handler)
        log.setLevel(before)
    assert "Collection c: 3 points sent" in caplog.text
    assert "Indexed 3 chunks (collection c)" in caplog.text


class Spy:
    """A client that notes what is changed through it."""

    def __init__(self, client: QdrantClient) -> None:
        self.client = client
        self.changes: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def noted(*given: Any, **more: Any) -> Any:
            self.changes.append(name)
            return getattr(self.client, name)(*given, **more)

        changes = name.startswith(("up", "create", "delete"))
        return noted if changes else getattr(self.client, name)


def test_complete_collection_is_not_built_again(client: QdrantClient) -> None:
    rows = random_rows(5)
    built(client, rows)
    again = built(spy := Spy(client), rows)
    assert spy.changes == []
    assert again.search(rows[3], 1)[0].chunk.text == "text 3"


def test_half_a_collection_is_completed(client: QdrantClient) -> None:
    rows = random_rows(5)
    built(client, rows[:2])
    again = built(spy := Spy(client), rows)
    assert spy.changes == ["upload_collection", "update_collection_aliases"]
    assert client.count("c").count == 5
    assert again.search(rows[4], 1)[0].chunk.text == "text 4"


@pytest.mark.parametrize("path", ["./qdrant", "/var/qdrant", "file:///var/qdrant", "localhost:6333", ":memory:"])
def test_path_is_refused_with_the_reason(path: str) -> None:
    with pytest.raises(SettingsError, match=r"not a URL.*one process at a time.*http://127\.0\.0\.1:6333"):
        connect(path, "")


def test_large_index_does_not_warn(client: QdrantClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalCollection, "LARGE_DATA_THRESHOLD", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built(client, random_rows(5))


def test_created_for_the_content() -> None:
    embedder = SimpleNamespace(model="tiny", revision="1")
    index = create(SimpleNamespace(settings=Settings(), content_digest="0123456789abcdef" * 2, embedder=embedder))
    index.upsert(named(2), random_rows(2))
    client = index._collection.client
    assert [each.name for each in client.get_collections().collections] == ["rag_harness_0123456789abcdef_points"]
    assert client.count("rag_harness_0123456789abcdef").count == 2
    index.close()


def test_key_is_not_sent_in_clear() -> None:
    with pytest.raises(SettingsError, match=r"http://qdrant\.example: without TLS .*not sent.*https://") as caught:
        connect("http://qdrant.example:6333", "planted-key-1")
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://qdrant.example:6333", "http://localhost:6333", "http://[::1]:6333"])
def test_key_over_tls_or_to_this_machine_does_not_warn(url: str) -> None:
    connect(url, "planted-key-1").close()
