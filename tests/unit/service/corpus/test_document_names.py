from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.service.corpus.intake import LONGEST_NAME, checked_name, suffix_of
from rag_harness.service.problems import ProblemError


def taken(name: str) -> str | None:
    try:
        return checked_name(name)
    except ProblemError:
        return None


@given(st.text(max_size=300))
def test_a_name_is_refused_or_harmless(name: str) -> None:
    checked = taken(name)
    if checked is None:
        return
    assert checked == unicodedata.normalize("NFC", name)
    assert 0 < len(checked) <= LONGEST_NAME
    assert not {"", ".", ".."} & set(checked.split("/"))
    assert not any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in checked)
    checked.encode()


@pytest.mark.parametrize(
    "name", ["a.md", "README.md", "x/b.HTML", "Überweisung.pdf", "نامه‌ها.txt", "a b.md", "❤️.md", "👩‍🚀.md"]
)
def test_names_of_people_are_taken(name: str) -> None:
    assert checked_name(name) == unicodedata.normalize("NFC", name)
    assert suffix_of(name).lower() == suffix_of(name)


@pytest.mark.parametrize(
    "unseen",
    ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\u2066", "\u061c", "\U000e0041"],
)
def test_what_nobody_sees_is_in_no_name(unseen: str) -> None:
    for name in (f"pay{unseen}pal.md", f"{unseen}.md", f"a/{unseen}/b.md", f"{unseen}a.md", f"a.md{unseen}"):
        assert taken(name) is None, ascii(name)


@pytest.mark.parametrize(
    "name", [" .md", "\u3000.md", "\u3164.md", "\u2800.md", "a/ /b.md", "\u00a0", "\u115f\u1160.md", "\u034f.md"]
)
def test_a_name_of_blanks_is_none(name: str) -> None:
    assert taken(name) is None


def test_the_suffix_decides_and_the_kinds_are_named() -> None:
    for name in ("a.exe", "a", "md", "a.md/b"):
        with pytest.raises(ProblemError) as refused:
            suffix_of(name)
        assert refused.value.status == 415
        assert ".html, .json, .md, .pdf" in refused.value.detail


def test_one_name_written_in_two_ways_is_one() -> None:
    assert checked_name("Cafe\u0301.md") == checked_name("Caf\u00e9.md")
