from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from qdrant_client import QdrantClient
from qdrant_client.local.local_collection import LocalCollection

from rag_harness.errors import CriticalError, SettingsError
from rag_harness.files.log import log
from rag_harness.protocols import PersistentIndex
from rag_harness.retrieval.indexes.qdrant_server import QdrantIndex, _point_id, _points, create
from rag_harness.settings import Settings
from rag_harness.types import Chunk, Matrix
from tests.unit.retrieval.indexes.qdrant_stub import QdrantStub, qdrant_stub
from tests.unit.retrieval.indexes.random_vectors import check_order_is_that_of_the_cosine, named, random_rows


@pytest.fixture
def client() -> Iterator[QdrantClient]:
    client = QdrantClient(":memory:")
    yield client
    client.close()


def built(client: Any, rows: Matrix, **options: Any) -> QdrantIndex:
    index = QdrantIndex(collection="c", client=client, **options)
    index.upsert(named(len(rows)), rows)
    return index


def test_order_is_that_of_the_cosine(client: QdrantClient) -> None:
    rows = random_rows(600)  # more than two batches
    check_order_is_that_of_the_cosine(built(client, rows), rows)


def test_equal_scores_keep_the_order_of_the_chunks(client: QdrantClient) -> None:
    index = built(client, np.ones((8, 3), np.float32))
    assert [hit.chunk.text for hit in index.search(np.ones(3, np.float32), 8)] == [f"text {n}" for n in range(8)]


def test_k_beyond_the_index(client: QdrantClient) -> None:
    index = built(client, random_rows(3))
    assert len(index.search(random_rows(1)[0], 10)) == len(index) == 3


def test_empty_index(client: QdrantClient) -> None:
    index = built(client, np.empty((0, 4), np.float32))
    assert index.search(np.ones(4, np.float32), 5) == []
    assert len(index) == 0


def test_point_carries_text_and_metadata(client: QdrantClient) -> None:
    chunk = Chunk("a.md#chunk_0", "a.md", "Text.", 0, 5, ("Fees", "Pick-up"), metadata={"version": "2"})
    QdrantIndex(collection="c", client=client).upsert([chunk], random_rows(1))
    payload = client.scroll("c")[0][0].payload
    assert payload is not None
    assert payload == {
        "position": 0,
        "chunk_id": "a.md#chunk_0",
        "doc_id": "a.md",
        "text": "Text.",
        "section": ["Fees", "Pick-up"],
        "metadata": {"version": "2"},
    }


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
    assert "Indexed 3 chunks (collection c, green)" in caplog.text


class Spy:
    """A client that notes what is changed through it."""

    def __init__(self, client: QdrantClient) -> None:
        self.client = client
        self.changes: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("upload_points", "create_collection", "delete_collection"):
            self.changes.append(name)
        return getattr(self.client, name)


def test_complete_collection_is_not_built_again(client: QdrantClient) -> None:
    rows = random_rows(5)
    built(client, rows)
    again = built(spy := Spy(client), rows)
    assert spy.changes == []
    assert again.search(rows[3], 1)[0].chunk.text == "text 3"


def test_half_a_collection_is_completed(client: QdrantClient) -> None:
    rows = random_rows(5)
    built(client, rows[:2])
    again = built(Spy(client), rows)
    assert client.count("c").count == 5
    assert again.search(rows[4], 1)[0].chunk.text == "text 4"


def test_collection_with_strangers_is_built_anew(client: QdrantClient) -> None:
    rows = random_rows(5)
    built(client, rows)
    built(spy := Spy(client), rows[:3])
    assert spy.changes == ["delete_collection", "create_collection", "upload_points"]
    assert client.count("c").count == 3


def test_overwrite_writes_again_in_place(client: QdrantClient) -> None:
    rows = random_rows(5)
    built(client, -rows)
    again = built(spy := Spy(client), rows, overwrite=True)
    assert spy.changes == ["upload_points"]  # other workers may be searching: the collection is never gone
    assert again.search(rows[2], 1)[0].score == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("path", ["./qdrant", "/var/qdrant", "file:///var/qdrant", "localhost:6333", ":memory:"])
def test_path_is_refused_with_the_reason(path: str) -> None:
    with pytest.raises(SettingsError, match=r"no URL.*one process at a time.*http://127\.0\.0\.1:6333"):
        QdrantIndex(path)


def test_dead_server() -> None:
    index = QdrantIndex("http://127.0.0.1:1")
    with pytest.raises(CriticalError, match="cannot be built"):
        index.upsert(named(1), random_rows(1))
    with pytest.raises(CriticalError, match="does not answer"):
        index.search(random_rows(1)[0], 1)
    index._client.close()


