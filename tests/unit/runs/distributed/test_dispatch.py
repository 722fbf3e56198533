"""Jobs of workers that die: every query one row, and what was kept is not paid for again."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.errors import CriticalError, PrerequisiteError, RagHarnessError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Answer, Case, PipelineOutput, Query
from rag_harness.evaluation.measures.opinion import Material
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.distributed.dispatch import HEARD_WITHIN, Dispatch
from rag_harness.runs.distributed.messages import (
    AnsweredTrial,
    AskJob,
    Carried,
    Done,
    Job,
    JudgedScores,
    Opened,
    TrialJob,
    UnsentError,
    WantedRows,
    WorkerLostError,
)
from rag_harness.runs.trial import Trial, TrialOutcome, make_row
from tests.unit.virtual_time import run

CARRIED = Carried("e3", b"", "", (), "", {})
SETTINGS = Settings(profile="mock")


def _job(number: int, experiment: str = "e3") -> TrialJob:
    return TrialJob(Trial(experiment, Case(Query(f"q{number}", "?"), "direct", "", {})), "print")


def _row(trial: Trial) -> ExperimentResult:
    return make_row(trial, PipelineOutput(Answer("yes")), None, 1.0, SETTINGS, "print")


def _asks(job: Job, query: str) -> bool:
    return isinstance(job, TrialJob) and job.trial.case.query.query_id == query


class Cluster:
    """Workers in this process. What one has kept, the next can read."""

    def __init__(self, seconds: float = 1.0, keeps: bool = True) -> None:
        self.seconds, self.keeps = seconds, keeps
        self.calls: Counter[str] = Counter()
        self.kept: list[bytes] = []
        self.workers: list[Fake] = []
        self.most = self.batches = self.exchanges = 0
        self.replaces = True
        self.deadly = ""
        self.garbled = 0
        self.unsendable: Exception | None = None
        self.heavy = ""
        self.cannot_start: Exception | None = None
        self.cannot_end: Exception | None = None
        self.ended: list[str] = []
        self.wanted: list[WantedRows] = []
        self.refusal: Exception | None = None

    def start(self) -> Fake:
        self.workers.append(Fake(self, f"w{len(self.workers)}"))
        return self.workers[-1]

    async def replace(self, lost: str, wanted: WantedRows) -> tuple[Fake, Opened] | None:
        self.wanted.append(wanted)
        await asyncio.sleep(0.5)
        if self.cannot_start:
            raise self.cannot_start
        return (self.start(), Opened(tuple(self.kept))) if self.replaces else None

    def kill(self, index: int) -> None:
        self.workers[index].die()


class Fake:
    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name, self.is_dead = cluster, name, False
        self.done: list[Done] = []
        self.has_done = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self.carried: list[str] = []
        self.hangs = False
        self.rode_along = 0

    def die(self) -> None:
        self.is_dead = True
        self.has_done.set()
        for task in self.tasks:
            task.cancel()

    def _check(self) -> None:
        if self.is_dead:
            raise WorkerLostError(self.name)

    async def carry(self, carried: Carried) -> None:
        self._check()
        if self.cluster.refusal:
            raise self.cluster.refusal
        self.carried.append(carried.name)

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None:
        await asyncio.sleep(0.001)
        self._check()
        if self.cluster.unsendable:
            raise self.cluster.unsendable
        if any(_asks(job, self.cluster.heavy) for _, job in jobs):
            raise UnsentError("it holds a lock")
        self.cluster.batches += 1
        for number, job in jobs:
            self.tasks.add(asyncio.create_task(self._answer(number, job)))

    async def _answer(self, number: int, job: Job) -> None:
        query = job.trial.case.query.query_id if isinstance(job, TrialJob) else job.material.question
        self.cluster.calls[query] += 1
        if query == self.cluster.deadly:
            self.die()
            return
        assert isinstance(job, TrialJob)
        await asyncio.sleep(self.cluster.seconds)
        row = _row(job.trial)
        if self.cluster.keeps:
            self.cluster.kept.append(row.line().encode())
        await asyncio.sleep(0.01)
        self.done.append(Done(number, AnsweredTrial(TrialOutcome(row))))
        self.has_done.set()

    async def finished(self, jobs: Sequence[tuple[int, Job]]) -> list[Done]:
        self.cluster.exchanges += 1
        if jobs:
            self.rode_along += len(jobs)
            await self.take(jobs)
        if self.hangs:
            await asyncio.Event().wait()
        await self.has_done.wait()
        self._check()
        self.has_done.clear()
        done, self.done = self.done, []
        if self.cluster.garbled:
            self.cluster.garbled -= 1
            raise ModuleNotFoundError("somebody")
        return done

    async def close(self) -> None:
        self._check()

    def kill(self) -> None:
        self.cluster.ended.append(self.name)
        self.die()
        if self.cluster.cannot_end:
            raise self.cluster.cannot_end


async def _all(dispatch: Dispatch, count: int) -> list[str]:
    found = await asyncio.gather(*(dispatch.do(_job(number), CARRIED) for number in range(count)))
    return [_query(each) for each in found]


def _query(answered: AnsweredTrial | JudgedScores) -> str:
    assert isinstance(answered, AnsweredTrial)
    return answered.outcome.row.query_id if answered.outcome.row else answered.outcome.not_run


def test_jobs_go_in_batches_to_whoever_has_fewest() -> None:
    async def go() -> None:
        cluster = Cluster()
        dispatch = Dispatch([cluster.start(), cluster.start()], cluster.replace)
        assert await _all(dispatch, 100) == [f"q{number}" for number in range(100)]
        assert cluster.batches == 2
        assert {len(worker.tasks) for worker in cluster.workers} == {50}
        assert [worker.carried for worker in cluster.workers] == [["e3"], ["e3"]]
        await dispatch.close(1)

    run(go())


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.booleans())
def test_whenever_workers_die_every_query_has_one_row(chance: random.Random, keeps: bool) -> None:
    async def go() -> None:
        cluster = Cluster(keeps=keeps)
        dispatch = Dispatch([cluster.start(), cluster.start()], cluster.replace)
        every = asyncio.ensure_future(_all(dispatch, 30))
        for _ in range(2):
            await asyncio.sleep(chance.uniform(0, 1.5))
            cluster.kill(chance.randrange(len(cluster.workers)))
        assert await every == [f"q{number}" for number in range(30)]
        assert cluster.calls.total() <= 30 + dispatch.lost
        await dispatch.close(1)

    run(go())


def test_rows_that_a_dead_worker_had_kept_are_not_asked_for_again() -> None:
    async def go() -> None:
        cluster = Cluster()
        dispatch = Dispatch([cluster.start()], cluster.replace)
        every = asyncio.ensure_future(_all(dispatch, 20))
        await asyncio.sleep(1.005)  # kept, and not yet told
        cluster.kill(0)
        assert len(await every) == 20
        assert cluster.calls.total() == 20
        await dispatch.close(1)

    run(go())


def test_a_trial_that_kills_its_workers_is_given_up_and_says_so() -> None:
    async def go() -> None:
        cluster = Cluster()
        cluster.deadly = "q1"
        dispatch = Dispatch([cluster.start()], cluster.replace)
        found = await _all(dispatch, 1 + 1)
        assert found[0] == "q0" or "3 workers have died" in found[0]
        assert "3 workers have died while it was under way" in found[1]
        assert cluster.calls["q1"] == 3
        await dispatch.close(1)

    run(go())


def test_an_answer_that_kills_its_judges_is_given_up_and_says_so() -> None:
    async def go() -> None:
        cluster = Cluster()
        cluster.deadly = "Is it free?"
        dispatch = Dispatch([cluster.start()], cluster.replace)
        with pytest.raises(RagHarnessError, match="3 workers have died while it was under way"):
            await dispatch.do(AskJob(Material("Is it free?", "Yes."), ("faithfulness",), 0))
        await dispatch.close(1)

    run(go())


@pytest.mark.parametrize("cannot_end", [None, ConnectionError("the cluster is gone")])
def test_a_worker_that_cannot_be_reached_is_ended_for_it_may_live_on(cannot_end: Exception | None) -> None:
    async def go() -> None:
        cluster = Cluster()
        cluster.cannot_end = cannot_end
        dispatch = Dispatch([cluster.start()], cluster.replace)
        every = asyncio.ensure_future(_all(dispatch, 3))
        await asyncio.sleep(0.5)
        cluster.kill(0)
        assert len(await every) == 3
        assert cluster.ended == ["w0"]
        await dispatch.close(1)

    run(go())


def test_without_a_worker_the_run_stops() -> None:
    async def go() -> None:
        cluster = Cluster()
        cluster.replaces = False
        dispatch = Dispatch([cluster.start()], cluster.replace)
        every = asyncio.ensure_future(_all(dispatch, 3))
        await asyncio.sleep(0.5)
        cluster.kill(0)
        with pytest.raises(CriticalError, match="No Ray worker is left"):
            await every
        with pytest.raises(CriticalError, match="No Ray worker is left"):
            await dispatch.do(_job(9), CARRIED)
        await dispatch.close(1)

    run(go())


def test_what_a_worker_cannot_build_fails_with_its_reason() -> None:
    async def go() -> None:
        cluster = Cluster()
        cluster.refusal = PrerequisiteError("documents differ")
        dispatch = Dispatch([cluster.start()], cluster.replace)
        with pytest.raises(PrerequisiteError, match="documents differ"):
            await _all(dispatch, 3)
        assert not cluster.calls
        await dispatch.close(1)

    run(go())


def test_an_experiment_is_carried_to_a_worker_once() -> None:
    async def go() -> None:
        cluster = Cluster()
        dispatch = Dispatch([cluster.start()], cluster.replace)
        for number in range(3):
            await dispatch.do(_job(number), CARRIED)
        assert cluster.batches == 3
        assert cluster.workers[0].carried == ["e3"]
        await dispatch.close(1)

    run(go())


def test_what_comes_while_a_call_is_under_way_goes_in_the_next() -> None:
    async def go() -> None:
        cluster = Cluster()
        dispatch = Dispatch([cluster.start()], cluster.replace)
        every = []
        for number in range(20):
            every.append(asyncio.ensure_future(dispatch.do(_job(number), CARRIED)))
            await asyncio.sleep(0.0001)  # a call takes ten times as long
        await asyncio.gather(*every)
        assert cluster.batches <= 4
        await dispatch.close(1)

    run(go())


def test_jobs_that_come_while_rows_come_back_go_in_the_call_that_asks_for_more() -> None:
    async def go() -> None:
        cluster = Cluster()
        dispatch = Dispatch([cluster.start()], cluster.replace)
        numbers = iter(range(100))

        async def slot() -> None:
            for number in numbers:
                await dispatch.do(_job(number), CARRIED)

        await asyncio.gather(*(slot() for _ in range(10)))
        worker = cluster.workers[0]
        assert worker.rode_along == 90  # all but the first ten, which began before anything had come back
        assert cluster.calls.total() == 100
        assert cluster.exchanges <= 1 + 10 + 1
        await dispatch.close(1)

    run(go())


def test_jobs_of_what_is_known_do_not_wait_for_another_experiment_to_be_learned() -> None:
    async def go() -> None:
        school = School()
        dispatch = Dispatch([school.start()], school.replace)
        await dispatch.do(_job(0), CARRIED)
        first, began = asyncio.ensure_future(dispatch.do(_job(1), CARRIED)), asyncio.get_running_loop().time()
        await asyncio.sleep(0.5)
        other = asyncio.ensure_future(dispatch.do(_job(2, "e4"), replace(CARRIED, name="e4")))
        await first
        await dispatch.do(_job(3), CARRIED)
        assert asyncio.get_running_loop().time() - began < 2.2
        assert not other.done()
        assert _query(await other) == "q2"
        await dispatch.close(1)

    run(go())


def test_a_worker_that_says_nothing_for_minutes_is_ended_and_its_jobs_done_by_another() -> None:
    async def go() -> None:
        cluster = Cluster(keeps=False)
        dispatch = Dispatch([cluster.start()], cluster.replace)
        cluster.workers[0].hangs = True
        assert await _all(dispatch, 5) == [f"q{number}" for number in range(5)]
        assert HEARD_WITHIN <= asyncio.get_running_loop().time() < HEARD_WITHIN + 5
        assert [worker.is_dead for worker in cluster.workers] == [True, False]
        await dispatch.close(1)

    run(go())


def test_jobs_that_cannot_be_sent_with_a_call_fail_and_the_worker_goes_on() -> None:
    async def go() -> None:
        cluster = Cluster()
        dispatch = Dispatch([cluster.start()], cluster.replace)
        await dispatch.do(_job(0), CARRIED)
        cluster.unsendable = UnsentError("cannot pickle")
        with pytest.raises(UnsentError, match="cannot pickle"):
            await dispatch.do(_job(1), CARRIED)
        cluster.unsendable = None
        assert _query(await dispatch.do(_job(2), CARRIED)) == "q2"
        assert len(cluster.workers) == 1
        await dispatch.close(1)

    run(go())


@pytest.mark.parametrize("knows", [True, False])
def test_a_job_that_cannot_be_sent_takes_none_with_it_that_went_in_the_same_call(knows: bool) -> None:
    async def go() -> None:
        cluster = Cluster()
        cluster.heavy = "q1"
        dispatch = Dispatch([cluster.start()], cluster.replace)
        if knows:
            await dispatch.do(_job(9), CARRIED)
        jobs = [dispatch.do(_job(number), CARRIED) for number in range(3)]
        first, heavy, last = await asyncio.gather(*jobs, return_exceptions=True)
        assert isinstance(heavy, UnsentError)
        assert [_query(each) for each in (first, last) if isinstance(each, AnsweredTrial)] == ["q0", "q2"]
        assert len(cluster.workers) == 1
        await dispatch.close(1)

    run(go())


def test_load_goes_back_when_jobs_end_and_when_nobody_waits_for_them() -> None:
    async def go() -> None:
        cluster = Cluster()
        dispatch = Dispatch([cluster.start(), cluster.start()], cluster.replace)
        waiting = [asyncio.ensure_future(dispatch.do(_job(number), CARRIED)) for number in range(10)]
        await asyncio.sleep(0.5)
        for each in waiting[::2]:  # all of the first worker's
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert [place.load for place in dispatch._places] == [0, 0]
        assert [len(place.sent) for place in dispatch._places] == [0, 0]
        await dispatch.close(1)

    run(go())


def test_a_worker_that_cannot_be_understood_is_ended_and_its_jobs_done_by_another() -> None:
    async def go() -> None:
        cluster = Cluster(keeps=False)
        cluster.garbled = 1
        dispatch = Dispatch([cluster.start()], cluster.replace)
        assert await asyncio.wait_for(_all(dispatch, 5), 30) == [f"q{number}" for number in range(5)]
        assert [worker.is_dead for worker in cluster.workers] == [True, False]
        assert cluster.wanted == [frozenset((_job(number).trial.id, "print") for number in range(5))]
        await dispatch.close(1)

    run(go())


def test_a_job_that_cannot_be_sent_fails_with_the_reason() -> None:
    async def go() -> None:
        cluster = Cluster()
        cluster.unsendable = TypeError("cannot pickle")
        dispatch = Dispatch([cluster.start()], cluster.replace)
        with pytest.raises(TypeError, match="cannot pickle"):
            await asyncio.wait_for(_all(dispatch, 2), 30)
        await dispatch.close(1)

    run(go())


def test_where_no_worker_can_be_started_the_others_do_the_jobs() -> None:
    async def go() -> None:
        cluster = Cluster(keeps=False)
        cluster.cannot_start = OSError("the head is gone")
        dispatch = Dispatch([cluster.start(), cluster.start()], cluster.replace)
        every = asyncio.ensure_future(_all(dispatch, 10))
        await asyncio.sleep(0.5)
        cluster.kill(0)
        assert await asyncio.wait_for(every, 30) == [f"q{number}" for number in range(10)]
        assert len(cluster.workers) == 2
        await dispatch.close(1)

    run(go())


class Pupil(Fake):
    """Takes two seconds to learn an experiment, and refuses a job of one that it has not learned."""

    dies_of = ""

    async def carry(self, carried: Carried) -> None:
        await asyncio.sleep(2)
        if carried.name == self.dies_of:
            self.die()
        await super().carry(carried)

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None:
        for _, job in jobs:
            assert isinstance(job, TrialJob)
            assert job.trial.experiment in self.carried
        await super().take(jobs)


class School(Cluster):
    def start(self) -> Fake:
        self.workers.append(Pupil(self, f"w{len(self.workers)}"))
        return self.workers[-1]


def test_a_job_that_comes_while_another_experiment_is_learned_waits_for_its_own() -> None:
    async def go() -> None:
        school = School()
        dispatch = Dispatch([school.start()], school.replace)
        first = asyncio.ensure_future(dispatch.do(_job(0), CARRIED))
        await asyncio.sleep(1)
        second = asyncio.ensure_future(dispatch.do(_job(1, "e4"), replace(CARRIED, name="e4")))
        assert [_query(await first), _query(await second)] == ["q0", "q1"]
        assert school.workers[0].carried == ["e3", "e4"]
        await dispatch.close(1)

    run(go())


def test_an_experiment_that_kills_whoever_learns_it_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pupil, "dies_of", "e3")

    async def go() -> None:
        school = School()
        dispatch = Dispatch([school.start()], school.replace)
        found = await asyncio.wait_for(_all(dispatch, 2), 60)
        assert all("3 workers have died while it was under way" in each for each in found)
        await dispatch.close(1)

    run(go())
