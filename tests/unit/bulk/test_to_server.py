"""`rag-harness ingest` into a Qdrant server by a crew: its workers send their points themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from rag_harness.__main__ import main  # noqa: E402
from rag_harness.bulk import files, parquet_rows, worker  # noqa: E402
from rag_harness.bulk.crew import Crew, Hand  # noqa: E402
from rag_harness.bulk.values import Opening, Ready  # noqa: E402
from rag_harness.bulk.worker import BulkWorker  # noqa: E402
from rag_harness.commands import ingest_crew  # noqa: E402
from rag_harness.dataset.collection import read_paths  # noqa: E402
from rag_harness.dataset.library import Keeping  # noqa: E402
from rag_harness.errors import PrerequisiteError  # noqa: E402
from rag_harness.models.embedders.mock import MockEmbedder  # noqa: E402
from rag_harness.pipelines.parts import RunParts  # noqa: E402
from rag_harness.retrieval.indexes.server import upload  # noqa: E402
from rag_harness.retrieval.indexes.server.connection import connect  # noqa: E402
from rag_harness.retrieval.indexes.server.ledger import LEDGER, Ledger  # noqa: E402
from rag_harness.retrieval.indexes.server.status import states  # noqa: E402
from rag_harness.retrieval.retrieval import Retrieval, spec_of  # noqa: E402
from rag_harness.settings import Settings  # noqa: E402
from tests.unit.bulk.test_ingest_bulk import Node  # noqa: E402
from tests.unit.retrieval.indexes.server.stub import Answer, Call, ClusterStub, cluster_stub  # noqa: E402

TEXT = "# Returns {n}\n\nYou can return lamp {n} within {n} days of delivery.\n\n## Costs\n\nIt costs {n} euros.\n"
CHUNKS = 24
"""Of twelve documents; a window has two."""
Run = Callable[..., dict[str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parquet_rows, "ROWS", 2)
    monkeypatch.setattr(files.windows, "__defaults__", (2,))
    kb = tmp_path / "kb"
    kb.mkdir()
    for number in range(12):
        (kb / f"d{number:02}.md").write_text(TEXT.format(n=number))
    rows(12)
    return tmp_path


def rows(count: int) -> None:
    texts = [TEXT.format(n=number) for number in range(count)]
    pq.write_table(pa.table({"id": [f"d{number:02}.md" for number in range(count)], "text": texts}), "docs.parquet")


@pytest.fixture
def stub() -> Iterator[ClusterStub]:
    with cluster_stub() as made:
        yield made


@pytest.fixture
def ingest(capsys: pytest.CaptureFixture[str], stub: ClusterStub) -> Run:
    def run(*given: str, status: int = 0) -> dict[str, str]:
        assert main(["ingest", *given, "--profile", "mock", f"--qdrant-url={stub.url}"]) == status
        said = capsys.readouterr()
        return {line.split()[0]: line for line in (said.out + said.err).splitlines() if line.strip()}

    return run


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """Two nodes in place of a cluster; the first dies when it has sent a window."""
    made: list[Node] = []

    @contextmanager
    def crew(opening: Opening) -> Iterator[tuple[Crew, Ready]]:
        def replace(lost: Hand) -> Node:
            made.append(Node(opening, f"after {lost.name}"))
            return made[-1]

        made[:] = [_Dying(opening, "first"), Node(opening, "second")]
        yield Crew(made[:2], replace), made[0].ready

    monkeypatch.setattr(ingest_crew, "crew_for", crew)
    return made


class _Dying(Node):
    """A node that is lost before anybody hears of the first window that it has sent."""

    def call(self, method: str, *given: object) -> object:
        came = super().call(method, *given)
        if method == "send":
            self.lives = 0
            return super().call(method, *given)
        return came


def points(stub: ClusterStub) -> tuple[str, dict[str, Any]]:
    """Return the collection's name and its points by id: what is kept of each, and its vector as it was sent."""
    [name] = [each.name for each in stub.engine.get_collections().collections if each.name != LEDGER]
    sent = [call.asked.batch for call in stub.calls if (call.what, call.collection) == ("PUT /points", name)]
    vectors = {str(each): row for batch in sent for each, row in zip(batch.ids, batch.vectors, strict=True)}
    found, _ = stub.engine.scroll(name, limit=1000, with_payload=True)
    return name, {str(each.id): (each.payload, vectors[str(each.id)]) for each in found}


def settings_for(stub: ClusterStub, **more: Any) -> Settings:
    asked = {"profile": "mock", "embed_model": "mock/hashed-words", "rootdir": str(Path.cwd()), **more}
    return Settings(qdrant_url=stub.url, **asked)


def retrieval(stub: ClusterStub, cache: str) -> Retrieval:
    """Return what a run over the folder searches."""
    settings = settings_for(stub, cache_dir=cache)
    parts, documents = RunParts(settings), read_paths([Path("kb")], Keeping()).documents
    return Retrieval(spec_of(settings), lambda: documents, settings, parts.stores, parts.embedder())


def fails_after(stub: ClusterStub, sent: int, answer: Answer) -> None:
    """Let the server answer this to every upload after so many."""
    seen = 0

    def fault(call: Call) -> Answer | None:
        nonlocal seen
        if call.what != "PUT /points" or call.collection == LEDGER:
            return None
        seen += 1
        return answer if seen > sent else None

    stub.fault = fault


@pytest.mark.parametrize("given", [["docs.parquet"], ["kb", "--engine", "ray"]])
def test_a_run_finds_the_collection_whole_and_sends_nothing(
    folder: Path, ingest: Run, stub: ClusterStub, nodes: list[Node], given: list[str]
) -> None:
    said = ingest(*given)
    name, there = points(stub)
    assert said["chunks"] == f"chunks    {CHUNKS} ({CHUNKS} embedded now)"
    assert len(there) == CHUNKS
    assert sorted(payload["position"] for payload, _ in there.values()) == list(range(CHUNKS))
    with cluster_stub() as other:
        retrieval(other, "other").prepare([])
        assert points(other) == (name, there)
    stub.calls.clear()
    run = retrieval(stub, "run")
    run.prepare([])
    assert run.embedder.computed == 0
    assert not [what for what in stub.whats() if what.startswith(("PUT", "DELETE", "PATCH"))]
