"""The text of a PDF, page by page; damaged ones say what is wrong with them."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise

import pytest

from rag_harness.core.errors import UnreadableError
from rag_harness.data.loaders.pdf import parse
from tests.unit.dataset.ingest.pdfs import book, drawing, encrypted, packed, pages_of, stream

FIRST, SECOND = "Returns of lamps\nwithin 45 days (unused).", "The warranty lasts 2 years."


def test_pages_are_kept_with_their_places() -> None:
    found = parse(book(FIRST, "", SECOND, title="Manual"))
    assert found.title == "Manual"
    starts = [*found.pages, len(found.text) + 2]
    texts = [found.text[start : end - 2] for start, end in pairwise(starts)]
    assert texts == [FIRST, "", SECOND]


def test_ligatures_are_letters() -> None:
    names = b"/Encoding << /Differences [1 /fi /fl /ffi] >>"
    ligatures = pages_of([packed(b"BT /F1 11 Tf (\001nd \002at o\003ce) Tj ET")]).replace(
        b"/Encoding /WinAnsiEncoding", names
    )
    assert parse(ligatures).text == "find flat office"


def test_a_damaged_page_does_not_cost_the_others() -> None:
    bomb = stream(b"x", b"/Filter [" + b"/FlateDecode " * 100 + b"]")
    found = parse(pages_of([packed(drawing(FIRST)), bomb, packed(drawing(SECOND))]))
    assert found.unread_pages == (2,)
    assert found.text == f"{FIRST}\n\n\n\n{SECOND}"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (pages_of([]), "has no page"),
        (pages_of([packed(b"0 0 m 9 9 l S")] * 2), r"no text in its 2 pages: a scan\?"),
        (pages_of([stream(b"x", b"/Filter [" + b"/FlateDecode " * 100 + b"]")]), "no text in its 1 pages: Limit"),
        (book("\1\2\3 @ " * 200), "garbage"),
    ],
)
def test_a_pdf_without_text_says_why(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        parse(data)


@pytest.mark.skipif(find_spec("cryptography") is not None or find_spec("Crypto") is not None, reason="can read them")
@pytest.mark.parametrize("revision", [4, 6])
def test_a_pdf_that_needs_another_package_says_which(revision: int) -> None:
    with pytest.raises(UnreadableError, match=r"encrypted with AES.*pip install cryptography"):
        parse(encrypted(revision))
