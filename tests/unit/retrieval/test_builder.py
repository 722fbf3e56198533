"""An index is built: windows of long chunks, pages that are cut in a process, and its summary."""

from __future__ import annotations

import os
import pickle
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rag_harness.core.errors import ChunkTooLongError, UnreadableError
from rag_harness.core.progress import listening
from rag_harness.core.protocols import Retriever, Tokenizer
from rag_harness.core.registry import REVISIONS, resolve
from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.table import Mode
from rag_harness.core.types import Chunk, Document, Hit, IndexSpec
from rag_harness.data.loaders.child_process import Child, PassingError
from rag_harness.models import array_store
from rag_harness.models.array_store import CachedEmbedder
from rag_harness.models.dry_run import MockEmbedder, WordTokenizer
from rag_harness.models.endpoints import token_batches
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval import builder as module
from rag_harness.retrieval import ingest as cutting
from rag_harness.retrieval.builder import Retrieval, check_compatible, reported_batches, spec_of
from rag_harness.retrieval.chunking import ChunkingSettings, markdown
from rag_harness.retrieval.chunking.chunkers import chunk_window
from rag_harness.retrieval.ingest import Cutting, IngestSummary, about_documents, cuts_of, folded_windows
from tests.unit.core.work.test_progress import Memory
from tests.unit.cuts import assert_keeps_all, words
from tests.unit.hits import chunks_of
from tests.unit.retrieval.chunking import test_chunking as pages

# Chunks longer than the embedder reads: windows in the index, whole chunks in the hits.

# Chunks longer than the embedder reads: windows in the index, whole chunks in the hits.

CASSETTES = Path(__file__).parents[3] / "cassettes"
PAGE = "# Page\n\n" + "".join(f"## Part {name}\n\n{words(60, name * 4)}\n\n" for name in "abcdef")


