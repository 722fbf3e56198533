"""An answer is there again for its tenant, as long as it is kept."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rag_harness.core.errors import CriticalError, ModelCallError
from rag_harness.core.log import log
from rag_harness.core.types import PipelineOutput, Query
from rag_harness.pipelines.trace import Trace
from rag_harness.service import traces as traces_module
from rag_harness.service.database import Database
from rag_harness.service.observations import trace_ids
from rag_harness.service.traces import DAY, KeptAnswers, Traces
from tests.unit.service.observing.seen import SECRET_WORDS, TRACEPARENT, output, seen
from tests.unit.service.observing.test_observations import told
from tests.unit.service.served import said_by, serving_app

Work = Callable[[Traces, Database], Awaitable[None]]


def run(folder: Path, work: Work, days: int = 30, content: bool = False, started: bool = True, **more: Any) -> None:
    async def doing() -> None:
        database = Database(folder / "service.sqlite3")
        traces = Traces(database, days, content, **more)
        if started:
            traces.start()
        try:
            await work(traces, database)
        finally:
            await traces.stop()
            database.close()

    asyncio.run(doing())


def _count(database: Database) -> int:
    return int(database.read(lambda c: c.execute("SELECT count(*) FROM traces").fetchone()[0]))


def test_a_trace_is_there_at_once_and_the_same_after_it_was_written(tmp_path: Path) -> None:
    asked = seen()

    async def work(traces: Traces, database: Database) -> None:
        traces.keep(asked)
        at_once = traces.get(asked.ids.trace_id, "default")
        assert at_once is not None
        assert _count(database) == 0
        await traces.stop()
        assert _count(database) == 1
        assert traces.get(asked.ids.trace_id, "default") == at_once
        assert (at_once["trace_id"], at_once["decision"], at_once["confidence"]) == (asked.ids.trace_id, "pass", 0.9)
        assert [span["name"] for span in at_once["spans"]][:3] == [
            "invoke_workflow r1",
            "understand",
            "retrieval default",
        ]
        assert at_once["continues"] is None

    run(tmp_path, work)


def test_what_is_another_collections_is_what_never_was(tmp_path: Path) -> None:
    asked = seen(collection="theirs")

    async def work(traces: Traces, _: Database) -> None:
        traces.keep(asked)
        for _time in range(2):  # waiting, then written
            assert traces.get(asked.ids.trace_id, "ours") is None
            assert traces.get(trace_ids().trace_id, "ours") is None
            assert traces.get(asked.ids.trace_id) is not None
            await traces.stop()
        assert not await traces.rate(asked.ids.trace_id, "ours", -1, "x")
        found = traces.get(asked.ids.trace_id, "theirs")
        assert found is not None
        assert found["thumb"] is None

    run(tmp_path, work)


def test_a_thumb_reaches_a_trace_that_still_waits(tmp_path: Path) -> None:
    asked = seen()

    async def work(traces: Traces, _: Database) -> None:
        traces.keep(asked)
        assert await traces.rate(asked.ids.trace_id, "default", -1, "wrong page")
        found = traces.get(asked.ids.trace_id, "default")
        assert found is not None
        assert (found["thumb"], found["comment"]) == (-1, "wrong page")
        assert await traces.rate(asked.ids.trace_id, None, 1)
        assert (traces.get(asked.ids.trace_id) or {})["thumb"] == 1
        assert not await traces.rate(trace_ids().trace_id, "default", 1)

    run(tmp_path, work)


def test_words_are_kept_only_where_that_was_asked_for(tmp_path: Path) -> None:
    told = output("warn", "UNGROUNDED_CLAIM: quokka")

    def asking(kept: list[dict[str, Any]]) -> Work:
        async def work(traces: Traces, _: Database) -> None:
            asked = seen(output=told)
            traces.keep(asked)
            await traces.stop()
            found = traces.get(asked.ids.trace_id)
            assert found is not None
            kept.append(found)

        return work

    kept: list[dict[str, Any]] = []
    run(tmp_path, asking(kept))
    run(tmp_path, asking(kept), content=True)
    without, with_words = kept
    assert [word for word in SECRET_WORDS if word in json.dumps(without).lower()] == []
    assert "content" not in without
    said = with_words["content"]
    assert (said["question"], said["answer"], said["cited"]) == ("What is a zebrafish?", "A quokka [Source 1].", [1])
    assert said["sources"] == [
        {"document": "animals.md", "section": "Whales", "score": 0.71, "text": "The narwhal has a tusk."}
    ]
    assert said["prompts"] == [[["system", "Answer."], ["user", "zebrafish? okapi"]]]
    assert {"name": "decision", "reason": "UNGROUNDED_CLAIM: quokka"} in said["decisions"]


def test_the_clients_own_trace_is_named_and_found_by_ours_alone(tmp_path: Path) -> None:
    first, second = seen(trace_ids(TRACEPARENT)), seen(trace_ids(TRACEPARENT), collection="theirs")

    async def work(traces: Traces, database: Database) -> None:
        traces.keep(first)
        traces.keep(second)
        await traces.stop()
        assert _count(database) == 2
        assert (traces.get(first.ids.trace_id) or {})["continues"] == "0af7651916cd43dd8448eb211c80319c"
        assert traces.get("0af7651916cd43dd8448eb211c80319c") is None

    run(tmp_path, work)


def test_what_json_cannot_say_loses_no_trace(tmp_path: Path) -> None:
    asked = seen(question="half \ud83d of it", inputs={"n": float("nan"), "of": {1, 2}})

    async def work(traces: Traces, _: Database) -> None:
        traces.keep(asked)
        await traces.stop()
        found = traces.get(asked.ids.trace_id)
        assert found is not None
        assert found["content"]["question"] == "half ? of it"
        assert found["content"]["inputs"]["n"] is None
        assert traces.lost == 0

    run(tmp_path, work, content=True)


def test_what_is_too_old_is_removed_when_the_server_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces_module, "_PRUNED_AT_ONCE", 2)
    old, new = [seen(began=time.time() - 8 * DAY) for _ in range(5)], seen(began=time.time() - 6 * DAY)

    async def keeping(traces: Traces, _: Database) -> None:
        for asked in (*old, new):
            traces.keep(asked)

    async def looking(traces: Traces, database: Database) -> None:
        assert await traces.prune() == 5
        assert _count(database) == 1
        assert traces.get(new.ids.trace_id) is not None

    run(tmp_path, keeping, started=False)
    run(tmp_path, looking, days=7, started=False)


def test_pruning_is_done_without_being_asked(tmp_path: Path) -> None:
    async def keeping(traces: Traces, _: Database) -> None:
        traces.keep(seen(began=time.time() - 8 * DAY))

    async def waiting(_: Traces, database: Database) -> None:
        for _time in range(200):
            if not _count(database):
                return
            await asyncio.sleep(0.01)
        raise AssertionError("nobody removed it")

    run(tmp_path, keeping, started=False)
    run(tmp_path, waiting, days=7)


def test_zero_days_keep_nothing(tmp_path: Path) -> None:
    asked = seen()

    async def work(traces: Traces, database: Database) -> None:
        traces.keep(asked)
        await traces.stop()
        assert _count(database) == 0
        assert traces.get(asked.ids.trace_id) is None

    run(tmp_path, work, days=0)


def test_more_than_can_wait_are_lost_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces_module, "_MOST_WAITING", 3)

    async def work(traces: Traces, database: Database) -> None:
        for _ in range(5):
            traces.keep(seen())
        assert traces.lost == 2
        await traces.stop()
        assert _count(database) == 3
        traces.keep(seen())
        assert traces.lost == 2

    run(tmp_path, work, started=False)


def test_a_database_that_refuses_fails_no_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log.addHandler(caplog.handler)

    async def work(traces: Traces, database: Database) -> None:
        await database.write(lambda c: c.execute("ALTER TABLE traces RENAME TO elsewhere"))
        traces.keep(seen())
        await traces.stop()
        assert traces.lost == 1
        await database.write(lambda c: c.execute("ALTER TABLE elsewhere RENAME TO traces"))

    run(tmp_path, work, content=True, started=False)
    log.removeHandler(caplog.handler)
    assert "Traces lost: 1. StateError" in caplog.text


def test_a_trace_that_cannot_be_written_out_is_lost_alone(tmp_path: Path) -> None:
    async def work(traces: Traces, database: Database) -> None:
        for each in (seen(), seen(inputs=None), seen()):
            traces.keep(each)
        await traces.stop()
        assert (traces.lost, _count(database)) == (1, 2)

    run(tmp_path, work, content=True, started=False)


def test_an_exporter_that_raises_fails_no_answer(tmp_path: Path) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("the collector is on fire")

    async def work(traces: Traces, _: Database) -> None:
        traces.keep(seen())
        assert traces.lost == 1

    run(tmp_path, work, export=broken)


def test_stopping_while_traces_are_written_writes_each_once(tmp_path: Path) -> None:
    asked = [seen() for _ in range(120)]

    async def work(traces: Traces, database: Database) -> None:
        for each in asked:
            traces.keep(each)
        await asyncio.sleep(0)
        await traces.stop()
        assert (_count(database), traces.lost) == (120, 0)

    run(tmp_path, work)


def test_a_trace_that_was_written_when_the_server_ends_is_no_lost_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(traces: Traces, database: Database) -> None:
        whole, written = database.write, asyncio.Event()

        async def slow(doing: Any) -> Any:
            said = await whole(doing)
            written.set()
            await asyncio.sleep(60)
            return said

        with monkeypatch.context() as patched:
            patched.setattr(database, "write", slow)
            traces.keep(seen())
            await written.wait()
            for task in traces._tasks:
                task.cancel()
            await asyncio.sleep(0.01)
        await traces.stop()
        assert (_count(database), traces.lost) == (1, 0)

    run(tmp_path, work)


def test_the_table_holds_a_readable_row(tmp_path: Path) -> None:
    async def work(traces: Traces, _: Database) -> None:
        traces.keep(seen(key_id=7))

    run(tmp_path, work)
    with sqlite3.connect(tmp_path / "service.sqlite3") as connection:
        row = connection.execute("SELECT key_id, collection, json_extract(body, '$.decision'), content FROM traces")
        assert row.fetchall() == [(7, "default", "pass", None)]
    connection.close()


# An answer is there again for its tenant, as long as it is kept.

ANSWERED = {"question": "What is a zebrafish?", "answer": "A quokka [Source 1]."}


def test_only_its_tenant_reads_it_and_who_reads_all(tmp_path: Path) -> None:
    asked = seen(collection="mine", answered=ANSWERED)

    def read(traces: Traces) -> list[Any]:
        traces.keep(asked)
        return [traces.answer(asked.ids.trace_id, whose) for whose in ("mine", "theirs", None)]

    assert answers_of(tmp_path, read) == [ANSWERED, None, ANSWERED]


def test_the_oldest_go_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces_module, "MOST", 2)
    kept = KeptAnswers()
    for name in ("a", "b", "c"):
        kept.keep(name, "default", 0.0, {"answer": name})
    assert [kept.get(name, None, 0.0) for name in ("a", "b", "c")] == [None, {"answer": "b"}, {"answer": "c"}]


def test_the_oldest_go_where_they_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces_module, "MOST_KEPT_CHARACTERS", 250)
    kept = KeptAnswers()
    for name in ("a", "b", "c", "d"):
        kept.keep(name, "default", 0.0, {"answer": name * 100})
    assert [kept.get(name, None, 0.0) is not None for name in ("a", "b", "c", "d")] == [False, False, True, True]
    kept.keep("e", "default", 0.0, {"answer": "e" * 300})
    assert kept.get("e", None, 0.0) is None, "too long by itself"


@pytest.mark.parametrize(("days", "age", "is_there"), [(30, 29, True), (30, 31, False), (0, 0, False)])
def test_it_goes_with_its_trace(tmp_path: Path, days: int, age: int, is_there: bool) -> None:
    asked = seen(began=time.time() - age * DAY, answered=ANSWERED)

    def read(traces: Traces) -> bool:
        traces.keep(asked)
        return traces.answer(asked.ids.trace_id) is not None

    assert answers_of(tmp_path, read, days) is is_there


@pytest.mark.parametrize("content", [False, True])
def test_a_server_that_keeps_words_has_it_after_its_next_start(tmp_path: Path, content: bool) -> None:
    asked = seen(collection="mine", answered=ANSWERED)
    answers_of(tmp_path, lambda traces: traces.keep(asked), content=content)
    read = answers_of(
        tmp_path, lambda traces: [traces.answer(asked.ids.trace_id, whose) for whose in ("mine", "theirs")]
    )
    assert read == [ANSWERED if content else None, None]


def answers_of(folder: Path, work: Any, days: int = 30, content: bool = False) -> Any:
    """Return what ``work`` returns of the traces of one server."""

    async def doing() -> Any:
        database = Database(folder / "service.sqlite3")
        traces = Traces(database, days, content)
        try:
            return work(traces)
        finally:
            await traces.stop()
            database.close()

    return asyncio.run(doing())


def test_an_id_is_drawn_for_each_question() -> None:
    drawn = {trace_ids().trace_id for _ in range(100)}
    assert len(drawn) == 100
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in drawn)


def test_a_traceparent_is_continued_where_spans_go_and_never_names_what_is_kept_here() -> None:
    one, other = trace_ids(TRACEPARENT), trace_ids(TRACEPARENT)
    assert (one.exported, one.parent, one.sampled) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", True)
    assert len({one.trace_id, other.trace_id, one.exported}) == 3


def test_a_client_may_ask_that_nothing_is_exported() -> None:
    assert not trace_ids(f"{TRACEPARENT[:-2]}00").sampled
    assert not trace_ids(f"{TRACEPARENT[:-2]}02").sampled


def test_a_newer_version_of_the_header_is_read_as_far_as_it_is_known() -> None:
    assert trace_ids(f"cc{TRACEPARENT[2:]}-what-comes").parent == "b7ad6b7169203331"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        TRACEPARENT.upper(),
        f"ff{TRACEPARENT[2:]}",
        f"{TRACEPARENT}-more",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        TRACEPARENT[:-1],
    ],
)
def test_what_is_malformed_counts_as_absent(header: str | None) -> None:
    ids = trace_ids(header)
    assert ids.exported == ids.trace_id
    assert (ids.parent, ids.sampled) == ("", True)


# A question without an answer leaves a trace, too: where it failed and how, not what was said about it.


class Fails:
    """A pipeline that fails in its stage ``generate``."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        with trace.stage("retrieve"):
            pass
        with trace.stage("generate"):
            raise self.error


