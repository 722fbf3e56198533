"""What travels between the process of the tests and its workers. All of it can be pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rag_harness.engine.asking import FIRST, Asking
from rag_harness.engine.distributed.leases import RemoteLedger
from rag_harness.engine.rows import Trial
from rag_harness.engine.trial import Outcome
from rag_harness.judges.spent import Spent
from rag_harness.measures import Score
from rag_harness.measures.judged import Material
from rag_harness.settings import Settings
from rag_harness.types import Query, TrialId

Wanted: TypeAlias = frozenset[tuple[TrialId, str]]
"""Trials, and the fingerprints that their rows must have."""


@dataclass(frozen=True)
class Opening:
    """What a worker is told first.

    Args:
        settings: of the run.
        workers: that share what is limited for the whole run.
        run: id of the run.
        name: of this worker; that of its journal begins with ``run``.
        token: name of a file in the folder of the journals: a worker that sees it shares that folder.
        ledger: of the run.
        replaces: name of a worker that has died; "" is none.
        wanted: what was under way there.
    """

    settings: Settings
    workers: int
    run: str
    name: str
    token: str
    ledger: RemoteLedger
    replaces: str = ""
    wanted: Wanted = frozenset()


@dataclass(frozen=True)
class Opened:
    """What a worker found on its node.

    ``left`` are rows of what was wanted, that the worker before this one had kept; ``handed`` whole journals, by the
    names of their files, that no run will find who looks at the folder of the results: they lie on this node alone.
    """

    left: Sequence[bytes] = ()
    handed: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Carried:
    """An experiment on its way.

    Args:
        name: it is built by this one, where ``pipeline`` is empty.
        pipeline: pickled, of somebody's own fixture.
        data: name of what it is asked about.
        queries: what it will be asked.
        queries_digest: of them with their gold.
        parts: what decides its rows, by name, as the process of the tests sees it; a node has to see the same.
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
        trial: its rows may be of a derived experiment, ``e3+repeat2``.
        fingerprint: of its row.
        experiment: the name of the one that answers, as it was carried; "" is the trial's own.
        asking: what is asked beyond its case.
    """

    trial: Trial
    fingerprint: str
    experiment: str = ""
    asking: Asking = FIRST

    @property
    def answered_by(self) -> str:
        """The name of the experiment that answers."""
        return self.experiment or self.trial.experiment


@dataclass(frozen=True)
class AskJob:
    """An answer to be judged, by the names of the measures."""

    material: Material
    measures: tuple[str, ...]
    turn: int


Job: TypeAlias = TrialJob | AskJob


@dataclass(frozen=True)
class Answered:
    """What came of a trial, and the messages of its calls by their names."""

    outcome: Outcome
    prompts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """What a judge said, and what that took."""

    scores: Mapping[str, Score]
    spent: Spent


@dataclass(frozen=True)
class Done:
    """What came of the job with this number: ``result``, or the ``error`` that it raised."""

    number: int
    result: Answered | Asked | None = None
    error: Exception | None = None
