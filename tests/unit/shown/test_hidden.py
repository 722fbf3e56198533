"""Characters that nobody sees are written out, and no others are touched."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from rag_harness.core.escaping import escaped
from tests.hostile import CORPUS, ORDINARY
from tests.unit.shown.active import unseen

_SEEN = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
_EGYPTIAN = range(0x13430, 0x13440)
"""Numbers and ends of verses of Arabic, and joints of hieroglyphs: of category Cf, and seen."""


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 400


def test_every_character_that_steers_is_written_out() -> None:
    left = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and code not in _SEEN
        and code not in _EGYPTIAN
        and chr(code) in escaped(f"a{chr(code)}b")
    ]
    assert left == []


def test_letters_signs_and_marks_are_left_alone() -> None:
    touched = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code))[0] in "LMNPS"
        and code not in (0x115F, 0x1160, 0x3164, 0xFFA0)
        and code not in range(0xE0100, 0xE01F0)
        and escaped(chr(code)) != chr(code)
    ]
    assert touched == []


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_look_the_same(text: str) -> None:
    assert escaped(text) == text


def test_escapes_are_those_of_python() -> None:
    assert escaped("a\x1b[2J\x9b\u202e\U000e0041\n\ud800") == r"a\x1b[2J\x9b\u202e\U000e0041\n\ud800"
    assert escaped("a\nb\tc", kept="\n\t") == "a\nb\tc"


def test_a_joiner_is_kept_between_what_it_joins_alone() -> None:
    assert escaped("👩\u200d👧") == "👩\u200d👧"
    assert escaped("pay\u200dpal") == r"pay\u200dpal"
    assert escaped("👩\u200d\u200d👧") == r"👩\u200d\u200d👧"
    assert escaped("a\U000e0067\U000e007f") == r"a\U000e0067\U000e007f"


def test_what_was_written_out_stays_as_it_is() -> None:
    again = [text for text in CORPUS if escaped(escaped(text)) != escaped(text)]
    assert again == []
    assert [fault for text in CORPUS for fault in unseen(escaped(text))] == []
