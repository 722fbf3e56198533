"""What decides the rows of an experiment, and whether rows of an earlier run are still its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_harness.engine.golden.suite import GoldenSuite
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.protocols import Experiment
    from rag_harness.results.row import ExperimentResult
    from rag_harness.settings import Settings
    from rag_harness.work.once import Once


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
        settings: Once[Settings],
        parts: Once[RunParts],
        golden: Once[GoldenSuite],
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
        from rag_harness.engine.interrupted_runs import InterruptedRuns

        found, settings = self.of_parts(experiment), self._settings.get()
        if not self.reuses_nothing(experiment):
            return found
        is_own = not experiment.is_reusable
        return InterruptedRuns(settings.path(settings.output)).fingerprint(experiment.id, found, is_own=is_own)

    def of_parts(self, experiment: Experiment) -> str:
        """Return the same for all runs of an experiment, also where its rows belong to one of them."""
        from rag_harness.engine.fingerprint import fingerprint_about, fingerprint_of

        if experiment.id == GOLDEN:
            return fingerprint_of(experiment, self._settings.get(), self._golden.get().digest)
        return fingerprint_about(experiment, self._settings.get(), self._parts.get().data(experiment.data))

    def reuses_nothing(self, experiment: Experiment) -> bool:
        """Whether no row of an earlier run is reused unasked.

        A pipeline or service of a user's own is asked in each run, or visibly replayed, unless it states a
        ``fingerprint``. A run that asks recorded calls again reuses nothing either: its rows would be the old answers.
        """
        from rag_harness.settings import access_of

        settings = self._settings.get()
        return not experiment.is_reusable or (settings.rerecord and access_of(settings).records)

    def looks_at_earlier_turns(self, experiment: Experiment) -> bool:
        """Whether rows of an earlier run tell what a service has heard, though they are not reused.

        They do where turns are replayed: a session in which only the first turns were recorded is not there any more.
        """
        from rag_harness.settings import access_of

        return self.reuses_nothing(experiment) and access_of(self._settings.get()).reads_recordings

    def _is_service(self, name: str) -> bool:
        from rag_harness.pipelines import endpoints_of

        return name in endpoints_of(self._settings.get())

    def _asked_by(self, suite: str) -> str:
        """Return the experiment that answers a suite. For the golden suite it is the retriever's experiment."""
        from rag_harness.pipelines import answering

        return answering(self._settings.get().retriever if suite == GOLDEN else suite, self._settings.get())

    def is_renewed(self, row: ExperimentResult) -> bool:
        """Whether something was recorded since a stored row was made, so that its answer may be another one now."""
        from rag_harness.results.dates import seconds_of

        return row.timings_recorded and self.has_recorded_since(row.experiment, seconds_of(row.finished_at))

    def has_recorded_since(self, suite: str, seconds: float) -> bool:
        """Whether an answer that a suite would replay may have been recorded later than ``seconds`` since 1970."""
        from rag_harness.settings import access_of

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
