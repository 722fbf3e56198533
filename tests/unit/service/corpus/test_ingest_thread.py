"""One document after the other, of each collection in turn; and an end in time."""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import partial

import pytest

from rag_harness.data.loaders.child_process import Child, PassingError
from rag_harness.service.corpus import intake
from rag_harness.service.corpus.intake import IngestThread
from rag_harness.service.problems import ProblemError


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
