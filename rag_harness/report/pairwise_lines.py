"""Writes the pairwise tests for the terminal: the study's with all figures, the others as a matrix. 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rag_harness.errors import PrerequisiteError
from rag_harness.measures import measure_named
from rag_harness.report.pairwise import PairDifference
from rag_harness.report.summary import SHORT_MEASURE_NAMES, table
from rag_harness.stats.paired import Paired

PAIR_COLUMNS = ("n", "difference", "interval", "d_z", "p (t)", "p (perm)")
_INTERVALS = "intervals are 95 % ones, corrected as p is"
_ASSUMED = "p (t) and intervals assume that no large difference is rarer than 4 in n, which n cases could miss"
_WIDTH = 100
_ACROSS = 6
"""Most measures in one matrix: more would not fit 100 columns."""
_MOST_PAIRS = 10
"""All pairs of five experiments, or eleven against the first. The rest is in ``summary.json`` and the report."""


def pairwise_lines(cells: Sequence[PairDifference]) -> list[str]:
    """Return the lines; none where no two experiments have judged cases in common."""
    if not cells:
        return []
    pairs = list(dict.fromkeys(cell.pair for cell in cells))
    shown = [cell for cell in cells if cell.pair in pairs[:_MOST_PAIRS]]
    study = [cell for cell in shown if cell.family == "study" and cell.found]
    tests = {
        family: sum(cell.p_t is not None for cell in cells if cell.family == family) for family in ("study", "others")
    }
    head = (
        f"differences over the same cases, first minus second; p adjusted by Holm for {tests['study']} tests, for "
        f"{tests['others']} in the matrix; {_INTERVALS}; {_ASSUMED}; > the first is better, < the second, both p <= "
        "0.05 and the interval without 0; ↓ lower is better"
    )
    if any(cell.found and cell.found.clusters for cell in study):
        head += "; the study's p are by question, its intervals by page or conversation"
    lines = [*wrap(head, _WIDTH), *_study(study), *_matrix(shown), *_reasons(shown)]
    more = len(pairs) - _MOST_PAIRS
    rest = [f"… and {more} more pairs, in summary.json and in the report"] if more > 0 else []
    return [cut(line) for line in [*lines, *rest]]


def measure_said(name: str) -> str:
    """Return a measure's short name, with an arrow where lower is better."""
    try:
        lower = measure_named(name).better == "lower"
    except PrerequisiteError:
        lower = False  # a measure that is not registered here
    return SHORT_MEASURE_NAMES.get(name, name) + (" ↓" if lower else "")


def figures(found: Paired, p_t: float | None, p_permutation: float | None) -> list[str]:
    """Return the cells below ``PAIR_COLUMNS``."""
    bounds = f"[{found.interval.low:+.3f}, {found.interval.high:+.3f}]" if found.interval else "-"
    effect = "-" if found.effect is None else f"{found.effect:+.2f}"
    return [found.counted, f"{found.difference:+.3f}", bounds, effect, p_said(p_t), p_said(p_permutation)]


def p_said(p: float | None) -> str:
    """Return a p-value as text; it is never written as 0."""
    return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def cut(line: str) -> str:
    """Return the line, at most 100 columns wide."""
    return line.rstrip() if len(line.rstrip()) <= _WIDTH else line[: _WIDTH - 1] + "…"


def _study(cells: Sequence[PairDifference]) -> list[str]:
    if not cells:
        return []
    rows = [
        [cell.pair, _name(cell), *figures(cell.found, cell.p_t, cell.p_permutation), sign_of(cell)]
        for cell in cells
        if cell.found
    ]
    return table([["the study's", "", *PAIR_COLUMNS, ""], *rows])


def _name(cell: PairDifference) -> str:
    tail = f" p{cell.quantile * 100:.0f}" if cell.quantile else ""
    return measure_said(cell.measure).replace(" ↓", f"{tail} ↓") if tail else measure_said(cell.measure)


def _matrix(cells: Sequence[PairDifference]) -> Iterator[str]:
    """Yield the mean differences of all other measures, one line for each pair."""
    others = {(cell.pair, cell.measure): cell for cell in cells if cell.family == "others" and not cell.quantile}
    measures = list(dict.fromkeys(measure for (_, measure), cell in others.items() if cell.found))
    pairs = list(dict.fromkeys(pair for pair, _ in others))
    for start in range(0, len(measures), _ACROSS):
        names = measures[start : start + _ACROSS]
        rows = [[pair, *(_difference(others.get((pair, name))) for name in names)] for pair in pairs]
        yield from table([["others", *map(measure_said, names)], *rows])


def _difference(cell: PairDifference | None) -> str:
    if cell is None or cell.found is None:
        return "-"
    return f"{cell.found.difference:+.3f}" + (sign_of(cell) or " ")


def sign_of(cell: PairDifference) -> str:
    """Return ``>`` where the first is significantly better, ``<`` where the second is; else nothing."""
    if not cell.is_significant or cell.found is None:
        return ""
    return ">" if (cell.found.difference > 0) != measure_said(cell.measure).endswith("↓") else "<"


def _reasons(cells: Sequence[PairDifference]) -> Iterator[str]:
    """Yield why a difference or a test is missing, one line for each reason."""
    by_reason: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.reason:
            by_reason.setdefault(cell.reason, {})[_name(cell).removesuffix(" ↓")] = None
    for reason, names in by_reason.items():
        yield from wrap(f"no test of {', '.join(names)}: {reason}", _WIDTH, subsequent_indent="  ")
