from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from qdrant_client.local.qdrant_local import QdrantLocal

from rag_harness.core.errors import SettingsError
from rag_harness.core.registry import resolve
from rag_harness.core.settings import Settings
from rag_harness.retrieval.indexes import memory, qdrant
from rag_harness.retrieval.indexes.edge import EdgeIndex
from rag_harness.retrieval.indexes.server import QdrantIndex
from tests.unit.retrieval.indexes.random_vectors import named, random_rows


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
