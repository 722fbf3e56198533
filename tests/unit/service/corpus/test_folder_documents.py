from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Query
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts
from tests.unit.service.corpus.corpora import DEFAULT, PAGES, check_finds, found, names, opened, write_pages

NEW = "# Warranty\n\nA zip is mended for twelve years.\n"


def test_a_later_start_takes_in_what_changed_and_nothing_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb) as corpora:
            before = {each.name: each.doc_id for each in corpora.get(DEFAULT).documents()}
        (kb / "warranty.md").write_text(NEW, encoding="utf-8")
        (kb / "delivery.md").unlink()
        write_pages(kb, {"new.txt": "A new page of text.\n"})
        async with opened(tmp_path, kb) as corpora:
            collection = corpora.get(DEFAULT)
            after = {each.name: each.doc_id for each in collection.documents()}
            assert sorted(after) == ["new.txt", "returns/rules.md", "warranty.md"]
            assert after["returns/rules.md"] == before["returns/rules.md"]
            assert after["warranty.md"] != before["warranty.md"]
            assert collection.serving.document("warranty.md").text == NEW

    asyncio.run(scenario())


def test_what_was_deleted_or_replaced_over_http_stays_so_until_its_file_changes(tmp_path: Path) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb) as corpora:
            collection = corpora.get(DEFAULT)
            doc_ids = {each.name: each.doc_id for each in collection.documents()}
            await collection.delete(doc_ids["delivery.md"])
            await collection.ingest("warranty.md", b"# Ours\n\nUploaded.\n")
        async with opened(tmp_path, kb) as corpora:
            collection = corpora.get(DEFAULT)
            assert names(collection) == ["returns/rules.md", "warranty.md"]
            assert collection.serving.document("warranty.md").text == "# Ours\n\nUploaded.\n"
        write_pages(kb, {"delivery.md": "# Delivery\n\nTwo days.\n", "warranty.md": NEW})
        async with opened(tmp_path, kb) as corpora:
            collection = corpora.get(DEFAULT)
            assert names(collection) == sorted(PAGES)
            # An upload stays.
            assert collection.serving.document("warranty.md").text == "# Ours\n\nUploaded.\n"
        (kb / "warranty.md").unlink()
        async with opened(tmp_path, kb) as corpora:
            assert "warranty.md" in names(corpora.get(DEFAULT))

    asyncio.run(scenario())


def test_it_is_the_experiment_that_a_run_evaluates(tmp_path: Path) -> None:
    """The same documents give the same fingerprint, hits and answers, in whatever order they came."""

    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb", {**PAGES, "a.b/x.md": "# X\n\nA tent.\n", "a/y.md": "# Y\n\nA boot.\n"})
        chosen = {"profile": "mock", "top_k": 3, "candidates": 5, "kb_dir": str(kb)}
        evaluated = experiment("r1", RunParts(load_settings(chosen, rootdir=tmp_path)))
        async with opened(tmp_path, experiment="r1") as corpora:
            collection = corpora.get(DEFAULT)
            for name in sorted([*PAGES, "a.b/x.md", "a/y.md"], reverse=True):
                await collection.ingest(name, (kb / name).read_bytes())
            served = collection.serving.experiment
            assert served.ingredients == evaluated.ingredients
            assert collection.serving.strict is not None
            assert collection.serving.strict.id == "r6"
            for text in ("How long is a zip mended?", "Which boots come back?", "parcel to islands"):
                one, other = [await each.pipeline.answer(Query("q", text)) for each in (evaluated, served)]
                assert (one.answer, one.confidence, one.decisions) == (other.answer, other.confidence, other.decisions)
                assert (one.retrieved, one.context) == (other.retrieved, other.context)

    asyncio.run(scenario())


def test_other_parts_cut_and_embed_the_kept_text_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, chunk_size=512) as corpora:
            long = "# Long\n\n" + " ".join(f"Sentence {n} of the page is here." for n in range(60))
            await corpora.get(DEFAULT).ingest("long.md", long.encode())
            assert corpora.get(DEFAULT).documents()[0].chunks == 1
        async with opened(tmp_path, chunk_size=64, chunk_overlap=0) as corpora:
            collection = corpora.get(DEFAULT)
            assert collection.documents()[0].chunks > 5
            check_finds(collection, {"long.md": long})
        async with opened(tmp_path, chunk_size=512) as corpora:
            assert corpora.get(DEFAULT).documents()[0].chunks == 1

    asyncio.run(scenario())


def test_a_folder_that_is_named_and_not_there_is_an_error_and_one_that_nobody_named_is_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(DataError, match="No folder"):
            async with opened(tmp_path, tmp_path / "nowhere"):
                pass
        async with opened(tmp_path) as corpora:
            assert names(corpora.get(DEFAULT)) == []
        async with opened(tmp_path, write_pages(tmp_path / "elsewhere")):
            pass
        async with opened(tmp_path) as corpora:
            assert names(corpora.get(DEFAULT)) == sorted(PAGES)

    asyncio.run(scenario())


def test_a_page_without_text_keeps_no_server_from_starting(tmp_path: Path) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb", {**PAGES, "empty.md": "", "title.md": "---\ntitle: x\n---\n"})
        for experiment_name in ("e2", "e2", "t1"):
            async with opened(tmp_path, kb, experiment=experiment_name) as corpora:
                collection = corpora.get(DEFAULT)
                assert names(collection) == sorted([*PAGES, "empty.md", "title.md"])
                assert (await found(collection, "How long is a zip mended?"))[0] == "warranty.md"

    asyncio.run(scenario())
