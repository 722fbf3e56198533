"""The loop keeps its limit and its order, delivers everything, and ends cleanly."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from rag_harness.core.concurrency import in_a_thread
from rag_harness.core.errors import CriticalError
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Query
from rag_harness.evaluation.judges.mock import MockOpinion
from rag_harness.evaluation.measures import parts_of
from rag_harness.evaluation.measures.opinion import JudgeQuestion, Material, Relevancy
from rag_harness.models.calls import seed_shift
from rag_harness.records.manifest import repeat_fingerprint
from rag_harness.records.row import row_or_none
from rag_harness.records.scores import Author, ScoreLine, parse_score, row_digest
from rag_harness.runs import engine
from rag_harness.runs.engine import JUDGE_SEEDS, BackgroundLoop, LocalWorkplace, Repeating
from rag_harness.runs.journal import JOURNALS, adopt_journals
from rag_harness.runs.judging import RowJudge
from rag_harness.runs.trial import Trial
from rag_harness.stats.agreement import variance_components

Job = Callable[[], Coroutine[Any, Any, str]]


class Jobs:
    """Jobs that end when they are told to, and remember in which order they started."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.in_flight = 0
        self.most = 0
        self.cancelled: list[str] = []
        self._changed = threading.Condition()
        self._gates: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Event]] = {}

    def job(self, name: str) -> Job:
        async def run() -> str:
            gate = asyncio.Event()
            with self._changed:
                self._gates[name] = asyncio.get_running_loop(), gate
                self.started.append(name)
                self.in_flight += 1
                self.most = max(self.most, self.in_flight)
                self._changed.notify_all()
            try:
                await gate.wait()
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            finally:
                self.in_flight -= 1
            return f"{name} done"

        return run

    def end(self, name: str) -> None:
        self.wait_for(name)
        loop, gate = self._gates[name]
        loop.call_soon_threadsafe(gate.set)

    def wait_for(self, name: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: name in self._gates, timeout=5)


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], BackgroundLoop[str]]]:
    made: list[BackgroundLoop[str]] = []

    def start(concurrency: int) -> BackgroundLoop[str]:
        made.append(BackgroundLoop(concurrency))
        return made[-1]

    yield start
    monkeypatch.setattr(engine, "STOP_WAIT", 0.01)
    for each in made:
        each.close()


Make = Callable[[int], BackgroundLoop[str]]


