"""A worker process of a node. It answers trials and judges answers, many at once; it keeps a row before it sends it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from socket import gethostname

from rag_harness.engine.distributed.building import built
from rag_harness.engine.distributed.carrying import says, travelling
from rag_harness.engine.distributed.homes import ComputedOrWaiting, TextBatch
from rag_harness.engine.distributed.leases import LeasedMeter
from rag_harness.engine.distributed.node_journal import NodeJournals
from rag_harness.engine.distributed.peers import Peer, SpreadParts
from rag_harness.engine.distributed.run_messages import (
    AnsweredTrial,
    AskJob,
    Carried,
    Done,
    Job,
    JudgedScores,
    Opened,
    RunOpening,
    TrialJob,
)
from rag_harness.engine.journal import Journal
from rag_harness.engine.shares import share_in_flight
from rag_harness.engine.trial_request import answer_trial
from rag_harness.errors import PrerequisiteError
from rag_harness.judges.in_conversation import in_conversations
from rag_harness.judges.made import asked_anew, judge_of
from rag_harness.judges.scoring import judged
from rag_harness.judges.spent import spending
from rag_harness.measures import measure_named
from rag_harness.measures.judged import Judge
from rag_harness.protocols import Experiment
from rag_harness.results.prompts import PromptFiles, named_prompt
from rag_harness.types import Message

SILENT = 20.0
"""Seconds after which a worker answers a call although it has finished nothing."""


class Worker:
    """Answers and judges on the event loop of its process. Its errors are raised in the process of the tests."""

    async def open(self, opening: RunOpening) -> Opened:
        """Make ready for trials.

        Raises:
            RagHarnessError: the node cannot do what the run asks for.
        """
        self._opening, self._settings = opening, opening.settings
        share = share_in_flight(opening.settings, opening.workers)
        self._meter = LeasedMeter(share, lambda: opening.ledger, opening.name)
        self._parts = SpreadParts(share, opening.name, self._meter)
        loop = asyncio.get_running_loop()
        self._parts.loop = lambda calls: asyncio.run_coroutine_threadsafe(calls, loop).result()
        self._experiments: dict[str, asyncio.Task[Experiment]] = {}
        self._judges: dict[int, Judge] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._done: list[Done] = []
        self._has_done, self._is_closing = asyncio.Event(), False
        self._journals = NodeJournals(opening)
        opened = await asyncio.to_thread(self._journals.read)
        self._journal = Journal(self._journals.folder, opening.name)
        self._prompts = PromptFiles(self._journals.results)
        return opened

    async def handed_over(self, names: Sequence[str]) -> None:
        """Delete the journals that the process of the tests has received."""
        self._journals.remove(names)

    async def meet(self, peers: Sequence[Peer]) -> None:
        """Learn the workers of the run, with this one among them."""
        self._parts.spread.meet(peers)

    async def embed(self, part: TextBatch) -> ComputedOrWaiting:
        """Return vectors of texts for another worker; see ``homes.Home``."""
        return await self._parts.spread.home.embed(part)

    async def carry(self, carried: Carried) -> None:
        """Learn an experiment, and make it ready for its queries.

        Raises:
            RagHarnessError: it cannot be built here, or its rows would differ from those of the process of the tests.
        """
        if carried.name not in self._experiments:
            self._experiments[carried.name] = asyncio.create_task(asyncio.to_thread(self._build, carried))
        await self._experiments[carried.name]

    def _build(self, carried: Carried) -> Experiment:
        try:
            with self._parts.spread.preparing():
                return built(carried, self._parts, self._settings)
        except (Exception, SystemExit) as error:
            raise PrerequisiteError(
                f"Experiment {carried.name!r} cannot be made ready on node {gethostname()}: {says(error)}"
            ) from None  # the cause may be an error that cannot be pickled

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None:
        """Begin jobs, by their numbers."""
        for number, job in jobs:
            task = asyncio.create_task(self._finish(number, job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def finished(self, jobs: Sequence[tuple[int, Job]]) -> list[Done]:
        """Begin jobs, wait a while for a first result, and return all results since the last call."""
        await self.take(jobs)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._has_done.wait(), SILENT)
        self._has_done.clear()
        done, self._done = self._done, []
        return done

    async def close(self) -> None:
        """Drop the jobs under way, and close models, stores and the journal."""
        # A task that has told its result may still be in the set: its callback runs after those who wait for results.
        is_all_told = not self._done and all(task.done() for task in self._tasks)
        self._is_closing = True
        self._has_done.set()  # ends a call of ``finished`` that waits for results
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._parts.spread.home.close()
        await self._parts.endpoints.aclose()
        await self._meter.aclose()
        self._parts.flush()
        self._journal.close()
        if is_all_told:
            self._journals.clear(self._journal.file)

    async def _finish(self, number: int, job: Job) -> None:
        try:
            result = await (self._answer(job) if isinstance(job, TrialJob) else self._ask(job))
            self._tell(Done(number, result))
        except BaseException as error:
            if self._is_closing:
                raise
            # A pipeline may cancel itself, or call pytest.fail. The process that waits for its trial must get an error.
            self._tell(Done(number, error=travelling(error)))

    def _tell(self, done: Done) -> None:
        self._done.append(done)
        self._has_done.set()

    async def _answer(self, job: TrialJob) -> AnsweredTrial:
        known = await self._experiments[job.answered_by]
        prompts: dict[str, str] = {}

        def keep(messages: Sequence[Message]) -> str:
            digest, content = named_prompt(messages)
            if digest:
                self._prompts.keep_file(digest, content)
                prompts[digest] = content
            return digest

        outcome = await answer_trial(job.trial, known, self._settings, job.fingerprint, keep, job.asking)
        if outcome.row is not None and job.asking.keeps(outcome):
            await self._journal.keep(outcome.row.line().encode())
        error = None if outcome.error is None else travelling(outcome.error)
        return AnsweredTrial(replace(outcome, error=error), {} if self._journals.is_shared else prompts)

    async def _ask(self, job: AskJob) -> JudgedScores:
        measures = [measure_named(name) for name in job.measures]
        with spending() as spent:
            scores = await judged(job.material, measures, self._judge(job.turn))  # type: ignore[arg-type]
        return JudgedScores(scores, spent)

    def _judge(self, turn: int) -> Judge:
        if turn not in self._judges:
            self._judges[turn] = in_conversations(
                asked_anew(self._parts, turn) if turn else judge_of(self._parts), self._parts
            )
        return self._judges[turn]
