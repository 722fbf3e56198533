"""What is judged of which experiment, and what is checked: what options and gates name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from rag_harness.plugin.options import names_in
from rag_harness.types import GOLDEN
from rag_harness.work.once import Once

if TYPE_CHECKING:
    from rag_harness.measures.judged import JudgedMeasure
    from rag_harness.settings import Settings


class Wanted:
    """What a run wants to know of answers, beside what their rows say. Read when it is first asked for.

    Args:
        settings: gives those of the run.
    """

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings, self._named = settings, Once(self._read)
        # Asked for every trial: nothing that they depend on changes in a run.
        self._measures, self._columns = cache(self._measures_of), cache(self._columns_of)

    def judged_measures(self, experiment: str, names: Sequence[str] = ()) -> Sequence[JudgedMeasure]:
        """Return what a judge is asked for of an experiment's rows: what ``names`` need, or else options and gates.

        Raises:
            SettingsError: a name is no measure.
        """
        from rag_harness.measures import parts_of

        if experiment == GOLDEN:
            return ()
        return parts_of(names) if names else self._measures(experiment)

    def _measures_of(self, experiment: str) -> tuple[JudgedMeasure, ...]:
        from rag_harness.measures import parts_of

        return tuple(parts_of(self._names(experiment)))

    def judged_names(self, experiment: str) -> Sequence[str]:
        """Return what a suite is judged on, by name: measures that a judge is asked for, and what is made of them.

        Raises:
            SettingsError: a name is no measure.
        """
        return () if experiment == GOLDEN else self._columns(experiment)

    def _columns_of(self, experiment: str) -> tuple[str, ...]:
        from rag_harness.measures import columns_of

        return tuple(columns_of(self._names(experiment)))

    def check_judge(self, experiments: Iterable[str]) -> None:
        """Make sure, before anything runs, that what is to be judged of these experiments can be.

        Raises:
            PrerequisiteError: a measure or the judge is not known, or the judge has no key or price.
        """
        from rag_harness.measures import parts_of
        from rag_harness.models.keys import check_judge

        everywhere, by_suite = self._named.get()
        parts_of([*everywhere, *(name for names in by_suite.values() for name in names)])
        if any(self.judged_measures(experiment) for experiment in experiments):
            check_judge(self._settings())

    def metamorphic_measures(self, experiment: str) -> list[str]:
        """Return what metamorphic checks look at in an experiment's answers: what is named, and all if asked for.

        Other words are among all where a model is named that finds them.
        """
        from rag_harness.measures.metamorphic import METAMORPHIC, metamorphic_of

        settings, named = self._settings(), self._names(experiment)
        if settings.metamorphic:
            named += [name for name in METAMORPHIC if settings.writer_model or name != "metamorphic_paraphrase"]
        return metamorphic_of(named)

    def _names(self, experiment: str) -> list[str]:
        everywhere, by_suite = self._named.get()
        return [*everywhere, *by_suite.get(experiment, ())]

    def _read(self) -> tuple[list[str], dict[str, list[str]]]:
        from rag_harness.gates.belonging import gates_set
        from rag_harness.gates.reading import measures_by_suite
        from rag_harness.report.slices_asked import measures_of

        settings = self._settings()
        everywhere = [*names_in(settings.measures), *measures_of(settings.slices, settings.k)]
        return everywhere, measures_by_suite(gates_set(settings), settings.k)
