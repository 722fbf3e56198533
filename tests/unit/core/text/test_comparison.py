"""Texts that a reader takes for the same are compared as the same, and places are those of the text as written."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.text.comparison import (
    comparable,
    comparable_text,
    compared_words,
    divided,
    folded,
    without_emphasis,
)


@pytest.mark.parametrize(
    ("written", "same"),
    [
        (unicodedata.normalize("NFD", "crème brûlée"), "crème brûlée"),
        ("ﬁne oﬃce", "fine office"),
        ("４５ days", "45 days"),
        ("ware\u00adhouse\u200b", "warehouse"),
        ("“don’t” – it", '"don\'t" - it'),
        ("R&amp;D&nbsp;team &#8364;5", "R&D team €5"),
        ("10² m, 2½", "10² m, 2½"),
        ("AT&T; and &unknown;", "AT&T; and &unknown;"),
    ],
)
def test_what_looks_the_same_is_the_same(written: str, same: str) -> None:
    assert comparable(written) == comparable_text(written).text == same


@pytest.mark.parametrize(
    ("written", "bare"),
    [
        ("**45** `days`", "45 days"),
        ("max_tokens * 2", "max_tokens * 2"),
        ("_it_ is 2*3*4", "it is 2*3*4"),
        ("**", "**"),
    ],
)
def test_marks_of_emphasis_are_left_out_and_those_in_names_stay(written: str, bare: str) -> None:
    assert without_emphasis(written) == (comparable_text(written).text or written) == bare


@given(st.text(alphabet="aé\u0301 *_`\u00ad\u200bﬁ½&amp;한ᄒ\u1161ไ่'’0-\n", max_size=40))
def test_each_character_has_its_place_in_the_text_as_written(text: str) -> None:
    found = comparable_text(text)
    assert len(found.text) == len(found.starts) == len(found.ends)
    assert [*found.starts] == sorted(found.starts)
    for place, letter in enumerate(found.text):
        assert letter in comparable(text[found.starts[place] : found.ends[place]])


@given(st.text(max_size=60))
def test_a_form_is_a_form_once_and_for_all(text: str) -> None:
    assert comparable(comparable(text)) in (comparable(text), comparable(comparable(comparable(text))))
    assert compared_words(text) == compared_words(folded(text))


def test_scripts_without_blanks_are_characters_or_pairs() -> None:
    assert divided(["您可以在", "iPhone手机"], 1) == ["您", "可", "以", "在", "iPhone", "手", "机"]
    assert compared_words("四十五天内") == ["四十", "十五", "五天", "天内"]
    assert compared_words("天") == ["天"]
    # A mark belongs to its letter: a word of Hindi is no heap of consonants, and one of Thai is cut between letters.
    assert compared_words("की दुकान") == ["की", "दुकान"]
    assert compared_words("ที่นี่") == ["ที่นี่"]
