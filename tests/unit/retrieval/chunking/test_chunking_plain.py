"""The chunker ``plain``: cut where ``sections`` cuts, and the marks of Markdown taken off."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rag_harness.core.types import Chunk, Document
from rag_harness.data.loaders.text import load_markdown
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.chunkers import chunk_plain
from rag_harness.retrieval.chunking.chunkers import chunk_sections as cut_by_sections
from rag_harness.retrieval.chunking.markdown import references_of, unmarked
from tests.unit.retrieval.chunking import test_chunking as pages

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
