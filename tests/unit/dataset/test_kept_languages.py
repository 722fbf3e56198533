"""The languages of a text are found once for a cache, and again whenever the text, the code or the file is another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_harness.core.text.language_detection import shares
from rag_harness.data import documents
from rag_harness.data.documents import ParsedKeeping, SourceFile, read_library, shares_kept_in
from tests.unit.words.test_languages import PROSE

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
    first, again, read_only = (shares_kept_in(tmp_path, writes)(text) for writes in (True, True, False))
    assert list(first.items()) == list(again.items()) == list(read_only.items()) == list(shares(text).items())
    assert asked == [text]


def test_another_text_is_looked_at(tmp_path: Path, asked: list[str]) -> None:
    found = [shares_kept_in(tmp_path, writes=True)(text) for text in (PROSE["de"], PROSE["de"] + " ", PROSE["fr"])]
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
        shares_kept_in(tmp_path, writes=True)(MIXED)
    documents._found_by.cache_clear()
    assert asked == [MIXED, MIXED]


@pytest.mark.parametrize("damage", [b"", b"\0" * 11, b'{"de": 0.', b"[]", b"\xff"])
def test_a_torn_file_is_written_again(damage: bytes, tmp_path: Path, asked: list[str]) -> None:
    shares_kept_in(tmp_path, writes=True)(MIXED)
    (kept,) = (file for file in tmp_path.rglob("*") if file.is_file())
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    assert shares_kept_in(tmp_path, writes=True)(MIXED) == shares(MIXED)
    assert kept.read_bytes() == whole
    assert asked == [MIXED, MIXED]


@pytest.mark.parametrize(("cache", "writes"), [(None, True), ("cache", False)])
def test_nothing_is_kept_where_nothing_may_be_written(
    cache: str | None, writes: bool, tmp_path: Path, asked: list[str]
) -> None:
    for _ in range(2):
        shares_kept_in(tmp_path / cache if cache else None, writes)(MIXED)
    assert asked == [MIXED, MIXED]
    assert not list(tmp_path.iterdir())


def test_a_cache_that_may_only_be_read_gets_nothing_new(tmp_path: Path, asked: list[str]) -> None:
    shares_kept_in(tmp_path, writes=True)(MIXED)
    for _ in range(2):
        shares_kept_in(tmp_path, writes=False)(PROSE["fr"])
    assert asked == [MIXED, PROSE["fr"], PROSE["fr"]]


def test_a_cache_that_refuses_costs_time_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "languages").write_text("a file")
    assert shares_kept_in(tmp_path, writes=True)(MIXED) == shares(MIXED)


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
    shares_kept_in(tmp_path, writes=True)(MIXED)
    (folder,) = (tmp_path / "languages").iterdir()
    os.utime(folder, (1, 1))
    shares_kept_in(tmp_path, writes=True)
    assert folder.stat().st_mtime > 1
