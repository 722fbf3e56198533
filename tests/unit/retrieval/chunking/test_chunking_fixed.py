"""The chunkers ``fixed`` and ``sliding``, which pay no regard to headings."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rag_harness.core.types import Chunk
from rag_harness.retrieval.chunking import ChunkingSettings
from tests.unit.cuts import FRONT, assert_keeps_all, cut, words
from tests.unit.retrieval.chunking import test_chunking as pages


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
