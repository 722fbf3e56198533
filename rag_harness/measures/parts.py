"""Finds the judged measures behind names of measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rag_harness.errors import SettingsError
from rag_harness.measures.composite import CompositeMeasure
from rag_harness.measures.judged.carried import LateMeasure
from rag_harness.measures.judged.composites import STUDY
from rag_harness.measures.judged.measure import JudgedMeasure
from rag_harness.measures.named import measure_named


def parts_of(names: Iterable[str]) -> list[JudgedMeasure]:
    """Return the judged measures that ``names`` need, each once, in their order. A composite needs its parts.

    Measures without a judge add nothing.

    Raises:
        SettingsError: a name is no measure; suggests the nearest one.
    """
    return list({measure.name: measure for name in names for measure in _parts(name)}.values())


def columns_of(names: Iterable[str]) -> list[str]:
    """Return the columns of a suite that is judged on ``names``: their parts, the named composites, and the study's.

    Raises:
        SettingsError: a name is no measure.
    """
    wanted = list(names)
    parts = [measure.name for measure in parts_of(wanted)]
    named = [name for name in wanted if isinstance(_any(name), CompositeMeasure)]
    study = [name for name in STUDY if set(_parts_names(name)) <= set(parts)]
    return list(dict.fromkeys([*parts, *study, *named]))


def is_judged(name: str) -> bool:
    """Whether a measure is judged, or a composite of judged ones; False for an unknown name."""
    try:
        return bool(parts_of([name]))
    except SettingsError:
        return False


def _any(name: str) -> object:
    return measure_named(name)


def _parts_names(name: str) -> list[str]:
    return [part.name for part in _parts(name)]


def _parts(name: str) -> Iterator[JudgedMeasure]:
    measure = _any(name)
    if isinstance(measure, LateMeasure):
        yield from _parts(measure.builds_on)
    if isinstance(measure, JudgedMeasure):
        yield measure
    elif isinstance(measure, CompositeMeasure):
        for part in measure.parts:
            yield from _parts(part)
