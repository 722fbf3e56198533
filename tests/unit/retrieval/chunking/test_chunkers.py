"""The chunkers ``fixed``, ``sliding``, ``plain`` and ``headings``, each by itself."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rag_harness.core.errors import ChunkTooLongError, SettingsError
from rag_harness.core.types import Chunk, Document
from rag_harness.data.loaders.text import load_markdown
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.chunkers import chunk_plain
from rag_harness.retrieval.chunking.chunkers import chunk_sections as cut_by_sections
from rag_harness.retrieval.chunking.markdown import references_of, unmarked
from rag_harness.retrieval.chunking.packing import front_matter
from tests.unit.cuts import FRONT, assert_keeps_all, assert_no_row_is_cut, cut, words
from tests.unit.retrieval.chunking import test_chunking as pages

# The chunkers ``fixed`` and ``sliding``, which pay no regard to headings.


def sizes(chunks: list[Chunk]) -> list[int]:
    return [count - pages.SPECIAL for count in pages.Words().count([chunk.text for chunk in chunks])]


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["fixed", "sliding"]),
    pages.FRONT,
    pages.PAGE | pages.NOISE,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(8, 60),
    st.data(),
)
def test_no_text_is_lost_and_no_chunk_is_over(
    chunker: str, front: str, page: str, end: str, most: int, data: st.DataObject
) -> None:
    front, page = front.replace("\n", end), "\n" + page.replace("\n", end)
    lengths = ChunkingSettings(most, data.draw(st.integers(0, most - 1)), data.draw(st.integers(0, most)))
    assert_keeps_all(front + page, cut(chunker, front + page, lengths), len(front))


@pytest.mark.parametrize("tokenizer", ["words", "MiniLM"])
def test_fixed_windows_are_full_overlap_as_asked_and_never_cut_a_word(tokenizer: str) -> None:
    counts = pages.Words() if tokenizer == "words" else pages.mini_lm()
    text = f"# One\n\n{words(150)}\n\n## Two\n\n{words(150, 'text')}\n"
    chunks = cut("fixed", text, ChunkingSettings(102, 30), counts)
    lengths = [count - pages.SPECIAL for count in counts.count([chunk.text for chunk in chunks])]
    assert all(98 <= length <= 100 for length in lengths[:-1])
    for one, other in pairwise(chunks):
        (repeated,) = counts.count([text[other.start : one.end]])
        assert 28 <= repeated - pages.SPECIAL <= 30
        assert not text[other.start - 1 : other.start].strip()
        assert not text[one.end : one.end + 1].strip()


def test_fixed_windows_run_across_headings_and_name_where_they_begin() -> None:
    chunks = cut(
        "fixed", f"{FRONT}# P\n\n{words(40)}\n\n## One\n\n{words(40)}\n\n## Two\n\n{words(40)}", ChunkingSettings(72, 0)
    )
    assert [(c.metadata["heading"], c.metadata["section_ids"]) for c in chunks] == [
        ("Introduction", ["p", "one"]),
        ("One", ["one", "two"]),
    ]
    assert [chunk.metadata["url"] for chunk in chunks] == ["/module-2/chapter-3#p", "/module-2/chapter-3#one"]
    assert {chunk.metadata["module"] for chunk in chunks} == {2}


def test_fixed_windows_cut_code_between_lines() -> None:
    lines = "\n".join(words(8) for _ in range(12))
    text = f"{words(10)}\n\n```py\n{lines}\n```\n"
    chunks = cut("fixed", text, ChunkingSettings(52, 0))
    assert len(chunks) > 1
    for chunk in chunks[1:]:
        assert text[chunk.start - 1] == "\n"


def test_sliding_windows_cross_headings_at_paragraphs_and_overlap() -> None:
    text = "".join(f"## Part\n\n{words(40)}\n\n{words(40)}\n\n" for _ in range(8))
    chunks = cut("sliding", text, ChunkingSettings(302, 50, 150))
    assert all(150 <= size <= 300 for size in sizes(chunks))
    assert all(other.start < one.end for one, other in pairwise(chunks))
    assert all(text[chunk.start - 2 : chunk.start] in ("", "\n\n") for chunk in chunks)
    assert len(chunks) == 3


def test_sliding_leaves_no_short_rest() -> None:
    text = "\n\n".join(words(40) for _ in range(8))
    assert sizes(cut("sliding", text, ChunkingSettings(302, 0))) == [280, 40]
    assert sizes(cut("sliding", text, ChunkingSettings(302, 0, 150))) == [160, 160]


def test_a_page_shorter_than_least_is_one_chunk() -> None:
    (only,) = cut("sliding", f"## One\n\n{words(40)}\n\n## Two\n\n{words(40)}", ChunkingSettings(302, 50, 150))
    assert only.metadata["section_ids"] == ["one", "two"]


@pytest.mark.parametrize("chunker", ["fixed", "sliding"])
def test_a_page_without_text_gives_none(chunker: str) -> None:
    assert cut(chunker, FRONT, ChunkingSettings()) == []


# The chunker ``plain``: cut where ``sections`` cuts, and the marks of Markdown taken off.

KB = Path(__file__).parents[4] / "data" / "kb"
WORD = re.compile(r"[^\W_]+")


def both(text: str, most: int = 512, overlap: int = 0) -> tuple[list[Chunk], list[Chunk]]:
    """Cut a page by both chunkers, and check that the cuts are the same."""
    document, lengths = Document("page.md", text, "Page", {"topic": "x"}), ChunkingSettings(most, overlap)
    marked, plain = (cut(document, pages.Words(), lengths) for cut in (cut_by_sections, chunk_plain))
    assert [places(chunk) for chunk in plain] == [places(chunk) for chunk in marked]
    assert all(chunk.metadata == {"topic": "x", "markup": "taken off"} for chunk in plain)
    assert all(chunk.text.strip() for chunk in plain)
    return marked, plain


def places(chunk: Chunk) -> tuple[object, ...]:
    return chunk.chunk_id, chunk.doc_id, chunk.start, chunk.end, chunk.section, chunk.index


def texts(text: str, most: int = 512, overlap: int = 0) -> list[str]:
    return [chunk.text for chunk in both(text, most, overlap)[1]]


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    pages.FRONT,
    pages.PAGE | pages.NOISE,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(8, 60),
    st.integers(0, 7),
)
@example("", "1`1`", "\n", 8, 0)
def test_cuts_are_those_of_sections(front: str, page: str, end: str, most: int, overlap: int) -> None:
    marked, plain = both((front + page).replace("\n", end), most, overlap)
    for one, other in zip(marked, plain, strict=True):
        # Without the marks inside it, 1`1` is the word 11.
        words = {*WORD.findall(one.text), *WORD.findall(re.sub(r"[`*\\]", "", one.text)), "FFFD"}
        assert set(WORD.findall(other.text)) <= words


@pytest.mark.parametrize("page", ["", " \n\n", "---\ntitle: x\n---\n"])
def test_a_page_without_text_has_no_chunks(page: str) -> None:
    assert texts(page) == []


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("# Returns *and* `refunds` #", "Returns and refunds"),
        ("Returns\n=======\n\ntext", "Returns\n\ntext"),
        ("Within **30 days**, _or *less*_.", "Within 30 days, or less."),
        ("***Both*** and **one *in* the other**", "Both and one in the other"),
        ("See [the *policy*](returns.md#a) and <https://x.example>.", "See the policy and https://x.example."),
        ("See [this][1] and [that].\n\n[1]: a.md\n[that]: b.md", "See this and that."),
        ("![a plan](plan.png) of it", "a plan of it"),
        ("- one\n- **two**\n  - three\n\n1. four\n2) five", "one\ntwo\nthree\n\nfour\nfive"),
        ("> quoted\n> *twice*", "quoted\ntwice"),
        ("a\n\n---\n\nb", "a\n\nb"),
        ("```python\nx = 1 # *no mark*\n```\n\nafter", "x = 1 # *no mark*\n\nafter"),
        ("    indented *code*", "indented *code*"),
        ("snake_case, 2 * 3 * 4, 5 < 6 &amp; \\*stars\\*", "snake_case, 2 * 3 * 4, 5 < 6 & *stars*"),
        ("| Zone | Price |\n|---|--:|\n| 1 | **€5** |\n| `a\\|b` | |", "Zone Price\n1 €5\na|b"),
        ("| Zone 2 | [€9](x.md) |", "Zone 2 €9"),
        ("| Zone 2 | €9 |\n| Zone 3 | €12 |", "Zone 2 €9\nZone 3 €12"),
        ("<b>bold</b> stays", "<b>bold</b> stays"),
        ("half a **mark", "half a **mark"),
        ("\n\n", ""),
    ],
)
def test_marks_are_taken_off_and_words_stay(marked: str, plain: str) -> None:
    assert unmarked(marked) == plain
    assert unmarked(marked.replace("\n", "\r\n")) == plain


def test_text_nested_deeper_than_anybody_reads_is_kept() -> None:
    assert unmarked(f"{'> ' * 60}deep") == "deep"


def test_what_a_link_refers_to_may_stand_in_another_chunk() -> None:
    page = "# One\n\nSee [the policy][p].\n\n# Two\n\ntext\n\n[p]: returns.md\n"
    assert texts(page) == ["One\n\nSee the policy.", "Two\n\ntext"]
    assert unmarked("See [it][p].", references_of(page)) == "See it."
    assert unmarked("See [it][p].") == "See [it][p]."


def test_a_chunk_of_nothing_but_marks_keeps_them() -> None:
    assert texts("***\n") == ["***"]


def test_rows_of_a_cut_table_are_rows_with_its_header() -> None:
    marked, plain = both(pages.TABLE_PAGE, 24)
    repeated = [chunk for chunk in marked if chunk.repeated_header]
    assert repeated
    held = {chunk.chunk_id: chunk for chunk in plain}
    assert all(held[chunk.chunk_id].text.startswith("k v\nr") for chunk in repeated)
    assert all("|" not in chunk.text and "-" not in chunk.text for chunk in plain)
    # The header is in the text, so nothing is put in front of it again.
    assert {chunk.repeated_header for chunk in plain} == {""}


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_code_that_is_cut_stays_code(fence: str) -> None:
    lines = "\n".join(f"# line {number} *is* _code_" for number in range(9))
    first, *more = texts(f"{fence}py\n{lines}\n{fence}\n", 30)
    assert len(more) > 1
    for chunk in (first, *more):
        assert chunk.startswith("# line")
        assert "`" not in chunk
        assert "~" not in chunk
        assert chunk.count("*is* _code_") == len(chunk.splitlines())


def test_every_quote_of_the_study_is_found_where_it_was() -> None:
    """Otherwise the two experiments could not be compared by what evidence they were given."""
    documents = {file.name: load_markdown(file, file.name) for file in sorted(KB.glob("*.md"))}
    chunks = {name: [[folded(chunk.text) for chunk in cut] for cut in both(document.text)]
              for name, document in documents.items()}  # fmt: skip
    quotes = [
        quote for line in (KB / "queries.jsonl").read_text().splitlines() for quote in json.loads(line)["evidence"]
    ]
    assert len(quotes) == 286
    for quote in quotes:
        marked, plain = chunks[quote["filename"]]
        as_written, as_read = folded(quote["quote"]), folded(unmarked(quote["quote"]))
        found = [as_written in text for text in marked]
        assert found == [as_read in text for text in plain]
        assert any(found)


def folded(text: str) -> str:
    return " ".join(text.split())


# The chunker ``headings``: H2 and H3, short sections joined, long ones split, each chunk with its address.

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
def test_no_text_below_headings_is_lost_and_no_chunk_is_over(
    front: str, page: str, end: str, most: int, data: st.DataObject
) -> None:
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


def test_a_page_without_text_gives_no_section() -> None:
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


# Front matter, read for what names a page's place in a book.


def test_plain_values_quotes_numbers_and_comments() -> None:
    text = (
        "\ufeff---\r\n# a note\r\nmodule: 4\r\ntitle: 'Learning: by doing'\r\nurl: /m-4#x  # the address\r\n"
        "chapter: 01\r\nempty:\r\ntags: [a, b]\r\nlist:\r\n  - nested: 1\r\n...\r\nmodule: 5\r\n"
    )
    assert front_matter(text) == {"module": 4, "title": "Learning: by doing", "url": "/m-4#x", "chapter": "01"}


@pytest.mark.parametrize("text", ["", "module: 4\n", "---\n\nmodule: 4\n---\n", "# Page\n\n---\nmodule: 4\n---\n"])
def test_what_is_no_front_matter_gives_nothing(text: str) -> None:
    assert front_matter(text) == {}


def test_the_last_of_two_equal_keys_counts() -> None:
    assert front_matter("---\nmodule: 1\nmodule: 2\n---\n") == {"module": 2}
