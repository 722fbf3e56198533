"""Fingerprints of experiments: what decides their rows, and whether rows of an earlier run are still theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rag_harness.core.files import json_digest
from rag_harness.core.package import library_versions, package_digest
from rag_harness.core.protocols import Experiment
from rag_harness.core.registry import is_own, is_own_code, stated_fingerprint
from rag_harness.core.settings import Settings
from rag_harness.core.settings.table import affecting
from rag_harness.core.types import GOLDEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_harness.core.concurrency import Lazy
    from rag_harness.data.datasets import Data
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.records.row import ExperimentResult
    from rag_harness.runs.golden_suite import GoldenSuite


def fingerprint_parts(
    experiment: Experiment, settings: Settings, queries_digest: str, documents: str = ""
) -> dict[str, Any]:
    """Return what decides the results of ``experiment``, by name, ready for JSON.

    These are: its queries; what it declares and what its parts have noted; this package and the libraries that decide
    results; and the pipeline's attribute ``fingerprint``. Code of a user's own cannot be seen whole, and does not
    count: its settings do, and the digest of its ``documents``.
    """
    ours = {part: sorted(each for each in modules if not is_own(each)) for part, modules in experiment.code.items()}
    parts = {
        "queries": queries_digest,
        "profile": settings.profile,
        "mode": settings.mode,
        "package": package_digest(),
        "code": ours,
        "own": stated_fingerprint(experiment.pipeline),
        "ingredients": dict(experiment.ingredients),
    }
    if is_own_code(experiment.code):
        own = affecting(settings, "retrieval", "reranking", "generation")
        return parts | {"documents": documents, "settings": own}
    return parts | {"libraries": library_versions()}


def fingerprint_of(experiment: Experiment, settings: Settings, queries_digest: str, documents: str = "") -> str:
    """Return the digest that every row of ``experiment`` has; see ``fingerprint_parts``."""
    return json_digest(fingerprint_parts(experiment, settings, queries_digest, documents))


def fingerprint_about(experiment: Experiment, settings: Settings, data: Data) -> str:
    """Return the same for an experiment that is asked about ``data``."""
    # A user's own pipeline may read any of the documents; parts of the package note what they search.
    documents = data.pages_digest if is_own_code(experiment.code) else ""
    return fingerprint_of(experiment, settings, data.queries_digest, documents)


def asked_now(fingerprint: Callable[[Experiment], str]) -> Callable[[Experiment], str]:
    """Return a fingerprint of this command alone for what is a user's own: no trial of an earlier command is reused."""
    command = uuid4().hex

    def found(experiment: Experiment) -> str:
        said = fingerprint(experiment)
        return said if experiment.is_reusable else json_digest([said, command])

    return found


class Identities:
    """Works out each fingerprint once.

    Args:
        settings: of the run.
        parts: have the data.
        golden: the golden suite.
        is_traced: whether an experiment is asked below spans.
    """

    def __init__(
        self,
        settings: Lazy[Settings],
        parts: Lazy[RunParts],
        golden: Lazy[GoldenSuite],
        is_traced: Callable[[str], bool],
    ) -> None:
        self._settings, self._parts, self._golden, self._is_traced = settings, parts, golden, is_traced
        self._fingerprints: dict[str, tuple[Experiment, str]] = {}
        self._recorded_last: dict[Path, float] = {}

    def fingerprint(self, experiment: Experiment) -> str:
        """Return the digest of everything that changes a result of ``experiment``."""
        known = self._fingerprints.get(experiment.id)
        if known is None or known[0] is not experiment:
            known = self._fingerprints[experiment.id] = experiment, self._fingerprint(experiment)
        return known[1]

    def _fingerprint(self, experiment: Experiment) -> str:
        from rag_harness.runs.journal import InterruptedRuns

        found, settings = self.of_parts(experiment), self._settings.get()
        if not self.reuses_nothing(experiment):
            return found
        is_own = not experiment.is_reusable
        return InterruptedRuns(settings.path(settings.output)).fingerprint(experiment.id, found, is_own=is_own)

    def of_parts(self, experiment: Experiment) -> str:
        """Return the same for all runs of an experiment, also where its rows belong to one of them."""

        if experiment.id == GOLDEN:
            return fingerprint_of(experiment, self._settings.get(), self._golden.get().digest)
        return fingerprint_about(experiment, self._settings.get(), self._parts.get().data(experiment.data))

    def reuses_nothing(self, experiment: Experiment) -> bool:
        """Whether no row of an earlier run is reused unasked.

        A pipeline or service of a user's own is asked in each run, or visibly replayed, unless it states a
        ``fingerprint``. A run that asks recorded calls again reuses nothing either: its rows would be the old answers.
        """
        from rag_harness.core.settings import access_of

        settings = self._settings.get()
        return not experiment.is_reusable or (settings.rerecord and access_of(settings).records)

    def looks_at_earlier_turns(self, experiment: Experiment) -> bool:
        """Whether rows of an earlier run tell what a service has heard, though they are not reused.

        They do where turns are replayed: a session in which only the first turns were recorded is not there any more.
        """
        from rag_harness.core.settings import access_of

        return self.reuses_nothing(experiment) and access_of(self._settings.get()).reads_recordings

    def _is_service(self, name: str) -> bool:
        from rag_harness.pipelines.experiments import endpoints_of

        return name in endpoints_of(self._settings.get())

    def _asked_by(self, suite: str) -> str:
        """Return the experiment that answers a suite. For the golden suite it is the retriever's experiment."""
        from rag_harness.pipelines.experiments import answering

        return answering(self._settings.get().retriever if suite == GOLDEN else suite, self._settings.get())

    def is_renewed(self, row: ExperimentResult) -> bool:
        """Whether something was recorded since a stored row was made, so that its answer may be another one now."""
        from rag_harness.records.manifest import seconds_of

        return row.timings_recorded and self.has_recorded_since(row.experiment, seconds_of(row.finished_at))

    def has_recorded_since(self, suite: str, seconds: float) -> bool:
        """Whether an answer that a suite would replay may have been recorded later than ``seconds`` since 1970."""
        from rag_harness.core.settings import access_of

        return access_of(self._settings.get()).reads_recordings and seconds < self.recorded_last(suite)

    def recorded_last(self, suite: str) -> float:
        """Return when answers of a suite were last recorded, as known at the first call."""
        from rag_harness.models.recording.cassettes import OWN, SERVICES, last_written

        settings = self._settings.get()
        name, folder = self._asked_by(suite), settings.folder("cassettes")
        if self._is_traced(name):
            folder = folder / OWN
        else:
            folder = folder / SERVICES / name if self._is_service(name) else folder / settings.profile
        if folder not in self._recorded_last:
            self._recorded_last[folder] = last_written(folder)
        return self._recorded_last[folder]

    def queries_digest(self, experiment: Experiment) -> str:
        """Return the digest of an experiment's queries and their gold."""
        golden = experiment.id == GOLDEN
        return self._golden.get().digest if golden else self._parts.get().data(experiment.data).queries_digest
