"""Pages are read as they are in the file, and a folder that cannot be used is explained."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.text.language_detection import shares
from rag_harness.core.types import Document
from rag_harness.data import documents
from rag_harness.data.documents import (
    ParsedKeeping,
    SourceFile,
    kinds,
    language_of,
    languages_said,
    pages_digest,
    read_knowledge_base,
    read_library,
    shares_kept_in,
    with_languages,
)
from rag_harness.models.dry_run import WordTokenizer
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.chunkers import chunk_sections
from tests.unit.core.text.test_languages import PROSE

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
