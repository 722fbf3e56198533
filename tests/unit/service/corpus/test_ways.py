"""Experiments that search in several ways: each document is cut and rewritten for each way, once."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.core.errors import ModelCallError, SettingsError
from rag_harness.core.protocols import Experiment, Retriever
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Answer, Chunk, IndexSpec, PipelineOutput, Query
from rag_harness.pipelines import experiments
from rag_harness.pipelines.parts import RunParts
from rag_harness.service.corpus.tenant_collections import Corpora
from rag_harness.service.database import Database
from rag_harness.service.problems import ProblemError
from tests.unit.service.corpus.corpora import DEFAULT, PAGES, found, names, opened, write_pages

TENTS = "# Tents\n\nA tent is for two.\n\n## Poles\n\nPoles are of steel.\n\n## Pegs\n\nPegs are of wood.\n"
QUESTION = "Which pegs has a tent?"


@dataclass
class Titles:
    """Writes a chunk's last heading in place of its text, and keeps what it was asked for."""

    asked: list[str] = field(default_factory=list)
    fails_at: str = ""
    before: Callable[[], None] = lambda: None
    identity: Any = "titles"

    def rewritten(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        self.before()
        for chunk in chunks:
            if self.fails_at and self.fails_at in chunk.text:
                raise ModelCallError("the writer is out")
            self.asked.append(chunk.section[-1])
        return [replace(chunk, text=chunk.section[-1], metadata={**chunk.metadata, "titled": 1}) for chunk in chunks]


@dataclass
class Both:
    """Answers with what it finds, in both ways."""

    of: Retriever
    other: Retriever

    async def answer(self, query: Query) -> PipelineOutput:
        hits = [*self.other.retrieve(query.text, 20), *self.of.retrieve(query.text, 20)]
        return PipelineOutput(Answer("It is said."), retrieved=tuple(hits), context=tuple(hits))


def sections(parts: Any) -> IndexSpec:
    return IndexSpec("headings", 200, 0, parts.settings.embed_model, parts.settings.index, windows=True)


@pytest.fixture
def titles(monkeypatch: pytest.MonkeyPatch) -> Titles:
    """Register the experiment ``mine``: sections, found by their headings and by themselves."""
    writer = Titles()

    def build(parts: RunParts) -> Experiment:
        of = parts.retrieval(sections(parts))
        other = parts.rewritten(of, writer)
        return Experiment("mine", Both(of.dense, other.dense), chunks=lambda: other.chunks)

    register(monkeypatch, build)
    return writer


def register(monkeypatch: pytest.MonkeyPatch, build: Callable[[RunParts], Experiment]) -> None:
    monkeypatch.setattr(experiments, "_registered", lambda: {"mine": SimpleNamespace(load=lambda: build)})


async def texts_found(corpora: Corpora) -> set[tuple[str, str]]:
    output = await corpora.get(DEFAULT).serving.experiment.pipeline.answer(Query("q", QUESTION))
    return {(hit.chunk.section[-1], hit.chunk.text) for hit in output.context}


def kept_texts(root: Path) -> list[str]:
    with sqlite3.connect(root / "state" / "service.sqlite3") as connection:
        return [each[0] for each in connection.execute("SELECT text FROM kept_texts ORDER BY text")]


def test_texts_are_made_once_and_a_changed_section_makes_only_its_own(tmp_path: Path, titles: Titles) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb, "mine") as corpora:
            assert sorted(titles.asked) == ["Delivery", "Returns", "Warranty"]
            titles.asked.clear()
            await corpora.get(DEFAULT).ingest("tents.md", TENTS.encode())
            assert sorted(titles.asked) == ["Pegs", "Poles", "Tents"]
            assert {("Pegs", "Pegs"), ("Pegs", "## Pegs\n\nPegs are of wood.")} <= await texts_found(corpora)
            titles.asked.clear()
            done = await corpora.get(DEFAULT).ingest("tents.md", TENTS.replace("wood", "iron").encode())
            assert titles.asked == ["Pegs"]
            assert {("Pegs", "Pegs"), ("Pegs", "## Pegs\n\nPegs are of iron.")} <= await texts_found(corpora)
            titles.asked.clear()
        async with opened(tmp_path, kb, "mine") as corpora:
            assert {("Pegs", "Pegs"), ("Pegs", "## Pegs\n\nPegs are of iron.")} <= await texts_found(corpora)
            rewritten = corpora.get(DEFAULT).serving.experiment.chunks
            assert rewritten is not None
            assert {chunk.metadata["titled"] for chunk in rewritten()} == {1}
            await corpora.get(DEFAULT).delete(done.doc_id)
            assert "Pegs" not in dict(await texts_found(corpora))
        assert titles.asked == []
        assert kept_texts(tmp_path) == ['"Delivery"', '"Returns"', '"Warranty"']

    asyncio.run(scenario())