async def asked(folder: Path, error: Exception) -> tuple[dict[str, Any], dict[str, float]]:
    """Ask one question; return its trace, and the metrics."""
    async with serving_app(folder, said_by(Fails(error))) as (app, service):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            answered = await client.post("/query", json={"query": "lamps?"})
            trace = await client.get(f"/traces/{answered.headers['x-request-id']}")
            return trace.json(), told(service.metrics)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ModelCallError("the key quokka is not known"), 503, "model_unavailable"),
        (CriticalError("the index of quokka is gone"), 503, "cannot_answer"),
    ],
)
def test_a_failure_is_traced_by_its_code_and_its_stage(
    tmp_path: Path, error: Exception, status: int, code: str
) -> None:
    trace, metrics = asyncio.run(asked(tmp_path, error))
    first, _, failed = trace["spans"]
    assert (trace["decision"], first["failed"], failed["failed"], failed["name"]) == ("failed", True, True, "generate")
    assert first["attributes"]["error.type"] == code
    assert first["attributes"]["http.response.status_code"] == status
    assert first["attributes"]["rag_harness.failed_stage"] == "generate"
    assert "quokka" not in json.dumps(trace)
    assert metrics["rag_harness_decisions_total{outcome=failed}"] == 1
    assert metrics["rag_harness_questions_in_flight"] == 0


def test_what_nobody_foresaw_is_traced_by_the_type_of_its_error(tmp_path: Path) -> None:
    trace, _ = asyncio.run(asked(tmp_path, ZeroDivisionError("quokka")))
    first = trace["spans"][0]["attributes"]
    assert (first["error.type"], first["http.response.status_code"]) == ("ZeroDivisionError", 500)
