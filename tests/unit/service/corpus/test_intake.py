"""Documents come, also from a folder, and find room or are refused."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core import cache
from rag_harness.core.errors import DataError, NoRoomError
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Chunk, Query
from rag_harness.data.loaders.child_process import Child, PassingError
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval.indexes import edge
from rag_harness.service.corpus import intake
from rag_harness.service.corpus.intake import (
    LONGEST_NAME,
    SPARE,
    IngestThread,
    checked_name,
    suffix_of,
    without_half_characters,
)
from rag_harness.service.corpus.preparation import coverage
from rag_harness.service.problems import ProblemError
from tests.unit.service.corpus.corpora import DEFAULT, PAGES, check_finds, found, names, opened, write_pages
from tests.unit.service.corpus.filling import live
from tests.unit.service.corpus.forked import started

# A disk that fills ends no server: what finds no room is refused before anything is written, and a start goes on.

# A disk that fills ends no server: what finds no room is refused before anything is written, and a start goes on.

MIB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 MiB in memory, where a file system can be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def leave(disk: Path, left: int) -> None:
    """Have others fill the disk until ``left`` bytes are free."""
    (disk / "ballast").unlink(missing_ok=True)
    with (disk / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - left)


def lived(disk: Path, life: str, most: int) -> tuple[int | None, list[str]]:
    """Return how a server ended that was sent documents, and what it said."""
    said = disk.with_name(life)
    process = started(live, disk, life, most, said)
    process.join(120)
    return process.exitcode, said.read_text(encoding="utf-8").splitlines()


def test_a_disk_in_memory_that_fills(small_disk: Path) -> None:
    status, said = lived(small_disk, "a", 1)
    assert (status, said[1]) == (0, "took a0.md"), said
    reserved = cache.missing(small_disk.glob("state/collections/1/shard/segments/*/vector_storage/vectors/*.mmap"))
    leave(small_disk, SPARE + reserved // 2 + 12 * MIB)
    status, said = lived(small_disk, "b", 50)
    assert status == 0, (status, said)
    assert said[-2:] == ["refused 507", "found 3"]
    kept = ["a0.md", *(line.split()[1] for line in said if line.startswith("took"))]
    # Others write, too, and leave nothing.
    leave(small_disk, MIB // 2)
    status, said = lived(small_disk, "c", 1)
    assert status == 0, (status, said)
    assert said[-1].startswith("no room: There is no room below shard/")
    (small_disk / "ballast").unlink()
    status, said = lived(small_disk, "d", 0)
    assert (status, said[0]) == (0, " ".join(["holds", *sorted(kept)])), said


def test_an_upload_is_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, write_pages(tmp_path / "kb")) as corpora:
            collection = corpora.get(DEFAULT)
            before = collection._lasting.points.ids()
            with monkeypatch.context() as patched:
                patched.setattr(cache, "free", lambda _folder: SPARE)
                with pytest.raises(ProblemError) as refused:
                    await collection.ingest("stoves.md", b"# Stoves\n\nA stove burns gas.\n")
                assert (refused.value.status, refused.value.code) == (507, "no_room")
                assert collection._lasting.points.ids() == before
                check_finds(collection, PAGES)
                # What takes room away from nobody goes on.
                await collection.delete(
                    next(each.doc_id for each in collection.documents() if each.name == "warranty.md")
                )
            assert len(collection._lasting.points.ids()) < len(before)

    asyncio.run(scenario())


def test_room_is_set_aside_before_a_map_is_written(tmp_path: Path) -> None:
    file = tmp_path / "map"
    with file.open("wb") as made:
        made.truncate(8 * MIB)
        made.write(b"x" * 4096)
    cache.reserve(tmp_path, MIB)
    assert cache.used_bytes(tmp_path) >= MIB
    assert (file.stat().st_size, file.read_bytes()[:4097]) == (8 * MIB, b"x" * 4096 + b"\0")


def test_what_a_quota_refuses_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "map").open("wb") as made:
        made.truncate(MIB)

    def refuses(*_: object) -> None:
        raise OSError(122, "Disk quota exceeded")

    monkeypatch.setattr(os, "posix_fallocate", refuses)
    with pytest.raises(NoRoomError, match=r"map \(Disk quota exceeded\)"):
        cache.reserve(tmp_path, 4096)


def test_a_graph_that_finds_no_room_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    monkeypatch.setattr(edge, "LIVE_GRAPH_FROM", 10)
    points = edge.EdgePoints(tmp_path / "shard")
    points.add(list(range(20)), np.eye(20, dtype=np.float32))
    monkeypatch.setattr(cache, "free", lambda _folder: edge._LIVE_SPARE)
    points.tidy()
    assert points.nearest(np.eye(20, dtype=np.float32)[3], 1)[0][1] == 3
    monkeypatch.undo()
    points.close()


# One document after the other, of each collection in turn; and an end in time.


def held(thread: IngestThread, collection: int = 0) -> threading.Event:
    """Keep the thread busy until the event is set."""
    go_on, at_work = threading.Event(), threading.Event()

    def work() -> None:
        at_work.set()
        go_on.wait(30)

    thread.submit(collection, work)
    assert at_work.wait(10)
    return go_on


def test_who_comes_waits_for_one_document_of_each_other() -> None:
    thread, done = IngestThread(), list[str]()
    go_on = held(thread)
    names = [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (2, "b2"), (3, "c1")]
    futures = [thread.submit(number, partial(done.append, name)) for number, name in names]
    go_on.set()
    for future in futures:
        future.result(10)
    assert done == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert thread.close()


def test_who_has_nothing_waiting_is_let_in_however_much_waits() -> None:
    thread = IngestThread(most=4, of_one=3)
    go_on = held(thread)
    for number in (1, 1, 2, 2):
        thread.submit(number, lambda: None)
    for number, status in ((1, 503), (2, 503)):
        with pytest.raises(ProblemError) as full:
            thread.submit(number, lambda: None)
        assert full.value.status == status
    last = thread.submit(3, lambda: "in")
    go_on.set()
    assert last.result(10) == "in"
    assert thread.close()


def test_closing_ends_the_process_that_reads() -> None:
    thread, child = IngestThread(), Child()

    def read() -> None:
        child.answer("html", b'<a x="' * 100_000)

    reading, waiting = thread.submit(1, read), thread.submit(1, lambda: None)
    until = time.monotonic() + 10
    while not child.started and time.monotonic() < until:
        time.sleep(0.01)
    began = time.monotonic()
    assert thread.close(0.3)
    assert time.monotonic() - began < 3
    with pytest.raises(PassingError):
        reading.result(0)
    assert waiting.cancelled()
    with pytest.raises(ProblemError, match="server_stops"):
        thread.check()
    child.close()


def test_closing_waits_for_nothing_for_ever() -> None:
    thread = IngestThread()
    go_on = held(thread)
    began = time.monotonic()
    assert not thread.close(0.05)
    assert time.monotonic() - began < 2
    go_on.set()
    assert thread.close(5)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_questions_go_before_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    thread, own = IngestThread(), priority()
    monkeypatch.setattr(intake, "_NICE", own + 1)  # 0 for other tests
    assert (thread.submit(1, priority).result(60), priority()) == (own + 1, own)
    assert thread.close(10)


def test_what_ends_in_time_is_not_hurried() -> None:
    thread, at_work = IngestThread(), threading.Event()

    def work() -> str:
        at_work.set()
        time.sleep(0.1)
        thread.check()
        return "done"

    done = thread.submit(1, work)
    assert at_work.wait(10)
    assert thread.close(10)
    assert done.result(0) == "done"


def taken(name: str) -> str | None:
    try:
        return checked_name(name)
    except ProblemError:
        return None


@given(st.text(max_size=300))
def test_a_name_is_refused_or_harmless(name: str) -> None:
    checked = taken(name)
    if checked is None:
        return
    assert checked == unicodedata.normalize("NFC", name)
    assert 0 < len(checked) <= LONGEST_NAME
    assert not {"", ".", ".."} & set(checked.split("/"))
    assert not any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in checked)
    checked.encode()


@pytest.mark.parametrize(
    "name", ["a.md", "README.md", "x/b.HTML", "Überweisung.pdf", "نامه‌ها.txt", "a b.md", "❤️.md", "👩‍🚀.md"]
)
def test_names_of_people_are_taken(name: str) -> None:
    assert checked_name(name) == unicodedata.normalize("NFC", name)
    assert suffix_of(name).lower() == suffix_of(name)


@pytest.mark.parametrize(
    "unseen",
    ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\u2066", "\u061c", "\U000e0041"],
)
def test_what_nobody_sees_is_in_no_name(unseen: str) -> None:
    for name in (f"pay{unseen}pal.md", f"{unseen}.md", f"a/{unseen}/b.md", f"{unseen}a.md", f"a.md{unseen}"):
        assert taken(name) is None, ascii(name)


@pytest.mark.parametrize(
    "name", [" .md", "\u3000.md", "\u3164.md", "\u2800.md", "a/ /b.md", "\u00a0", "\u115f\u1160.md", "\u034f.md"]
)
def test_a_name_of_blanks_is_none(name: str) -> None:
    assert taken(name) is None


def test_the_suffix_decides_and_the_kinds_are_named() -> None:
    for name in ("a.exe", "a", "md", "a.md/b"):
        with pytest.raises(ProblemError) as refused:
            suffix_of(name)
        assert refused.value.status == 415
        assert ".html, .json, .md, .pdf" in refused.value.detail


def test_one_name_written_in_two_ways_is_one() -> None:
    assert checked_name("Cafe\u0301.md") == checked_name("Caf\u00e9.md")


SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=6)


@given(st.text(alphabet="ab \n", max_size=20), SPANS)
def test_coverage_counts_every_character_once(text: str, spans: list[tuple[int, int]]) -> None:
    chunks = [Chunk("c", "d", "", start, end) for start, end in spans if start <= end]
    solid = [place for place, each in enumerate(text) if not each.isspace()]
    covered = [place for place in solid if any(chunk.start <= place < chunk.end for chunk in chunks)]
    assert coverage(text, chunks) == (len(covered) / len(solid) if solid else None)


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=20))
def test_text_is_such_that_a_database_keeps_it_and_offsets_stay(text: str) -> None:
    kept = without_half_characters(text)
    assert len(kept) == len(text)
    assert all(other in (one, "�") for one, other in zip(text, kept, strict=True))
    kept.encode()


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
