"""Sends jobs to workers in batches, and the jobs of a dead worker to another. It does not know Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from operator import attrgetter

from rag_harness.engine.distributed.remote import Remote, ReplaceWorker, UnsentError, WorkerLostError
from rag_harness.engine.distributed.run_messages import (
    AnsweredTrial,
    Carried,
    Done,
    Job,
    JudgedScores,
    Opened,
    WantedRows,
)
from rag_harness.engine.distributed.under_way import SentJob, WorkerJobs, fail, give_up, take_left, wanted_rows
from rag_harness.errors import CriticalError
from rag_harness.files.log import log

MOST_DEATHS = 3
"""Workers that may die during one job; then the job is taken for the reason."""
LINGER = 0.01
"""Seconds until a worker is asked again. A call costs this process 0.6 ms, however much it transfers."""
LAST_WORDS = 1.0
"""Seconds that open calls get to return when workers are closed. Over ``ray://`` a cancelled call prints errors."""
HEARD_WITHIN = 300.0
"""Seconds that a worker may be silent. It answers much sooner than that, even when it has finished nothing."""


_by_load = attrgetter("load")


class Dispatch:
    """Sends each job to the worker that has the fewest jobs. Everything runs on one event loop.

    Args:
        remotes: workers that are open.
        replace: starts another.
    """

    def __init__(self, remotes: Sequence[Remote], replace: ReplaceWorker) -> None:
        self._replace = replace
        self._places: list[WorkerJobs] = []
        self._homeless: list[SentJob] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self._closing, self._replacing = False, 0
        self.lost: int = 0
        for remote in remotes:
            self._add(remote)

    async def do(self, job: Job, carried: Carried | None = None) -> AnsweredTrial | JudgedScores:
        """Return the result of ``job``; ``carried`` is its experiment.

        Raises:
            CriticalError: no worker is left. Any other error is the job's own.
        """
        self._number += 1
        sent = SentJob(self._number, job, carried, asyncio.get_running_loop().create_future())
        self._send(sent)
        try:
            return await sent.came
        finally:
            self._forget(sent)

    def _add(self, remote: Remote) -> None:
        place = WorkerJobs(remote)
        self._places.append(place)
        self._spawn(self._listen(place))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _send(self, sent: SentJob) -> None:
        if not self._places and self._replacing:
            self._homeless.append(sent)
            return
        if not self._places:
            sent.came.set_exception(CriticalError("No Ray worker is left, and none can be started."))
            return
        place = sent.place = min(self._places, key=_by_load)
        place.load += 1
        place.outbox.append(sent)
        if place.is_listening:
            self._start_flush(place)

    def _start_flush(self, place: WorkerJobs) -> None:
        if place.outbox and not place.is_sending:
            place.is_sending = True
            self._spawn(self._flush(place))

    async def _flush(self, place: WorkerJobs) -> None:
        try:
            # Jobs that are submitted in the same step of the loop, or during a call, are sent in one call.
            await asyncio.sleep(0)
            while place.outbox:
                await self._flush_once(place)
        except WorkerLostError as error:
            await self._bury(place, error)
        finally:
            place.is_sending = False

    async def _flush_once(self, place: WorkerJobs) -> None:
        # From here on the batch is under way. New jobs go into the next batch, after their own experiment. Where a
        # worker dies while it learns an experiment, the death counts against the jobs that need the experiment.
        batch, place.outbox = [each for each in place.outbox if not each.came.done()], []
        place.sent |= {each.number: each for each in batch}
        for carried in {each.carried.name: each.carried for each in batch if each.carried}.values():
            await self._carry(place, carried, batch)
        ready = [each for each in batch if not each.came.done()]
        if ready:
            await self._take(place, ready)

    async def _take(self, place: WorkerJobs, jobs: Sequence[SentJob]) -> None:
        """Have a worker begin jobs in one call. Where one of them cannot be sent, each gets a call of its own."""
        try:
            await place.remote.take([(each.number, each.job) for each in jobs])
        except WorkerLostError:
            raise
        except Exception as error:
            if len(jobs) == 1 or not isinstance(error, UnsentError):
                fail(jobs, error)
                return
            for each in jobs:
                await self._take(place, [each])

    async def _carry(self, place: WorkerJobs, carried: Carried, batch: Sequence[SentJob]) -> None:
        """Have a worker learn an experiment once. Where it cannot, the jobs that need the experiment fail."""
        if carried.name not in place.carried:
            place.carried[carried.name] = asyncio.ensure_future(place.remote.carry(carried))
        try:
            await asyncio.shield(place.carried[carried.name])
        except WorkerLostError:
            raise
        except Exception as error:
            fail([each for each in batch if each.carried is carried], error)

    async def _listen(self, place: WorkerJobs) -> None:
        try:
            while not self._closing:
                for done in await self._exchange(place):
                    self._settle(place.sent.pop(done.number, None), done)
                await asyncio.sleep(LINGER)
        except asyncio.TimeoutError:
            await self._bury(place, f"not heard of for {HEARD_WITHIN:.0f} s")
        except Exception as error:
            # Where the answer cannot be read, the results since the last call are lost: the worker counts as dead.
            await self._bury(place, error)

    async def _exchange(self, place: WorkerJobs) -> list[Done]:
        """Wait for results of a worker. Jobs that came since the last call are sent in the same call."""
        batch = [each for each in place.outbox if place.knows(each) and not each.came.done()]
        place.outbox = [each for each in place.outbox if not place.knows(each)]
        place.sent |= {each.number: each for each in batch}
        self._start_flush(place)
        place.is_listening = True
        try:
            asked = place.remote.finished([(each.number, each.job) for each in batch])
            return await asyncio.wait_for(asked, HEARD_WITHIN)
        except UnsentError:
            await self._take(place, batch)
            return []
        finally:
            place.is_listening = False

    def _settle(self, sent: SentJob | None, done: Done) -> None:
        if sent is None or sent.came.done():
            return
        if done.error is not None:
            sent.came.set_exception(done.error)
        elif done.result is not None:
            sent.came.set_result(done.result)

    async def _bury(self, place: WorkerJobs, why: object) -> None:
        """Start another worker, take over the rows that the dead one has kept, and send the other jobs again."""
        if self._closing or place not in self._places:
            return
        self._places.remove(place)
        _end(place.remote)
        under_way = [each for each in place.sent.values() if not each.came.done()]
        waiting = [each for each in place.outbox if not each.came.done()]
        log.warning("Worker %s is gone, %d jobs were under way: %s", place.remote.name, len(under_way), why)
        replaced = await self._replaced(place.remote.name, wanted_rows(under_way))
        if replaced is not None:
            self._add(replaced[0])
            take_left(under_way, replaced[1].left)
        self._again([each for each in under_way if not each.came.done()], waiting)

    async def _replaced(self, lost: str, rows: WantedRows) -> tuple[Remote, Opened] | None:
        self._replacing += 1
        try:
            return await self._replace(lost, rows)
        except Exception as error:
            log.error("No worker could be started for %s", lost, exc_info=error)
            return None
        finally:
            self._replacing -= 1

    def _again(self, under_way: Sequence[SentJob], waiting: Sequence[SentJob]) -> None:
        for each in under_way:
            each.deaths += 1
            self.lost += 1
            if each.deaths >= MOST_DEATHS:
                give_up(each)
        homeless, self._homeless = self._homeless, []
        for each in (*under_way, *waiting, *homeless):
            if not each.came.done():
                self._send(each)

    def _forget(self, sent: SentJob) -> None:
        if sent.place is not None:
            sent.place.load -= 1
            sent.place.sent.pop(sent.number, None)

    async def close(self, seconds: float) -> None:
        """Close every worker, within ``seconds``."""
        self._closing = True
        closing = [asyncio.ensure_future(place.remote.close()) for place in self._places]
        if closing:
            await asyncio.wait(closing, timeout=seconds)
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_WORDS)
        for task in (*tasks, *closing):
            task.cancel()
        await asyncio.gather(*tasks, *closing, return_exceptions=True)


def _end(remote: Remote) -> None:
    """End a worker that is taken for dead. It may only be unreachable: then it would go on, and calls cost money."""
    try:
        remote.kill()
    except Exception as error:  # the cluster itself may be gone
        log.debug("Worker %s cannot be ended", remote.name, exc_info=error)