def test_a_text_that_cannot_be_made_is_a_clear_error_and_what_was_made_is_kept(
    tmp_path: Path, titles: Titles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_harness.service.corpus.contents._TOGETHER", 1)

    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb, "mine") as corpora:
            collection = corpora.get(DEFAULT)
            before, points = await texts_found(corpora), collection._lasting.points.ids()
            titles.asked.clear()
            titles.fails_at = "Pegs"
            with pytest.raises(ProblemError) as refused:
                await collection.ingest("tents.md", TENTS.encode())
            assert (refused.value.status, refused.value.code) == (503, "texts_not_made")
            assert await texts_found(corpora) == before
            assert collection._lasting.points.ids() == points
            assert names(collection) == sorted(PAGES)
            titles.fails_at = ""
            await collection.ingest("tents.md", TENTS.encode())
            assert titles.asked == ["Tents", "Poles", "Pegs"]
            failed = next(each for each in collection.documents() if each.status == "failed")
            await collection.delete(failed.doc_id)
            assert '"Pegs"' in kept_texts(tmp_path)

    asyncio.run(scenario())


def test_a_start_that_fails_goes_on_with_what_was_made(
    tmp_path: Path, titles: Titles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_harness.service.corpus.contents._TOGETHER", 1)

    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        titles.fails_at = "zip"
        with pytest.raises(Exception, match="could not be made: the writer is out"):
            async with opened(tmp_path, kb, "mine"):
                pass
        titles.fails_at = ""
        async with opened(tmp_path, kb, "mine") as corpora:
            assert names(corpora.get(DEFAULT)) == sorted(PAGES)
        assert sorted(titles.asked) == ["Delivery", "Returns", "Warranty"]

    asyncio.run(scenario())


def test_what_was_made_of_a_document_that_failed_goes_with_it(tmp_path: Path, titles: Titles) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, experiment="mine") as corpora:
            collection = corpora.get(DEFAULT)
            broken = pytest.MonkeyPatch()
            broken.setattr(collection._lasting.points, "add", lambda *_: 1 / 0)
            with pytest.raises(ProblemError):
                await collection.ingest("tents.md", TENTS.encode())
            broken.undo()
            assert kept_texts(tmp_path) == ['"Pegs"', '"Poles"', '"Tents"']
            [failed] = collection.documents()
            await collection.delete(failed.doc_id)
            assert kept_texts(tmp_path) == []

    asyncio.run(scenario())


def test_texts_of_documents_that_never_came_are_forgotten_after_a_day(tmp_path: Path, titles: Titles) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, experiment="mine") as corpora:
            await corpora.get(DEFAULT).ingest("tents.md", TENTS.encode())
        with sqlite3.connect(tmp_path / "state" / "service.sqlite3") as connection:
            connection.execute(
                "INSERT INTO kept_texts SELECT collection_id, x'01', 'gone.md', '2020-01-01T00:00:00Z', "
                "'\"old\"', '{}' FROM kept_texts LIMIT 1"
            )
            connection.execute(
                "INSERT INTO kept_texts SELECT collection_id, x'02', 'new.md', created, '\"new\"', '{}' "
                "FROM kept_texts WHERE name = 'tents.md' LIMIT 1"
            )
        async with opened(tmp_path, experiment="mine"):
            pass
        assert kept_texts(tmp_path) == ['"Pegs"', '"Poles"', '"Tents"', '"new"']

    asyncio.run(scenario())


def test_another_writer_makes_all_texts_anew(tmp_path: Path, titles: Titles) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb, "mine"):
            titles.asked.clear()
        titles.identity = ["titles", 2]
        async with opened(tmp_path, kb, "mine"):
            assert sorted(titles.asked) == ["Delivery", "Returns", "Warranty"]

    asyncio.run(scenario())


def test_a_state_is_made_anew_for_an_experiment_that_searches_in_more_ways(tmp_path: Path) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb, "t1") as corpora:
            points = len(corpora.get(DEFAULT)._lasting.points.ids())
        async with opened(tmp_path, kb, "t5") as corpora:
            assert len(corpora.get(DEFAULT)._lasting.points.ids()) == 2 * points
            assert (await found(corpora.get(DEFAULT), "How long is a zip mended?"))[0] == "warranty.md"
        async with opened(tmp_path, kb, "t1") as corpora:
            assert len(corpora.get(DEFAULT)._lasting.points.ids()) == points

    asyncio.run(scenario())


LONG = "# Stoves\n\n" + " ".join(f"Stove number {n} burns gas of kind {n * 7}." for n in range(20)) + "\n"


def test_what_is_left_out_is_found_in_no_way(tmp_path: Path, titles: Titles) -> None:
    """Near-duplicates are those of the chunks: their titles alone would not tell."""

    async def scenario() -> None:
        async with opened(tmp_path, experiment="mine", near_duplicates=0.9) as corpora:
            collection = corpora.get(DEFAULT)
            for name in ("a.md", "b.md"):
                await collection.ingest(name, LONG.encode())
            assert await found(collection, "stove") == ["a.md", "a.md"]

    asyncio.run(scenario())


