"""A long page is cut in a process with limits: the same chunks, or a reason that names both numbers."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ChunkTooLongError, UnreadableError
from rag_harness.core.protocols import Tokenizer
from rag_harness.core.registry import resolve
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Document
from rag_harness.data.loaders.child_process import Child, PassingError
from rag_harness.models.dry_run import WordTokenizer
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval import ingest as cutting
from rag_harness.retrieval.builder import Retrieval, spec_of
from rag_harness.retrieval.chunking import ChunkingSettings, markdown
from rag_harness.retrieval.ingest import Cutting, cuts_of

LENGTHS = ChunkingSettings(64, 16)
PROSE = "## Lamps ü\n\nA lamp comes back within 45 days. It costs nothing.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n"
LONG, VERY_LONG = (Document("lamps.md", PROSE * times, "Lamps", {"topic": "lamps"}) for times in (40, 400))
"""Both are cut in another process; ``sliding`` counts more texts of the second than are counted at once there."""


@pytest.fixture(autouse=True)
def _long_from_2000(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut pages of more than 2,000 characters in another process, and not of more than 32,768."""
    monkeypatch.setattr(cutting, "HERE", 2_000)


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """Start one process for all that is cut in another one."""
    started = Child()
    yield started
    started.close()


class Cut(Protocol):
    """Cuts a page, in the module's process where another one is needed."""

    def __call__(self, page: Document, chunker: str = "sections", tokenizer: Tokenizer | None = None) -> list[Any]: ...


@pytest.fixture
def cuts(child: Child) -> Cut:
    def cut(page: Document, chunker: str = "sections", tokenizer: Tokenizer | None = None) -> list[Any]:
        made = Cutting(resolve("chunkers", chunker), tokenizer or WordTokenizer(), LENGTHS, cuts_of)
        made._child = child
        return made.cuts(page)

    return cut


@pytest.mark.parametrize("chunker", ["sections", "headings", "fixed", "sliding", "summaries", "plain", "whole"])
def test_another_process_cuts_as_this_one(cuts: Cut, chunker: str) -> None:
    page = VERY_LONG if chunker == "sliding" else LONG
    here = cuts_of(page, resolve("chunkers", chunker)(page, WordTokenizer(), LENGTHS))
    assert len(page.text) > cutting.HERE
    assert cuts(page, chunker) == here


def test_one_process_cuts_many_pages_and_none_cuts_short_ones() -> None:
    made = Cutting(resolve("chunkers", "sections"), WordTokenizer(), LENGTHS, cuts_of)
    try:
        made.cuts(Document("short.md", PROSE, ""))
        assert made._child.started == 0
        for _ in range(3):
            made.cuts(LONG)
        assert made._child.started == 1
    finally:
        made.close()


class Own:
    """Counts in a way that no other process knows of."""

    def count(self, texts: Sequence[str]) -> list[int]:
        assert os.getpid() == HERE
        return WordTokenizer().count(texts)


HERE = os.getpid()


def test_what_is_not_ours_works_here(cuts: Cut) -> None:
    assert cuts(LONG, tokenizer=Own()) == cuts(LONG)


def test_too_many_chunks_are_refused_with_both_numbers(cuts: Cut, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableError, match=r"into 10,001 chunks, and a document may have 10,000\. Split it"):
        cuts(Document("d", "# a\n\nb\n\n" * 10_001, ""))
    monkeypatch.setattr(cutting, "CHUNKS", 4_999)  # of this process alone
    with pytest.raises(UnreadableError, match=r"into 5,000 chunks, and a document may have 4,999"):
        cuts(Document("d", "# a\n\nb\n\n" * 5_000, ""), tokenizer=Own())


def test_headings_that_every_chunk_repeats_are_refused_with_both_numbers(cuts: Cut) -> None:
    page = "# " + "t" * 100_000 + "\n\n" + "## a\n\nb\n\n" * 400
    with pytest.raises(UnreadableError, match=r"its 400 chunks repeat or change 38\.\d MB of text, and 8 MB"):
        cuts(Document("d", page, ""))


def test_a_page_that_takes_too_long_is_refused() -> None:
    made = Cutting(resolve("chunkers", "sections"), WordTokenizer(), LENGTHS, cuts_of)
    made._child._seconds = 0.2
    try:
        with pytest.raises(PassingError, match=r"took more than 0\.2 s"):
            made.cuts(Document("d", "# a\n" * 500_000, ""))
    finally:
        made.close()


def test_a_character_that_is_too_long_is_said_as_here() -> None:
    names = [(part.__module__, part.__name__) for part in (resolve("chunkers", "sections"), cuts_of)]
    asked = pickle.dumps((names, pickle.dumps(_Special()), ChunkingSettings(1, 0), LONG))
    with pytest.raises(ChunkTooLongError, match="so no text fits"):
        cutting._answered(cutting.cut_there(asked))


class _Special(WordTokenizer):
    """Adds two tokens to every text, as tokenizers do."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return [count + 2 for count in super().count(texts)]


def test_a_run_stops_and_names_what_it_refuses_or_leaves_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "CHUNKS", 100)
    documents = [Document("many.md", "# a\n\nb\n\n" * 200, ""), Document("lamps.md", PROSE, "")]
    for unreadable in ("stop", "skip"):
        settings = load_settings({"profile": "mock", "unreadable": unreadable}, rootdir=tmp_path)
        parts, spec = RunParts(settings), spec_of(settings)
        made = Retrieval(spec, lambda: documents, settings, parts.stores, parts.embedder(spec.embedder))
        if unreadable == "stop":
            with pytest.raises(UnreadableError, match=r"(?s)many\.md: would be cut.*--rag-unreadable=skip"):
                _ = made.cut
        else:
            assert {chunk.doc_id for chunk in made.cut} == {"lamps.md"}
        assert list(made.refused) == ["many.md"]


@given(st.text(alphabet="ab \t\\`*_[]()<>&;!#:\"'-\u00a0\u200b~+|{}@/.1", max_size=30))
def test_a_title_without_marks_is_what_the_parser_makes_of_it(title: str) -> None:
    children = markdown._inline().parseInline(title, {})[0].children or []
    parsed = " ".join("".join(markdown._visible(child) for child in children).split())
    assert markdown._plain_text(title, {}) == parsed
