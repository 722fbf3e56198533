from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from qdrant_client import QdrantClient

from rag_harness.errors import CriticalError
from rag_harness.retrieval.indexes.server.lease import SILENCE, Lease, process_name
from rag_harness.retrieval.indexes.server.ledger import CollectionLedger, Entry
from rag_harness.retrieval.indexes.server.taking import WantedChange, acquire
from rag_harness.work.reporting import listening
from tests.unit.retrieval.indexes.server.made import FastClock

PROCESS = process_name()


@pytest.fixture
def ledger() -> Iterator[CollectionLedger]:
    client = QdrantClient(":memory:")
    yield CollectionLedger(client)
    client.close()


def taken(
    ledger: CollectionLedger, holder: str = PROCESS, wait: float = 600, whole: bool = False, **more: Any
) -> Lease | None:
    wanted = WantedChange("c", 10, wait, holder)
    clock = more.pop("clock", FastClock())
    return acquire(ledger, wanted, lambda: whole, clock.clock, beats=False)


def held(ledger: CollectionLedger, holder: str = "another") -> Lease:
    lease = taken(ledger, holder)
    assert lease is not None
    return lease


def there(ledger: CollectionLedger) -> Entry:
    found = ledger.read("c")
    assert found is not None
    return found


def test_what_nobody_changes_is_anybodys(ledger: CollectionLedger) -> None:
    lease = held(ledger, PROCESS)
    assert (there(ledger).holder, there(ledger).changing, there(ledger).total) == (PROCESS, True, 10)
    lease.progress(7)
    lease.beat()
    assert (there(ledger).done, there(ledger).turn) == (7, 1)
    lease.give_back()
    assert not there(ledger).changing
    lease.beat()
    assert not there(ledger).changing  # a heartbeat that comes late takes nothing back
    assert held(ledger, "another").turn == 3


def test_nothing_is_taken_where_nothing_is_left_to_do(ledger: CollectionLedger) -> None:
    assert taken(ledger, whole=True) is None
    assert ledger.read("c") is None


def test_a_run_that_is_at_it_is_waited_for_and_named(ledger: CollectionLedger) -> None:
    other, clock = held(ledger), FastClock()
    other.progress(4)
    other.beat()
    with pytest.raises(CriticalError, match=r"c is being changed by another run \(.*:\d+, 4 of 10 chunks.*after 40 s"):
        taken(ledger, wait=40, clock=clock)
    assert clock.seconds == 40
    assert there(ledger).holder == "another"


def test_what_a_dead_run_had_made_is_waited_for_once(ledger: CollectionLedger) -> None:
    held(ledger)
    clock, later = FastClock(), FastClock()
    assert taken(ledger, clock=clock, whole=True) is None
    assert clock.seconds >= SILENCE
    assert (there(ledger).holder, there(ledger).changing) == ("another", False)
    assert taken(ledger, clock=later, whole=True) is None
    assert later.seconds == 0


def test_what_another_run_has_made_is_read(ledger: CollectionLedger) -> None:
    other, clock = held(ledger), FastClock()
    heard: list[tuple[str, int, int]] = []

    def sleep(seconds: float) -> None:
        FastClock.sleep(clock, seconds)
        if clock.seconds > 10:
            other.give_back()

    wanted = WantedChange("c", 10, 600)
    with listening(lambda what, done, total, unit: heard.append((what, done, total))):
        made = acquire(ledger, wanted, lambda: True, replace(clock.clock, sleep=sleep), beats=False)
    assert made is None
    assert clock.seconds < 15
    assert heard[0][0].startswith("waiting for ")
    assert heard[-1] == ("waiting", 1, 1)


def test_a_holder_that_falls_silent_is_dead_and_one_that_does_not_is_not(ledger: CollectionLedger) -> None:
    other, clock = held(ledger), FastClock()
    beats = [30.0, 60.0, 90.0]

    def sleep(seconds: float) -> None:
        FastClock.sleep(clock, seconds)
        if beats and clock.seconds >= beats[0]:
            beats.pop(0)
            other.beat()

    mine = acquire(ledger, WantedChange("c", 10, 600), lambda: False, replace(clock.clock, sleep=sleep), beats=False)
    assert mine is not None
    assert 90 + SILENCE <= clock.seconds < 100 + SILENCE
    assert there(ledger).holder == PROCESS


def test_clocks_an_hour_apart_change_nothing(ledger: CollectionLedger) -> None:
    other = held(ledger)
    for heard in ("2001-01-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00"):
        entry = replace(there(ledger), turn=other.turn + 1, heard=heard)
        assert ledger.write(entry, other.turn)
        other._entry = entry
        with pytest.raises(CriticalError, match=f"last heard of {heard[:4]}"):
            taken(ledger, wait=SILENCE - 5)


def test_who_was_taken_for_dead_finds_out(ledger: CollectionLedger) -> None:
    other = held(ledger)
    assert taken(ledger) is not None
    other.check()
    other.beat()
    with pytest.raises(CriticalError, match=r"Another run has taken over collection c.*Run again"):
        other.check()
    other.give_back()
    assert (there(ledger).holder, there(ledger).changing) == (PROCESS, True)


def test_a_process_takes_again_what_is_its_own(ledger: CollectionLedger) -> None:
    held(ledger, PROCESS)
    clock = FastClock()
    assert taken(ledger, clock=clock) is not None
    assert clock.seconds == 0


def test_a_process_that_was_forked_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getpid", lambda: 1)
    assert WantedChange("c", 1, 1).holder == process_name() != PROCESS


def test_an_answer_that_is_lost_is_no_lease_that_is_lost(ledger: CollectionLedger) -> None:
    mine = held(ledger, PROCESS)
    turn = there(ledger).turn
    assert ledger.write(replace(there(ledger), turn=turn + 1, heard="then"), turn)  # the holder was not told
    mine.beat()
    mine.check()
    mine.beat()
    assert there(ledger).turn == turn + 2


def test_a_heartbeat_is_given_by_a_thread(ledger: CollectionLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_harness.retrieval.indexes.server.lease.BEAT", 0.001)
    entry = there(ledger) if held(ledger, PROCESS) else None
    assert entry is not None
    lease = Lease(ledger, entry)
    for _ in range(2_000):
        lease._ended.wait(0.001)
        if there(ledger).turn >= entry.turn + 2:
            break
    lease.give_back()
    assert there(ledger).turn > entry.turn + 2
    assert not there(ledger).changing
