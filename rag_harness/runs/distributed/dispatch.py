"""A Ray cluster as the workplace of a run: jobs go to workers in batches, and those of a dead worker to another."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rag_harness.core.errors import CriticalError, PrerequisiteError, RagHarnessError
from rag_harness.core.log import log
from rag_harness.core.package import install
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import TrialId
from rag_harness.evaluation.judges.traits import count_elsewhere
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.opinion import Material
from rag_harness.records.row import ExperimentResult, row_or_none
from rag_harness.runs.distributed.messages import (
    AnsweredTrial,
    AskJob,
    Carried,
    Done,
    Job,
    JudgedScores,
    Opened,
    RunOpening,
    TrialJob,
    UnsentError,
    WantedRows,
    WorkerLostError,
)
from rag_harness.runs.journal import JOURNALS
from rag_harness.runs.trial import FIRST, Trial, TrialOutcome, TrialRequest

if TYPE_CHECKING:
    from rag_harness.runs.distributed.cluster import RayLedger, RayNodes, RayWorker


class Remote(Protocol):
    """A worker elsewhere. Each call raises ``WorkerLostError`` where it is gone, else the worker's own error."""

    name: str

    async def carry(self, carried: Carried) -> None: ...

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None: ...

    async def finished(self, jobs: Sequence[tuple[int, Job]]) -> list[Done]: ...

    async def close(self) -> None: ...

    def kill(self) -> None: ...


ReplaceWorker = Callable[[str, WantedRows], Awaitable["tuple[Remote, Opened] | None"]]
"""Starts a worker in place of the dead one of this name, and looks for its rows; None where none can be started."""


@dataclass(eq=False)
class SentJob:
    """A job, the worker that has it, and how many workers have died with it; ``carried`` is its experiment."""

    number: int
    job: Job
    carried: Carried | None
    came: asyncio.Future[AnsweredTrial | JudgedScores]
    place: WorkerJobs | None = None
    deaths: int = 0


@dataclass(eq=False)
class WorkerJobs:
    """A worker, with its jobs and the experiments that it has learned."""

    remote: Remote
    sent: dict[int, SentJob] = field(default_factory=dict)
    outbox: list[SentJob] = field(default_factory=list)
    carried: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    load: int = 0
    is_sending: bool = False
    is_listening: bool = False

    def knows(self, sent: SentJob) -> bool:
        """Return whether the worker has learned the experiment of a job."""
        learned = self.carried.get(sent.carried.name) if sent.carried else None
        return sent.carried is None or (learned is not None and learned.done() and learned.exception() is None)


def fail(jobs: Sequence[SentJob], error: Exception) -> None:
    """End jobs with an error; jobs that have ended stay as they are."""
    for each in jobs:
        if not each.came.done():
            each.came.set_exception(error)


def wanted_rows(jobs: Sequence[SentJob]) -> WantedRows:
    """Return the trials whose rows a dead worker may have kept."""
    trials = [each.job for each in jobs if isinstance(each.job, TrialJob)]
    return frozenset((job.trial.id, job.fingerprint) for job in trials)


def take_left(under_way: Sequence[SentJob], lines: Sequence[bytes]) -> None:
    """Answer jobs with the rows that their worker wrote before it died."""
    rows = _rows(lines)
    for each in under_way:
        if isinstance(each.job, TrialJob):
            row = rows.get((each.job.trial.id, each.job.fingerprint))
            if row is not None and not each.came.done():
                each.came.set_result(AnsweredTrial(TrialOutcome(row)))


def _rows(lines: Sequence[bytes]) -> Mapping[tuple[TrialId, str], ExperimentResult]:
    found = [row for row in map(row_or_none, lines) if row is not None and row.ok]
    return {(row.trial, row.fingerprint): row for row in found}


