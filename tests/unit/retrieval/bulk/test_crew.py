"""A crew: what comes back is in order, memory holds few jobs, and a worker that dies takes none with it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from rag_harness.errors import CriticalError, DataError
from rag_harness.retrieval.bulk.crew import AHEAD, EACH, Crew, Hand, LostError


class Fake:
    """A worker that doubles numbers, and dies in the job ``dies_at``, or after ``lives`` jobs."""

    def __init__(self, name: str, dies_at: int | None = None, seconds: float = 0.0, lives: int = 1000) -> None:
        self.name, self.dies_at, self.seconds, self.lives = name, dies_at, seconds, lives
        self.is_dead = False
        self.done: Counter[int] = Counter()
        self.at_once = self.most = 0

    def call(self, method: str, *given: object) -> object:
        [number] = given
        assert isinstance(number, int)
        self.lives -= 1
        if self.is_dead or self.lives < 0 or number == self.dies_at:
            self.is_dead = True
            raise LostError(self.name)
        if number < 0:
            raise DataError(f"{number} cannot be read")
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        time.sleep(self.seconds * (number % 3))
        self.at_once -= 1
        self.done[number] += 1
        return 2 * number


def _jobs(count: int) -> Iterator[tuple[int]]:
    return ((number,) for number in range(count))


def test_what_comes_back_is_in_the_order_of_the_jobs() -> None:
    crew = Crew([Fake("a", seconds=0.002), Fake("b")])
    assert list(crew.ordered("any", _jobs(40))) == [2 * number for number in range(40)]


def test_one_that_does_one_thing_at_a_time_does_it_where_it_is_asked() -> None:
    class Here(Fake):
        def call(self, method: str, *given: object) -> object:
            threads.add(threading.current_thread())
            return super().call(method, *given)

    threads: set[threading.Thread] = set()
    results = Crew([Here("here")], each=1).ordered("any", _jobs(3))
    assert list(results) == [0, 2, 4]
    assert threads == {threading.current_thread()}  # Ctrl-C has none to wait for


def test_no_more_jobs_are_asked_for_than_there_is_room() -> None:
    asked: list[int] = []

    def jobs() -> Iterator[tuple[int]]:
        for (number,) in _jobs(100):
            asked.append(number)
            yield (number,)

    hands = [Fake("a"), Fake("b")]
    results = Crew(hands).ordered("any", jobs())
    assert next(results) == 0
    assert len(asked) <= len(hands) * EACH * AHEAD
    assert len(list(results)) == 99
    assert max(hand.most for hand in hands) <= EACH


@pytest.mark.parametrize("lives", [0, 1, 7, 19])
def test_jobs_of_a_worker_that_died_are_done_by_another_and_by_no_two(lives: int) -> None:
    hands = [Fake("a", lives=lives), Fake("b", seconds=0.001)]
    started: list[Fake] = []

    def replace(_: Hand) -> Fake:
        started.append(Fake(f"c{len(started)}"))
        return started[-1]

    crew = Crew(hands, replace)
    assert list(crew.ordered("any", _jobs(40))) == [2 * number for number in range(40)]
    done = sum((hand.done for hand in [*hands, *started]), Counter())
    assert done == Counter(range(40))
    assert crew.lost == len(started) <= 1


def test_the_others_go_on_where_nothing_can_be_started() -> None:
    hands = [Fake("a", lives=2), Fake("b", seconds=0.001)]
    assert len(list(Crew(hands).ordered("any", _jobs(20)))) == 20
    assert hands[0].is_dead


def test_without_a_worker_left_the_work_ends() -> None:
    with pytest.raises(CriticalError, match="No worker is left, and none can be started"):
        list(Crew([Fake("a", lives=2), Fake("b", lives=3)]).ordered("any", _jobs(20)))


def test_documents_over_which_workers_die_again_and_again_end_the_work() -> None:
    with pytest.raises(CriticalError, match="3 workers have died over the same documents"):
        list(Crew([Fake("a", 5)], lambda _: Fake("next", 5)).ordered("any", _jobs(20)))


def test_what_a_worker_raises_comes_through() -> None:
    with pytest.raises(DataError, match="-1 cannot be read"):
        list(Crew([Fake("a")]).ordered("any", [(1,), (-1,), (2,)]))


def test_who_leaves_early_leaves_no_thread_behind() -> None:
    before = {*threading.enumerate()}
    results = Crew([Fake("a"), Fake("b")]).ordered("any", _jobs(100))
    next(results)
    results.close()  # type: ignore[attr-defined]
    _wait_for_threads(before)


def test_workers_that_end_with_the_work_are_not_replaced() -> None:
    gate, before = threading.Event(), {*threading.enumerate()}
    started: list[Hand] = []

    class Slow(Fake):
        def call(self, method: str, *given: object) -> object:
            gate.wait(5)
            raise LostError(self.name)

    results = Crew([Fake("a"), Slow("b")], started.append).ordered("any", _jobs(100))
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    gate.set()
    _wait_for_threads(before)
    assert not started


def _wait_for_threads(before: set[threading.Thread]) -> None:
    end = time.monotonic() + 5
    while {*threading.enumerate()} - before and time.monotonic() < end:
        time.sleep(0.001)
    assert not {*threading.enumerate()} - before
