"""Finds which experiment wins on which slice of the cases, and with what significance.

The best of a slice is chosen on the same cases that it is tested on. So its test is the most extreme of all pairs, and
must count as that: Holm's family has every pair on every requested slice and measure. With only the pairs of the best
as the family, one of ten equal experiments would win, or beat another, in one run out of six.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, inf
from statistics import fmean

from rag_harness.report.pairwise import PairDifference, adjusted, compared, judged_measures, unlike
from rag_harness.report.slices_asked import SliceAsked
from rag_harness.report.standing import ALL_CASES, SliceStanding, Standings, Where
from rag_harness.report.suite_table import SuiteTable
from rag_harness.results.manifest import SuiteRecord
from rag_harness.stats.intervals import Interval
from rag_harness.types import GOLDEN

_USUAL = ("recall@5", "g_mean", "factuality", "answer_relevancy", "token_f1")
"""Measures to compare where none is named: the first that two experiments have."""
_DRAWS = 40
"""Least sign flips a test. The smallest p is 1 / (flips + 1): with fewer, no corrected p could be significant."""
_MOST_DRAWS = 100_000

TablesByName = Mapping[str, SuiteTable]


def standings(tables: TablesByName, suites: Mapping[str, SuiteRecord], asked: Sequence[SliceAsked]) -> Standings:
    """Return the standing of the experiments of each data on each slice; nothing for data with one experiment."""
    rivals = {data: mine for data, mine in by_data(tables, suites).items() if len(mine) > 1}
    found = _standings([field for data, mine in rivals.items() for field in _fields(data, mine, asked)], suites)
    return replace(found, blank=[*_absent(rivals, asked), *found.blank])


def standings_over_all(
    tables: TablesByName, suites: Mapping[str, SuiteRecord], measures: Mapping[str, Sequence[str]]
) -> Standings:
    """Return the standing of the experiments of each data on each of its ``measures``, over all cases."""
    rivals = by_data(tables, suites)
    having = {
        (data, measure): {name: table for name, table in rivals[data].items() if table.has(measure)}
        for data, wanted in measures.items()
        for measure in wanted
    }
    return _standings([_Field(data, ALL_CASES, name, mine) for (data, name), mine in having.items() if mine], suites)


def by_data(tables: TablesByName, suites: Mapping[str, SuiteRecord]) -> dict[str, dict[str, SuiteTable]]:
    """Return the experiments with selected cases, by what they were asked: the name of their data, and the history."""
    found: dict[str, dict[str, SuiteTable]] = {}
    for name in sorted(tables):
        if name != GOLDEN and tables[name].selected_of({}):
            found.setdefault(suites[name].asked, {})[name] = tables[name]
    return found


def _standings(fields: Sequence[_Field], suites: Mapping[str, SuiteRecord]) -> Standings:
    """Return the standings. All pairs of all fields are one family of tests."""
    contested = [field for field in fields if not field.why_not]
    draws = min(max(10_000, _DRAWS * sum(comb(len(field.having), 2) for field in contested)), _MOST_DRAWS)
    tables = {name: table for field in contested for name, table in field.tables.items()}
    cells = adjusted([cell for field in contested for cell in field.cells(suites, draws)], tables)
    return Standings(
        found=[field.standing([cell for cell in cells if field.has(cell)]) for field in contested],
        blank=list(_gathered([field for field in fields if field.why_not])),
        tests=sum(cell.p_t is not None for cell in cells),
        several=len({field.data for field in contested}) > 1,
    )


@dataclass(frozen=True, slots=True)
class _Field:
    """The competitors on a slice. ``tables`` are those with a value of the measure on some case of the data."""

    data: str
    where: Where
    measure: str
    tables: TablesByName

    @property
    def inside(self) -> dict[str, str]:
        """The slice in the form that tables take."""
        return {} if self.where == ALL_CASES else dict([self.where])

    @property
    def _places(self) -> tuple[Where, ...]:
        """The slice in the form that differences take."""
        return tuple(self.inside.items())

    @property
    def having(self) -> dict[str, SuiteTable]:
        """The tables with a value on the slice."""
        return {name: table for name, table in self.tables.items() if table.values(self.measure, self.inside)}

    @property
    def cases(self) -> int:
        """The number of cases of the slice that this run was to look at."""
        return max(table.selected_of(self.inside) for table in self.tables.values())

    @property
    def why_not(self) -> str:
        """Why there is nothing to compare; empty where there is something."""
        having = self.having
        if len(having) > 1:
            return "" if self.cases > 1 else "one case tells nothing apart"
        why = dict.fromkeys(
            _why(table, self.measure, self.inside) for n, table in self.tables.items() if n not in having
        )
        said = f"{f'only {next(iter(having))}' if having else 'nobody'} has {self.measure}"
        return f"{said} ({'; '.join(why)})" if why else said

    def cells(self, suites: Mapping[str, SuiteRecord], draws: int) -> Iterator[PairDifference]:
        """Yield the differences of all pairs."""
        for first, second in combinations(self.having, 2):
            judged = self.measure in {*judged_measures(self.tables[first]), *suites[first].judged}
            why = unlike(suites, first, second, self.measure, judged)
            cell = PairDifference(first, second, self.measure, "others", where=self._places)
            yield compared(self.tables, cell, why, draws)

    def has(self, cell: PairDifference) -> bool:
        """Whether a cell belongs to this slice, measure and data."""
        return cell.where == self._places and cell.measure == self.measure and cell.first in self.tables

    def standing(self, cells: Sequence[PairDifference]) -> SliceStanding:
        """Return the standing, from the differences of all pairs."""
        measure = next(iter(self.tables.values())).columns[self.measure].measure
        sign = -1 if measure.better == "lower" else 1
        values = {name: list(table.values(self.measure, self.inside).values()) for name, table in self.having.items()}
        means = {name: fmean(found) for name, found in values.items()}
        led = {name: sign * sum(_lead(cell, name) for cell in cells) for name in means}
        best = max(means, key=lambda name: (led[name], sign * means[name]))
        interval = self.having[best].interval(self.measure, self.inside)
        mine = [cell if cell.first == best else _turned(cell) for cell in cells if best in (cell.first, cell.second)]
        return SliceStanding(
            data=self.data,
            where=self.where,
            measure=self.measure,
            unit=measure.unit,
            is_lower=sign < 0,
            cases=self.cases,
            best=best,
            n=len(values[best]),
            mean=means[best],
            interval=Interval(*interval) if interval and len(values[best]) > 1 else None,
            against=sorted(mine, key=lambda cell: sign * cell.found.difference if cell.found else inf),
            without=[name for name in self.tables if name not in values],
        )


def _fields(data: str, tables: TablesByName, asked: Sequence[SliceAsked]) -> Iterator[_Field]:
    wanted = _wanted(tables, asked)
    for measure in dict.fromkeys(measure for measure, _ in wanted):
        having = {name: table for name, table in tables.items() if table.has(measure)}
        for where in (where for name, key in wanted if name == measure for where in _slices(having, key)):
            yield _Field(data, where, measure, having)


def _wanted(tables: TablesByName, asked: Sequence[SliceAsked]) -> list[tuple[str, str]]:
    """Return measures with keys. Where no measure is named, it is the first usual one that two experiments have."""
    usual = next((name for name in _USUAL if sum(table.has(name) for table in tables.values()) > 1), _USUAL[0])
    return list(dict.fromkeys((each.measure or usual, each.key) for each in asked))


def _slices(tables: TablesByName, key: str) -> list[Where]:
    """Return the slices of a key that this run was to look at."""
    values = {value for table in tables.values() for value in table.slices().get(key, ())}
    return [(key, v) for v in sorted(values) if any(table.selected_of({key: v}) for table in tables.values())]


def _absent(rivals: Mapping[str, TablesByName], asked: Sequence[SliceAsked]) -> Iterator[str]:
    """Yield which experiments have no value at all, one line for each measure and reason."""
    for tables in rivals.values():
        for measure in dict.fromkeys(measure for measure, _ in _wanted(tables, asked)):
            by_why: dict[str, list[str]] = {}
            for name, table in tables.items():
                if not table.has(measure):
                    by_why.setdefault(_why(table, measure, {}), []).append(name)
            yield from (f"{', '.join(names)}: no {measure} ({why})" for why, names in by_why.items())


def _gathered(fields: Sequence[_Field]) -> Iterator[str]:
    """Yield why slices have no standing, one line for each reason."""
    by_why: dict[str, dict[str, None]] = {}
    for field in fields:
        by_why.setdefault(field.why_not, {})["=".join(field.where)] = None
    yield from (f"{', '.join(names)}: {why}" for why, names in by_why.items())


def _why(table: SuiteTable, measure: str, where: Mapping[str, str]) -> str:
    """Return why an experiment has no value."""
    if measure not in table.columns:
        return "not measured"
    why = table.absent(measure, where).most_common(1)
    return f"{why[0][1]} of {table.selected_of(where)} have {why[0][0]}" if why else "not selected"


def _lead(cell: PairDifference, name: str) -> int:
    """Return 1 where an experiment is the higher of a pair, -1 where it is the lower, else 0."""
    if cell.found is None or name not in (cell.first, cell.second):
        return 0
    sign = (cell.found.difference > 0) - (cell.found.difference < 0)
    return sign if name == cell.first else -sign


def _turned(cell: PairDifference) -> PairDifference:
    """Return the difference with the sides exchanged. The p-values stay, for they are two-sided."""
    turned = replace(cell, first=cell.second, second=cell.first)
    if cell.found is None:
        return turned
    found = cell.found
    interval = Interval(-found.interval.high, -found.interval.low) if found.interval else None
    effect = None if found.effect is None else -found.effect
    return replace(turned, found=found._replace(difference=-found.difference, interval=interval, effect=effect))
