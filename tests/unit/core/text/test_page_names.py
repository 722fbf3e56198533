"""Pages are found by the names of other people's software, and never by a name that may mean two."""

from __future__ import annotations

import unicodedata

import pytest

from rag_harness.core.text.comparison import PageNames

PAGES = ("returns.md", "de/returns.md", "faq/rückgabe.md", "prices 2024.md", "v3.12.md", "Guide/Setup.md")


@pytest.mark.parametrize(
    ("told", "page"),
    [
        ("returns.md", "returns.md"),
        ("/data/kb/de/returns.md", "de/returns.md"),
        ("./faq/rückgabe.md", "faq/rückgabe.md"),
        (unicodedata.normalize("NFD", "faq/rückgabe.md"), "faq/rückgabe.md"),
        ("C:\\kb\\faq\\rückgabe.md", "faq/rückgabe.md"),
        ("https://docs.example/faq/r%C3%BCckgabe.md?v=2#top", "faq/rückgabe.md"),
        ("file:///srv/kb/prices%202024.md", "prices 2024.md"),
        ("prices 2024", "prices 2024.md"),
        ("guide/setup.MD", "Guide/Setup.md"),
        ("https://docs.example/guide/setup/", "Guide/Setup.md"),
        ("other/rückgabe.md", ""),
        ("nowhere.md", ""),
        ("", ""),
    ],
)
def test_a_name_finds_its_page(told: str, page: str) -> None:
    assert PageNames(lambda: PAGES).find(told) == page


def test_a_name_that_two_pages_end_with_finds_none() -> None:
    assert PageNames(lambda: ("a/x.md", "b/x.md")).find("x.md") == ""
    assert PageNames(lambda: ("a/X.md", "a/x.md")).find("/kb/a/X.md") == "a/X.md"


def test_names_are_read_when_one_is_looked_for() -> None:
    asked: list[int] = []

    def names() -> tuple[str, ...]:
        asked.append(1)
        return PAGES

    found = PageNames(names)
    assert not asked
    assert [found.find("prices 2024"), found.find("prices 2024")] == ["prices 2024.md"] * 2
    assert asked == [1]
