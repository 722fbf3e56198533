"""Jobs under way at a worker, and how they end when the worker dies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.engine.distributed.remote import Remote
from rag_harness.engine.distributed.run_messages import AnsweredTrial, Carried, Job, JudgedScores, TrialJob, WantedRows
from rag_harness.engine.trial import TrialOutcome
from rag_harness.errors import RagHarnessError
from rag_harness.results.row import ExperimentResult, row_or_none
from rag_harness.types import TrialId


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
