"""The chunker ``headings``: H2 and H3, short sections joined, long ones split, each chunk with its address."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rag_harness.core.errors import ChunkTooLongError, SettingsError
from rag_harness.core.types import Chunk
from rag_harness.retrieval.chunking import ChunkingSettings
from tests.unit.cuts import FRONT, assert_keeps_all, assert_no_row_is_cut, cut, words
from tests.unit.retrieval.chunking import test_chunking as pages

BOOK = ChunkingSettings(150, 20, 50)


def section(title: str, tokens: int) -> str:
    """Return a section with exactly ``tokens`` tokens and the special ones, its heading included."""
    assert max(map(len, title.split())) <= 4
    return f"{title}\n\n{words(tokens - len(title.split()))}\n\n"


def headed(text: str, settings: ChunkingSettings = BOOK) -> list[tuple[str, int]]:
    """Return heading and tokens of each chunk."""
    chunks = cut("headings", text, settings)
    return [(c.metadata["heading"], pages.Words().count([c.text])[0] - pages.SPECIAL) for c in chunks]


@hypothesis_settings(max_examples=60, deadline=None)
@given(pages.FRONT, pages.PAGE | pages.NOISE, st.sampled_from(["\n", "\r\n", "\r"]), st.integers(8, 60), st.data())
def test_no_text_is_lost_and_no_chunk_is_over(front: str, page: str, end: str, most: int, data: st.DataObject) -> None:
    front, page = front.replace("\n", end), "\n" + page.replace("\n", end)
    lengths = ChunkingSettings(most, data.draw(st.integers(0, most - 1)), data.draw(st.integers(0, most)))
    assert_keeps_all(front + page, cut("headings", front + page, lengths), len(front))


SECTION = st.tuples(st.sampled_from(["##", "###"]), st.integers(4, 90)).map(lambda s: section(f"{s[0]} part", s[1]))


@hypothesis_settings(max_examples=60, deadline=None)
@given(st.lists(SECTION, min_size=1, max_size=12))
def test_what_is_short_and_would_fit_with_its_neighbour_is_joined(sections: list[str]) -> None:
    text = "".join(sections)
    chunks = cut("headings", text, ChunkingSettings(100, 0, 50))
    lengths = pages.Words().count([chunk.text for chunk in chunks])
    for (one, short), (other, behind) in pairwise(zip(chunks, lengths, strict=True)):
        (joined,) = pages.Words().count([text[one.start : other.end]])
        same_h2 = "\n## " not in text[one.start : other.start + 3]
        assert not (joined <= 100 and same_h2 and min(short, behind) < 50)
        assert not (joined <= 100 and max(short, behind) < 50), "two short ones are joined across H2s"


def test_a_book_page() -> None:
    text = section("# Page", 30) + section("## Long", 70) + section("### a", 80) + section("### b", 20)
    assert headed(FRONT + text) == [("Introduction", 30), ("Long", 70), ("a", 100)]


def test_the_introduction_is_a_chunk_of_its_own_however_short() -> None:
    chunks = cut("headings", FRONT + section("# Page", 5) + section("## One", 20), BOOK)
    assert [chunk.metadata["heading"] for chunk in chunks] == ["Introduction", "One"]
    assert chunks[0].section == ("Page",)
    assert chunks[0].metadata["url"] == "/module-2/chapter-3#page"
    assert chunks[0].text.startswith("# Page")


def test_a_page_without_an_introduction_has_no_chunk_for_it() -> None:
    text = "# Page\n\n" + section("## One", 60)
    (only,) = cut("headings", text, BOOK)
    assert (only.metadata["heading"], only.text[:6]) == ("One", "# Page")


def test_short_sections_of_one_h2_are_joined_forward_first_the_last_one_back() -> None:
    h3s = "".join(section(f"### {name}", tokens) for name, tokens in zip("abcd", (30, 30, 60, 20), strict=True))
    chunks = cut("headings", section("## Top", 60) + h3s, BOOK)
    assert [chunk.metadata["heading"] for chunk in chunks] == ["Top", "a", "c"]
    assert [chunk.metadata["section_ids"] for chunk in chunks] == [["top"], ["a", "b"], ["c", "d"]]
    assert [chunk.section for chunk in chunks] == [("Top",), ("Top",), ("Top",)]


def test_nothing_is_joined_that_would_be_too_long() -> None:
    assert headed(section("## Top", 140) + section("### a", 20)) == [("Top", 140), ("a", 20)]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((20, 20, 20), [("A", 60)]),
        ((20, 60, 20), [("A", 20), ("B", 60), ("C", 20)]),
        ((60, 20, 20), [("A", 60), ("B", 40)]),
    ],
    ids=["all short", "short beside long", "two short behind a long one"],
)
def test_across_h2s_two_are_joined_only_where_both_are_short(sizes: tuple[int, ...], expected: object) -> None:
    text = "".join(section(f"## {name}", size) for name, size in zip("ABC", sizes, strict=True))
    assert headed(text) == expected


def test_joined_across_h2s_the_path_is_the_page_and_the_link_goes_to_the_first() -> None:
    _, joined = cut("headings", FRONT + section("# Page", 30) + section("## A", 20) + section("## B", 20), BOOK)
    assert joined.section == ("Page",)
    assert joined.metadata["url"] == "/module-2/chapter-3#a"
    assert joined.metadata["section_ids"] == ["a", "b"]


def test_an_h2_without_a_text_of_its_own_heads_what_is_joined_below_it() -> None:
    (joined,) = cut("headings", "## Top\n\n" + section("### a", 20) + section("### b", 20), BOOK)
    assert (joined.metadata["heading"], joined.section) == ("Top", ("Top",))
    (alone,) = cut("headings", "## Top\n\n" + section("### a", 20), BOOK)
    assert (alone.metadata["heading"], alone.section) == ("a", ("Top", "a"))


def test_sections_joined_at_the_very_top_are_headed_by_the_first_h2() -> None:
    (joined,) = cut("headings", "# Page\n\n" + section("## A", 20) + section("## B", 20), BOOK)
    assert (joined.metadata["heading"], joined.section) == ("A", ("Page",))


def test_deeper_headings_belong_to_the_h3_above_them() -> None:
    (only,) = cut("headings", section("### a", 60) + section("#### x", 60), BOOK)
    assert only.metadata["section_ids"] == ["a"]


def test_a_long_section_is_split_between_blocks_with_overlap_and_no_short_rest() -> None:
    blocks = "\n\n".join(words(19) for _ in range(9))
    chunks = cut("headings", f"## Long\n\n{blocks}\n", BOOK)
    sizes = [pages.Words().count([chunk.text])[0] for chunk in chunks]
    assert [(c.metadata["heading"], c.section) for c in chunks] == [("Long", ("Long",))] * 2
    assert min(sizes) >= BOOK.least
    assert chunks[1].start < chunks[0].end, "they overlap"
    assert chunks[1].text.startswith("word word")


def test_without_least_a_split_is_packed_full() -> None:
    blocks = "\n\n".join(words(19) for _ in range(8))
    full = cut("headings", f"## Long\n\n{blocks}\n", ChunkingSettings(150, 0, 0))
    assert [pages.Words().count([chunk.text])[0] for chunk in full] == [137, 21]


def test_code_that_fits_is_not_cut_to_make_the_pieces_equal() -> None:
    fence = "```py\n" + "\n".join(words(9) for _ in range(14)) + "\n```\n"
    chunks = cut("headings", f"## Code\n\n{words(40)}\n\n{fence}", BOOK)
    assert any(fence.strip() in chunk.text for chunk in chunks)


def test_rows_that_fit_with_their_header_are_not_cut_to_make_the_pieces_equal() -> None:
    rows = "".join(f"| {words(size)} | x |\n" for size in (55, 80, 114, 9, 66, 36))
    behind = "\n\n".join(words(size) for size in (58, 90, 27))
    text = f"## Rows\n\n{words(100)}\n\n| name | text |\n|---|---|\n{rows}\n{behind}"
    assert_no_row_is_cut(text, cut("headings", text, ChunkingSettings(150, 0, 100)))


def test_what_fits_beside_its_heading_is_not_cut_to_make_the_pieces_equal() -> None:
    paragraphs = [words(size) for size in (137, 61, 27)]
    chunks = cut("headings", "## Rows here now\n\n" + "\n\n".join(paragraphs), ChunkingSettings(150, 0, 100))
    assert all(any(paragraph in chunk.text for chunk in chunks) for paragraph in paragraphs)


def test_a_line_of_code_is_not_cut_to_make_the_pieces_equal() -> None:
    lines = [words(number) for number in (130, 70, 20)]
    text = "## Code\n\n```py\n" + "\n".join(lines) + "\n```"
    chunks = cut("headings", text, ChunkingSettings(150, 0, 100))
    assert all(any(line in chunk.text for chunk in chunks) for line in lines)


ROW = st.lists(st.sampled_from(["a", "two words", "3.5 m/s"]), min_size=2, max_size=2).map(
    lambda r: "| {} | {} |".format(*r)
)
TABLES = st.lists(ROW, min_size=1, max_size=40).map(lambda rows: pages.HEADER + "\n".join(rows) + "\n")


@hypothesis_settings(max_examples=60, deadline=None)
@given(st.lists(TABLES, min_size=1, max_size=3), st.sampled_from(["headings", "sliding", "fixed"]), st.integers(0, 60))
def test_no_row_of_a_table_is_cut(tables: list[str], chunker: str, least: int) -> None:
    text = "\n".join(f"## Part\n\ntext\n\n{table}" for table in tables)
    chunks = cut(chunker, text, ChunkingSettings(60, 10, least))
    assert_no_row_is_cut(text, chunks)
    if chunker != "fixed":
        inside = [c for c in chunks if c.text.startswith("|")]
        assert all(chunk.text.startswith(pages.HEADER) for chunk in inside), "a later piece repeats the header row"


# Bad input


def test_a_page_without_headings_is_its_introduction() -> None:
    (only,) = cut("headings", FRONT + words(30), BOOK)
    assert (only.metadata["heading"], only.section, only.metadata["anchor"]) == ("Introduction", ("Page",), "")
    assert only.metadata["url"] == "/module-2/chapter-3"
    assert [chunk.section for chunk in cut("headings", words(300), BOOK)] == [("Page",)] * 3


def test_an_h3_before_any_h2_ends_the_introduction() -> None:
    text = section("# Page", 30) + section("### a", 20) + section("### b", 40) + section("## Two", 60)
    chunks = cut("headings", text, BOOK)
    assert [(c.metadata["heading"], c.section) for c in chunks] == [
        ("Introduction", ("Page",)),
        ("a", ("Page",)),
        ("Two", ("Page", "Two")),
    ]


def test_a_section_of_30000_tokens_is_split_within_bounds() -> None:
    paragraphs = "\n\n".join(words(100) for _ in range(300))
    chunks = cut("headings", f"## Long\n\n{paragraphs}", ChunkingSettings(1500, 200, 500))
    sizes = pages.Words().count([chunk.text for chunk in chunks])
    assert min(sizes) >= 500
    assert len(chunks) == 25


def test_a_section_of_20_tokens_between_long_ones_stays() -> None:
    text = section("## One", 1000) + section("## Two", 20) + section("## More", 1000)
    assert headed(text, ChunkingSettings(1500, 200, 500)) == [("One", 1000), ("Two", 20), ("More", 1000)]


def test_two_equal_headings_have_two_addresses() -> None:
    text = section("# Page", 20) + section("## Note", 60) + section("## Else", 60) + section("## Note", 60)
    chunks = cut("headings", FRONT + text, BOOK)
    assert [chunk.metadata["anchor"] for chunk in chunks] == ["page", "note", "else", "note-1"]
    assert chunks[-1].metadata["url"] == "/module-2/chapter-3#note-1"


@pytest.mark.parametrize("front", ["", "---\ntitle: Sensors\nchapter: 3\n---\n", "---\nmodule:\nchapter: 3\n---\n"])
def test_without_a_module_in_the_front_matter_no_chunk_names_one(front: str) -> None:
    (only,) = cut("headings", front + section("## One", 60), BOOK)
    assert dict(only.metadata) == {"topic": "x", "heading": "One", "anchor": "one", "section_ids": ["one"]}


def test_a_page_without_text_gives_none() -> None:
    assert cut("headings", FRONT, BOOK) == []


def test_the_book_is_named_by_module_and_chapter() -> None:
    (only,) = cut("headings", FRONT + section("## One", 60), BOOK)
    assert dict(only.metadata) == {
        "module": 2,
        "module_title": "Seeing",
        "chapter": 3,
        "topic": "x",
        "heading": "One",
        "anchor": "one",
        "section_ids": ["one"],
        "url": "/module-2/chapter-3#one",
    }


def test_a_second_h1_is_a_border_too() -> None:
    text = section("# One", 30) + section("## a", 20) + section("# Two", 60) + section("## b", 60)
    assert [name for name, _ in headed(text)] == ["Introduction", "a", "Two", "b"]


def test_a_heading_at_the_very_end_is_kept() -> None:
    chunks: list[Chunk] = cut("headings", section("## One", 60) + "## End\n", BOOK)
    assert [chunk.text for chunk in chunks][-1].endswith("## End")


def test_a_limit_below_one_character_is_an_error() -> None:
    with pytest.raises(ChunkTooLongError, match="no text fits"):
        cut("headings", "word", ChunkingSettings(2, 0))


@pytest.mark.parametrize("least", [-1, 151])
def test_least_lies_within_the_longest(least: int) -> None:
    with pytest.raises(SettingsError, match=f"least is {least}, but must be 0 or more and no more than max_tokens 150"):
        ChunkingSettings(150, 20, least)
