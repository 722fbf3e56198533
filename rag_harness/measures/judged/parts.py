"""Names of measures -> what a judge must be asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rag_harness.measures.composite import CompositeMeasure
from rag_harness.measures.judged.measure import JudgedMeasure
from rag_harness.measures.named import measure_named


def parts_of(names: Iterable[str]) -> list[JudgedMeasure]:
    """Return the judged measures that ``names`` need, each once, in their order: a composite's are its parts.

    Measures that no judge is needed for add nothing.

    Raises:
        SettingsError: a name is no measure; says what was probably meant.
    """
    return list({measure.name: measure for name in names for measure in _parts(name)}.values())


def _parts(name: str) -> Iterator[JudgedMeasure]:
    measure: object = measure_named(name)
    if isinstance(measure, JudgedMeasure):
        yield measure
    elif isinstance(measure, CompositeMeasure):
        for part in measure.parts:
            yield from _parts(part)
