"""Bytes are decoded in their charset, and files without text are recognized."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from rag_harness.core.errors import UnreadableError
from rag_harness.data.loaders.child_process import Parsed
from rag_harness.data.loaders.html_pages import parse as parse_page
from rag_harness.data.loaders.text import Decoded, checked_text, decoded, garbage, parse_text

GERMAN = "Ein Café, das für seine Größe gerühmt wird, hat über Mittag geöffnet. " * 20
RUSSIAN = "Это обычный русский текст о том, как вернуть товар продавцу. " * 20


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_german_in_any_charset(charset: str) -> None:
    assert decoded(GERMAN.encode(charset)).text == GERMAN


def test_the_likeliest_charset_is_taken_where_nothing_says_it() -> None:
    assert decoded(RUSSIAN.encode("cp1251")) == Decoded(RUSSIAN, "cp1251")


def test_a_late_letter_decides() -> None:
    assert decoded(b"plain words " * 20_000 + GERMAN.encode("cp1252")).text.endswith(GERMAN)


FRENCH = "# Menu\n\nUne crème brûlée coûte neuf euros.\n"


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("crème brûlée", "cp1252"),
        (FRENCH, "cp1252"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy. ", "iso8859-2"),
        ("The price is 5 £ and we say naïve. ", "cp1252"),
        ("El niño comió una piña mañana. ", "cp1252"),
    ],
)
@pytest.mark.parametrize("times", [1, 3, 20])
def test_no_text_is_wrong_in_silence(text: str, charset: str, times: int) -> None:
    data = (text * times).encode(charset)
    with suppress(UnreadableError):
        assert decoded(data).text == text * times
    assert decoded(data, named=charset) == Decoded(text * times, charset)


def test_what_may_be_several_charsets_is_refused() -> None:
    with pytest.raises(UnreadableError, match=r"charset cannot be told: cp\d+ fits as well as .*--rag-charset=cp"):
        decoded(FRENCH.encode("latin-1"))


def test_a_charset_that_is_named_counts_where_the_file_says_nothing() -> None:
    assert decoded(FRENCH.encode(), named="cp1250") == Decoded(FRENCH)
    assert decoded(FRENCH.encode("cp1250", "replace"), "cp1250", "cp1252").guessed == ""
    with pytest.raises(UnreadableError, match="not shift_jis at byte"):
        decoded(FRENCH.encode("latin-1"), named="shift_jis")


@pytest.mark.parametrize("declared", ["utf-16", "rot13", "nonsense", "", "\0", "ascii"])
def test_a_declared_charset_that_cannot_be_is_not_believed(declared: str) -> None:
    assert decoded("naïve".encode(), declared).text in ("naïve", "naïve".encode().decode("cp1252"))


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfea", bytes(range(128, 256)) * 400 + b"\0"])
def test_what_is_in_no_charset_says_so(data: bytes) -> None:
    with pytest.raises(UnreadableError, match="Save it as UTF-8"):
        decoded(data)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a\0b", "NUL"),
        ("\x01\x02 word " * 100, "control characters"),
        (GERMAN.encode().decode("cp1252"), "wrong charset"),
        ("\ufffd word " * 100, "wrong charset"),
        ("ABCdef0123+/" * 500, "data, no words"),
        ("@#$ %^& *() " * 100, "neither letters nor digits"),
        ("This page is left blank.\n" * 100, "lines that are the same"),
    ],
)
def test_garbage_is_named(text: str, what: str) -> None:
    assert what in garbage(text)
    with pytest.raises(UnreadableError, match="Remove it"):
        checked_text(text)


@pytest.mark.parametrize(
    "text",
    [
        GERMAN,
        RUSSIAN,
        "これは日本語の文章です。とても長い文章で、空白がありません。" * 50,
        "| 12 | 13.5 | 14 |\n" + "".join(f"| {n} | {n * 3} | x |\n" for n in range(100)),
        "def f(x):\n    return {x: [y for y in range(x)]}\n\n" * 5 + "print(f(3))  # prints it\n" * 20,
        "short: §$%&/()",
        "हिन्दी में लिखा हुआ एक साधारण पाठ। " * 20,
        "กี่ ที่ นี้ มี้ " * 40,
        "e\u0301\u0323 " * 150,
        "",
    ],
)
def test_text_of_all_kinds_is_no_garbage(text: str) -> None:
    assert garbage(text) == ""


@pytest.mark.parametrize("read", [parse_text, parse_page])
def test_a_pdf_with_the_name_of_a_text_is_named(read: Callable[[bytes], Parsed]) -> None:
    with pytest.raises(UnreadableError, match="but a PDF"):
        read(b"%PDF-1.4\n\xff\xfe binary")