@pytest.mark.parametrize("writer", ["", "mock/placeholder"])
def test_it_finds_what_a_run_finds(tmp_path: Path, writer: str) -> None:
    """Hold hits and scores to a run's over a folder with the same documents, near-duplicates left out."""
    kb = write_pages(tmp_path / "kb")
    late = {"stoves.md": LONG, "stoves copy.md": f"{LONG}Mend a zip.\n"}
    options: dict[str, Any] = {"near_duplicates": 0.9, "writer_model": writer}

    def hits_of(experiment: Experiment) -> list[tuple[str, float, float]]:
        assert experiment.retriever is not None
        hits = experiment.retriever.retrieve("zip of a stove", 10)
        return [(hit.chunk.chunk_id, round(hit.score, 5), round(hit.scores["summary"], 5)) for hit in hits]

    async def scenario() -> list[tuple[str, float, float]]:
        async with opened(tmp_path, kb, "t5", **options) as corpora:
            for name, text in late.items():
                await corpora.get(DEFAULT).ingest(name, text.encode())
            return hits_of(corpora.get(DEFAULT).serving.experiment)

    served = asyncio.run(scenario())
    write_pages(kb, late)
    parts = RunParts(load_settings({"profile": "mock", **options}, {"kb_dir": "kb"}, tmp_path))
    assert len(served) == len(PAGES) + 1
    assert served == hits_of(experiments.experiment("t5", parts))


def test_what_a_service_cannot_index_is_refused_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(parts: RunParts) -> Experiment:
        first = parts.retrieval(sections(parts))
        return Experiment("mine", Both(first.dense, parts.retrieval(replace(first.spec, embedder="other")).dense))

    register(monkeypatch, build)

    async def scenario() -> None:
        async with opened(tmp_path, experiment="mine"):
            pass

    with pytest.raises(SettingsError, match="with two models"):
        asyncio.run(scenario())


def test_another_way_after_the_start_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter(range(100, 200))

    def build(parts: RunParts) -> Experiment:
        own = parts.retrieval(replace(sections(parts), chunk_size=next(sizes))).dense
        return Experiment("mine", Both(own, own))

    register(monkeypatch, build)

    async def scenario() -> None:
        async with opened(tmp_path, experiment="mine"):
            pass

    with pytest.raises(SettingsError, match="for which it did not ask when the server started"):
        asyncio.run(scenario())


@pytest.mark.long
def test_beside_1000_documents_one_more_makes_only_its_own_and_takes_little(tmp_path: Path, titles: Titles) -> None:
    """It took 0.25 s and 64 MiB on two busy cores; the bounds are above that."""
    pages = {f"{n}.md": f"# Page {n}\n\n" + f"Words of page {n}. " * 20 + "\n" for n in range(1_000)}

    async def scenario() -> None:
        async with opened(tmp_path, write_pages(tmp_path / "kb", pages), "mine") as corpora:
            assert len(titles.asked) == len(pages)
            titles.asked.clear()
            tracemalloc.start()
            try:
                began = perf_counter()
                await corpora.get(DEFAULT).ingest("tents.md", TENTS.encode())
                took, (_, peak) = perf_counter() - began, tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert titles.asked == ["Tents", "Poles", "Pegs"]
            assert took < 10
            assert peak < 200 << 20

    asyncio.run(scenario())


def test_a_server_that_ends_does_not_wait_for_a_writer(tmp_path: Path, titles: Titles) -> None:
    """A model that never answers is given up, as a document is that is being embedded."""
    # The model is asked on the loop of the answers: an asyncio.Event set there would not wake the loop of the test.
    began = threading.Event()

    async def scenario() -> None:
        async with opened(tmp_path, experiment="mine") as corpora:
            loop = asyncio.get_running_loop()

            async def forever() -> None:
                began.set()
                await asyncio.sleep(600)

            titles.before = lambda: corpora._models.parts.run(forever())
            coming = asyncio.ensure_future(corpora.get(DEFAULT).ingest("tents.md", TENTS.encode()))
            assert await asyncio.to_thread(began.wait, 10)
            start = loop.time()
            assert await corpora.close()
            assert loop.time() - start < 5
            with pytest.raises(ProblemError, match="being stopped"):
                await coming

    asyncio.run(scenario())


def test_a_state_of_the_form_before_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "service.sqlite3"
    with sqlite3.connect(file) as connection:
        script = files("rag_harness.service") / "migrations" / "0001_service.sql"
        connection.executescript(script.read_text(encoding="utf-8") + "PRAGMA user_version = 1;")
        connection.execute("INSERT INTO collections (name, created) VALUES ('default', '')")
        connection.execute(
            "INSERT INTO documents (public_id, collection_id, name, status, created) "
            "VALUES ('a', 1, 'a.md', 'ready', '')"
        )
    database = Database(file)
    try:
        assert database.read(lambda c: c.execute("SELECT further FROM documents").fetchone()["further"]) == "[]"
    finally:
        database.close()
