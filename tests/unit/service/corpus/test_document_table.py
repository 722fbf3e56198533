"""What can break below a server: its index, its database, its disk; and another server on the same state."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.log import log
from rag_harness.pipelines import experiments
from rag_harness.retrieval.indexes import LiveIndexError
from rag_harness.service.corpus import document_table
from rag_harness.service.corpus import tenant_collections as collection_module
from rag_harness.service.corpus.document_table import DAMAGED
from rag_harness.service.corpus.intake import MOST_OF_ONE, Incoming
from rag_harness.service.database import DATABASE, StateError
from rag_harness.service.problems import ProblemError
from tests.unit.retrieval.indexes.server.stub import cluster_stub
from tests.unit.service.corpus.corpora import DEFAULT, PAGES, check_finds, found, names, opened, write_pages


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


def test_what_fails_after_a_document_is_there_does_not_undo_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            collection = await corpora.create("acme")
            await collection.ingest("a.md", b"# A\n\nThe tent is green.\n")
            monkeypatch.setattr(collection._lasting.points, "remove", _broken)
            assert (await collection.ingest("a.md", b"# A\n\nThe boot is brown.\n")).status == "ready"
            monkeypatch.undo()
            check_finds(collection, {"a.md": "# A\n\nThe boot is brown.\n"})

    asyncio.run(scenario())


def _broken(_points: object) -> None:
    raise RuntimeError("something that nobody thought of")


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
        ("gpj\u202eexe.md", b"# x", 422, "turns text"),
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


def test_a_large_file_comes_in_without_anybody_waiting_and_what_fails_is_listed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            collection = corpora.get(DEFAULT)
            doc_id = await collection.start_ingest("a.md", b"# A\n\nTent.\n")
            assert collection.document(doc_id).status in ("pending", "ready")
            failing = await collection.start_ingest("b.md", b"\xff")
            while any(collection.document(each).status == "pending" for each in (doc_id, failing)):
                await asyncio.sleep(0.01)
            assert collection.document(doc_id).status == "ready"
            failed = collection.document(failing)
            assert (failed.status, failed.chunks) == ("failed", 0)
            assert "not UTF-8" in failed.why
            await collection.delete(failing)
            assert names(collection) == ["a.md"]
            assert len(collection.documents()) == 1

    asyncio.run(scenario())


def test_what_a_stopped_server_had_not_finished_has_failed_and_is_forgotten_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            number = corpora.get(DEFAULT).number
            corpora._state.database.write_now(lambda c: document_table.begin(c, number, "lost.md"))
            monkeypatch.setattr(document_table, "now", lambda: "2020-01-01T00:00:00Z")
            old, _ = corpora._state.database.write_now(lambda c: document_table.begin(c, number, "old.md"))
            corpora._state.database.write_now(lambda c: document_table.fail(c, old, "why"))
        async with opened(tmp_path) as corpora:
            (lost,) = corpora.get(DEFAULT).documents()
            assert (lost.name, lost.status) == ("lost.md", "failed")
            assert "Send it again" in lost.why

    asyncio.run(scenario())


def test_a_question_under_way_keeps_the_state_that_it_began_with(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            collection = corpora.get(DEFAULT)
            first = await collection.ingest("a.md", b"# A\n\nThe tent is green.\n")
            before = collection.serving
            await collection.ingest("b.md", b"# B\n\nThe tent is brown, the tent.\n")
            assert before.experiment.retriever is not None
            assert [hit.chunk.doc_id for hit in before.experiment.retriever.retrieve("tent", 5)] == ["a.md"]
            await collection.delete(first.doc_id)
            assert before.document("a.md").text == "# A\n\nThe tent is green.\n"
            assert before.generation + 2 == collection.serving.generation

    asyncio.run(scenario())


def test_no_more_waits_than_can_be_kept_track_of(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            one, two = await corpora.create("one"), await corpora.create("two")
            held = threading.Event()
            blocking = corpora._thread.submit(one.number, held.wait)
            waiting = [await one.start_ingest(f"{n}.md", b"# A\n\nTent.\n") for n in range(MOST_OF_ONE - 1)]
            with pytest.raises(ProblemError) as full:
                await one.start_ingest("more.md", b"# A\n\nTent.\n")
            assert (full.value.status, full.value.headers["Retry-After"]) == (429, "10")
            doc_id = await two.start_ingest("a.md", b"# A\n\nTent.\n")
            with pytest.raises(ProblemError) as pending:
                await two.delete(doc_id)
            assert pending.value.status == 409
            held.set()
            blocking.result()
            while two.document(doc_id).status == "pending":
                await asyncio.sleep(0.01)
            assert one.document(waiting[-1]).status == "pending"  # the other collection did not wait for all of these
            while one.document(waiting[-1]).status == "pending":
                await asyncio.sleep(0.01)
            assert [one.document(each).status for each in waiting] == ["ready"] * len(waiting)
            assert len(one.documents()) == len(waiting)

    asyncio.run(scenario())


def test_a_client_that_leaves_does_not_take_its_document_along(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            collection, held = corpora.get(DEFAULT), threading.Event()
            blocking = corpora._thread.submit(0, held.wait)
            asked = asyncio.create_task(collection.ingest("a.md", b"# A\n\nTent.\n"))
            while not collection.documents():
                await asyncio.sleep(0.01)
            asked.cancel()
            await asyncio.sleep(0.05)
            held.set()
            blocking.result()
            for _ in range(1_000):
                await asyncio.sleep(0 if names(collection) else 0.01)
            assert names(collection) == ["a.md"]

    asyncio.run(scenario())


def test_a_file_is_taken_over_and_what_reading_left_out_is_counted(tmp_path: Path) -> None:
    page = '<html><body><h1>Tents</h1><p>A tent is green.</p><p style="display:none">Hidden words.</p></body></html>'

    async def scenario() -> None:
        async with opened(tmp_path, near_duplicates=0.9) as corpora:
            collection, file = corpora.get(DEFAULT), tmp_path / "upload"
            file.write_text(page, encoding="utf-8")
            done = await collection.ingest("tents.html", file, {"title": "All tents"})
            assert done.dropped == {"hidden_characters": 12}
            assert done.bytes == len(page)
            assert not file.exists()
            document = collection.serving.document("tents.html")
            assert (document.title, "Hidden" in document.text) == ("All tents", False)
            same = "# Rules\n\n" + " ".join(
                f"Rule {word} of the shop holds." for word in ("one", "two", "three", "four")
            )
            await collection.ingest("a.md", same.encode())
            again = await collection.ingest("b.md", same.encode())
            assert again.dropped == {"near_duplicates": 1}
            assert set(await found(collection, "Rule one of the shop")) == {"a.md", "tents.html"}

    asyncio.run(scenario())


def test_windows_are_found_by_their_sections(tmp_path: Path) -> None:
    text = "# Long\n\n" + "\n\n".join(" ".join(f"Word{n}x{m} of it." for m in range(30)) for n in range(12))
    kb = write_pages(tmp_path / "kb", PAGES)

    async def scenario() -> None:
        async with opened(tmp_path, kb, experiment="t2") as corpora:
            collection = corpora.get(DEFAULT)
            collection._intake.preparer._models.embedder("", ingests=True).max_tokens = 64
            await collection.ingest("long.md", text.encode())
            held = collection._contents.by_name["long.md"]
            assert len(held.points) == len(held.indexed) > len(held.chunks)
            check_finds(collection, {**PAGES, "long.md": text})
        async with opened(tmp_path, kb, experiment="t2") as corpora:
            again = corpora.get(DEFAULT)._contents.by_name["long.md"]
            assert (again.chunks, [each.text for each in again.indexed]) == (
                held.chunks,
                [each.text for each in held.indexed],
            )
            check_finds(corpora.get(DEFAULT), {**PAGES, "long.md": text})

    asyncio.run(scenario())


def test_on_a_qdrant_server_it_is_the_same(tmp_path: Path) -> None:
    async def scenario(url: str) -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb, qdrant_url=url) as corpora:
            done = await corpora.get(DEFAULT).ingest("stoves.md", b"# Stoves\n\nGas.\n")
            await corpora.get(DEFAULT).delete(done.doc_id)
            await (await corpora.create("acme")).ingest("a.md", b"# A\n\nTent.\n")
        async with opened(tmp_path, kb, qdrant_url=url) as corpora:
            check_finds(corpora.get(DEFAULT), PAGES)
            check_finds(corpora.get("acme"), {"a.md": "# A\n\nTent.\n"})

    with cluster_stub() as stub:
        asyncio.run(scenario(stub.url))
        names = [each.name for each in stub.engine.get_collections().collections]
        assert sorted(stub.engine.count(name).count for name in names) == [1, len(PAGES)]
        assert all(name.startswith("rag_service_") for name in names)


@pytest.mark.parametrize(("experiment", "said"), [("mine", "asks parts.retrieval for nothing")])
def test_what_cannot_be_served_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, experiment: str, said: str
) -> None:
    def build(_parts: object) -> object:
        return object()

    monkeypatch.setattr(experiments, "_registered", lambda: {"mine": SimpleNamespace(load=lambda: build)})

    async def scenario() -> None:
        async with opened(tmp_path, experiment=experiment):
            pass

    with pytest.raises(SettingsError, match=said):
        asyncio.run(scenario())


def test_a_server_records_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, mode="record"):
            pass

    with pytest.raises(SettingsError, match="Mode record"):
        asyncio.run(scenario())


def test_in_replay_a_document_that_nobody_recorded_cannot_be_embedded(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, mode="replay") as corpora:
            with pytest.raises(ProblemError) as refused:
                await corpora.get(DEFAULT).ingest("a.md", b"# A\n\nTent.\n")
            assert (refused.value.status, refused.value.code) == (503, "cannot_embed")

    asyncio.run(scenario())


def test_documents_of_one_name_that_come_at_once_each_come_in(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            collection, held = corpora.get(DEFAULT), threading.Event()
            blocking = corpora._thread.submit(0, held.wait)
            coming = [collection.ingest("a.md", f"# A\n\nTent {n}.\n".encode()) for n in range(6)]
            asked = asyncio.gather(*coming)
            await asyncio.sleep(0.05)
            held.set()
            blocking.result()
            # All have come in before whoever sent the first is told.
            corpora._thread.submit(0, list).result()
            done = await asked
            assert [each.status for each in done] == ["ready"] * 6
            assert len({each.doc_id for each in done}) == 6
            assert collection.documents()[0].doc_id in {each.doc_id for each in done}
            assert names(collection) == ["a.md"]

    asyncio.run(scenario())


HEADINGS = b"# a\n" * 300_000
"""It takes ten seconds and more to cut."""


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("many.md", b"# a\n\nb\n\n" * 10_001, "would be cut into 10,001 chunks, and a document may have 10,000"),
        ("word.md", b"a" * 1_100_000, "it has a chunk of 1,100,000 characters, and one may have 1,048,576"),
    ],
)
def test_what_passes_a_limit_is_refused_with_both_numbers(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            collection = corpora.get(DEFAULT)
            with pytest.raises(ProblemError, match="unreadable") as refused:
                await collection.ingest(name, content)
            assert refused.value.status == 422
            assert refused.value.detail.startswith(f"The file cannot be read: {why}")
            await collection.ingest("a.md", b"# A\n\nTent.\n")
            assert names(collection) == ["a.md"]

    asyncio.run(scenario())


def test_no_document_holds_up_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            doc_id = await corpora.get(DEFAULT).start_ingest("headings.md", HEADINGS)
            waiting = await corpora.get(DEFAULT).start_ingest("a.md", b"# A\n\nTent.\n")
            await asyncio.sleep(0.5)
            began = time.monotonic()
        assert time.monotonic() - began < 5
        async with opened(tmp_path) as corpora:
            for each in (doc_id, waiting):
                assert corpora.get(DEFAULT).document(each).status == "failed"
                assert "stopped" in corpora.get(DEFAULT).document(each).why
            await corpora.get(DEFAULT).ingest("a.md", b"# A\n\nTent.\n")

    asyncio.run(scenario())


def test_a_charset_that_was_guessed_is_named_and_one_that_cannot_be_is_refused(tmp_path: Path) -> None:
    german = "Ein Café, das für seine Größe gerühmt wird. ".encode("cp1252") * 9
    menu = "# Menu\n\nUne crème brûlée coûte neuf euros.\n".encode("latin-1")

    async def scenario() -> None:
        async with opened(tmp_path) as corpora:
            collection = corpora.get(DEFAULT)
            info = await collection.ingest("cafe.txt", german)
            assert info.why.startswith("It was read as cp125")
            assert collection.serving.document("cafe.txt").metadata["guessed_charset"].startswith("cp125")
            assert (await collection.ingest("a.txt", b"plain")).why == ""
            with pytest.raises(ProblemError) as refused:
                await collection.ingest("menu.txt", menu)
            assert "charset cannot be told: cp1250 fits as well as cp1252" in refused.value.detail
        async with opened(tmp_path, charset="latin-1") as corpora:
            collection = corpora.get(DEFAULT)
            info = await collection.ingest("menu.txt", menu)
            assert info.why.startswith("It was read as latin-1, which the file does not say")
            assert "crème brûlée" in collection.serving.document("menu.txt").text

    asyncio.run(scenario())


# What can break below a server: its index, its database, its disk; and another server on the same state.

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