def test_large_index_does_not_warn(client: QdrantClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalCollection, "LARGE_DATA_THRESHOLD", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built(client, random_rows(5))


def test_created_for_the_content() -> None:
    parts = SimpleNamespace(settings=Settings(overwrite=True), content_digest="0123456789abcdef" * 2)
    index = create(parts)
    index.upsert(named(2), random_rows(2))
    assert [each.name for each in index._client.get_collections().collections] == ["rag_harness_0123456789abcdef"]
    index._client.close()


# A server, as far as a stub of its REST API can show


def served(stub: QdrantStub, rows: Matrix, **options: Any) -> QdrantIndex:
    index = QdrantIndex(stub.url, "c", **options)
    index.upsert(named(len(rows)), rows)
    return index


def test_server_gets_valid_requests_in_batches_and_answers() -> None:
    rows = random_rows(600)
    with qdrant_stub() as stub:
        index = served(stub, rows)
        assert stub.batches == [256, 256, 88]
        hits = index.search(rows[333], 3)
        assert (hits[0].chunk.text, hits[0].rank, len(hits)) == ("text 333", 1, 3)
        assert stub.exact == [True]
        point = stub.collections["c"][_point_id(named(334)[333])]
        assert point.payload["text"] == "text 333"
        index._client.close()


def test_server_that_has_the_collection_needs_no_vectors() -> None:
    with qdrant_stub() as stub:
        served(stub, random_rows(5))._client.close()
        again = QdrantIndex(stub.url, "c")
        stub.calls.clear()
        assert isinstance(again, PersistentIndex)
        assert again.open(named(5))
        assert stub.calls == ["GET /exists", "POST /points/count"]
        assert again.search(random_rows(5)[3], 1)[0].chunk.text == "text 3"
        assert not QdrantIndex(stub.url, "c", client=again._client).open(named(6))
        assert not QdrantIndex(stub.url, "c", overwrite=True, client=again._client).open(named(5))
        again._client.close()


def test_key_goes_with_every_request() -> None:
    with qdrant_stub(api_key="planted-key-1") as stub:
        index = served(stub, random_rows(300), api_key="planted-key-1")
        assert index.search(random_rows(300)[7], 1)[0].chunk.text == "text 7"
        index._client.close()
        wrong = QdrantIndex(stub.url, "c", api_key="planted-key-2")
        with pytest.raises(CriticalError, match=r"does not answer: .*401") as caught:
            wrong.open(named(300))
        assert "planted" not in str(caught.value)
        wrong._client.close()


def test_batch_that_fails_is_sent_again() -> None:
    with qdrant_stub(failures=3) as stub:
        served(stub, random_rows(300))._client.close()
        assert stub.batches == [256, 44]
    with qdrant_stub(failures=4) as stub, pytest.raises(CriticalError, match=r"cannot be built: .*500"):
        served(stub, random_rows(300))


def test_points_are_made_when_their_batch_is_sent() -> None:
    class Counted(list[Chunk]):
        read = 0

        def __iter__(self) -> Iterator[Chunk]:
            for chunk in super().__iter__():
                Counted.read += 1
                yield chunk

    made = _points(Counted(named(600)), random_rows(600))
    next(made)
    assert Counted.read == 1


def test_stub_refuses_what_is_not_valid() -> None:
    with qdrant_stub() as stub:
        stub.answer("PUT", "/collections/c", None, b'{"vectors": {"size": 3, "distance": "Cosine"}}')
        status, said = stub.answer("PUT", "/collections/c/points?wait=true", None, b'{"points": [{"id": 1.5}]}')
        assert (status, "vector" in said) == (422, True)
        assert stub.answer("POST", "/collections/c/points/query", None, b'{"limit": "5"}')[0] == 422
        assert stub.answer("POST", "/collections/c/points/search", None, b"{}")[0] == 404


def test_key_is_not_sent_in_clear() -> None:
    with pytest.raises(SettingsError, match=r"http://qdrant\.example: without TLS .*not sent.*https://") as caught:
        QdrantIndex("http://qdrant.example:6333", api_key="planted-key-1")
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://qdrant.example:6333", "http://localhost:6333", "http://[::1]:6333"])
def test_key_over_tls_or_to_this_machine_does_not_warn(url: str) -> None:
    QdrantIndex(url, api_key="planted-key-1")._client.close()


def test_key_of_the_settings_is_the_servers() -> None:
    with qdrant_stub(api_key="planted-key-1") as stub:
        settings = Settings(qdrant_url=stub.url, qdrant_api_key="planted-key-1")
        index = create(SimpleNamespace(settings=settings, content_digest="0123456789abcdef" * 2))
        index.upsert(named(2), random_rows(2))
        assert list(stub.collections) == ["rag_harness_0123456789abcdef"]
        index._client.close()
