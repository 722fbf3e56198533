"""Pages are read as they are in the file, and a folder that cannot be used is explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.types import Document
from rag_harness.data.documents import kinds, pages_digest, read_knowledge_base
from rag_harness.models.dry_run import WordTokenizer
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.chunkers import chunk_sections


def write(folder: Path, **pages: bytes) -> None:
    for name, content in pages.items():
        (folder / f"{name}.md").write_bytes(content)


def data_error(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_knowledge_base(folder)
    return str(caught.value)


def test_readme_is_no_page_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    write(tmp_path, b=b"# B", README=b"# About")
    write(tmp_path / "deep" / "er", a=b"# A", README=b"# About")
    (tmp_path / "notes.rst").write_text("no page")
    (tmp_path / "folder.md").mkdir()
    assert [page.doc_id for page in read_knowledge_base(tmp_path)] == ["b.md", "deep/er/a.md"]


def test_metadata_comes_from_structure_json(tmp_path: Path) -> None:
    write(tmp_path, a=b"# Heading", b=b"# Other")
    page = {"filename": "a.md", "title": "Title", "version": 2, "effective_date": "2025-01-01", "word_count": 9}
    (tmp_path / "structure.json").write_text(json.dumps({"pages": [page, {"filename": "gone.md"}]}))
    a, b = read_knowledge_base(tmp_path)
    assert (a.title, dict(a.metadata)) == (
        "Title",
        {"title": "Title", "version": 2, "effective_date": "2025-01-01"},
    )
    assert (b.title, dict(b.metadata)) == ("Other", {})


@pytest.mark.parametrize(
    ("content", "title"),
    [(b"intro\n# Heading \n", "Heading"), (b"\xef\xbb\xbf# Heading", "Heading"), (b"no heading", "page")],
)
def test_the_title_is_the_first_heading_or_the_files_name(tmp_path: Path, content: bytes, title: str) -> None:
    write(tmp_path, page=content)
    assert read_knowledge_base(tmp_path)[0].title == title


@pytest.mark.parametrize("content", [b"# A\r\n\r\nb\r\n", b"\xef\xbb\xbf# A\r\n\r\nb", b"# A\rb\n\x0cc"])
def test_text_is_what_is_in_the_file_and_chunks_are_found_there(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, page=content)
    page = read_knowledge_base(tmp_path)[0]
    assert page.text.encode() == content
    chunks = chunk_sections(page, WordTokenizer(), ChunkingSettings(512, 0))
    assert [page.text[chunk.start : chunk.end] for chunk in chunks] == [chunk.text for chunk in chunks]
    assert chunks[0].section[:1] == ("A",)


def test_every_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    write(tmp_path, good=b"# Good", latin="caf\xe9".encode("latin-1"), wide="# x".encode("utf-16"))
    assert data_error(tmp_path).splitlines() == [
        f"{tmp_path / 'latin.md'}: not UTF-8 at byte 3. Save the file as UTF-8.",
        f"{tmp_path / 'wide.md'}: not UTF-8 at byte 0. Save the file as UTF-8.",
    ]


def test_a_missing_folder_says_how_to_name_one(tmp_path: Path) -> None:
    folder, own = tmp_path / "kb", "Name your own with --rag-kb DIR, rag_kb_dir in the ini file or KB_DIR: documents, "
    own += "and queries.jsonl with the questions. If a service or pipeline has the documents, name the questions "
    own += "alone: --rag-queries FILE."
    assert data_error(folder) == f"No folder {folder}. {own}"
    (tmp_path / "kbs").mkdir()
    assert data_error(folder) == f"No folder {folder}. Did you mean 'kbs'? {own}"
    folder.write_text("")
    assert data_error(folder) == f"{folder} is a file, and no folder of documents. Did you mean 'kbs'? {own}"


@pytest.mark.parametrize("pages", [{}, {"README": b"# About"}, {"blank": b" \n\n"}])
def test_a_folder_without_a_page_is_refused(tmp_path: Path, pages: dict[str, bytes]) -> None:
    write(tmp_path, **pages)
    assert data_error(tmp_path) == (
        f"No page with text in {tmp_path}: a knowledge base is one or more files of {kinds()}."
    )


def test_a_page_of_only_front_matter_is_read(tmp_path: Path) -> None:
    write(tmp_path, page=b"---\ntitle: x\n---\n")
    assert read_knowledge_base(tmp_path)[0].text == "---\ntitle: x\n---\n"


def test_a_page_of_5_mb_is_read_whole(tmp_path: Path) -> None:
    content = b"# Big\n\n" + b"A line of the page.\n" * 262_144
    write(tmp_path, page=content)
    assert len(read_knowledge_base(tmp_path)[0].text) == len(content) > 5 * 2**20


@pytest.mark.parametrize("content", ["{", "[]", '{"pages": [1]}', '{"pages": [{}]}', '{"pages": null}', "\udcff"])
def test_a_broken_structure_json_is_named_with_a_remedy(tmp_path: Path, content: str) -> None:
    write(tmp_path, page=b"# A")
    (tmp_path / "structure.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    message = data_error(tmp_path)
    assert message.startswith(f"{tmp_path / 'structure.json'}: expected an object with a list 'pages'")
    assert message.endswith("Mend it, or remove it: metadata is optional.")


def test_the_digest_changes_with_one_byte_anywhere() -> None:
    def digest(doc_id: str = "a.md", text: str = "# A", **metadata: Any) -> str:
        return pages_digest([Document(doc_id, text, "A", metadata)])

    same = digest(version=1, status="current")
    assert same == digest(status="current", version=1)
    others = [digest(), digest(version=2, status="current"), digest("b.md"), digest(text="# B"), digest(text="# A\n")]
    # Moved over the border between name and text.
    others += [digest("a.md#", " A"), pages_digest([]), pages_digest([Document("a.md", "# A", "A")] * 2)]
    assert len({same, *others}) == len(others) + 1
