"""The engine of a run: the event loop, its jobs, their order and repeats, and the workplace that answers."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from rag_harness.core.concurrency import inline
from rag_harness.core.errors import CriticalError
from rag_harness.core.log import log
from rag_harness.core.settings import Settings
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.models.calls import Session
from rag_harness.models.endpoints import chat_name, is_simulated
from rag_harness.pipelines.experiments import answering, built_in
from rag_harness.records.manifest import is_played_name, repeat_fingerprint, repeat_name
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.trial import FIRST, ConversationEnd, KeepPrompt, Trial, TrialOutcome, TrialRequest, answer_trial

if TYPE_CHECKING:
    from rag_harness.core.protocols import Experiment
    from rag_harness.evaluation.measures import Score
    from rag_harness.evaluation.measures.opinion import Material
    from rag_harness.runs.judging import Find, PanelJudging, RowJudge


_T = TypeVar("_T")
DependentJob = Callable[[], Coroutine[Any, Any, _T]]


class DependentJobs(Generic[_T]):
    """Jobs by key, each with the key that it comes after. The caller must have a lock."""

    def __init__(self) -> None:
        self._after: dict[Hashable, Hashable] = {}
        self._jobs: dict[Hashable, dict[Hashable, DependentJob[_T]]] = {}

    def put(self, key: Hashable, job: DependentJob[_T], after: Hashable) -> None:
        """Put a job behind the one called ``after``."""
        self._after[key] = after
        self._jobs.setdefault(after, {})[key] = job

    def has(self, key: Hashable) -> bool:
        """Return whether the job is behind another."""
        return key in self._after

    def head(self, key: Hashable) -> Hashable:
        """Return the first of the jobs before this one; the key itself, where it comes after nothing."""
        while key in self._after:
            key = self._after[key]
        return key

    def take(self, key: Hashable) -> list[tuple[Hashable, DependentJob[_T]]]:
        """Remove and return the jobs that come next after this one."""
        found = self._jobs.pop(key, {})
        for each in found:
            del self._after[each]
        return list(found.items())

    def take_all(self, key: Hashable) -> list[Hashable]:
        """Remove this job, and all that come after it, and return the keys of those after it."""
        if key in self._after:
            del self._jobs[self._after.pop(key)][key]
        found = [each for each, _ in self.take(key)]
        return [*found, *(later for each in found for later in self.take_all(each))]

    def clear(self) -> list[Hashable]:
        """Remove all jobs and return their keys."""
        found = list(self._after)
        self._after.clear()
        self._jobs.clear()
        return found


_R = TypeVar("_R")
Job = Callable[[], Coroutine[Any, Any, _T]]
Keep = Callable[[_T], Awaitable[None]]

STOP_WAIT = 5.0
"""Seconds that calls under way get to finish when a run is stopped."""


class BackgroundLoop(Generic[_T]):
    """Jobs by key, run in the order of submission, at most ``concurrency`` at once.

    All methods but ``submit`` are called from the thread of the tests.

    Args:
        concurrency: jobs in flight at once.
        keep: writes a result to the disk before it is returned. The next job starts meanwhile.
    """

    def __init__(self, concurrency: int, keep: Keep[_T] | None = None) -> None:
        self._concurrency, self._keep = concurrency, keep
        self._waiting: OrderedDict[Hashable, Job[_T]] = OrderedDict()
        self._behind = DependentJobs[_T]()
        self._futures: dict[Hashable, Future[_T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.in_flight: int = 0
        self._lock = threading.Lock()
        self._stopping = False
        self._broken: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="rag-trials", daemon=True)
        self._thread.start()

    def submit(self, key: Hashable, job: Job[_T], first: bool = False, after: Hashable = None) -> None:
        """Queue ``job`` first or last, unless ``key`` is known. After ``close`` the job counts as cancelled.

        A running job may submit another. A job that comes ``after`` another is queued, first, when the result of that
        one is on the disk, or when it has none. ``after`` was submitted before; a key that is forgotten counts as done.
        """
        with self._lock:
            if key in self._futures:
                return
            self._futures[key] = Future()
            if self._stopping:
                self._give_up(key)
                return
            if after in self._futures and not self._futures[after].done():
                self._behind.put(key, job, after)
                return
            self._waiting[key] = job
            if first:
                self._waiting.move_to_end(key, last=False)
            is_only = len(self._waiting) == 1
        if is_only:
            self._loop.call_soon_threadsafe(self._start_jobs)

    def result(self, key: Hashable) -> _T:
        """Wait for a submitted job. If it has not started, it is the next to start, behind what it comes after.

        Raises:
            CancelledError: the loop was closed before the job was done. Any other error is the job's own.
        """
        future = self._futures[key]
        if not future.done():
            self._hurry(key)
        return future.result()

    def _hurry(self, key: Hashable) -> None:
        with self._lock:
            first = self._behind.head(key)
            if first in self._waiting:
                self._waiting.move_to_end(first, last=False)

    def run(self, work: Coroutine[Any, Any, _R]) -> _R:
        """Run ``work`` beside the jobs, not as a job, and return its result. Call it from another thread."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def forget(self, key: Hashable) -> None:
        """Drop a result that nobody will ask for again."""
        del self._futures[key]

    def drop(self, key: Hashable) -> None:
        """Do not start a waiting job, nor those that come after it. A running job goes on."""
        with self._lock:
            is_waiting = self._waiting.pop(key, None) is not None or self._behind.has(key)
            for dropped in [key, *self._behind.take_all(key)] if is_waiting else ():
                self._futures[dropped].cancel()

    def stop(self) -> None:
        """Start no more jobs."""
        with self._lock:
            self._stopping = True
            for key in (*self._waiting, *self._behind.clear()):
                self._give_up(key)
            self._waiting.clear()

    def _give_up(self, key: Hashable) -> None:
        if self._broken is not None:
            self._futures[key].set_exception(self._broken)
        else:
            self._futures[key].cancel()

    def close(self, *finally_: Callable[[], Awaitable[None]]) -> None:
        """Drop waiting jobs, give running ones a few seconds, run ``finally_`` and end the loop."""
        self.stop()
        if self._thread.is_alive():
            try:
                asyncio.run_coroutine_threadsafe(self._wind_down(finally_), self._loop).result(4 * STOP_WAIT)
            except FutureTimeoutError:
                log.error("The event loop does not answer: a pipeline's async answer blocks it. It is left behind.")
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(STOP_WAIT)
        for future in self._futures.values():
            future.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        # asyncio's own pool has only 4 threads more than there are cores: a pipeline's to_thread calls would wait.
        threads = ThreadPoolExecutor(self._concurrency, "rag-threads")
        self._loop.set_default_executor(threads)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        threads.shutdown(wait=False, cancel_futures=True)
        self._loop.close()

    def _start_jobs(self) -> None:
        while self.in_flight < self._concurrency:
            with self._lock:
                if not self._waiting:
                    return
                key, job = self._waiting.popitem(last=False)
            self.in_flight += 1
            task = self._loop.create_task(self._finish(key, job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _finish(self, key: Hashable, job: Job[_T]) -> None:
        future = self._futures[key]
        try:
            result = await self._in_flight(job)
            if self._keep is not None:
                await self._kept(result)
            future.set_result(result)
        except asyncio.CancelledError:
            future.cancel()
        except BaseException as error:
            future.set_exception(error)
        self._let_follow(key)

    def _let_follow(self, key: Hashable) -> None:
        with self._lock:
            for following, job in self._behind.take(key):
                self._waiting[following] = job
                self._waiting.move_to_end(following, last=False)
        self._start_jobs()

    async def _kept(self, result: _T) -> None:
        """Write a result to the disk. Where that fails, start no more jobs: their results would be lost as well."""
        assert self._keep is not None
        try:
            await self._keep(result)
        except CriticalError as error:
            self._broken = error
            self.stop()
            raise

    async def _in_flight(self, job: Job[_T]) -> _T:
        try:
            return await job()
        finally:
            self.in_flight -= 1
            self._start_jobs()

    async def _wind_down(self, finally_: tuple[Callable[[], Awaitable[None]], ...]) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=STOP_WAIT)
        await _cancel(self._tasks)
        for each in finally_:
            try:
                await each()
            except Exception as error:
                log.warning("Closing %s failed", each, exc_info=error)
        # Tasks that pipelines and clients started and did not end.
        await _cancel(asyncio.all_tasks() - {asyncio.current_task()})


async def _cancel(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    late = [task for task in tasks if task is not None]
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=STOP_WAIT)


# A workplace answers trials and judges rows, in this process or on other machines. The engine decides when.

AskJudge: TypeAlias = "Callable[[Material, Sequence[JudgedMeasure], int], Coroutine[Any, Any, Mapping[str, Score]]]"
"""Asks a judge about one answer, and returns the scores by measure. n > 0 is the nth repeat of the judgement."""


class Workplace(Protocol):
    """Answers and judges. All arguments are plain values, except the pipeline of an experiment."""

    @property
    def ask(self) -> AskJudge | None:
        """Asks the judge of another process; None where the judge is in this one."""
        ...

    @property
    def is_here(self) -> bool:
        """Whether the workplace is this process. Then an experiment has to be prepared here."""
        ...

    async def answer(
        self, trial: Trial, experiment: Experiment, fingerprint: str, asking: TrialRequest = FIRST
    ) -> TrialOutcome:
        """Run one trial of ``experiment``. Its row may be of a derived experiment. A failure is a value."""
        ...

    async def aclose(self) -> None:
        """Close what was opened, on the loop that has used it."""
        ...


@dataclass(frozen=True)
class LocalWorkplace:
    """This process.

    Args:
        settings: of the run.
        keep_prompt: keeps the messages of a call.
    """

    settings: Settings
    keep_prompt: KeepPrompt
    ask = None
    is_here = True

    async def answer(
        self, trial: Trial, experiment: Experiment, fingerprint: str, asking: TrialRequest = FIRST
    ) -> TrialOutcome:
        """Run one trial."""
        return await answer_trial(trial, experiment, self.settings, fingerprint, self.keep_prompt, asking)

    async def aclose(self) -> None:
        """Do nothing: nothing was opened."""


# Runs a trial when its test asks for it, in the thread of the tests, so that a debugger stops in the pipeline.


class InlineLoop(Generic[_T]):
    """The engine of ``--rag-concurrency=1 --pdb``. It has the interface of ``BackgroundLoop``."""

    def __init__(self, keep: Keep[_T] | None = None) -> None:
        self._keep = keep
        self._jobs: dict[Hashable, Job[_T]] = {}
        self._after: dict[Hashable, Hashable] = {}
        self._results: dict[Hashable, _T] = {}
        self._loop = asyncio.new_event_loop()
        self.in_flight = 0

    def submit(
        self,
        key: Hashable,
        job: Job[_T],
        first: bool = False,  # noqa: ARG002 - nothing waits here
        after: Hashable = None,
    ) -> None:
        """Remember ``job`` under ``key``. The job ``after`` which it comes runs before it."""
        if key not in self._jobs:
            self._jobs[key], self._after[key] = job, after

    def result(self, key: Hashable) -> _T:
        """Run the job, once."""
        if key not in self._results:
            before = self._after[key]
            if before in self._jobs:
                self.result(before)
            self._results[key] = self._loop.run_until_complete(self._run(self._jobs[key]))
        return self._results[key]

    async def _run(self, job: Job[_T]) -> _T:
        inline.set(True)
        result = await job()
        if self._keep is not None:
            await self._keep(result)
        return result

    def run(self, work: Coroutine[Any, Any, _R]) -> _R:
        """Run ``work`` now, before the trial that needs it, and return its result."""
        return self._loop.run_until_complete(work)

    def forget(self, key: Hashable) -> None:
        """Drop a result that nobody will ask for again."""
        del self._results[key], self._jobs[key], self._after[key]

    def drop(self, key: Hashable) -> None:
        """Do nothing: no job waits here."""

    def stop(self) -> None:
        """Do nothing: a job runs only while somebody waits for it."""

    def close(self, *finally_: Callable[[], Awaitable[None]]) -> None:
        """Run ``finally_`` and end the loop."""

        async def last() -> None:
            for each in finally_:
                await each()

        self._loop.run_until_complete(last())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


class NewLines(Protocol):
    """The result of a job that is not a trial of the run: scores, a repeat, a derived trial."""

    @property
    def new(self) -> Iterable[bytes]:
        """What the journal lacks of it."""
        ...


JobResult: TypeAlias = TrialOutcome | NewLines
"""A trial's outcome, or the result of another job: who has submitted the job knows which, by its key."""
Engine: TypeAlias = BackgroundLoop[JobResult] | InlineLoop[JobResult]


JUDGE_SEEDS = 100
"""Number of seeds for the judgements of one answer. The next answer's seeds begin after them."""


def computes_its_answers(experiment: str, settings: Settings) -> bool:
    """Whether a repeat can only give the same answer: it is a built-in experiment with the embedded reader.

    The simulated model makes other faults with another seed, and a model that plays a user says something else.
    """
    if is_played_name(experiment) and settings.user_model:
        return False
    is_embedded = settings.chat_base_url == EMBEDDED_URL and chat_name(settings) == "openai"
    return answering(experiment) in built_in() and is_embedded and not is_simulated(settings)


@dataclass(frozen=True, slots=True)
class RepeatedTrial:
    """One repeat: its lines for the result files, in ``new`` those that the journal lacks, and its row.

    ``is_stored`` says that the row was not made now, ``ended`` that a simulated user has ended the repeat of its
    conversation before.
    """

    lines: tuple[bytes, ...] = ()
    new: tuple[bytes, ...] = ()
    row: ExperimentResult | None = None
    is_stored: bool = False
    ended: ConversationEnd | None = None


@dataclass(frozen=True, slots=True)
class Repeating:
    """How trials of one process are answered again.

    Attributes:
        workplace: where they are answered.
        judging: the judging of the repeat with this number.
        find: finds a score that need not be judged again.
        keep: writes a row to the disk before it is judged, for judging may take long.
    """

    workplace: Workplace
    judging: Callable[[int], RowJudge | PanelJudging]
    find: Find
    keep: Callable[[bytes], Awaitable[None]]

    async def answer(
        self, trial: Trial, repeat: int, experiment: Experiment, fingerprint: str, session: Session = ""
    ) -> ExperimentResult | None:
        """Answer for the time ``repeat``, keep the row and return it; None where the budget did not allow it."""
        again = replace(trial, experiment=repeat_name(trial.experiment, repeat))
        asking = TrialRequest(turn=repeat - 1, session=session)
        outcome = await self.workplace.answer(again, experiment, repeat_fingerprint(fingerprint, repeat), asking)
        if outcome.row is not None:
            await self.keep(outcome.row.line().encode())
        return outcome.row

    async def judge(
        self, trial: Trial, repeat: int, row: ExperimentResult, measures: Sequence[JudgedMeasure], turns: int
    ) -> tuple[bytes, ...]:
        """Return the lines of a row's new scores. The judge is asked ``turns`` times more."""
        if not measures or not row.ok:
            return ()
        return (await self.judging(repeat).row(row, trial.case, measures, self.find, turns)).new
