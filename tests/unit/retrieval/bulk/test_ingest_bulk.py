"""`rag-harness ingest` with Parquet and with a crew: the same chunks, vectors and bytes, and nothing made twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from rag_harness.__main__ import main  # noqa: E402
from rag_harness.commands import ingest_crew  # noqa: E402
from rag_harness.dataset.library import SourceFile  # noqa: E402
from rag_harness.errors import PrerequisiteError  # noqa: E402
from rag_harness.files.atomic import write_atomically  # noqa: E402
from rag_harness.models.embedders.mock import MockEmbedder  # noqa: E402
from rag_harness.models.recording.stores import StoreRoom  # noqa: E402
from rag_harness.pipelines.parts import RunParts  # noqa: E402
from rag_harness.retrieval.bulk import parquet_rows  # noqa: E402
from rag_harness.retrieval.bulk.bulk_messages import IngestOpening, ReadyWorker  # noqa: E402
from rag_harness.retrieval.bulk.crew import Crew, Hand, LostError  # noqa: E402
from rag_harness.retrieval.bulk.files import windows  # noqa: E402
from rag_harness.retrieval.bulk.here import crew_here  # noqa: E402
from rag_harness.retrieval.bulk.lent import LentStores  # noqa: E402
from rag_harness.retrieval.bulk.to_library import read_by  # noqa: E402
from rag_harness.retrieval.bulk.worker import BulkWorker  # noqa: E402
from rag_harness.retrieval.retrieval import Retrieval, spec_of  # noqa: E402
from rag_harness.settings import Settings  # noqa: E402

TEXT = "# Returns {n}\n\nYou can return lamp {n} within {n} days of delivery.\n\n## Costs\n\nIt costs {n} euros.\n"
Run = Callable[..., dict[str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parquet_rows, "ROWS", 4)
    texts = [TEXT.format(n=number) for number in range(20)]
    pq.write_table(pa.table({"id": [f"d{n:02}" for n in range(20)], "text": texts}), "docs.parquet")
    kb = tmp_path / "kb"
    kb.mkdir()
    for number in range(6):
        (kb / f"d{number:02}.md").write_text(TEXT.format(n=number))
    (kb / "e.html").write_text("<h1>Shipping</h1><p>Express costs 9 euros.")
    (kb / "f.pdf").write_bytes(b"%PDF-1.7 broken")
    return tmp_path


@pytest.fixture
def ingest(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*given: str, status: int = 0) -> dict[str, str]:
        assert main(["ingest", *given, "--profile", "mock"]) == status
        said = capsys.readouterr()
        return {line.split()[0]: line for line in (said.out + said.err).splitlines() if line.strip()}

    return run


class Node:
    """A worker in this process, which dies after ``lives`` calls."""

    def __init__(self, opening: IngestOpening, name: str, lives: int = 1000) -> None:
        self.name, self.lives, self.turn = name, lives, Lock()
        self.asked: Counter[str] = Counter()
        self.worker = BulkWorker()
        self.ready = self.worker.open(opening)

    def call(self, method: str, *given: object) -> object:
        self.lives -= 1
        self.asked[method] += 1
        if self.lives < 0:
            raise LostError(self.name)
        with self.turn:  # as an actor does
            return getattr(self.worker, method)(*given)


def two_nodes(monkeypatch: pytest.MonkeyPatch, first: Callable[[IngestOpening, str], Node]) -> list[Node]:
    """Put two nodes in the place of a cluster; the list has those of the last crew, and who came for one that died."""
    made: list[Node] = []

    @contextmanager
    def crew(opening: IngestOpening) -> Iterator[tuple[Crew, ReadyWorker]]:
        def replace(lost: Hand) -> Node:
            made.append(Node(opening, f"after {lost.name}"))
            return made[-1]

        made[:] = [first(opening, "first"), Node(opening, "second")]
        yield Crew(made[:2], replace), made[0].ready

    monkeypatch.setattr(ingest_crew, "crew_for", crew)
    return made


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """Two nodes, of which the first dies in its second call."""
    return two_nodes(monkeypatch, partial(Node, lives=1))


def parts(folder: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(folder).glob("*.parquet")}


def test_chunks_and_vectors_are_those_of_an_index(folder: Path, ingest: Run) -> None:
    said = ingest("kb", "--to", "out", status=1)
    assert said["documents"] == "documents 8"
    assert said["kb/f.pdf:"].startswith("  kb/f.pdf: cannot be parsed")
    table = pq.read_table("out")
    settings = Settings(profile="mock", embed_model="mock/hashed-words", rootdir=str(folder))
    run = RunParts(settings)
    from rag_harness.dataset.knowledge_base import read_folder

    documents = read_folder(folder / "kb").documents
    made = Retrieval(spec_of(settings), lambda: documents, settings, run.stores, run.embedder())
    assert table["chunk_id"].to_pylist() == [chunk.chunk_id for chunk in made.cut]
    assert table["text"].to_pylist() == [chunk.text for chunk in made.cut]
    vectors = np.array(table["vector"].to_pylist(), np.float32)
    np.testing.assert_array_equal(vectors, MockEmbedder().embed_documents([chunk.text for chunk in made.cut]))
    assert json.loads(Path("out/_complete.json").read_text())["chunks"] == len(made.cut)


@pytest.mark.parametrize("given", ["docs.parquet", "kb"])
def test_nodes_of_which_one_dies_write_the_bytes_of_one_process(
    folder: Path, ingest: Run, nodes: list[Node], monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    from rag_harness.retrieval.bulk import files

    monkeypatch.setattr(files.windows, "__defaults__", (1,))
    said = ingest(given, "--to", "out", status=int(given == "kb"))
    assert [node.name for node in nodes] == ["first", "second", "after first"]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(parquet_rows, "ROWS", 4)
    monkeypatch.setattr(files.windows, "__defaults__", (1,))
    alone = ingest(given, "--to", "alone", status=int(given == "kb"))
    assert parts("out") == parts("alone")
    assert len(parts("out")) >= 5
    assert {**said, "seconds": ""} == {**alone, "seconds": ""}


def test_what_is_there_is_not_made_again(folder: Path, ingest: Run) -> None:
    ingest("docs.parquet", "--to", "out")
    before = parts("out")
    for name in sorted(before)[1:3]:
        Path("out", name).unlink()
    Path("out/_complete.json").unlink()
    lost = sum(pq.read_metadata(pa.BufferReader(before[name])).num_rows for name in sorted(before)[1:3])
    said = ingest("docs.parquet", "--to", "out")
    assert parts("out") == before
    assert said["parts"] == "parts     5 (3 were there)"
    assert said["chunks"] == f"chunks    {pq.read_table('out').num_rows} ({lost} embedded now)"


def test_parts_of_documents_that_are_no_more_are_removed(folder: Path, ingest: Run) -> None:
    ingest("docs.parquet", "--to", "out")
    table = pq.read_table("docs.parquet")
    pq.write_table(table.slice(4), "docs.parquet")
    said = ingest("docs.parquet", "--to", "out")
    assert said["removed"] == "removed   1 parts of documents that are no more"
    assert "(0 embedded now)" in said["chunks"]
    assert set(pq.read_table("out")["doc_id"].to_pylist()) == {f"d{number:02}" for number in range(4, 20)}
    assert [name[:11] for name in sorted(parts("out"))] == [f"part-{number:06}" for number in range(4)]


def test_another_chunk_size_makes_other_parts(folder: Path, ingest: Run) -> None:
    ingest("docs.parquet", "--to", "out")
    before = parts("out")
    said = ingest("docs.parquet", "--to", "out", "--chunk-size", "300")
    assert "(0 were there)" in said["parts"]
    assert not before.keys() & parts("out").keys()


def test_vectors_that_a_store_holds_are_not_computed(folder: Path, ingest: Run) -> None:
    assert "(0 embedded now)" not in ingest("docs.parquet")["chunks"]
    assert "(0 embedded now)" in ingest("docs.parquet", "--to", "out")["chunks"]


@pytest.mark.parametrize("given", [pytest.param("docs.parquet", marks=pytest.mark.long), "kb"])
def test_an_index_by_nodes_holds_what_one_process_makes(
    folder: Path, ingest: Run, nodes: list[Node], given: str
) -> None:
    failed = int(given == "kb")
    said = ingest(given, "--engine", "ray", "--cache-dir", "there", status=failed)
    assert all(sum(node.asked[method] for node in nodes) for method in ("read", "embed"))
    nodes.clear()
    alone = ingest(given, "--cache-dir", "here", status=failed)
    for line in ("files", "read", "failed", "chunks", "coverage"):
        assert said[line] == alone[line]
    assert [each.name for each in Path("there/indexes").glob("*edge*")] == [
        each.name for each in Path("here/indexes").glob("*edge*")
    ]
    again = ingest(given, "--cache-dir", "there", status=failed)
    assert "(0 embedded now)" in again["chunks"]


def test_what_nodes_have_cut_is_kept_here(folder: Path) -> None:
    settings = Settings(profile="mock", embed_model="mock/hashed-words", rootdir=str(folder))
    crew, _ = crew_here(IngestOpening(settings))
    here = LentStores(StoreRoom(settings))
    library = read_by(crew, windows([SourceFile(Path("kb/d00.md"), "d00.md")]), 1, "files", here)
    assert [(kind, len(arrays)) for (kind, _, _), arrays in here.taken().items()] == [("chunks", 1)]
    assert [document.doc_id for document in library.documents] == ["d00.md"]


def test_a_node_without_the_files_is_named_before_any_work(folder: Path) -> None:
    settings = Settings(profile="mock", embed_model="mock/hashed-words", rootdir=str(folder))
    file = folder / "kb" / "d00.md"
    with pytest.raises(PrerequisiteError, match=r"Node .* cannot read .*gone\.md: No such file"):
        BulkWorker().open(IngestOpening(settings, {str(folder / "gone.md"): 3}))
    with pytest.raises(PrerequisiteError, match=r"has \d+ bytes in .*d00\.md, not 3: it is another file"):
        BulkWorker().open(IngestOpening(settings, {str(file): 3}))
    assert BulkWorker().open(IngestOpening(settings, {str(file): file.stat().st_size})).made_by["embedder"]


def test_a_node_that_would_make_other_vectors_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opening = IngestOpening(Settings(profile="mock", embed_model="mock/hashed-words", rootdir=str(folder)))
    first = BulkWorker().open(opening)
    first.check_same(BulkWorker().open(opening))
    monkeypatch.setattr(MockEmbedder, "revision", "2")
    monkeypatch.setattr("rag_harness.retrieval.bulk.worker.parsed_by", lambda: "another pypdf")
    with pytest.raises(PrerequisiteError, match=r"others than those of .*: embedded_by, parsed_by differ"):
        first.check_same(BulkWorker().open(opening))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["none*.parquet", "--to", "out"], "No Parquet file none*.parquet"),
        (["docs.parquet", "kb"], "docs.parquet is Parquet, and other paths are not"),
        (["docs.parquet", "--to", "docs.parquet"], "docs.parquet is a file. --to names a folder"),
        (["docs.parquet", "--to", "."], ". holds docs.parquet, which is no part of an ingest"),
        (["docs.parquet", "--to", "out", "--near-duplicates", "0.9"], "--near-duplicates compares all documents"),
        (["gone", "--to", "out"], "No file or folder gone"),
        (["out", "--to", "out"], "No page in out"),
        (["rowless.parquet", "--to", "out"], "No row in rowless.parquet"),
        (["rowless.parquet"], "No row in rowless.parquet"),
    ],
)
def test_what_cannot_be_is_refused(
    folder: Path, given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "out").mkdir()
    pq.write_table(pq.read_table("docs.parquet").slice(0, 0), "rowless.parquet")
    assert main(["ingest", *given, "--profile", "mock"]) == 2
    assert message in capsys.readouterr().err
    assert not any(Path("out").iterdir())


def test_a_folder_of_parts_may_be_a_url(folder: Path, ingest: Run) -> None:
    ingest(f"file://{folder}/docs.parquet", "--to", f"file://{folder}/there")
    ingest("docs.parquet", "--to", "here")
    assert parts("there") == parts("here")


def test_a_disk_that_is_full_leaves_what_was_written(
    folder: Path, ingest: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def write(file: Path, content: Any) -> None:
        written.append(file)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        write_atomically(file, content)

    monkeypatch.setattr("rag_harness.retrieval.bulk.parts_folder.write_atomically", write)
    said = ingest("docs.parquet", "--to", "out", status=2)
    assert any("No space left on device. What is there is whole" in line for line in said.values())
    assert len(parts("out")) == 2
    assert "(2 were there)" in ingest("docs.parquet", "--to", "out")["parts"]


def test_without_ray_it_says_how_to_get_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith(("ray.", "rag_harness.engine.distributed"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["ingest", "kb", "--to", "out", "--engine", "ray", "--profile", "mock"]) == 2
    assert "--engine ray needs Ray: pip install 'pytest-rag-harness[ray]'" in capsys.readouterr().err


def test_ray_is_not_imported_where_nobody_asks_for_it(folder: Path) -> None:
    code = "import sys; from rag_harness.__main__ import main; status = main(sys.argv[1:]); print('ray' in sys.modules)"
    command = [sys.executable, "-c", code, "ingest", "docs.parquet", "--to", "out", "--profile", "mock"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.endswith("False\n")
