"""Measures, checks and slices that options and gates request, for each experiment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.core.concurrency import Lazy
from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.settings.table import names_in
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures import measure_named

if TYPE_CHECKING:
    from rag_harness.core.settings import Settings
    from rag_harness.core.types import Case
    from rag_harness.evaluation.expectations.rubrics import Rubric
    from rag_harness.evaluation.measures.conversations import LateMeasure
    from rag_harness.evaluation.measures.judged import JudgedMeasure


_RUBRIC = "rubric_"


class WantedMeasures:
    """The measures and checks that a run wants beside its rows. They are read when first asked for.

    Args:
        settings: gives the run's settings.
        cases: gives the cases of an experiment.
    """

    def __init__(self, settings: Callable[[], Settings], cases: Callable[[str], Sequence[Case]]) -> None:
        self._cases = cases
        self._settings, self._named = settings, Lazy(self._read)
        self._rubrics = Lazy(self._read_rubrics)
        # Cached, since they are asked for with every trial. What they depend on changes where ``forget`` is called.
        self._measures, self._columns = cache(self._measures_of), cache(self._columns_of)

    def forget(self) -> None:
        """Forget what was found: cases demand more than they did."""
        self._measures.cache_clear()
        self._columns.cache_clear()

    def judged_measures(self, experiment: str, names: Sequence[str] = ()) -> Sequence[JudgedMeasure]:
        """Return the judged measures for an experiment's rows: those that ``names``, or options and gates, need.

        Raises:
            SettingsError: a name is not a measure.
        """
        from rag_harness.evaluation.measures import parts_of

        if experiment == GOLDEN:
            return ()
        return self._with_criteria(_of_rows(parts_of(names))) if names else self._measures(experiment)

    def late_measures(self, experiment: str) -> Sequence[LateMeasure]:
        """Return the judged measures of an experiment that are worked out after the last test."""
        from rag_harness.evaluation.measures import parts_of
        from rag_harness.evaluation.measures.conversations import LateMeasure

        return [each for each in parts_of(self._names(experiment)) if isinstance(each, LateMeasure)]

    def is_late(self, name: str) -> bool:
        """Return whether a measure is worked out after the last test."""
        from rag_harness.evaluation.measures import measure_named
        from rag_harness.evaluation.measures.conversations import LateMeasure

        return isinstance(measure_named(name), LateMeasure)

    def _with_criteria(self, measures: Sequence[JudgedMeasure]) -> Sequence[JudgedMeasure]:
        if not any(each.name.startswith(_RUBRIC) for each in measures):
            return measures
        from rag_harness.evaluation.measures.expectations import with_criteria

        return with_criteria(measures, self._rubrics.get(), self._folder())

    def _folder(self) -> Path:
        settings = self._settings()
        return settings.folder("rubrics")

    def _read_rubrics(self) -> Mapping[str, Rubric]:
        from rag_harness.evaluation.expectations.rubrics import read_rubrics

        return read_rubrics(self._folder())

    def _measures_of(self, experiment: str) -> tuple[JudgedMeasure, ...]:
        from rag_harness.evaluation.measures import parts_of

        wanted = _of_rows(parts_of(self._names(experiment)))
        named = {measure.name: measure for measure in self._with_criteria(wanted)}
        return tuple({**named, **{each.name: each for each in self._expected(experiment)}}.values())

    def _expected(self, experiment: str) -> list[JudgedMeasure]:
        """Return the measures of expectations that need a model: all of a case, and each such kind."""
        cases = self._cases(experiment)
        if not any(case.expect for case in cases):
            return []
        from rag_harness.evaluation.measures.expectations import JudgedExpectations, JudgedOfKind, judged_kinds

        kinds = judged_kinds(cases)
        return [JudgedExpectations(), *map(JudgedOfKind, kinds)] if kinds else []

    def judged_names(self, experiment: str) -> Sequence[str]:
        """Return the names of a suite's judged measures, those that are computed from other judged ones included.

        Raises:
            SettingsError: a name is not a measure.
        """
        return () if experiment == GOLDEN else self._columns(experiment)

    def _columns_of(self, experiment: str) -> tuple[str, ...]:
        from rag_harness.evaluation.measures import columns_of

        of_kinds = [each.name for each in self._expected(experiment)]
        return tuple(dict.fromkeys([*columns_of(self._names(experiment)), *of_kinds]))

    def check_judge(self, experiments: Iterable[str]) -> None:
        """Make sure, before anything runs, that the judged measures of these experiments can be judged.

        Raises:
            PrerequisiteError: a measure or the judge is not known, or the judge has no key or price.
        """
        from rag_harness.evaluation.measures import parts_of
        from rag_harness.models.endpoints import panel_of

        panel_of(self._settings())
        everywhere, by_suite = self._named.get()
        self._with_criteria(parts_of([*everywhere, *(name for names in by_suite.values() for name in names)]))
        if any(self.judged_measures(experiment) for experiment in experiments):
            from rag_harness.evaluation.judges.traits import check_judge

            check_judge(self._settings())

    def metamorphic_measures(self, experiment: str) -> list[str]:
        """Return the metamorphic measures of an experiment: those that are named, and all of them if asked for.

        "All" includes the check with other words only if the settings name a model that finds them.
        """
        from rag_harness.evaluation.measures.metamorphic import METAMORPHIC, metamorphic_of

        settings, named = self._settings(), self._names(experiment)
        if settings.metamorphic:
            named += [name for name in METAMORPHIC if settings.writer_model or name != "metamorphic_paraphrase"]
        return metamorphic_of(named)

    def _names(self, experiment: str) -> list[str]:
        everywhere, by_suite = self._named.get()
        return [*everywhere, *by_suite.get(experiment, ()), *self._of_rubrics(experiment)]

    def _of_rubrics(self, experiment: str) -> list[str]:
        """Return the measures of the rubrics whose files name the experiment."""
        return [f"{_RUBRIC}{name}" for name, each in self._rubrics.get().items() if experiment in each.experiments]

    def rubric_versions(self, experiment: str) -> dict[str, int]:
        """Return the versions of the rubrics that an experiment's answers are judged by, by measure."""
        from rag_harness.evaluation.measures.expectations import versions_of

        return versions_of(self.judged_measures(experiment))

    def _read(self) -> tuple[list[str], dict[str, list[str]]]:
        from rag_harness.runs.gates.configuration import gates_set, measures_by_suite

        settings = self._settings()
        everywhere = [*names_in((*settings.measures, *_headline(settings))), *measures_of(settings.slices, settings.k)]
        return everywhere, measures_by_suite(gates_set(settings), settings.k)


