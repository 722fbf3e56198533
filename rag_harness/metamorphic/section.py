"""What metamorphic checks came to, for people and for machines. At most 100 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rag_harness.measures.metamorphic import metamorphic_of
from rag_harness.metamorphic.checks import NO_WRITER, PARAPHRASE
from rag_harness.report.misses import cut
from rag_harness.report.summary import table
from rag_harness.results.score import CHECKED, ScoreLine
from rag_harness.settings import Settings

WIDTH = 100
SHOWN = 3
"""Examples of each experiment that are printed."""
_ABREAST, _NAME = 5, 13
NOTHING = "no trial with an answer: nothing to check"


def metamorphic_lines(found: Mapping[str, Sequence[ScoreLine]], settings: Settings) -> list[str]:
    """Return the lines of the section: a table of rates, why there are none, and the worst of each experiment."""
    every = [line for lines in found.values() for line in lines]
    if not every:
        return [NOTHING]
    measures = metamorphic_of(line.measure for line in every)
    lines = [*_rates(found, measures), *_without(found), *_no_writer(measures)]
    for name, scores in found.items():
        lines += _worst(name, [line for line in scores if line.value == 0])
    return [*lines, "", f"all {len(every)}: {settings.output}/{CHECKED}"]


def _rates(found: Mapping[str, Sequence[ScoreLine]], measures: Sequence[str]) -> Iterator[str]:
    """A table of so many experiments as fit beside each other, and below it one of the next."""
    names = list(found)
    for first in range(0, len(names), _ABREAST):
        abreast = names[first : first + _ABREAST]
        rows = [[_short(measure), *(_rate(measure, found[name]) for name in abreast)] for measure in measures]
        yield from table([["kept / checked", *(cut(name, _NAME) for name in abreast)], *rows])


def _rate(measure: str, lines: Sequence[ScoreLine]) -> str:
    values = [line.value for line in lines if line.measure == measure and line.value is not None]
    return f"{sum(map(bool, values))}/{len(values)}" if values else "-"


def _short(measure: str) -> str:
    return measure.removeprefix("metamorphic_").removesuffix("_resisted")


def _without(found: Mapping[str, Sequence[ScoreLine]]) -> Iterator[str]:
    """Say what has no score, and why."""
    for name, lines in found.items():
        counted = Counter((line.reason, line.measure) for line in lines if line.value is None)
        by_reason: dict[str, list[str]] = {}
        for (reason, measure), n in counted.items():
            by_reason.setdefault(reason, []).append(f"{_short(measure)} {n}")
        for reason, measures in by_reason.items():
            said = f"{name}: without a score: {', '.join(measures)}: {cut(reason, 2 * WIDTH)}"
            yield from wrap(said, WIDTH, subsequent_indent="  ", max_lines=3, placeholder=" …")


def _no_writer(measures: Sequence[str]) -> Iterator[str]:
    if PARAPHRASE not in measures:
        yield from wrap(f"left out: {_short(PARAPHRASE)}: {NO_WRITER}: --rag-writer-model", WIDTH)


def _worst(name: str, broken: Sequence[ScoreLine]) -> Iterator[str]:
    """Show one example of each measure that broke, the measure that broke most often first."""
    if not broken:
        return
    often = Counter(line.measure for line in broken)
    wavering = sum("wavers" in line.detail for line in broken)
    noise = f"; {wavering} of them waver without any change" if wavering else ""
    yield from ("", f"{name}: {len(broken)} answers changed{noise}; an example of each of the worst {SHOWN}")
    steady = sorted(broken, key=lambda line: "wavers" in line.detail)
    for measure, n in often.most_common(SHOWN):
        example = next(line for line in steady if line.measure == measure)
        yield from _example(example, n)


def _example(line: ScoreLine, n: int) -> Iterator[str]:
    said = line.detail
    yield f"  {cut(f'{_short(line.measure)} ({n})  {line.trial}: {line.reason}', WIDTH - 2)}"
    for label, key in (("query", "query"), ("changed", "changed"), ("before", "before"), ("after", "answer")):
        yield f"    {label.ljust(9)}{cut(str(said.get(key, '')), WIDTH - 13)}"


def as_json(found: Mapping[str, Sequence[ScoreLine]]) -> dict[str, Any]:
    """Return the rates, by experiment and measure, and what has no score, by its reason."""
    return {
        name: {measure: _counts(measure, lines) for measure in metamorphic_of(line.measure for line in lines)}
        for name, lines in found.items()
    }


def _counts(measure: str, lines: Sequence[ScoreLine]) -> dict[str, Any]:
    of = [line for line in lines if line.measure == measure]
    values = [line.value for line in of if line.value is not None]
    broken = [line for line in of if line.value == 0]
    return {
        "rate": sum(values) / len(values) if values else None,
        "checked": len(values),
        "broken": [line.query_id for line in broken],
        "wavering": [line.query_id for line in broken if "wavers" in line.detail],
        "without": dict(Counter(line.reason for line in of if line.value is None)),
    }
