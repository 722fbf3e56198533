from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.registry import resolve
from rag_harness.retrieval.indexes import qdrant
from rag_harness.retrieval.indexes.qdrant_edge import EdgeIndex
from rag_harness.retrieval.indexes.qdrant_server import QdrantIndex
from rag_harness.settings import Settings


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
    for module in ("qdrant_edge", "edge_shard"):
        monkeypatch.delitem(sys.modules, f"rag_harness.retrieval.indexes.{module}")
        monkeypatch.delattr(f"rag_harness.retrieval.indexes.{module}")
    monkeypatch.setitem(sys.modules, "qdrant_edge", None)
    index = qdrant.create(parts_of(tmp_path))
    assert isinstance(index, QdrantIndex)
    index.close()


def test_the_client_is_not_imported_where_edge_serves(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from types import SimpleNamespace
import numpy as np
from rag_harness.retrieval.indexes.qdrant import create
from rag_harness.settings import Settings
from rag_harness.types import Chunk
embedder = SimpleNamespace(model="hashing", revision="1")
settings = Settings(rootdir={str(tmp_path)!r})
index = create(SimpleNamespace(settings=settings, embedder=embedder, content_digest="ab" * 16))
index.upsert([Chunk("a#0", "a", "Text.", 0, 5)], np.ones((1, 3), np.float32))
assert index.search(np.ones(3, np.float32), 1)
print([name for name in ("qdrant_client", "grpc", "httpx", "pydantic") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
