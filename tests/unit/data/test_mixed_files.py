"""A knowledge base of files of any kind: what cannot be read is named, and pages come with their chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from rag_harness.core.errors import DataError, PrerequisiteError
from rag_harness.core.log import close_log, open_log
from rag_harness.core.settings import Settings
from rag_harness.core.types import Chunk, Document, Hit
from rag_harness.data.datasets import DataSets
from rag_harness.data.documents import _loader, pages_digest, read_knowledge_base
from rag_harness.data.loaders.child_process import Child, PassingError
from rag_harness.models.prompts import context_of
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval.builder import _other_kinds
from rag_harness.retrieval.ingest import _pages
from rag_harness.runs.trial import _retrieved
from tests.unit.data.loaders.one_process import one_process
from tests.unit.data.loaders.pdfs import book, drawing, packed, pages_of, stream


@pytest.fixture(scope="module", autouse=True)
def process() -> Iterator[None]:
    with one_process():
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kb = tmp_path / "kb"
    kb.mkdir()
    (kb / "a.md").write_text("# Returns\n\nWithin 45 days.\n")
    (kb / "B.TXT").write_text("Express costs 9 euros.")
    (kb / "c.htm").write_text("<title>Care</title><p>Wash it cold.<p hidden>secret")
    (kb / "d.pdf").write_bytes(book("The warranty lasts 2 years.", "It ends with a sale.", title="Terms"))
    return kb


def settings(folder: Path, unreadable: str = "stop") -> Settings:
    return Settings(
        rootdir=str(folder.parent), kb_dir="kb", profile="mock", embed_model="mock/hash", unreadable=unreadable
    )


def test_files_of_all_kinds_are_documents(folder: Path) -> None:
    found = {page.doc_id: page for page in read_knowledge_base(folder)}
    assert {name: page.title for name, page in found.items()} == {
        "B.TXT": "B",
        "a.md": "Returns",
        "c.htm": "Care",
        "d.pdf": "Terms",
    }
    assert found["d.pdf"].pages == (0, 29)


def test_every_file_that_cannot_be_read_is_named_and_the_way_on(folder: Path) -> None:
    (folder / "e.pdf").write_bytes(b"no PDF")
    (folder / "f.txt").write_bytes(bytes(100))
    (folder / "g.md").write_bytes(b"caf\xe9")
    with pytest.raises(DataError) as caught:
        read_knowledge_base(folder)
    e, f, g, remedy = str(caught.value).splitlines()
    assert e.startswith(f"{folder / 'e.pdf'}: is no PDF. Remove it")
    assert f.startswith(f"{folder / 'f.txt'}: holds NUL bytes")
    assert g == f"{folder / 'g.md'}: not UTF-8 at byte 3. Save the file as UTF-8."
    assert remedy.endswith("leave them out of the run: --rag-unreadable=skip")


def test_they_are_left_out_where_that_is_asked_for(folder: Path) -> None:
    (folder / "e.pdf").write_bytes(b"no PDF")
    data = DataSets(settings(folder, "skip")).get()
    assert [page.doc_id for page in data.documents] == ["B.TXT", "a.md", "c.htm", "d.pdf"]
    assert [each.file.name for each in data.unread] == ["e.pdf"]


@pytest.mark.parametrize("mode", ["replay", "auto"])
def test_a_file_that_another_process_may_read_is_left_out_only_where_all_can_agree(
    mode: Literal["replay", "auto"], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "e.pdf").write_bytes(b"no PDF")
    data = DataSets(replace(settings(folder, "skip"), mode=mode)).get()
    assert [each.file.name for each in data.unread] == ["e.pdf"]

    def late(child: Child, kind: str, data: bytes) -> bytes:
        raise PassingError("took more than 18 s to read")

    monkeypatch.setattr(Child, "answer", late)
    (folder / "e.pdf").write_bytes(b"no PDF either")
    data = DataSets(replace(settings(folder, "skip"), mode=mode)).get()
    if mode == "auto":
        assert [each.file.name for each in data.unread] == ["e.pdf"]
    else:
        with pytest.raises(DataError, match=r"(?s)e\.pdf: took more than 18 s to read.*mend or remove it"):
            _ = data.documents


def test_nothing_but_failures_is_no_knowledge_base_that_could_be_asked(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_bytes(b"\0\xff" if file.suffix != ".md" else b"\xff")
    with pytest.raises(DataError, match=r"(?s)B\.TXT: .*a\.md: .*No file of .*kb can be read"):
        _ = DataSets(settings(folder, "skip")).get().documents


def test_a_loader_that_fails_names_its_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(file: Path, doc_id: str) -> Document:
        raise KeyError(doc_id)

    monkeypatch.setattr(
        "rag_harness.data.documents._loader", lambda suffix: load if suffix == "txt" else _loader(suffix)
    )
    with pytest.raises(DataError, match=r"B\.TXT: its loader failed: KeyError: 'B\.TXT'\."):
        read_knowledge_base(folder)


def test_a_loader_without_its_package_stops(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(file: Path, doc_id: str) -> Document:
        raise PrerequisiteError("pip install it")

    monkeypatch.setattr("rag_harness.data.documents._loader", lambda suffix: load)
    with pytest.raises(PrerequisiteError, match="pip install it"):
        read_knowledge_base(folder)


def test_hidden_text_and_damaged_pages_are_logged(folder: Path, tmp_path: Path) -> None:
    damaged = stream(b"x", b"/Filter [" + b"/FlateDecode " * 100 + b"]")
    (folder / "e.pdf").write_bytes(pages_of([packed(drawing("one")), damaged]))
    open_log(tmp_path / "logs", "mine")
    try:
        read_knowledge_base(folder)
    finally:
        close_log()
    (log,) = (tmp_path / "logs").iterdir()
    assert "c.htm: 6 characters of hidden text were left out" in log.read_text()
    assert "e.pdf: pages that cannot be read: 2" in log.read_text()


def test_chunks_know_their_page_when_they_are_cut_and_when_they_are_remembered(folder: Path) -> None:
    for _ in range(2):
        parts = RunParts(settings(folder))
        retrieval = parts.retrieval()
        pages = {chunk.doc_id: chunk.pages for chunk in retrieval.chunks}
        assert pages == {"B.TXT": None, "a.md": None, "c.htm": None, "d.pdf": (1, 2)}
        parts.flush()


def test_the_pages_of_a_chunk_are_those_of_its_first_and_its_last_character(tmp_path: Path) -> None:
    pages = ["word " * 300, "other " * 300, "last " * 300]
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.pdf").write_bytes(book(*("\n".join([page[:80]] * 30) for page in pages)))
    retrieval = RunParts(settings(tmp_path / "kb")).retrieval()
    (document,) = DataSets(settings(tmp_path / "kb")).get().documents
    ends = [*document.pages, 10**9]
    found = [(chunk.start, chunk.end, chunk.pages or (0, 0)) for chunk in retrieval.chunks]
    assert {page for *_, (page, _) in found} >= {1, 2}
    assert all(ends[first - 1] <= start < ends[first] for start, _, (first, _) in found)
    assert all(ends[last - 1] < end <= ends[last] for _, end, (_, last) in found)


def test_blanks_are_on_no_page() -> None:
    document = Document("a.pdf", "\n\ntext\n\n\n\nmore", "", {}, (0, 2, 8, 10))
    assert _pages(document, 0, 10) == (2, 2)
    assert _pages(document, 4, 14) == (2, 4)
    assert _pages(document, 8, 10) == (3, 3)


@pytest.mark.parametrize("page", [7, "7"])
def test_a_key_of_anybodys_metadata_is_no_page(page: object) -> None:
    chunk = Chunk("a#0", "a", "text", metadata={"page": page, "last_page": page, "pages": page})
    assert context_of([Hit(chunk, 1.0, 1)]) == "[Source 1: a] text"
    assert _retrieved(Hit(chunk, 1.0, 1)).metadata.page is None


def test_a_citation_says_the_page(folder: Path) -> None:
    chunks = RunParts(settings(folder)).retrieval().chunks
    context = context_of([Hit(chunk, 1.0, 1) for chunk in chunks if chunk.doc_id in ("a.md", "d.pdf")])
    assert "[Source 1: a.md] " in context
    assert "[Source 2: d.pdf, pages 1-2] The warranty" in context
    one = Chunk("d.pdf#0", "d.pdf", "text", pages=(3, 3))
    assert context_of([Hit(one, 1.0, 1)]) == "[Source 1: d.pdf, page 3] text"


def test_a_recording_that_lacks_a_file_of_another_kind_says_that_it_counts() -> None:
    assert "are documents" in _other_kinds(["a.md#0", "notes.txt#chunk_0"])
    assert _other_kinds(["a.md#0", "b.MD#chunk_0"]) == ""


def test_pages_count_in_the_digest() -> None:
    one, other = Document("a", "b", "c", {}, (0, 1)), Document("a", "b", "c", {}, (0,))
    assert len({pages_digest([one]), pages_digest([other]), pages_digest([Document("a", "b", "c")])}) == 3