@pytest.fixture
def short_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedder that reads 32 tokens."""
    monkeypatch.setattr(MockEmbedder, "max_tokens", 32)


def retrieval(folder: Path, text: str = PAGE, **spec: Any) -> Retrieval:
    (folder / "kb").mkdir(exist_ok=True)
    (folder / "kb/page.md").write_text(text)
    settings = Settings(rootdir=str(folder), kb_dir="kb", profile="mock", embed_model="mock:hashed-words", mode="live")
    own = {"chunker": "headings", "chunk_size": 120, "overlap": 0, "least": 50, "windows": True, **spec}
    return RunParts(settings).retrieval(replace(spec_of(settings), **own))


# What is indexed


def test_a_long_chunk_is_read_in_windows_that_overlap_and_a_short_one_whole(short_reader: None, tmp_path: Path) -> None:
    document = "short page\n\n## Long\n\n" + " ".join(["Three words more."] * 20)
    made = retrieval(tmp_path, document)
    short, long = made.chunks
    own, *windows = made.indexed
    assert own is short
    assert [window.chunk_id for window in windows] == [f"{long.chunk_id}~{n}" for n in range(len(windows))]
    assert len(windows) > 3
    assert {window.metadata["heading"] for window in windows} == {"Long"}
    assert all(document[window.start : window.end] == window.text for window in windows)
    assert max(made.embedder.tokenizer().count([window.text for window in windows])) <= 32
    assert all(other.start < one.end for one, other in pairwise(windows))
    assert (windows[0].start, windows[-1].end) == (long.start, long.end)


def test_a_repeated_header_is_no_part_of_the_page_at_that_place(short_reader: None, tmp_path: Path) -> None:
    rows = "".join(f"| row {number} | some words |\n" for number in range(40))
    text = f"| name | what it says |\n|---|---|\n{rows}"
    made = retrieval(tmp_path, text)
    assert any(chunk.repeated_header for chunk in made.chunks)
    for window in made.indexed:
        assert window.text == window.repeated_header + text[window.start : window.end]


@hypothesis_settings(max_examples=60, deadline=None)
@given(pages.PAGE | pages.NOISE, st.integers(8, 60))
def test_windows_keep_all_text_and_are_never_over(text: str, most: int) -> None:
    windows = chunk_window(Document("c", text, ""), pages.Words(), ChunkingSettings(most, most // 4))
    assert [window.chunk_id for window in windows] == [f"c#{number}" for number in range(max(1, len(windows)))]
    assert_keeps_all(text, windows, 0)
    if len(windows) > 1:
        assert max(pages.Words().count([window.text for window in windows])) <= most


def test_windows_end_with_a_sentence_or_a_line() -> None:
    text = f"{words(60)}\n" + "\n".join("row of five small words" for _ in range(12))
    windows = chunk_window(Document("c", text, ""), pages.Words(), ChunkingSettings(32, 8))
    assert all(re.search(r"(\.|words)$", window.text) for window in windows)


def test_no_window_is_a_lone_sentence() -> None:
    text = f"{words(90)} {words(28)}"
    full = chunk_window(Document("c", text, ""), pages.Words(), ChunkingSettings(102, 0))
    even = chunk_window(Document("c", text, ""), pages.Words(), ChunkingSettings(102, 0, 25))
    assert [pages.Words().count([window.text])[0] for window in full] == [102, 20]
    assert min(pages.Words().count([window.text])[0] for window in even) >= 25


# What is found


def test_a_chunk_scores_as_its_best_window_and_is_returned_whole(short_reader: None, tmp_path: Path) -> None:
    made = retrieval(tmp_path)
    best, *others = made.dense.retrieve("Part c cccc", 3)
    assert best.chunk in made.chunks
    assert "cccc" in best.chunk.text
    vectors = made.embedder.embed_documents(
        [w.text for w in made.indexed if w.chunk_id.startswith(best.chunk.chunk_id)]
    )
    assert best.score == pytest.approx(
        float((vectors @ made.embedder.embed_queries(["Part c cccc"])[0]).max()), abs=1e-5
    )
    assert [hit.rank for hit in (best, *others)] == [1, 2, 3]


def test_k_chunks_come_back_although_one_has_the_most_windows_on_top(short_reader: None, tmp_path: Path) -> None:
    text = f"## Long\n\n{words(110)}\n\n" + "".join(
        f"## Other {name}\n\n{words(55, name * 4)} word\n\n" for name in "abcd"
    )
    made = retrieval(tmp_path, text)
    found = made.dense.retrieve("word", 4)
    assert len({hit.chunk.chunk_id for hit in found}) == 4
    assert len(made.dense.retrieve("word", 50)) == len(made.chunks)


def _windows(owners: Sequence[int]) -> tuple[list[Hit], dict[str, Chunk]]:
    chunks = [Chunk(f"c{number}", "d", f"chunk {number}") for number in range(6)]
    hits = [Hit(Chunk(f"c{owner}~{n}", "d", ""), 1 - n / 100, n + 1) for n, owner in enumerate(owners)]
    return hits, {hit.chunk.chunk_id: chunks[owner] for hit, owner in zip(hits, owners, strict=True)}


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 7))
def test_folding_gives_what_a_look_at_all_windows_gives(owners: list[int], k: int) -> None:
    hits, chunk_of = _windows(owners)
    found = folded_windows(lambda depth: hits[:depth], chunk_of, k)
    firsts = list(dict.fromkeys(owners))[:k]
    assert [hit.chunk.chunk_id for hit in found] == [f"c{owner}" for owner in firsts]
    assert [hit.score for hit in found] == [hits[owners.index(owner)].score for owner in firsts]
    assert [hit.rank for hit in found] == list(range(1, len(firsts) + 1))
    assert all(hit.scores == {"dense": hit.score} for hit in found)


def test_a_deep_search_is_made_only_where_it_is_needed() -> None:
    hits, chunk_of = _windows([0] * 9 + [1, 2])
    asked: list[int] = []

    def search(depth: int) -> list[Hit]:
        asked.append(depth)
        return hits[:depth]

    assert len(folded_windows(search, chunk_of, 2)) == 2
    assert asked == [4, 8, 16]


def test_words_find_whole_chunks(short_reader: None, tmp_path: Path) -> None:
    made = retrieval(tmp_path)
    assert made.words.retrieve("cccc", 1)[0].chunk in made.chunks


def test_the_check_of_the_index_reads_windows(short_reader: None, tmp_path: Path) -> None:
    made = retrieval(tmp_path, f"## Long\n\n{' '.join(f'word{number}.' for number in range(100))}")
    check_compatible(made, "word1")


# What stays as it was


def test_without_windows_the_index_holds_the_chunks_and_its_digest_is_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MockEmbedder, "revision", "1")
    plain = retrieval(tmp_path, chunker="sections", least=0, windows=False)
    assert plain.indexed is plain.chunks
    assert set(plain.identity()) == {"cut_by", "embedded_by"}
    plain.settings = replace(plain.settings, near_duplicates=0.9)
    assert set(plain.identity()) == {"cut_by", "embedded_by", "alike_by"}
    # Of a plain page under the mock embedder, made before there were windows.
    assert plain.content_digest == "688f748aba27338b4c04114e68a54eab"


def test_windows_that_hold_the_chunks_whole_are_the_same_index(tmp_path: Path) -> None:
    with_windows, without = retrieval(tmp_path), retrieval(tmp_path, windows=False)
    assert with_windows.content_digest == without.content_digest
    assert with_windows.identity() != without.identity()


def test_windows_make_another_index(short_reader: None, tmp_path: Path) -> None:
    made = retrieval(tmp_path)
    chunks, digest = made.chunks, made.content_digest
    plain = retrieval(tmp_path, windows=False)
    vars(plain)["chunks"] = chunks
    assert plain.content_digest != digest


def test_only_windows_let_a_chunk_be_longer_than_the_embedder_reads(short_reader: None, tmp_path: Path) -> None:
    def longest(made: Retrieval) -> int:
        return max(made.embedder.tokenizer().count([chunk.text for chunk in made.chunks]))

    assert longest(retrieval(tmp_path)) > 32
    assert longest(retrieval(tmp_path, windows=False)) <= 32


@pytest.mark.parametrize(("least", "part"), [(0, "headings-120-0-"), (50, "headings-120-0-50-")])
def test_least_stands_in_the_name_of_the_cuts_only_where_it_is_set(least: int, part: str, tmp_path: Path) -> None:
    made = retrieval(tmp_path, least=least)
    opened: list[str] = []
    there = made.stores.open

    class Stores:
        def open(self, kind: str, model: str, revision: str, *, may_keep: bool) -> Any:
            opened.append(revision)
            return there(kind, model, revision, may_keep=may_keep)

    made.stores = Stores()  # type: ignore[assignment]
    assert made.chunks
    assert opened == [f"{part}{REVISIONS['chunkers/headings']}"]
    assert made.identity().get("least", 0) == least


def test_a_replay_needs_no_tokenizer_for_windows(
    short_reader: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = retrieval(tmp_path)
    made.prepare([])

    def none(embedder: MockEmbedder) -> Any:
        raise AssertionError("the tokenizer was asked for")

    monkeypatch.setattr(MockEmbedder, "tokenizer", none)
    again = retrieval(tmp_path)
    assert [window.chunk_id for window in again.indexed] == [window.chunk_id for window in made.indexed]
    assert np.isclose(again.dense.retrieve("Part c", 1)[0].score, made.dense.retrieve("Part c", 1)[0].score)


def test_the_defaults_of_a_spec_are_those_of_before() -> None:
    assert IndexSpec("sections", 512, 128, "m", "qdrant") == IndexSpec("sections", 512, 128, "m", "qdrant", 0, False)


def test_the_shipped_cuts_are_of_this_very_chunker() -> None:
    name = f"*@sections-512-128-{REVISIONS['chunkers/sections']}"
    assert len(list((CASSETTES / "embedded/chunks").glob(name))) == 1, "replay would need the model's tokenizer"


# A local model's batches are reported one by one, and are the batches that it would make anyway.

LOCAL = Settings()


class Model:
    """A model whose vectors depend on the whole batch, as those of a padded batch do in their last digits."""

    model, revision, dimension, max_tokens = "m", "1", 2, 512

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def tokenizer(self) -> Model:
        return self

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Any:
        found = np.empty((len(texts), 2), np.float32)
        for positions in token_batches(self.count(texts)):
            self.batches.append([texts[each] for each in positions])
            found[positions] = [[len(texts[each]), len(positions)] for each in positions]
        return found

    def embed_with_tokens(self, texts: Sequence[str], role: str) -> Any:
        return self.embed_documents(texts), [np.full((1, 2), len(text), np.float16) for text in texts]


TEXTS = [f"{'x' * (1 + 37 * n % 500)}{n}" for n in range(60)]


@pytest.mark.parametrize("tokens", [None, Memory])
def test_batches_are_the_same_and_each_is_reported(monkeypatch: pytest.MonkeyPatch, tokens: Any) -> None:
    monkeypatch.setattr(array_store, "_CHECKPOINT", 25)
    usual, model, heard = Model(), Model(), list[int]()
    expected = CachedEmbedder(usual, Memory(), tokens and tokens()).embed_documents(TEXTS)
    embedder = CachedEmbedder(model, Memory(), tokens and tokens())
    with listening(lambda what, done, total, unit: heard.append(done)), reported_batches(embedder, LOCAL):
        assert np.array_equal(embedder.embed_documents(TEXTS), expected)
    assert model.batches == usual.batches
    sums = np.cumsum([len(batch) for batch in model.batches]).tolist()
    assert sorted(set(heard)) == [0, *sums]
    assert heard == sorted(heard)
    assert len(sums) > 5
    if tokens:
        assert [int(each[0, 0]) for each in embedder.token_vectors(TEXTS, "document")] == [len(text) for text in TEXTS]


def test_a_service_and_other_workers_have_steps_of_their_own() -> None:
    embedder = CachedEmbedder(Model(), Memory())
    with reported_batches(embedder, Settings(embed_model="m", embed_base_url="http://127.0.0.1:1")):
        assert embedder.elsewhere is None
    other = embedder.elsewhere = embedder._here
    with reported_batches(embedder, LOCAL):
        assert embedder.elsewhere == other
    assert embedder.elsewhere == other
    embedder.elsewhere = None
    with reported_batches(embedder, LOCAL):
        assert embedder.elsewhere is not None
    assert embedder.elsewhere is None


# What a retrieval gives to the parts that are made of it.


class Reranker:
    model, revision = "mine", "1"

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def rerank(self, query: str, hits: Any) -> Any:
        return hits


@pytest.mark.parametrize("named", ["", "mine:x"])
def test_a_reranker_gets_all_parts_whether_the_options_name_it_or_an_experiment_does(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Reranker] = []

    def make(parts: Any) -> Reranker:
        made.append(Reranker(parts))
        return made[-1]

    monkeypatch.setattr(module, "resolve", lambda group, name: make if group == "rerankers" else resolve(group, name))
    settings = Settings(rootdir=str(tmp_path), profile="mock", embed_model="mock/hash", rerank_model="mine:y")
    retrieval = RunParts(settings).retrieval()
    vars(retrieval)["chunks"] = chunks_of(["text"])
    assert retrieval.reranker(named) is retrieval.reranker(named)
    (parts,) = (each.parts for each in made)
    assert parts.settings.rerank_model == (named or "mine:y")
    for name in ("stores", "embedder", "token_embedder", "lexical", "content_digest"):
        assert getattr(parts, name) is getattr(retrieval, name)


def test_what_a_run_records_is_whole_though_an_earlier_run_has_left_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("# A\n\nA lamp.\n")

    def dense(mode: Mode) -> Retriever:
        settings = Settings(rootdir=str(tmp_path), kb_dir="kb", profile="mock", embed_model="mock/hash", mode=mode)
        parts = RunParts(settings)
        retrieval = parts.retrieval()
        retrieval.prepare(["lamp"])
        parts.flush()
        return retrieval.dense

    dense("auto")
    assert (tmp_path / ".rag_cache" / "indexes").is_dir()
    dense("record")
    shutil.rmtree(tmp_path / ".rag_cache")
    # As if it asked a model, so that a vector is recorded or is not there.
    monkeypatch.setattr(MockEmbedder, "needs_no_model", False)
    assert [hit.chunk.doc_id for hit in dense("replay").retrieve("lamp", 1)] == ["a.md"]


# The summary of ingested documents.


def test_what_is_said_of_some_documents_and_of_others_is_said_of_all() -> None:
    documents = [
        Document("a", "some text that is cut", "a", {"hidden_characters": 3}),
        Document("b", "", "b"),
        Document("c", "more of it", "c", {"hidden_characters": 9, "unread_pages": [2, 4]}),
        Document("d", " ", "d", {"hidden_characters": 9}),
    ]
    chunks = [Chunk("a#0", "a", "some", 0, 4), Chunk("c#0", "c", "more of it", 0, 10)]
    whole = about_documents(documents, chunks)
    parts = [about_documents([each], [chunk for chunk in chunks if chunk.doc_id == each.doc_id]) for each in documents]
    assert sum(parts, IngestSummary()) == whole
    assert list(whole.lines()) == [
        "empty     2: b, d",
        "hidden    21 characters of text that nobody would see were left out of 3 files, most of c",
        "damaged   c: pages that cannot be read: 2, 4",
    ]
    assert f"{whole.coverage:.4f}" == f"{1 - 13 / 32:.4f}"


# A long page is cut in a process with limits: the same chunks, or a reason that names both numbers.

LENGTHS = ChunkingSettings(64, 16)
PROSE = "## Lamps ü\n\nA lamp comes back within 45 days. It costs nothing.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n"
LONG, VERY_LONG = (Document("lamps.md", PROSE * times, "Lamps", {"topic": "lamps"}) for times in (40, 400))
"""Both are cut in another process; ``sliding`` counts more texts of the second than are counted at once there."""


@pytest.fixture
def long_from_2000(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.usefixtures("long_from_2000")
@pytest.mark.parametrize("chunker", ["sections", "headings", "fixed", "sliding", "summaries", "plain", "whole"])
def test_another_process_cuts_as_this_one(cuts: Cut, chunker: str) -> None:
    page = VERY_LONG if chunker == "sliding" else LONG
    here = cuts_of(page, resolve("chunkers", chunker)(page, WordTokenizer(), LENGTHS))
    assert len(page.text) > cutting.HERE
    assert cuts(page, chunker) == here


@pytest.mark.usefixtures("long_from_2000")
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


@pytest.mark.usefixtures("long_from_2000")
def test_what_is_not_ours_works_here(cuts: Cut) -> None:
    assert cuts(LONG, tokenizer=Own()) == cuts(LONG)


@pytest.mark.usefixtures("long_from_2000")
def test_too_many_chunks_are_refused_with_both_numbers(cuts: Cut, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableError, match=r"into 10,001 chunks, and a document may have 10,000\. Split it"):
        cuts(Document("d", "# a\n\nb\n\n" * 10_001, ""))
    monkeypatch.setattr(cutting, "CHUNKS", 4_999)  # of this process alone
    with pytest.raises(UnreadableError, match=r"into 5,000 chunks, and a document may have 4,999"):
        cuts(Document("d", "# a\n\nb\n\n" * 5_000, ""), tokenizer=Own())


@pytest.mark.usefixtures("long_from_2000")
def test_headings_that_every_chunk_repeats_are_refused_with_both_numbers(cuts: Cut) -> None:
    page = "# " + "t" * 100_000 + "\n\n" + "## a\n\nb\n\n" * 400
    with pytest.raises(UnreadableError, match=r"its 400 chunks repeat or change 38\.\d MB of text, and 8 MB"):
        cuts(Document("d", page, ""))


@pytest.mark.usefixtures("long_from_2000")
def test_a_page_that_takes_too_long_is_refused() -> None:
    made = Cutting(resolve("chunkers", "sections"), WordTokenizer(), LENGTHS, cuts_of)
    made._child._seconds = 0.2
    try:
        with pytest.raises(PassingError, match=r"took more than 0\.2 s"):
            made.cuts(Document("d", "# a\n" * 500_000, ""))
    finally:
        made.close()


@pytest.mark.usefixtures("long_from_2000")
def test_a_character_that_is_too_long_is_said_as_here() -> None:
    names = [(part.__module__, part.__name__) for part in (resolve("chunkers", "sections"), cuts_of)]
    asked = pickle.dumps((names, pickle.dumps(_Special()), ChunkingSettings(1, 0), LONG))
    with pytest.raises(ChunkTooLongError, match="so no text fits"):
        cutting._answered(cutting.cut_there(asked))


class _Special(WordTokenizer):
    """Adds two tokens to every text, as tokenizers do."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return [count + 2 for count in super().count(texts)]


@pytest.mark.usefixtures("long_from_2000")
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
