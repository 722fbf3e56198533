"""Headings of joined sections can still be named as gold."""

from __future__ import annotations

from rag_harness.core.types import Chunk, Document
from rag_harness.data.golden import resolve
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.chunkers import chunk_headings
from tests.unit.data.test_golden import Words, entry

# 7 words a section; joined where the H2 around both is the same.
PAGE = "".join(
    f"{title}\n\none two three four five\n\n"
    for title in ("## Start", "### Notes", "### More", "## Later", "### Notes", "### Else")
)


def chunks() -> list[Chunk]:
    return chunk_headings(Document("a.md", PAGE, "A"), Words(), ChunkingSettings(16, 0, 8))


def ids(expected: str) -> set[str]:
    return {name.removeprefix("a.md#chunk_") for name in resolve([entry(f"a.md#{expected}")], chunks())["g001"].ids}


def test_a_joined_heading_is_the_chunk_that_holds_it() -> None:
    assert [chunk.metadata["section_ids"] for chunk in chunks()] == [
        ["start", "notes"],
        ["more"],
        ["later", "notes-1"],
        ["else"],
    ]
    assert ids("notes") == {"0"}
    assert ids("notes-1") == {"2"}


def test_a_heading_stands_for_what_lies_below_it() -> None:
    assert ids("start") == {"0", "1"}
    assert ids("later") == {"2", "3"}
    assert ids("else") == {"3"}


def test_equal_headings_of_which_one_was_joined_are_told_apart() -> None:
    page = "## A\n\none two three four five\n\n### Notes\n\none\n\n"
    page += "## B\n\none two three four five six seven\n\n### Notes\n\none two three four five six seven eight nine"
    cut = chunk_headings(Document("a.md", page, "A"), Words(), ChunkingSettings(16, 0, 8))
    assert [chunk.metadata["section_ids"] for chunk in cut] == [["a", "notes"], ["b"], ["notes-1"]]
    found = resolve([entry("a.md#notes", entry_id="g1"), entry("a.md#notes-1", entry_id="g2")], cut)
    assert found["g1"].ids == {"a.md#chunk_0"}
    assert found["g2"].ids == {"a.md#chunk_2"}
