"""The results of metamorphic checks, for people and for machines. At most 100 columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rag_harness.derived.metamorphic.metamorphic_checks import NO_WRITER, PARAPHRASE
from rag_harness.measures.metamorphic import metamorphic_of
from rag_harness.report.misses import cut
from rag_harness.report.summary import table
from rag_harness.results.score import CHECKED, ScoreLine
from rag_harness.settings import Settings

TERMINAL_WIDTH = 100
SHOWN_EXAMPLES = 3
"""Number of printed examples of each experiment."""
_ABREAST, _NAME = 5, 13
_NEIGHBOUR = (1, 0, 3, 2)
"""The line that each of an example's four lines is compared with."""
_QUOTE = re.compile("[\"'«“]")
NOTHING_TO_CHECK = "no trial with an answer: nothing to check"


def metamorphic_lines(found: Mapping[str, Sequence[ScoreLine]], settings: Settings) -> list[str]:
    """Return the lines of the section: a table of rates, why some are missing, and the worst of each experiment."""
    every = [line for lines in found.values() for line in lines]
    if not every:
        return [NOTHING_TO_CHECK]
    measures = metamorphic_of(line.measure for line in every)
    asked = f"the first {settings.metamorphic_cases} by lot" if settings.metamorphic_cases else "all"
    lines = [
        f"answers of each experiment that were checked: {asked}",
        *_rates(found, measures),
        *_without(found),
        *_no_writer(measures),
    ]
    for name, scores in found.items():
        lines += _worst(name, [line for line in scores if line.value == 0])
    return [*lines, "", f"all {len(every)}: {settings.output}/{CHECKED}"]


def _rates(found: Mapping[str, Sequence[ScoreLine]], measures: Sequence[str]) -> Iterator[str]:
    """Yield a table with as many experiments as fit beside each other, and further tables below it."""
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
    """Say what has no score, and why. Reasons that differ only in their quotes are printed once, as the first one."""
    for name, lines in found.items():
        by_kind: dict[str, list[ScoreLine]] = {}
        for line in lines:
            if line.value is None:
                by_kind.setdefault(_QUOTE.split(line.reason)[0], []).append(line)
        for alike in by_kind.values():
            counted = Counter(line.measure for line in alike)
            measures = ", ".join(f"{_short(measure)} {counted[measure]}" for measure in metamorphic_of(counted))
            yield from _wrapped(f"{name}: without a score: {measures}: {' '.join(alike[0].reason.split())}")


def _wrapped(text: str) -> list[str]:
    return wrap(text, TERMINAL_WIDTH, subsequent_indent="  ", max_lines=3, placeholder=" …", break_on_hyphens=False)


def _no_writer(measures: Sequence[str]) -> Iterator[str]:
    if PARAPHRASE not in measures:
        yield from _wrapped(f"left out: {_short(PARAPHRASE)}: {NO_WRITER} (role writer of the profile)")


def _worst(name: str, broken: Sequence[ScoreLine]) -> Iterator[str]:
    """Show one example of each broken measure, the measure that broke most often first."""
    if not broken:
        return
    often = Counter(line.measure for line in broken)
    wavering = sum("wavers" in line.detail for line in broken)
    noise = f"; {wavering} of them waver without any change" if wavering else ""
    yield from ("", f"{name}: {len(broken)} answers changed{noise}; an example of each of the worst {SHOWN_EXAMPLES}")
    steady = sorted(broken, key=lambda line: "wavers" in line.detail)
    for measure, n in often.most_common(SHOWN_EXAMPLES):
        example = next(line for line in steady if line.measure == measure)
        yield from _example(example, n)


def _example(line: ScoreLine, n: int) -> Iterator[str]:
    said = line.detail
    yield f"  {cut(f'{_short(line.measure)} ({n})  {line.trial}: {line.reason}', TERMINAL_WIDTH - 2)}"
    shown = [str(said.get(key, "")) for key in ("query", "changed", "before", "answer")]
    for label, text, beside in zip(("query", "changed", "before", "after"), shown, _NEIGHBOUR, strict=True):
        yield f"    {label.ljust(9)}{_around(text, shown[beside], TERMINAL_WIDTH - 13)}"


def _around(text: str, other: str, width: int) -> str:
    """Cut ``text`` to one line, with the first difference from ``other`` in the middle."""
    flat, beside = " ".join(text.split()), " ".join(other.split())
    same = next((n for n, (one, two) in enumerate(zip(flat, beside, strict=False)) if one != two), 0)
    start = max(0, min(same - width // 2, len(flat) - width))
    return cut(flat, width) if not start else "…" + cut(flat[start + 1 :], width - 1)


def rates_as_json(found: Mapping[str, Sequence[ScoreLine]]) -> dict[str, Any]:
    """Return the rates, by experiment and measure, and the cases without a score, by reason."""
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
