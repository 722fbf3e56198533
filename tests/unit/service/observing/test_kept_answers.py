"""An answer is there again for its tenant, as long as it is kept."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from rag_harness.service import traces as kept_answers
from rag_harness.service.database import Database
from rag_harness.service.traces import DAY, KeptAnswers, Traces
from tests.unit.service.observing.seen import seen

ANSWERED = {"question": "What is a zebrafish?", "answer": "A quokka [Source 1]."}


def test_only_its_tenant_reads_it_and_who_reads_all(tmp_path: Path) -> None:
    asked = seen(collection="mine", answered=ANSWERED)

    def read(traces: Traces) -> list[Any]:
        traces.keep(asked)
        return [traces.answer(asked.ids.trace_id, whose) for whose in ("mine", "theirs", None)]

    assert answers_of(tmp_path, read) == [ANSWERED, None, ANSWERED]


def test_the_oldest_go_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MOST", 2)
    kept = KeptAnswers()
    for name in ("a", "b", "c"):
        kept.keep(name, "default", 0.0, {"answer": name})
    assert [kept.get(name, None, 0.0) for name in ("a", "b", "c")] == [None, {"answer": "b"}, {"answer": "c"}]


def test_the_oldest_go_where_they_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MOST_KEPT_CHARACTERS", 250)
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