def until(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + 5
    while not condition():
        assert monotonic() < deadline
        sleep(0)


async def at_once() -> str:
    return "done"


def test_at_most_n_are_in_flight_in_the_order_of_submission(make: Make, jobs: Jobs) -> None:
    loop, names = make(3), [f"j{n}" for n in range(12)]
    for name in names:
        loop.submit(name, jobs.job(name))
    for name in names:
        jobs.end(name)
        assert loop.result(name) == f"{name} done"
    assert (jobs.started, jobs.most) == (names, 3)


def test_a_result_that_is_waited_for_goes_first(make: Make, jobs: Jobs) -> None:
    loop = make(1)
    for name in ("a", "b", "c", "d"):
        loop.submit(name, jobs.job(name))
    jobs.wait_for("a")
    waiter = threading.Thread(target=loop.result, args=("d",), daemon=True)
    waiter.start()
    until(lambda: next(iter(loop._waiting)) == "d")
    for name in ("a", "d", "b", "c"):
        jobs.end(name)
    assert [loop.result(name) for name in "abcd"] == [f"{name} done" for name in "abcd"]
    waiter.join()
    assert jobs.started == ["a", "d", "b", "c"]


def test_a_key_is_run_once(make: Make, jobs: Jobs) -> None:
    loop = make(4)
    for _ in range(3):
        loop.submit("a", jobs.job("a"))
    jobs.end("a")
    assert loop.result("a") == loop.result("a") == "a done"
    assert jobs.started == ["a"]


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
def test_an_exception_is_delivered_and_the_others_go_on(make: Make, error: BaseException) -> None:
    async def failing() -> str:
        raise error

    def not_even_a_coroutine() -> Any:
        raise LookupError

    loop = make(1)
    loop.submit("bad", failing)
    loop.submit("worse", not_even_a_coroutine)
    loop.submit("good", at_once)
    with pytest.raises(type(error)):
        loop.result("bad")
    with pytest.raises(LookupError):
        loop.result("worse")
    assert loop.result("good") == "done"


def test_what_is_dropped_does_not_start_and_what_is_under_way_goes_on(make: Make, jobs: Jobs) -> None:
    loop = make(1)
    for name in ("running", "waiting", "last"):
        loop.submit(name, jobs.job(name))
    jobs.wait_for("running")
    for name in ("running", "waiting", "unknown"):
        loop.drop(name)
    jobs.end("running")
    jobs.end("last")
    assert [loop.result("running"), loop.result("last")] == ["running done", "last done"]
    with pytest.raises(CancelledError):
        loop.result("waiting")
    assert jobs.started == ["running", "last"]


def test_close_drops_what_has_not_started_and_waits_for_what_has(make: Make, jobs: Jobs) -> None:
    loop = make(1)
    loop.submit("running", jobs.job("running"))
    loop.submit("waiting", jobs.job("waiting"))
    jobs.wait_for("running")
    closing = threading.Thread(target=loop.close)
    closing.start()
    until(lambda: loop._stopping)
    jobs.end("running")
    closing.join(5)
    assert loop.result("running") == "running done"
    with pytest.raises(CancelledError):
        loop.result("waiting")
    assert jobs.started == ["running"]


def test_a_result_is_safe_before_it_is_seen_and_the_next_job_starts_meanwhile(jobs: Jobs) -> None:
    kept: list[str] = []
    may_keep = threading.Event()

    async def keep(result: str) -> None:
        await asyncio.to_thread(may_keep.wait, 5)
        kept.append(result)

    loop = BackgroundLoop[str](1, keep)
    loop.submit("a", jobs.job("a"))
    loop.submit("b", jobs.job("b"))
    jobs.end("a")
    jobs.wait_for("b")
    assert not loop._futures["a"].done()
    may_keep.set()
    assert (loop.result("a"), kept) == ("a done", ["a done"])
    jobs.end("b")
    loop.close()
    assert (loop.result("b"), kept, loop.in_flight) == ("b done", ["a done", "b done"], 0)


def test_a_result_that_cannot_be_kept_is_an_error(make: Make) -> None:
    async def keep(_: str) -> None:
        raise OSError("disk full")

    loop = BackgroundLoop[str](1, keep)
    loop.submit("a", at_once)
    with pytest.raises(OSError, match="disk full"):
        loop.result("a")
    loop.close()


def test_close_cancels_what_does_not_come_back(make: Make, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "STOP_WAIT", 0.01)
    loop = make(1)
    loop.submit("endless", jobs.job("endless"))
    jobs.wait_for("endless")
    loop.close()
    assert jobs.cancelled == ["endless"]
    with pytest.raises(CancelledError):
        loop.result("endless")


def test_submit_after_close_raises_instead_of_hanging(make: Make) -> None:
    loop = make(1)
    loop.close()
    loop.submit("late", at_once)
    with pytest.raises(CancelledError):
        loop.result("late")
    loop.close()


def test_close_runs_every_last_step_even_where_one_fails(make: Make) -> None:
    ran: list[str] = []

    async def failing() -> None:
        ran.append("failing")
        raise OSError("connection lost")

    async def last() -> None:
        ran.append("last")

    loop = make(1)
    loop.close(failing, last)
    assert ran == ["failing", "last"]
    assert not loop._thread.is_alive()


def test_sync_work_overlaps_up_to_the_limit(make: Make) -> None:
    together = threading.Barrier(24, timeout=5)

    async def sync_work() -> str:
        return str(await asyncio.to_thread(together.wait) >= 0)

    loop = make(24)
    for number in range(24):
        loop.submit(str(number), sync_work)
    assert {loop.result(str(number)) for number in range(24)} == {"True"}


_LEFT_BEHIND = """
import asyncio, gc
from rag_harness.runs import engine
from rag_harness.runs import engine
from rag_harness.runs.engine import BackgroundLoop

engine.STOP_WAIT = 0.1

async def leaves_a_task_behind():
    global left
    left = asyncio.get_running_loop().create_task(asyncio.Event().wait())
    return "done"

async def endless():
    await asyncio.Event().wait()

async def fails():
    raise ValueError

loop = BackgroundLoop(2)
for key, job in {"a": leaves_a_task_behind, "b": fails, "c": endless, "d": endless, "e": endless}.items():
    loop.submit(key, job)
assert loop.result("a") == "done"
loop.close()
del loop, left
gc.collect()
"""


def test_no_warning_is_left_behind() -> None:
    command = [sys.executable, "-X", "dev", "-c", _LEFT_BEHIND]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_what_trials_wait_for_runs_beside_them_on_their_loop() -> None:
    async def where() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    async def fails() -> None:
        raise ValueError("no summary")

    loop = BackgroundLoop[str](concurrency=1)
    free = threading.Event()

    async def fills_the_only_place() -> str:
        while not free.is_set():
            await asyncio.sleep(0.001)
        return "done"

    loop.submit("trial", fills_the_only_place)
    assert loop.run(where()) == "rag-trials"
    with pytest.raises(ValueError, match="no summary"):
        loop.run(fails())
    free.set()
    assert loop.result("trial") == "done"
    loop.close()


def test_nothing_is_started_once_a_result_could_not_be_kept() -> None:
    ran: list[int] = []

    async def job(number: int) -> int:
        ran.append(number)
        return number

    async def full(_: int) -> None:
        raise CriticalError("the disk is full")

    loop = BackgroundLoop[int](2, full)
    for number in range(100):
        loop.submit(number, partial(job, number))
    for number in (0, 99):
        with pytest.raises(CriticalError, match="the disk is full"):
            loop.result(number)
    loop.submit(100, partial(job, 100))
    with pytest.raises(CriticalError, match="the disk is full"):
        loop.result(100)
    loop.close()
    assert len(ran) <= 50


def test_a_job_that_comes_after_another_starts_when_that_one_is_done(
    make: Callable[[int], BackgroundLoop[str]], jobs: Jobs
) -> None:
    loop = make(4)
    for name, after in (("a1", None), ("a2", "a1"), ("a3", "a2"), ("b1", None), ("b2", "b1")):
        loop.submit(name, jobs.job(name), after=after)
    jobs.wait_for("b1")
    assert set(jobs.started) == {"a1", "b1"}
    jobs.end("b1")
    jobs.wait_for("b2")
    assert "a2" not in jobs.started
    for name in ("a1", "a2", "a3"):
        jobs.end(name)
    assert loop.result("a3") == "a3 done"
    jobs.end("b2")
    assert loop.result("b2") == "b2 done"


def test_it_starts_before_those_that_wait_and_also_after_a_failure_or_a_forgotten_key(make: Make, jobs: Jobs) -> None:
    """The slot of the job before it goes to whoever waits: a result is on the disk before the next job is asked."""

    async def fails() -> str:
        raise ValueError("no")

    loop = make(1)
    loop.submit("busy", jobs.job("busy"))
    jobs.wait_for("busy")
    loop.submit("a1", fails)
    for name in ("b1", "b2"):
        loop.submit(name, jobs.job(name))
    loop.submit("a2", jobs.job("a2"), after="a1")
    for name in ("busy", "b1", "a2"):
        jobs.end(name)
    assert loop.result("a2") == "a2 done"
    loop.forget("a2")
    loop.submit("a3", jobs.job("a3"), after="a2")
    for name in ("b2", "a3"):
        jobs.end(name)
    assert loop.result("a3") == "a3 done"
    assert jobs.started == ["busy", "b1", "a2", "b2", "a3"]


def test_who_waits_for_the_last_of_a_row_hurries_the_first(make: Make, jobs: Jobs) -> None:
    loop = make(1)
    loop.submit("busy", jobs.job("busy"))
    jobs.wait_for("busy")
    for name, after in (("x", None), ("a1", None), ("a2", "a1")):
        loop.submit(name, jobs.job(name), after=after)
    waiting = threading.Thread(target=loop.result, args=("a2",))
    waiting.start()
    until(lambda: next(iter(loop._waiting)) == "a1")
    for name in ("busy", "a1", "x", "a2"):
        jobs.end(name)
    waiting.join(5)
    assert jobs.started == ["busy", "a1", "x", "a2"]


@pytest.mark.parametrize("ends", ["drop", "stop"])
def test_what_comes_after_a_dropped_job_is_dropped(make: Make, jobs: Jobs, ends: str) -> None:
    loop = make(1)
    loop.submit("busy", jobs.job("busy"))
    jobs.wait_for("busy")
    for name, after in (("a1", None), ("a2", "a1"), ("a3", "a2")):
        loop.submit(name, jobs.job(name), after=after)
    loop.drop("a2") if ends == "drop" else loop.stop()
    with pytest.raises(CancelledError):
        loop.result("a3")
    jobs.end("busy")
    if ends == "drop":
        jobs.end("a1")
        assert loop.result("a1") == "a1 done"
    assert {"a2", "a3"}.isdisjoint(jobs.started)


# A scripted pipeline and judge with known variances, answered and judged again through the engine's own jobs.

QUERY, PIPELINE, JUDGE = 0.08, 0.06, 0.04
HERE = LocalWorkplace(Settings(), lambda _: "")


def drawn(deviation: float, *of: object) -> float:
    return random.Random(repr(of)).gauss(0, deviation)


class Scripted:
    """A pipeline whose answer is a number: the query's own, and what its seed adds."""

    async def answer(self, query: Query) -> str:
        return str(drawn(QUERY, query.text) + drawn(PIPELINE, query.text, 7 + seed_shift.get()))


class Seeded:
    """A judge that reads that number, and errs by its own seed."""

    name, model, revision = "seeded", "seeded", "1"
    asks_model, deterministic, reads_conversation = False, False, True

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> MockOpinion:
        return _Opinion(material, self.seed)


class _Opinion(MockOpinion):
    def __init__(self, material: Material, seed: int) -> None:
        super().__init__(material)
        self._seed = seed

    async def relevancy(self) -> Relevancy:
        said = self._material
        return Relevancy(float(said.answer) + drawn(JUDGE, said.question, self._seed))


def judging(repeat: int) -> RowJudge:
    first = JUDGE_SEEDS * (repeat - 1)
    return RowJudge(lambda: Seeded(first), lambda *_: [], 5.0, lambda turn: Seeded(first + turn))


async def judged(query: str, repeats: int, turns: int, kept: list[bytes]) -> list[list[float]]:
    """Return the values of one query by answer and judgement."""

    async def keep(line: bytes) -> None:
        kept.append(line)

    repeating = Repeating(HERE, judging, lambda *_: None, keep)
    trial, measures = Trial("mine", Case(Query(query, query))), parts_of(["answer_relevancy"])
    found: list[list[float]] = []
    for repeat in range(1, repeats + 1):
        row = await repeating.answer(trial, repeat, Experiment("mine", Scripted()), "print")
        assert row is not None
        lines = await repeating.judge(trial, repeat, row, measures, turns)
        found.append([value for line in lines if (score := parse_score(line)) and (value := score.value) is not None])
    return found


def test_components_of_a_scripted_run_are_within_10_per_cent() -> None:
    async def every() -> Sequence[list[list[float]]]:
        return [await judged(f"q{n}", 2, 1, []) for n in range(800)]

    found = variance_components(asyncio.run(every()))
    wanted = [deviation**2 for deviation in (QUERY, PIPELINE, JUDGE)]
    assert (found.query, found.pipeline, found.judge) == pytest.approx(wanted, rel=0.1)


def test_a_repeat_is_kept_before_it_is_judged_as_a_row_of_its_own() -> None:
    kept: list[bytes] = []
    asyncio.run(judged("q1", 3, 0, kept))
    rows = [row for row in map(row_or_none, kept) if row is not None]
    assert [row.experiment for row in rows] == ["mine+repeat1", "mine+repeat2", "mine+repeat3"]
    assert [row.fingerprint for row in rows] == [repeat_fingerprint("print", repeat) for repeat in (1, 2, 3)]
    assert len({row.llm_answer for row in rows}) == 3


def test_threads_of_a_repeat_ask_with_its_seed_and_the_next_trial_does_not() -> None:
    class Sync:
        def answer(self, query: Query) -> str:
            return str(seed_shift.get())

    async def both() -> list[str]:
        async def keep(_: bytes) -> None: ...

        repeating = Repeating(HERE, judging, lambda *_: None, keep)
        row = await repeating.answer(Trial("mine", Case(Query("q", "q"))), 3, Experiment("mine", Sync()), "print")
        assert row is not None
        return [row.llm_answer, await in_a_thread(lambda: str(seed_shift.get()))]

    assert asyncio.run(both()) == ["2", "0"]


def test_what_a_killed_run_left_of_repeats_is_taken_over_into_their_files(tmp_path: Path) -> None:
    kept: list[bytes] = []
    asyncio.run(judged("q1", 2, 0, kept))
    row = next(row for row in map(row_or_none, kept) if row is not None and row.experiment == "mine+repeat2")
    score = ScoreLine("answer_relevancy", 1, row.experiment, "q1", row_digest(row), "", Author("j", "m", "1"), 0.5)
    (tmp_path / JOURNALS).mkdir()
    for _ in range(2):
        (tmp_path / JOURNALS / "run-main.jsonl").write_bytes(row.line().encode() + score.line())
        adopt_journals(tmp_path)
    assert (tmp_path / "derived" / "mine+repeat2.jsonl").read_text() == row.line()
    assert (tmp_path / "derived" / "scores" / "mine+repeat2.jsonl").read_bytes() == score.line()
