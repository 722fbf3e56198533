"""Near-duplicates: estimated as datasketch does, told exactly, and never one of two versions."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from rag_harness.core.settings import Settings
from rag_harness.core.text.shingles import Hashing, candidates, resemblance, signature
from rag_harness.core.types import Chunk
from rag_harness.models.array_store import StoreRoom
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval import ingest as module
from rag_harness.retrieval.ingest import duplicates

TEXT = "A lamp that is unused may be sent back within some weeks of its delivery, if it is still in its own box."


def chunk(doc: str, text: str, n: int = 0) -> Chunk:
    return Chunk(f"{doc}#chunk_{n}", doc, text)


@pytest.fixture
def stores(tmp_path: Path) -> StoreRoom:
    return StoreRoom(Settings(rootdir=str(tmp_path), profile="mock"))


def found(stores: StoreRoom, *chunks: Chunk, least: float = 0.9) -> list[tuple[str, str]]:
    return [(each.chunk.chunk_id, each.like.chunk_id) for each in duplicates(chunks, least, stores)]


def test_the_same_words_in_another_document(stores: StoreRoom) -> None:
    chunks = [chunk("a", TEXT), chunk("b", TEXT.upper() + " "), chunk("c", TEXT[:50] + " and so on, with more words")]
    assert found(stores, *chunks, chunk("d", f"**{TEXT}**")) == [
        ("b#chunk_0", "a#chunk_0"),
        ("d#chunk_0", "a#chunk_0"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        TEXT.replace("some", "45"),
        TEXT.replace("may be", "may not be"),
        TEXT.replace("some weeks", "3 weeks").replace("own", "own v1.2"),
    ],
)
def test_another_figure_or_a_negation_is_another_statement(stores: StoreRoom, other: str) -> None:
    assert found(stores, chunk("a", TEXT), chunk("b", other), least=0.5) == []


def test_what_repeats_in_one_document_is_the_chunkers(stores: StoreRoom) -> None:
    assert found(stores, chunk("a", TEXT), chunk("a", TEXT, 1)) == []


def test_phrases_are_shared_by_right(stores: StoreRoom) -> None:
    assert found(stores, chunk("a", "See also the page on returns."), chunk("b", "See also the page on returns.")) == []


def test_below_the_share_it_stays(stores: StoreRoom) -> None:
    other = TEXT.replace("own box", "first box")
    share = resemblance(Hashing().runs(TEXT), Hashing().runs(other))
    assert found(stores, chunk("a", TEXT), chunk("b", other), least=share - 0.01)
    assert not found(stores, chunk("a", TEXT), chunk("b", other), least=share + 0.01)


def test_what_was_found_is_kept(stores: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = chunk("a", TEXT), chunk("b", TEXT)
    first = found(stores, *chunks)
    monkeypatch.setattr(module, "_pairs", lambda *_: pytest.fail("looked for again"))
    assert found(stores, *chunks) == first == [("b#chunk_0", "a#chunk_0")]


def test_they_are_left_out_of_chunks_and_index_where_that_is_asked_for(tmp_path: Path) -> None:
    for least, left in ((0.0, 2), (0.9, 1)):
        (tmp_path / "kb").mkdir(exist_ok=True)
        for name in ("a", "b"):
            (tmp_path / "kb" / f"{name}.md").write_text(TEXT)
        settings = Settings(
            rootdir=str(tmp_path), kb_dir="kb", profile="mock", embed_model="mock/hash", near_duplicates=least
        )
        retrieval = RunParts(settings).retrieval()
        assert [len(retrieval.cut), len(retrieval.chunks), len(retrieval.index)] == [2, left, left]


def test_estimates_are_as_good_as_datasketchs() -> None:
    datasketch = pytest.importorskip("datasketch")
    chance, hashing = random.Random(5), Hashing()
    ours, theirs = [], []
    for share in np.linspace(0, 0.9, 60):
        words = [f"w{chance.randrange(10_000)}" for _ in range(300)]
        other = [f"x{at}" if chance.random() < share / 3 else word for at, word in enumerate(words)]
        one, two = hashing.runs(" ".join(words)), hashing.runs(" ".join(other))
        exact = resemblance(one, two)
        ours.append(float((signature(one) == signature(two)).mean()) - exact)
        sketches = [datasketch.MinHash(num_perm=128) for _ in range(2)]
        for sketch, runs in zip(sketches, (one, two), strict=True):
            sketch.update_batch([run.tobytes() for run in runs])
        theirs.append(sketches[0].jaccard(sketches[1]) - exact)
    # The standard error of 128 draws is at most 0.044.
    assert abs(np.mean(ours)) < 0.02
    assert np.std(ours) < 1.4 * np.std(theirs)


def test_candidates_are_those_that_share_a_band_and_come_first() -> None:
    rows = np.arange(5 * 128, dtype=np.uint32).reshape(5, 128)
    rows[2, 8:16] = rows[4, 8:16] = rows[1, 8:16]
    rows[3, 7:15] = rows[0, 7:15]
    assert candidates(rows) == {2: [1], 4: [1, 2]}
