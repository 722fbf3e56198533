"""Pages are read as they are in the file, whatever its kind; what cannot be used is explained."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from rag_harness.core.errors import DataError, PrerequisiteError, SettingsError
from rag_harness.core.log import close_log, open_log
from rag_harness.core.settings import Settings
from rag_harness.core.text.language_detection import shares
from rag_harness.core.types import Chunk, Document, Hit
from rag_harness.data import documents
from rag_harness.data.datasets import DataSets
from rag_harness.data.documents import (
    ParsedKeeping,
    SourceFile,
    _loader,
    kinds,
    language_of,
    languages_said,
    pages_digest,
    read_knowledge_base,
    read_library,
    shares_kept_in,
    with_languages,
)
from rag_harness.data.loaders.child_process import Child, PassingError
from rag_harness.models.dry_run import WordTokenizer
from rag_harness.models.prompts import context_of
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval.builder import _other_kinds
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.chunkers import chunk_sections
from rag_harness.retrieval.ingest import _pages
from rag_harness.runs.trial import _retrieved
from tests.unit.core.text.test_languages import PROSE
from tests.unit.data.loaders.one_process import one_process
from tests.unit.data.loaders.pdfs import book, drawing, packed, pages_of, stream

# Pages are read as they are in the file, and a folder that cannot be used is explained.

# Pages are read as they are in the file, and a folder that cannot be used is explained.


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


# The languages of a text are found once for a cache, and again whenever the text, the code or the file is another.

LANGUAGE = "rag_harness.core.text.language_detection"
MIXED = "\n\n".join([PROSE["de"], PROSE["de"], PROSE["en"]])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts whose languages were found, and not read from the cache."""
    texts: list[str] = []

    def noted(text: str) -> dict[str, float]:
        texts.append(text)
        return shares(text)

    noted.__module__ = shares.__module__
    monkeypatch.setattr(documents, "shares", noted)
    return texts


@pytest.mark.parametrize("text", [MIXED, PROSE["en"], "short", "", "a\ud800b"])
def test_what_was_found_is_kept_and_read_again(text: str, tmp_path: Path, asked: list[str]) -> None:
    first, again = (shares_kept_in(tmp_path)(text) for _ in range(2))
    assert list(first.items()) == list(again.items()) == list(shares(text).items())
    assert asked == [text]


def test_another_text_is_looked_at(tmp_path: Path, asked: list[str]) -> None:
    found = [shares_kept_in(tmp_path)(text) for text in (PROSE["de"], PROSE["de"] + " ", PROSE["fr"])]
    assert [next(iter(each)) for each in found] == ["de", "de", "fr"]
    assert len(asked) == 3


