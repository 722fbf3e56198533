"""An ingest by Ray Data, without a cluster; ``tests/plugin/test_ray.py`` has it on two nodes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.data", reason="ray[data] is not installed: pip install '.[ray]'", exc_type=ImportError)

import pyarrow as pa

from rag_harness.__main__ import main
from rag_harness.core.errors import CriticalError, PrerequisiteError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Document
from rag_harness.data.documents import Library, SourceFile
from rag_harness.retrieval.indexes.server_collection import CollectionContent
from rag_harness.runs.distributed import ingest
from rag_harness.runs.distributed.ingest import _check_same, _Sender, _Target, _unpacked, document_of_row
from tests.unit.data.loaders.one_process import one_process
from tests.unit.retrieval.indexes.server.made import DIGEST, POINTS
from tests.unit.retrieval.indexes.server.stub import ClusterStub, cluster_stub


@pytest.fixture(scope="module", autouse=True)
def process() -> Iterator[None]:
    with one_process():
        yield


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings(profile="mock", embed_model="mock/hashed-words", rootdir=str(tmp_path), unreadable="skip")


def table_of(*texts: str) -> pa.Table:
    return pa.table({"id": [f"d{number}" for number in range(len(texts))], "text": list(texts)})


def test_rows_become_documents() -> None:
    row = {"id": 1, "text": "one", "title": None, "metadata": {"day": date(2024, 5, 1), "none": None, "title": "First"}}
    assert document_of_row(row) == Document("1", "one", "First", {"day": "2024-05-01", "title": "First"})
    assert document_of_row({"id": "b", "text": "", "title": "B", "metadata": '{"n": 1}'}) == Document(
        "b", "", "B", {"n": 1}
    )
    assert document_of_row({"id": "c", "text": "three"}) == Document("c", "three", "c")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"id": None, "text": "two"}, "row with id None: id is null."),
        ({"id": "c", "text": None}, "row with id 'c': text is not text."),
        ({"id": "c", "text": 7}, "row with id 'c': text is not text."),
        ({"id": "c", "text": "x", "metadata": "[1]"}, "row with id 'c': metadata is not a JSON object (it is a list)."),
    ],
)
def test_a_row_that_is_no_document_is_named(row: dict[str, Any], why: str) -> None:
    assert document_of_row(row) == why


def test_a_window_holds_what_was_cut_and_what_failed(settings: Settings) -> None:
    table = pa.table({"id": ["a", None], "text": ["# Lamps\n\nA lamp costs 9 euros.\n", "two"]})
    window = _unpacked(ingest._cut_rows(table, pickle.dumps(settings)))
    assert [chunk.doc_id for chunk in window.chunks] == ["a"]
    assert (window.doc_ids, window.failed) == (["a"], ["row with id None: id is null."])
    assert window.about.documents == 1


def test_a_node_without_a_file_is_named(settings: Settings, tmp_path: Path) -> None:
    source = pickle.dumps(SourceFile(tmp_path / "gone.md", "gone.md"))
    with pytest.raises(PrerequisiteError, match=r"^Node .* has no .*gone\.md\. Give every node the folder"):
        ingest._cut_files(pa.table({"source": [source]}), pickle.dumps(settings))


def test_a_node_that_would_make_other_vectors_is_named() -> None:
    _check_same({"a": 1, "b": 2}, {"b": 2, "a": 1}, "n1")
    with pytest.raises(PrerequisiteError, match=r"node n1 would be others .*: b, c differ"):
        _check_same({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}, "n1")


@pytest.fixture
def stub() -> Iterator[ClusterStub]:
    with cluster_stub() as made:
        yield made


def sender_of(settings: Settings, stub: ClusterStub, window: Any, count: int) -> _Sender:
    content = CollectionContent(DIGEST, "@".join(window.made_by["embedded_by"]), count)
    return _Sender(_Target(replace(settings, qdrant_url=stub.url), "", content, window.made_by))


def test_a_window_that_is_sent_again_is_there_once_and_embedded_once(settings: Settings, stub: ClusterStub) -> None:
    table = ingest._cut_rows(table_of("A lamp costs 9 euros.", "A sofa costs 90 euros."), pickle.dumps(settings))
    sender = sender_of(settings, stub, _unpacked(table), 2)
    assert sender(table).to_pylist() == [{"sent": 2, "embedded": 2}]
    first = stub.engine.scroll(POINTS, with_vectors=True)[0]
    assert sender(table).to_pylist() == [{"sent": 0, "embedded": 0}]
    stub.engine.delete(POINTS, points_selector=[first[0].id])
    assert sender(table).to_pylist() == [{"sent": 1, "embedded": 0}]  # its vector was kept
    again = stub.engine.scroll(POINTS, with_vectors=True)[0]
    assert sorted(each.id for each in again) == sorted(each.id for each in first)


def test_a_server_that_refuses_is_named_with_the_node(settings: Settings, stub: ClusterStub) -> None:
    table = ingest._cut_rows(table_of("A lamp."), pickle.dumps(settings))
    sender = sender_of(settings, stub, _unpacked(table), 1)
    stub.fault = lambda call: (507, "Out of disk") if call.what == "PUT /points" else None
    with pytest.raises(CriticalError, match=r"cannot be filled from node .*has no room left \(507\)"):
        sender(table)


def test_rows_of_parquet_have_the_vectors_of_their_chunks(settings: Settings) -> None:
    texts = ("A lamp costs 9 euros. \udc80", "A sofa costs 90.")  # an HTML file may have half a pair
    documents = tuple(Document(f"d{number}", text, "") for number, text in enumerate(texts))
    window = ingest._Worker(settings)._cut(Library(documents, ()))
    packed = ingest._packed(window)
    maker = ingest._Embedder(_Target(settings, "out", CollectionContent(DIGEST, "m@1", 2), window.made_by))
    rows = maker(packed).to_pylist()
    assert [row["chunk_id"] for row in rows] == [chunk.chunk_id for chunk in window.chunks]
    vectors, _ = ingest._Worker(settings).embed(window.chunks)
    assert np.array_equal(np.array([row["vector"] for row in rows], np.float32), vectors)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["docs.parquet"], "docs.parquet is read by Ray Data alone: add --engine=ray"),
        (["s3://bucket/docs/"], "s3://bucket/docs/ is read by Ray Data alone: add --engine=ray"),
        (["kb", "--to", "out"], "--to=out is written by Ray Data alone: add --engine=ray"),
        (["kb", "--engine=ray"], "writes to a Qdrant server or to Parquet: name --qdrant-url or --to"),
        (["kb", "--engine=ray", "--to=."], "--to=. is there already: name a new folder"),
        (["kb", "--engine=ray", "--to=out", "--near-duplicates=0.9"], "--near-duplicates compares all documents"),
    ],
)
def test_what_goes_another_way_is_named(
    given: list[str], says: str, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ingest", *given, "--profile", "mock"]) == 2
    assert says in capsys.readouterr().err


def test_without_ray_it_says_how_to_get_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "rag_harness.runs.distributed.ingest")
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["ingest", "kb", "--to", "out", "--engine", "ray", "--profile", "mock"]) == 2
    assert "needs Ray with its data library: pip install 'pytest-rag-harness[ray]'" in capsys.readouterr().err


def test_ray_is_not_imported_where_nobody_asks_for_it(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("# Lamps\n\nA lamp costs 9 euros.\n")
    code = "import sys; from rag_harness.__main__ import main; status = main(sys.argv[1:]); print('ray' in sys.modules)"
    command = [sys.executable, "-c", code, "ingest", "kb", "--profile", "mock"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.endswith("False\n")
