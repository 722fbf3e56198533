"""The values that the process of the tests and its workers exchange. All of them can be pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rag_harness.engine.distributed.leases import RemoteLedger
from rag_harness.engine.trial import TrialOutcome
from rag_harness.engine.trial_request import FIRST, TrialRequest
from rag_harness.engine.trial_rows import Trial
from rag_harness.judges.spent import Spent
from rag_harness.measures import Score
from rag_harness.measures.judged import Material
from rag_harness.settings import Settings
from rag_harness.types import Query, TrialId

WantedRows: TypeAlias = frozenset[tuple[TrialId, str]]
"""Trials, and the fingerprints that their rows must have."""


@dataclass(frozen=True)
class RunOpening:
    """What a worker is told first.

    Args:
        settings: settings of the run.
        workers: number of workers, which share the limits of the run.
        run: id of the run.
        name: name of this worker. The name of its journal begins with ``run``.
        token: name of a file in the folder of the journals. A worker that sees the file shares the folder.
        ledger: ledger of the run.
        replaces: name of the dead worker that this one replaces; "" is none.
        wanted: trials that were under way at the dead worker.
    """

    settings: Settings
    workers: int
    run: str
    name: str
    token: str
    ledger: RemoteLedger
    replaces: str = ""
    wanted: WantedRows = frozenset()


@dataclass(frozen=True)
class Opened:
    """What a worker found on its node.

    ``left`` are the wanted rows that the replaced worker had written. ``handed`` are whole journals, by the names of
    their files: they lie on this node alone, where a later run would not find them.
    """

    left: Sequence[bytes] = ()
    handed: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Carried:
    """An experiment as it is sent to a worker.

    Args:
        name: name that it is built by where ``pipeline`` is empty.
        pipeline: pickled pipeline of a user's fixture.
        data: name of its data.
        queries: the queries that it will be asked.
        queries_digest: digest of the queries with their gold.
        parts: what decides its rows, by name, in the process of the tests. A node must find the same.
    """

    name: str
    pipeline: bytes
    data: str
    queries: Sequence[Query]
    queries_digest: str
    parts: Mapping[str, Any]


@dataclass(frozen=True)
class TrialJob:
    """A trial to be answered.

    Args:
        trial: experiment and case. The experiment may be a derived one, ``e3+repeat2``.
        fingerprint: fingerprint of its row.
        experiment: name of the carried experiment that answers; "" is the trial's own.
        asking: what is asked beyond its case.
    """

    trial: Trial
    fingerprint: str
    experiment: str = ""
    asking: TrialRequest = FIRST

    @property
    def answered_by(self) -> str:
        """The name of the experiment that answers."""
        return self.experiment or self.trial.experiment


@dataclass(frozen=True)
class AskJob:
    """An answer to be judged, with the names of the measures."""

    material: Material
    measures: tuple[str, ...]
    turn: int


Job: TypeAlias = TrialJob | AskJob


@dataclass(frozen=True)
class AnsweredTrial:
    """The outcome of a trial, and the messages of its calls by their names."""

    outcome: TrialOutcome
    prompts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedScores:
    """The scores that a judge gave, and what its calls cost."""

    scores: Mapping[str, Score]
    spent: Spent


@dataclass(frozen=True)
class Done:
    """The end of the job with this number: its ``result``, or the ``error`` that it raised."""

    number: int
    result: AnsweredTrial | JudgedScores | None = None
    error: Exception | None = None
