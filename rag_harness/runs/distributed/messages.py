"""Values that the process of the tests and its workers exchange, experiments among them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeAlias

from rag_harness.core.errors import PrerequisiteError, RagHarnessError
from rag_harness.core.log import log
from rag_harness.core.protocols import Experiment, Pipeline
from rag_harness.core.settings import Settings
from rag_harness.core.types import GOLDEN, Query, TrialId
from rag_harness.evaluation.judges.traits import JudgingCost
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.opinion import Material
from rag_harness.runs.distributed.ledger import RemoteLedger
from rag_harness.runs.fingerprint import fingerprint_parts
from rag_harness.runs.trial import FIRST, Trial, TrialOutcome, TrialRequest


class WorkerLostError(RagHarnessError):
    """The process of a worker, or its node, is gone."""


class UnsentError(RagHarnessError):
    """A value cannot be sent, to any worker."""


# The values that the process of the tests and its workers exchange. All of them can be pickled.

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
    spent: JudgingCost


@dataclass(frozen=True)
class Done:
    """The end of the job with this number: its ``result``, or the ``error`` that it raised."""

    number: int
    result: AnsweredTrial | JudgedScores | None = None
    error: Exception | None = None


def carry(
    experiment: Experiment, *, is_registered: bool, queries: Sequence[Query], queries_digest: str, settings: Settings
) -> Carried:
    """Return what a worker builds ``experiment`` from: its name, or its pipeline where a worker cannot know the name.

    The golden suite is not registered: each worker makes it from its own parts.

    Raises:
        PrerequisiteError: the pipeline cannot be pickled; names the attribute.
    """
    pipeline = b"" if is_registered or experiment.id == GOLDEN else pickled(experiment)
    parts = fingerprint_parts(experiment, settings, queries_digest)
    return Carried(experiment.id, pipeline, experiment.data, queries, queries_digest, parts)


def pickled(experiment: Experiment) -> bytes:
    """Return the pipeline of ``experiment``, which a fixture has made, as bytes.

    Classes and functions of the suite's modules are pickled with it because a worker cannot import a conftest.

    Raises:
        PrerequisiteError: it cannot be pickled; names the attribute.
    """
    pickle = _pickle()
    pipeline = experiment.pipeline
    with _by_value(pickle, type(pipeline).__module__):
        try:
            found: bytes = pickle.dumps(pipeline)
        except Exception as error:
            raise PrerequisiteError(
                f"The pipeline of experiment {experiment.id!r} cannot be sent to a Ray worker: {_culprit(pipeline)} "
                f"cannot be pickled ({error}). Make it on first use in answer(), or give the class a __getstate__ that "
                f"leaves it out."
            ) from error
    return found


def unpickled(carried: Carried) -> Pipeline:
    """Return the pipeline that ``carried`` holds."""
    found: Pipeline = _pickle().loads(carried.pipeline)
    return found


def _pickle() -> Any:
    from ray import cloudpickle

    return cloudpickle


def _culprit(pipeline: Pipeline) -> str:
    name = type(pipeline).__name__
    for attribute, value in getattr(pipeline, "__dict__", {}).items():
        try:
            _pickle().dumps(value)
        except Exception:
            return f"{name}.{attribute}, a {type(value).__name__},"
    return name


@contextmanager
def _by_value(pickle: Any, module: str) -> Iterator[None]:
    found = sys.modules.get(module)
    if found is None or not _is_of_the_suite(found):
        yield
        return
    pickle.register_pickle_by_value(found)
    try:
        yield
    finally:
        pickle.unregister_pickle_by_value(found)


def _is_of_the_suite(module: ModuleType) -> bool:
    """Return whether only pytest can import a module. Installed modules are on every node."""
    file = getattr(module, "__file__", None) or ""
    return "site-packages" not in file and not module.__name__.startswith("rag_harness.")


def check_same(carried: Carried, here: Mapping[str, Any]) -> None:
    """Compare what decides the rows of an experiment ``here`` with what the process of the tests has.

    Raises:
        PrerequisiteError: they differ; names what.
    """
    other = sorted(_differing(carried.parts, here))
    if other:
        raise PrerequisiteError(
            f"its rows would be others there: {', '.join(other)} differ from what the process of the tests has. Give "
            f"every node the same packages, documents, prompts and models."
        )


def _differing(there: Mapping[str, Any], here: Mapping[str, Any], begin: str = "") -> set[str]:
    found: set[str] = set()
    for name in there.keys() | here.keys():
        one, other = there.get(name), here.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            found |= _differing(one, other, f"{begin}{name}.")
        elif one != other:
            found.add(f"{begin}{name}")
    return found


def travelling(error: BaseException) -> Exception:
    """Return an error that can be pickled and read again. A user's own error class may not allow that."""
    try:
        again = _pickle().loads(_pickle().dumps(error))
    except Exception:
        log.debug("An error cannot be sent", exc_info=error)
    else:
        if isinstance(error, Exception) and isinstance(again, type(error)):
            return error
    return RagHarnessError(says(error))


def says(error: BaseException) -> str:
    """Return the text of an error, with its type where the text alone may be unclear."""
    try:
        text = str(error)
    except Exception:
        text = "its message cannot be read"
    return text if isinstance(error, RagHarnessError) else f"{type(error).__name__}: {text}"