def give_up(sent: SentJob) -> None:
    """End a job that kills its workers: a trial counts as not run, a judgement ends with an error."""
    why = f"{sent.deaths} workers have died while it was under way: it may need more memory than a node has"
    if isinstance(sent.job, TrialJob):
        sent.came.set_result(AnsweredTrial(TrialOutcome(None, not_run=why)))
    else:
        sent.came.set_exception(RagHarnessError(why))


# Sends jobs to workers in batches, and the jobs of a dead worker to another. It does not know Ray.

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


CLOSE_WAIT = 10.0
"""Seconds that workers get to write their last rows."""
MEET_WAIT = 30.0
"""Seconds that a worker may take to hear of the others."""

_T = TypeVar("_T")
Describe = Callable[[Experiment], Carried]


class RayWorkplace:
    """Workers on the nodes of a cluster.

    Args:
        settings: settings of the run.
        run: id of the run.
        describe: returns what a worker builds an experiment from.
        keep_prompt: writes a prompt that a worker has sent, by its name.
    """

    is_here = False

    def __init__(
        self, settings: Settings, run: str, describe: Describe, keep_prompt: Callable[[str, str], None]
    ) -> None:
        self._settings, self._run = settings, run
        self._describe, self._keep_prompt = describe, keep_prompt
        self._carried: dict[str, Carried] = {}
        self._started = 0
        self._node_of: dict[str, str] = {}
        self._crew: list[RayWorker] = []
        self._telling: list[asyncio.Future[None]] = []
        self._nodes = _nodes(settings)
        self._dispatch: Dispatch | None = None
        self.ledger: RayLedger | None = None
        journals = settings.path(settings.output) / JOURNALS
        # The file stays until the end of the run: workers that replace dead ones look for it too.
        self._shared = journals / self._token
        self._ledger_file = (journals / f"{run}.ledger").absolute()

    async def open(self) -> None:
        """Start the workers, and take over the rows that earlier runs have left on their nodes.

        Raises:
            PrerequisiteError: a worker cannot start. Then nothing is left open.
        """
        try:
            await self._open()
        except BaseException:
            await self.aclose()
            raise

    async def _open(self) -> None:
        self._shared.parent.mkdir(parents=True, exist_ok=True)
        self._shared.touch()
        self.ledger = await asyncio.to_thread(self._nodes.ledger, self._ledger_file)
        nodes = await asyncio.to_thread(self._nodes.plan, _fewest(self._settings))
        self._workers = len(nodes)
        # All workers are made before the first is opened: the thread that makes one cannot be cancelled.
        made = [await self._made(node) for node in nodes]
        workers = await _all([self._opened(worker) for worker in made])
        self._crew = [worker for worker, _ in workers]
        await asyncio.gather(*map(self._introduce, self._crew))
        self._dispatch = Dispatch(self._crew, self._replace)

    @property
    def _token(self) -> str:
        return f"{self._run}.shared"

    async def _start(self, node: str, replaces: str, wanted: WantedRows) -> tuple[RayWorker, Opened]:
        return await self._opened(await self._made(node), replaces, wanted)

    async def _made(self, node: str) -> RayWorker:
        self._started += 1
        return await asyncio.to_thread(self._nodes.worker, f"{self._run}-ray{self._started}", node)

    async def _opened(
        self, worker: RayWorker, replaces: str = "", wanted: WantedRows = frozenset()
    ) -> tuple[RayWorker, Opened]:
        assert self.ledger is not None
        opening = RunOpening(
            self._settings, self._workers, self._run, worker.name, self._token, self.ledger, replaces, wanted
        )
        try:
            opened = await worker.open(opening)
        except BaseException:
            worker.kill()  # else it would start later, unused, and keep its CPU
            raise
        self._node_of[worker.name] = worker.node
        if opened.handed:
            results = self._settings.path(self._settings.output)
            await asyncio.to_thread(_write, results, opened.handed)
            await worker.handed_over(list(opened.handed))
        return worker, opened

    async def _replace(self, lost: str, wanted: WantedRows) -> tuple[RayWorker, Opened] | None:
        """Try to start one worker in place of a dead one: on its node, else on the node with the fewest workers."""
        home = self._node_of.pop(lost, "")
        alive = await asyncio.to_thread(self._nodes.alive)
        busy = Counter(self._node_of.values())
        # Only one node is tried. Where every CPU is taken, each try lasts minutes, and the lost worker's trials wait.
        for node in sorted(alive, key=lambda each: (each != home, busy[each]))[:1]:
            try:
                started = await self._start(node, lost, wanted)
                await self._join(started[0], lost)
                return started
            except Exception as error:
                log.warning("No worker starts on node %s in the place of %s: %s", node[:8], lost, error)
        return None

    async def _join(self, worker: RayWorker, lost: str) -> None:
        """Put a worker in place of the lost one. It learns the others at once; they learn of it while they work."""
        self._crew = [worker if each.name == lost else each for each in self._crew]
        others = [each for each in self._crew if each is not worker]
        self._telling += [asyncio.ensure_future(self._introduce(each)) for each in others]
        await self._introduce(worker)

    async def _introduce(self, worker: RayWorker) -> None:
        """Tell a worker which workers it may ask for vectors. A worker that was not told embeds all texts itself."""
        try:
            await asyncio.wait_for(worker.meet([each.peer for each in self._crew]), MEET_WAIT)
        except Exception as error:
            log.warning("Worker %s has not heard of the others: %s", worker.name, error or type(error).__name__)

    async def ask(self, material: Material, measures: Sequence[JudgedMeasure], turn: int) -> Mapping[str, Score]:
        """Have a worker ask its judge."""
        assert self._dispatch is not None
        job = AskJob(material, tuple(measure.name for measure in measures), turn)
        asked = await self._dispatch.do(job)
        assert isinstance(asked, JudgedScores)
        count_elsewhere(asked.spent)
        return asked.scores

    async def answer(
        self, trial: Trial, experiment: Experiment, fingerprint: str, asking: TrialRequest = FIRST
    ) -> TrialOutcome:
        """Have a worker run one trial."""
        assert self._dispatch is not None
        job = TrialJob(trial, fingerprint, experiment.id, asking)
        answered = await self._dispatch.do(job, self._carry(experiment))
        assert isinstance(answered, AnsweredTrial)
        for digest, content in answered.prompts.items():
            self._keep_prompt(digest, content)
        return answered.outcome

    def _carry(self, experiment: Experiment) -> Carried:
        if experiment.id not in self._carried:
            self._carried[experiment.id] = self._describe(experiment)
        return self._carried[experiment.id]

    async def aclose(self) -> None:
        """Close the workers, and leave the cluster."""
        for telling in self._telling:
            telling.cancel()
        if self._dispatch is not None:
            await self._dispatch.close(CLOSE_WAIT)
        if self.ledger is not None:
            self.ledger.end()
        self._ledger_file.unlink(missing_ok=True)
        self._shared.unlink(missing_ok=True)
        await asyncio.to_thread(self._nodes.leave)


async def _all(starting: Sequence[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Return all results. Where one fails, cancel the others and wait for their end before the error is raised.

    A call that came later would make Ray start a new cluster.
    """
    tasks = [asyncio.ensure_future(each) for each in starting]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _fewest(settings: Settings) -> int:
    """Return how many workers there may be: each has at least one call in flight at every server."""
    return min([settings.concurrency, *(spec.concurrency for spec in settings.endpoints if spec.concurrency)])


def _nodes(settings: Settings) -> RayNodes:
    try:
        from rag_harness.runs.distributed.cluster import RayNodes
    except ImportError as error:
        raise PrerequisiteError(f"--rag-engine=ray needs Ray: {install('ray')}") from error
    return RayNodes(settings)


def _write(results: Path, handed: Mapping[str, bytes]) -> None:
    for name, content in handed.items():
        file = results / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