@pytest.mark.parametrize("changed", ["code", "Python"])
def test_other_code_looks_again(
    changed: str, tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("1", "2"):
        documents._found_by.cache_clear()
        if changed == "code":
            monkeypatch.setattr(documents, "package_digest", lambda version=version: version)
        else:
            monkeypatch.setattr("platform.python_version", lambda version=version: version)
        shares_kept_in(tmp_path)(MIXED)
    documents._found_by.cache_clear()
    assert asked == [MIXED, MIXED]


@pytest.mark.parametrize("damage", [b"", b"\0" * 11, b'{"de": 0.', b"[]", b"\xff"])
def test_a_torn_file_is_written_again(damage: bytes, tmp_path: Path, asked: list[str]) -> None:
    shares_kept_in(tmp_path)(MIXED)
    (kept,) = (file for file in tmp_path.rglob("*") if file.is_file())
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    assert shares_kept_in(tmp_path)(MIXED) == shares(MIXED)
    assert kept.read_bytes() == whole
    assert asked == [MIXED, MIXED]


def test_nothing_is_kept_without_a_cache(tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        shares_kept_in(None)(MIXED)
    assert asked == [MIXED, MIXED]
    assert not list(tmp_path.iterdir())


def test_a_cache_that_refuses_costs_time_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "languages").write_text("a file")
    assert shares_kept_in(tmp_path)(MIXED) == shares(MIXED)


def test_files_that_are_read_again_have_the_same_languages(tmp_path: Path, asked: list[str]) -> None:
    files = {"a.md": MIXED, "b.txt": PROSE["fr"], "c.html": f"<p>{PROSE['en']}", "d.md": "Hotline: 0761 1234"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    sources = [SourceFile(tmp_path / name, name) for name in files]
    keeping = ParsedKeeping(tmp_path / "cache", writes=True)
    first, again = (read_library(sources, (), keeping).documents for _ in range(2))
    assert first == again == read_library(sources, (), ParsedKeeping()).documents
    assert [document.language for document in first] == ["de", "fr", "en", "de"]
    assert len(asked) == 2 * len(files), "the first and the last reading"


def test_the_folder_says_that_it_was_used(tmp_path: Path) -> None:
    shares_kept_in(tmp_path)(MIXED)
    (folder,) = (tmp_path / "languages").iterdir()
    os.utime(folder, (1, 1))
    shares_kept_in(tmp_path)
    assert folder.stat().st_mtime > 1


# Every document gets a language: its own, its neighbours', or the option's; what has no rules is said.

GERMAN_PAGES = Path(__file__).parents[2] / "data/german"


def _documents(**texts: str) -> list[Document]:
    return [Document(f"{name}.md", text, name) for name, text in texts.items()]


def test_the_german_pages_are_german() -> None:
    documents = read_knowledge_base(GERMAN_PAGES)
    assert {document.language for document in documents} == {"de"}
    assert languages_said(documents) == ["Documents by language: 8 in de."]


def test_nothing_changes_and_nothing_is_said_where_all_is_english() -> None:
    documents = _documents(a=PROSE["en"], b="Short.")
    assert with_languages(documents) == documents
    assert languages_said(with_languages(documents)) == []


def test_each_document_of_a_mixed_collection_has_its_own() -> None:
    found = with_languages(_documents(a=PROSE["de"], b=PROSE["en"], c=PROSE["fr"], d=PROSE["de"]))
    assert [document.language for document in found] == ["de", "en", "fr", "de"]


def test_what_is_too_short_has_the_language_of_most_others_and_that_is_said() -> None:
    found = with_languages(_documents(a=PROSE["de"], b="Hotline: 0761 1234"))
    assert found[1].language == "de"
    assert "1 too short to tell: taken for the language of most others, de." in languages_said(found)


def test_a_document_in_two_languages_has_that_of_its_larger_part_and_that_is_said() -> None:
    (found,) = with_languages(_documents(a="\n\n".join([PROSE["de"], PROSE["de"], PROSE["en"]])))
    assert found.language == "de"
    assert any("a.md (de 7" in line and "en" in line for line in languages_said([found]))


@pytest.mark.parametrize(
    ("text", "language"), [("退款需要五天时间到账。", "zh"), ("يستغرق رد الأموال خمسة أيام.", "ar")]
)
def test_a_language_without_rules_is_named(text: str, language: str) -> None:
    found = with_languages(_documents(a=text))
    assert found[0].language == language
    assert f"1 in {language}, which has no rules" in languages_said(found)[1]


def test_the_option_names_the_language_of_all_that_state_none() -> None:
    stated = Document("b.md", PROSE["en"], "b", {"language": "fr"})
    found = with_languages([*_documents(a=PROSE["en"]), stated], "de")
    assert [document.language for document in found] == ["de", "fr"]


@pytest.mark.parametrize(("named", "hint"), [("german", "'de'"), ("dee", "'de'"), ("xx", "Known: ")])
def test_an_unknown_language_is_refused_with_what_could_be_meant(named: str, hint: str) -> None:
    with pytest.raises(SettingsError, match="rag_language") as error:
        language_of(Settings(language=named))
    assert hint in str(error.value)


def test_languages_without_rules_may_be_named() -> None:
    assert language_of(Settings(language=" ZH ")) == "zh"


@pytest.mark.parametrize(
    ("stated", "language"), [("de-AT", "de"), ("German", "de"), ("en_GB", "en"), ("klingon", "fr")]
)
def test_what_metadata_state_counts_before_the_text_where_it_is_known(stated: str, language: str) -> None:
    (found,) = with_languages([Document("a.md", PROSE["fr"], "a", {"language": stated})])
    assert found.language == language


# A knowledge base of files of any kind: what cannot be read is named, and pages come with their chunks.


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
    assert e.startswith(f"{folder / 'e.pdf'}: is not a PDF. Remove it")
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
