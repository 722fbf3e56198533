"""What can be done with each experiment of a run: which of them answer from given hits, and what their index holds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from rag_harness.dataset.data import Data
from rag_harness.derived.attribution.shelf import Shelf
from rag_harness.errors import RagHarnessError
from rag_harness.files.log import log
from rag_harness.protocols import Experiment

BLACK_BOX = "the pipeline does not say how to answer from other sources (Experiment.answer_from)"
CHANGED = "the experiment is not what it was when its rows were made; run pytest again"


@dataclass(frozen=True, slots=True)
class Subject:
    """One experiment, as far as it is known.

    Attributes:
        experiment: None where nothing of it can be run again; ``why_not`` says why.
        shelf: what it could have found; None where neither pages nor index are known.
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
        experiment: returns one by its name, or None where it is not registered.
        fingerprint: of one as it is now.
        data: returns the named data.
    """

    def __init__(
        self,
        experiment: Callable[[str], Experiment | None],
        fingerprint: Callable[[Experiment], str],
        data: Callable[[str], Data],
    ) -> None:
        self._experiment, self._fingerprint, self._data = experiment, fingerprint, data

    def subject(self, name: str, fingerprints: Collection[str]) -> Subject:
        """Return what is known of an experiment whose rows have these fingerprints."""
        try:
            found = self._experiment(name)
            if found is None:
                return Subject(why_not=f"{name} is not registered, so nothing of it can be run again")
            # Of an experiment that has changed, neither its answers nor its index are those of the rows.
            if self._fingerprint(found) not in fingerprints:
                return Subject(why_not=CHANGED)
        except (OSError, RagHarnessError) as error:
            return Subject(why_not=f"{name} cannot be built: {error}")
        return Subject(found, self._shelf(found))

    def _shelf(self, experiment: Experiment) -> Shelf | None:
        try:
            documents = self._data(experiment.data).documents
            return Shelf(experiment.chunks() if experiment.chunks is not None else None, documents)
        except Exception as error:  # somebody else's index, after a run that was paid for
            log.warning("What %s could have found is not known", experiment.id, exc_info=error)
            return None


def nobody() -> Bench:
    """Return a bench without experiments: rows and gold alone are looked at."""

    def refuse(_: str) -> Experiment | None:
        raise RagHarnessError("nothing was asked for but rows and gold")

    def fingerprint(_: Experiment) -> str:
        return ""

    def data(_: str) -> Data:
        raise RagHarnessError("no data")

    return Bench(refuse, fingerprint, data)