def _headline(settings: Settings) -> Sequence[str]:
    """Return the option's values.

    Raises:
        SettingsError: one names an experiment.
    """
    for value in settings.headline:
        if ":" in value:
            raise SettingsError(
                f"rag_headline names measures, and all experiments are compared by them; found {value!r}. "
                f"Write {value.rpartition(':')[2].strip()!r}."
            )
    return settings.headline


def _of_rows(measures: Sequence[JudgedMeasure]) -> list[JudgedMeasure]:
    """Return the measures that a row is judged by as soon as it is there."""
    from rag_harness.evaluation.measures.conversations import LateMeasure

    return [each for each in measures if not isinstance(each, LateMeasure)]


_EXAMPLE = "Example: 'query_type, topic: recall@5'."


@dataclass(frozen=True, slots=True)
class SliceAsked:
    """Cases with the same value of ``key`` are a slice. An empty ``measure`` lets the run choose."""

    key: str
    measure: str = ""


def read_slices(texts: Iterable[str], k: int) -> list[SliceAsked]:
    """Read the option, whose texts are ``KEY[, KEY …][: MEASURE[, MEASURE …]]``; ``@k`` becomes the option's k.

    Raises:
        SettingsError: a text has no key, an empty name, or an unknown measure.
    """
    return list(dict.fromkeys(asked for text in texts for asked in _read(text, k)))


def measures_of(texts: Iterable[str], k: int) -> list[str]:
    """Return the measures in the texts. A run must compute them.

    Raises:
        SettingsError: a text cannot be read.
    """
    return list(dict.fromkeys(asked.measure for asked in read_slices(texts, k) if asked.measure))


def _read(text: str, k: int) -> list[SliceAsked]:
    keys, colon, measures = text.partition(":")
    names = _names(text, measures) if colon else [""]
    return [SliceAsked(key, _measure(text, name, k)) for key in _names(text, keys) for name in names]


def _names(text: str, listed: str) -> list[str]:
    names = [name.strip() for name in listed.split(",")]
    if not all(names):
        raise SettingsError(f"--rag-slices={text}: a name is empty in {listed.strip()!r}. {_EXAMPLE}")
    return names


def _measure(text: str, name: str, k: int) -> str:
    try:
        return measure_named(name.removesuffix("@k") + f"@{k}" if name.endswith("@k") else name).name if name else ""
    except SettingsError as error:
        raise SettingsError(f"--rag-slices={text}: {error}") from error


def check_slice_keys(asked: Iterable[SliceAsked], keys: Collection[str]) -> None:
    """Make sure that cases have each key.

    Raises:
        SettingsError: no case has a key; says which keys there are.
    """
    for each in asked:
        if each.key not in keys:
            raise SettingsError(f"--rag-slices: {unknown('slice key', each.key, keys)}")
