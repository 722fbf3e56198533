"""Finds for each experiment of a run whether it can answer from given hits, and what its index holds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from rag_harness.dataset.data import Data
from rag_harness.derived.attribution.shelf import Shelf
from rag_harness.errors import RagHarnessError
from rag_harness.files.log import log
from rag_harness.protocols import Experiment

BLACK_BOX = "the pipeline does not say how to answer from other sources (Experiment.answer_from)"
NOT_KNOWN = (
    "nobody knows whether it would still answer as in this run, for it is asked in each run. A fingerprint that it "
    "states would say so; --rag-attribute explains within a run"
)
CHANGED = "the experiment is not what it was when its rows were made; run pytest again"


@dataclass(frozen=True, slots=True)
class KnownExperiment:
    """One experiment, as far as it is known.

    Attributes:
        experiment: None where it cannot be run again; ``why_not`` says why.
        shelf: the chunks and pages that it could have found; None where neither are known.
    """

    experiment: Experiment | None = None
    shelf: Shelf | None = None
    why_not: str = ""

    @property
    def limits(self) -> str:
        """Why contexts cannot be altered; empty where they can."""
        if self.experiment is None:
            return self.why_not
        return "" if self.experiment.answer_from is not None else BLACK_BOX


class Bench:
    """Finds the experiments of a run.

    Args:
        experiment: returns an experiment by its name, or None where it is not registered.
        fingerprint: returns the present fingerprint of an experiment.
        data: returns the named data.
        is_live: whether the run asked what was there, and kept nothing.
    """

    def __init__(
        self,
        experiment: Callable[[str], Experiment | None],
        fingerprint: Callable[[Experiment], str],
        data: Callable[[str], Data],
        *,
        is_live: bool = False,
    ) -> None:
        self._experiment, self._fingerprint, self._data, self._is_live = experiment, fingerprint, data, is_live

    def subject(self, name: str, fingerprints: Collection[str]) -> KnownExperiment:
        """Return what is known of an experiment whose rows have these fingerprints."""
        try:
            found = self._experiment(name)
            if found is None:
                return KnownExperiment(why_not=f"{name} is no registered experiment, so nothing of it is run again")
            # Where an experiment has changed, its answers and its index no longer belong to the rows.
            if self._fingerprint(found) not in fingerprints:
                is_known = found.is_reusable and not self._is_live
                return KnownExperiment(why_not=CHANGED if is_known else NOT_KNOWN)
        except (OSError, RagHarnessError) as error:
            return KnownExperiment(why_not=f"{name} cannot be built: {error}")
        return KnownExperiment(found, self._shelf(found))

    def _shelf(self, experiment: Experiment) -> Shelf | None:
        try:
            documents = self._data(experiment.data).documents
            return Shelf(experiment.chunks() if experiment.chunks is not None else None, documents)
        except Exception as error:  # a user's index may raise anything, and the run was paid for
            log.warning("What %s could have found is not known", experiment.id, exc_info=error)
            return None


def nobody() -> Bench:
    """Return a bench without experiments, for findings from rows and gold alone."""

    def refuse(_: str) -> Experiment | None:
        raise RagHarnessError("nothing was asked for but rows and gold")

    def fingerprint(_: Experiment) -> str:
        return ""

    def data(_: str) -> Data:
        raise RagHarnessError("no data")

    return Bench(refuse, fingerprint, data)
