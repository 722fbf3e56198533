"""What can break below a server: its index, its database, its disk; and another server on the same state."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from rag_harness.core.log import log
from rag_harness.retrieval.indexes import LiveIndexError
from rag_harness.service.corpus import document_table
from rag_harness.service.corpus import tenant_collections as collection_module
from rag_harness.service.corpus.document_table import DAMAGED
from rag_harness.service.corpus.intake import Incoming
from rag_harness.service.database import DATABASE, StateError
from rag_harness.service.problems import ProblemError
from tests.unit.service.corpus.corpora import DEFAULT, PAGES, check_finds, found, names, opened, write_pages

TEXT = "# Stoves\n\nA stove burns gas.\n"


def zero(shard: Path) -> None:
    for file in shard.glob("segments/*/vector_storage/vectors/chunk_0.mmap"):
        with file.open("r+b") as opened_file:
            opened_file.write(bytes(100_000))


def garble(shard: Path) -> None:
    (shard / "edge_config.json").write_text("{", encoding="utf-8")


def cut_short(shard: Path) -> None:
    for file in shard.glob("segments/*/segment.json"):
        file.write_bytes(file.read_bytes()[:20])


def noise(shard: Path) -> None:
    """The last point has a place that none has: the engine asks for memory for all before it, and aborts."""
    for file in shard.glob("segments/*/mutable_id_tracker.mappings"):
        file.write_bytes(file.read_bytes()[:-4] + b"\xf0\xff\xff\xff")


@pytest.mark.parametrize("damage", [zero, garble, cut_short, noise])
def test_a_damaged_index_is_moved_away_and_made_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb) as corpora:
            folder = tmp_path / "state" / "collections" / str(corpora.get(DEFAULT).number)
        damage(folder / "shard")
        said: list[str] = []
        log.addFilter(keep := lambda record: said.append(record.getMessage()) or True)  # type: ignore[func-returns-value]
        async with opened(tmp_path, kb) as corpora:
            check_finds(corpora.get(DEFAULT), PAGES)
            assert (await found(corpora.get(DEFAULT), "zip mended"))[0] == "warranty.md"
        log.removeFilter(keep)
        assert (folder / DAMAGED).is_dir()
        assert any("damaged" in line for line in said)

    asyncio.run(scenario())


def test_a_lost_index_is_made_anew_and_one_too_many_points_is_removed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            collection = corpora.get(DEFAULT)
            await collection.ingest("stoves.md", TEXT.encode())
            held = collection._contents.held[0]
            points = collection._lasting.points
            points.add([10_000], points.vectors(held.points)[held.points[0]].reshape(1, -1))
            points.remove(held.points)
        async with opened(tmp_path) as corpora:
            collection = corpora.get(DEFAULT)
            check_finds(collection, {"stoves.md": TEXT})
            assert collection._lasting.points.ids() == set(held.points)

    asyncio.run(scenario())


def test_a_damaged_database_is_named_with_the_way_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, write_pages(tmp_path / "kb")):
            pass
        file = tmp_path / "state" / DATABASE
        content = bytearray(file.read_bytes())
        content[8_192:] = b"\x5a" * (len(content) - 8_192)
        file.write_bytes(content)
        with pytest.raises(StateError, match=r"service\.sqlite3 is damaged .* put a copy of it back"):
            async with opened(tmp_path, tmp_path / "kb"):
                pass

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 12))])
def test_noise_in_the_database_is_named_or_harmless(tmp_path: Path, seed: int) -> None:
    async def scenario() -> None:
        file = tmp_path / "state" / DATABASE
        async with opened(tmp_path, write_pages(tmp_path / "kb")):
            pass
        random, content = Random(seed), bytearray(file.read_bytes())
        for _ in range((1, 20, 200, len(content) // 200)[seed % 4]):
            content[random.randrange(len(content))] = random.randrange(256)
        file.write_bytes(content)
        said = ""
        try:
            async with opened(tmp_path, tmp_path / "kb") as corpora:
                await found(corpora.get(DEFAULT), "zip mended")
                corpora.get(DEFAULT).documents()
        except StateError as error:
            said = str(error)
        assert not said or (said.startswith("service.sqlite3") and "\n" not in said)

    asyncio.run(scenario())


def test_the_words_of_a_document_are_in_no_message(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, write_pages(tmp_path / "kb")):
            pass
        with closing(sqlite3.connect(tmp_path / "state" / DATABASE)) as other:
            other.execute("UPDATE documents SET text = CAST(x'61ff62' || text AS TEXT)")
            other.commit()
        with pytest.raises(StateError, match=r"damaged \(Could not decode to UTF-8 column 'text'\)"):
            async with opened(tmp_path, tmp_path / "kb"):
                pass

    asyncio.run(scenario())


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, write_pages(tmp_path / "kb")) as corpora:
            collection = corpora.get(DEFAULT)
            long = "# Long\n\n" + "\n\n".join(f"## Part {n}\n\nSentence {n} of it." for n in range(400))

            def pages(connection: sqlite3.Connection) -> None:
                used = connection.execute("PRAGMA page_count").fetchone()[0]
                connection.execute(f"PRAGMA max_page_count = {used + 10}")

            corpora._state.database.write_now(pages)
            await refused_for_room(collection.ingest("long.md", long.encode()))
            check_finds(collection, PAGES)
            corpora._state.database.write_now(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall())

            def no_room(*_: object) -> None:
                raise LiveIndexError("The vector index cannot be written: No space left on device (os error 28)")

            with monkeypatch.context() as patched:
                patched.setattr(collection._lasting.points, "add", no_room)
                await refused_for_room(collection.ingest("stoves.md", TEXT.encode()))
            with monkeypatch.context() as patched:

                def full(*_: object) -> None:
                    raise OSError(28, "No space left on device")

                patched.setattr(Incoming, "take", full)
                await refused_for_room(collection.ingest("stoves.md", TEXT.encode()))
            check_finds(collection, PAGES)
            await collection.ingest("stoves.md", TEXT.encode())
            check_finds(collection, {**PAGES, "stoves.md": TEXT})
        async with opened(tmp_path, tmp_path / "kb") as corpora:
            check_finds(corpora.get(DEFAULT), {**PAGES, "stoves.md": TEXT})

    async def refused_for_room(ingest: object) -> None:
        with pytest.raises(ProblemError) as refused:
            await ingest  # type: ignore[misc]
        assert (refused.value.status, refused.value.code) == (507, "no_room")

    asyncio.run(scenario())


def test_what_fails_after_the_change_is_done_by_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, write_pages(tmp_path / "kb")) as corpora:
            collection = corpora.get(DEFAULT)

            def fails(*_: object) -> None:
                raise LiveIndexError("The vector index cannot be written: it is gone")

            monkeypatch.setattr(collection._lasting.points, "remove", fails)
            monkeypatch.setattr(document_table, "remove", fails)
            done = await collection.ingest("warranty.md", TEXT.encode())
            assert done.status == "ready"
            check_finds(collection, {**PAGES, "warranty.md": TEXT})
        async with opened(tmp_path, tmp_path / "kb") as corpora:
            check_finds(corpora.get(DEFAULT), {**PAGES, "warranty.md": TEXT})
            ids = corpora.get(DEFAULT)._lasting.points.ids()
            assert len(ids) == len(PAGES)
            kept = corpora._state.database.read(lambda c: c.execute("SELECT count(*) FROM documents").fetchone()[0])
            assert kept == len(PAGES)

    asyncio.run(scenario())


def test_a_state_has_one_owner(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            with pytest.raises(StateError, match="one owner"):
                async with opened(tmp_path):
                    pass
            assert names(corpora.get(DEFAULT)) == []

    asyncio.run(scenario())


def test_a_change_that_fails_leaves_nothing_in_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, write_pages(tmp_path / "kb")) as corpora:
            collection = corpora.get(DEFAULT)
            before = collection._lasting.points.ids()

            def fails(*_: object) -> None:
                raise RuntimeError(f"a bug that names {tmp_path}")

            monkeypatch.setattr(collection_module, "serving_of", fails)
            with pytest.raises(ProblemError) as refused:
                await collection.ingest("stoves.md", TEXT.encode())
            assert refused.value.status == 500
            assert str(tmp_path) not in refused.value.detail
            (failed,) = [each for each in collection.documents() if each.status == "failed"]
            assert str(tmp_path) not in failed.why
            with pytest.raises(RuntimeError):
                await collection.delete(next(each.doc_id for each in collection.documents() if each.name in PAGES))
            check_finds(collection, PAGES)
            assert collection._lasting.points.ids() == before

    asyncio.run(scenario())
