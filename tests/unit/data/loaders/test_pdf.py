"""The text of a PDF, page by page; damaged ones say what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import pairwise

import pytest

from rag_harness.core.errors import UnreadableError
from rag_harness.data.loaders import pdf
from rag_harness.data.loaders.pdf import parse, tables_in
from tests.unit.data.loaders.pdfs import book, drawing, encrypted, packed, pages_of, stream

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


# Headings and tables of PDFs: what sizes, outline and places show, and what is left as it was.

PROSE = "The lamp comes with a warranty of two years and goes back within forty five days."
ROWS = [
    ("Item", "Price", "Stock"),
    ("Desk lamp", "19.90", "12"),
    ("Floor lamp", "1,089.00", "3"),
    ("Bulb", "4.50", "250"),
]
TABLE = (
    "| Item | Price | Stock |\n| --- | --- | --- |\n| Desk lamp | 19.90 | 12 |\n| Floor lamp | 1,089.00 | 3 |\n"
    "| Bulb | 4.50 | 250 |"
)
Words = tuple[float, float, float, str]
"""Size, place from the left, place from the bottom, and what is written there."""


def page(words: Iterable[Words]) -> bytes:
    said = (f"BT /F1 {size:g} Tf 1 0 0 1 {x:g} {y:g} Tm ({text}) Tj ET" for size, x, y, text in words)
    return packed("\n".join(said).encode("latin-1"))


def lines(*texts: str, top: float = 700, size: float = 10) -> list[Words]:
    return [(size, 50, top - 14 * n, text) for n, text in enumerate(texts)]


def table(rows: Sequence[Sequence[str]], top: float, right: bool = False) -> list[Words]:
    def left(at: int, text: str) -> float:
        return 50 + 120 * at + (60 - 5 * len(text) if right and at else 0)

    return [(10, left(at, text), top - 14 * n, text) for n, row in enumerate(rows) for at, text in enumerate(row)]


def test_larger_letters_are_headings_and_their_sizes_levels() -> None:
    title, part = (20.0, 50.0, 780.0, "Handbook"), (14.0, 50.0, 750.0, "Returns")
    text = parse(pages_of([page([title, part, *lines(PROSE, PROSE)])])).text
    assert text == f"# Handbook\n## Returns\n{PROSE}\n{PROSE}"


def test_a_heading_of_two_lines_is_one_and_sentences_in_large_letters_are_none() -> None:
    two = [(14.0, 50.0, 780.0, "What to do when the lamp that came"), (14.0, 50.0, 764.0, "is not yours")]
    large = (14.0, 50.0, 740.0, "Read this first.")
    text = parse(pages_of([page([*two, large, *lines(*[PROSE] * 5)])])).text
    assert text.startswith("# What to do when the lamp that came is not yours\nRead this first.\nThe lamp")


def test_what_stands_on_most_pages_is_no_heading() -> None:
    head = (14.0, 50.0, 800.0, "Acme handbook")
    pages = [page([head, (14.0, 50.0, 780.0, f"Part {name}"), *lines(*[PROSE] * 4)]) for name in ("one", "two", "six")]
    text = parse(pages_of(pages)).text
    assert text.count("\n# Part ") == 3
    assert "# Acme" not in text


def test_where_most_of_a_page_is_large_size_says_nothing() -> None:
    assert "#" not in parse(pages_of([page([*lines(*[PROSE] * 2, size=14), *lines(*[PROSE] * 3, top=600)])])).text


@pytest.mark.parametrize("right", [False, True])
def test_words_in_columns_are_a_table(right: bool) -> None:
    words = [*lines(PROSE, top=700), *table(ROWS, 660, right), *lines(PROSE, top=580)]
    assert parse(pages_of([page(words)])).text == f"{PROSE}\n\n{TABLE}\n\n{PROSE}"


def test_a_table_that_is_drawn_in_one_go_is_found() -> None:
    drawn = "".join(f"({a}) Tj 120 0 Td ({b}) Tj 120 0 Td ({c}) Tj -240 -14 Td " for a, b, c in ROWS)
    content = packed(f"BT /F1 10 Tf 50 700 Td {drawn} ({PROSE}) Tj ET".encode())
    assert parse(pages_of([content])).text == f"{TABLE}\n\n{PROSE}"


def test_a_cell_of_several_lines_is_one_where_the_file_has_them_in_this_order() -> None:
    words = table([("Plan", "What it has", "Fee"), ("Basic", "Mail within two days", "3")], 700)
    more = [(10.0, 170.0, 672.0, "and a second line"), *table([("Pro", "Phone", "9")], 658)]
    ordered = [*words[:5], more[0], words[5], *more[1:]]
    assert (
        "| Basic | Mail within two days and a second line | 3 |\n| Pro | Phone | 9 |"
        in parse(pages_of([page(ordered)])).text
    )
    assert "|" not in parse(pages_of([page([*words, *more])])).text


def test_columns_of_prose_are_no_table() -> None:
    texts = [" ".join(PROSE.split()[n % 9 :][:5]) for n in range(12)]
    words = [(10.0, 50.0 + 250 * (n // 6), 700.0 - 14 * (n % 6), text) for n, text in enumerate(texts)]
    assert parse(pages_of([page(words)])).text == "\n".join(texts)


@pytest.mark.parametrize("mark", ["*", "1.", "a)"])
def test_points_of_a_list_are_no_table(mark: str) -> None:
    layout = "\n".join(f"{mark}    a point of the list" for _ in range(4))
    assert list(tables_in(layout)) == []


def test_cells_without_words_stay_empty_and_other_lines_end_a_table() -> None:
    layout = (
        "Item        Fee      Stock\nLamp          9         12\nBulb                     3\nTable        20\nprose"
    )
    assert list(tables_in(layout)) == [
        [["Item", "Fee", "Stock"], ["Lamp", "9", "12"], ["Bulb", "", "3"], ["Table", "20", ""]]
    ]


def test_tables_are_looked_for_in_so_much_drawing_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    first = page(table(ROWS, 700))
    monkeypatch.setattr(pdf, "_TABLES_WITHIN", 600)
    found = parse(pages_of([first, first]))
    assert found.text.count("| Item |") == 1
    assert found.unread_parts == ("tables: looked for on pages 1 to 1 of 2",)
    assert found.text[found.pages[1] :].startswith("Item")


@pytest.mark.parametrize(
    "layout",
    [
        "Decodes the type.  The output is new.  This\ndecodes one.  Others are as ever.  That\nis all.  It ends.  Now",
        "4  Function reference\n4.1  Functions of schemas, which are more than you may think of\n4.2  Fields",
        "1    Introduction . . . . . . . .    3\n2    Returns . . . . . . . . .    5\n3    Fees . . . . . . .    7",
    ],
)
def test_sentences_definitions_and_a_list_of_contents_are_no_table(layout: str) -> None:
    assert list(tables_in(layout)) == []


def test_headings_below_each_other_are_no_table() -> None:
    sizes = (14, 10, 10)
    words = [
        (size, x, 700.0 - 20 * n, text) for n, size in enumerate(sizes) for x, text in ((50, f"{n}"), (200, "Fees"))
    ]
    assert "|" not in parse(pages_of([page([*words, *lines(*[PROSE] * 4, top=600)])])).text
