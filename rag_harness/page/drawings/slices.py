"""A heat map of each measure on each slice of the cases, which shows weak slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.page.charts import HeatMap, heat_map
from rag_harness.page.content import Cell, Figure, Table, word_cells
from rag_harness.page.drawings.estimated import PLAIN, STUDY
from rag_harness.page.drawings.experiments import drawn_of, equal_notes, left_out
from rag_harness.page.figures import NONE
from rag_harness.page.run import Run
from rag_harness.report.equals import equal_groups
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary import SHORT_MEASURE_NAMES

_MOST_VALUES = 8
"""A label with more values is a name, not a slice."""
_MOST_SLICES = 16
_MOST_MAPS = 4
_FEWEST_CASES = 2

_Slice = tuple[str, str]
_Means = tuple[float | None, ...]
_Span = tuple[float, float]


def slices(run: Run) -> Figure | None:
    """Return a heat map for each experiment, one for several that are equal; None where the cases have no slices."""
    experiments = run.experiments
    measures = [name for name in (*STUDY, "factuality", *PLAIN) if any(t.has(name) for t in experiments.values())]
    tables = {name: table for name, table in experiments.items() if 2 * len(_measures(table)) > len(measures)}
    found = list(dict.fromkeys(each for table in tables.values() for each in _slices(table)))[:_MOST_SLICES]
    if len(found) < 2:
        return None
    left = [name for name in experiments if name not in tables]
    means = {name: [_means_of(table, each, measures) for each in found] for name, table in tables.items()}
    every = [mean for values in means.values() for row in values for mean in row if mean is not None]
    span = (min(every), max(every)) if every else None
    groups = equal_groups({name: run.tables[name] for name in tables})
    names = {group[0]: " = ".join(group) for group in groups}
    drawn = drawn_of(run, names, _MOST_MAPS)
    drawings = [_drawn(name, found, measures, means[name], span) for name in drawn]
    rows = [row for name, table in tables.items() for row in _rows(name, table, found, means[name])]
    head = ("experiment", "slice", "cases", *(SHORT_MEASURE_NAMES.get(name, name) for name in measures))
    title = "Measures on slices of the cases"
    notes = ["Means without intervals: of a small slice they say little. The number of cases stands in the table."]
    notes += [f"Not drawn, for most of these measures are not defined: {', '.join(left)}."] if left else []
    notes += [*equal_notes(groups), *left_out(run, list(names), drawn)]
    table = Table("figure-slices", head, rows, "Means by slice")
    return Figure(title, drawings, table, notes, [names[name] for name in drawn], "alike")


def _measures(table: SuiteTable) -> list[str]:
    return [name for name in (*STUDY, "factuality", *PLAIN) if table.has(name)]


def _slices(table: SuiteTable) -> Iterator[_Slice]:
    keys = table.slices()
    for key in sorted(keys, key=lambda key: (key != "query_type", key)):
        if 1 < len(keys[key]) <= _MOST_VALUES:
            yield from ((key, v) for v in sorted(keys[key]) if table.selected_of({key: v}) >= _FEWEST_CASES)


def _means_of(table: SuiteTable, each: _Slice, measures: Sequence[str]) -> _Means:
    known = [name for name in measures if name in table.columns]
    found = table.aggregate(known, dict([each]))
    return tuple(found.get(name) for name in measures)


def _drawn(
    name: str, found: Sequence[_Slice], measures: Sequence[str], values: Sequence[_Means], span: _Span | None
) -> str:
    """Return the map of an experiment. All maps have the same colours for the same values."""
    rows, groups = tuple(value for _, value in found), tuple(key for key, _ in found)
    columns = tuple(SHORT_MEASURE_NAMES.get(measure, measure) for measure in measures)
    ident = f"slices-{_safe(name)}"
    return heat_map(
        HeatMap(ident=ident, title=name, rows=rows, columns=columns, values=tuple(values), span=span, groups=groups)
    )


def _rows(name: str, table: SuiteTable, found: Sequence[_Slice], values: Sequence[_Means]) -> Iterator[list[Cell]]:
    for (key, value), means in zip(found, values, strict=True):
        shown = [NONE if mean is None else f"{mean:.3f}" for mean in means]
        yield word_cells(name, f"{key}: {value}", f"{table.selected_of({key: value}):,}", *shown)


def _safe(name: str) -> str:
    """Return a name in the form of an id. Different names stay different."""
    return "".join(c if c.isascii() and c.isalnum() else f"-{ord(c):x}-" for c in name)
