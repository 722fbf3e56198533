from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rag_harness.service.problems import ProblemError
from tests.unit.service.corpus.corpora import DEFAULT, PAGES, found, names, opened, write_pages


def test_the_default_collection_begins_with_a_folder_and_keeps_what_was_uploaded(tmp_path: Path) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb) as corpora:
            collection = corpora.get(DEFAULT)
            assert names(collection) == sorted(PAGES)
            assert (await found(collection, "How long is a zip mended?"))[0] == "warranty.md"
            done = await collection.ingest("stoves.md", b"# Stoves\n\nA stove burns gas.\n", {"url": "https://x/y"})
            assert (done.status, done.chunks, done.coverage) == ("ready", 1, 1.0)
            assert (await found(collection, "Which gas does a stove burn?"))[0] == "stoves.md"
            document = collection.serving.document("stoves.md")
            assert (document.title, document.metadata) == ("Stoves", {"url": "https://x/y"})
        async with opened(tmp_path, kb) as corpora:
            collection = corpora.get(DEFAULT)
            assert names(collection) == sorted([*PAGES, "stoves.md"])
            assert (await found(collection, "Which gas does a stove burn?"))[0] == "stoves.md"

    asyncio.run(scenario())


def test_a_document_replaces_the_one_of_its_name_and_one_deleted_is_not_found(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            collection = await corpora.create("acme")
            first = await collection.ingest("a.md", b"# A\n\nThe tent is green.\n")
            before = collection.serving
            second = await collection.ingest("a.md", b"# A\n\nThe boot is brown.\n")
            assert [each.doc_id for each in collection.documents()] == [second.doc_id] != [first.doc_id]
            assert collection.serving.document("a.md").text == "# A\n\nThe boot is brown.\n"
            assert before.document("a.md").text == "# A\n\nThe tent is green.\n"
            await collection.delete(second.doc_id)
            assert collection.documents() == []
            assert await found(collection, "boot") == []
            with pytest.raises(KeyError):
                await collection.delete(second.doc_id)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "content", "status", "said"),
    [
        ("a.exe", b"MZ", 415, ".html"),
        ("a", b"x", 415, "without a suffix"),
        ("a.md", b"\xff\xfe", 422, "not UTF-8"),
        ("a.md", b"  \n", 422, "no text"),
        ("../../etc/passwd.md", b"# x", 422, "segment"),
        ("", b"# x", 422, "empty"),
        ("a\n.md", b"# x", 422, "control"),
        ("a" * 300 + ".md", b"# x", 422, "303 characters"),
        ("gpj\u202eexe.md", b"# x", 422, "turn text"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes, status: int, said: str
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            collection = corpora.get(DEFAULT)
            with pytest.raises(ProblemError) as refused:
                await collection.ingest(name, content)
            assert refused.value.status == status
            assert said in refused.value.detail
            assert str(tmp_path) not in refused.value.detail
            assert not list((tmp_path / "state" / "incoming").iterdir())

    asyncio.run(scenario())
