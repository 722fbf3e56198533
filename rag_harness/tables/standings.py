"""The standings of experiments.

The winner on each slice with significance, the best of a run, and identical experiments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from math import comb, inf
from statistics import fmean
from textwrap import wrap
from typing import Any

from rag_harness.core.types import GOLDEN
from rag_harness.records.manifest import SuiteRecord
from rag_harness.runs.gates.evidence import span_of
from rag_harness.runs.gates.verdict import bounds, value_said
from rag_harness.stats.inputs import Interval, UndefinedError, differences, in_both
from rag_harness.stats.paired_tests import BoundReach
from rag_harness.tables.answer_warnings import WRONG, that_answer
from rag_harness.tables.pairwise import (
    PairDifference,
    adjusted,
    compared,
    judged_measures,
    measure_said,
    p_said,
    unlike,
)
from rag_harness.tables.requested_measures import SliceAsked
from rag_harness.tables.suite_table import SuiteTable

Where = tuple[str, str]
"""Key and value of a slice."""
ALL_CASES: Where = ("", "")
"""The slice of every case."""


@dataclass(frozen=True, slots=True)
class SliceStanding:
    """How experiments compare on a slice.

    Attributes:
        data: name of their data.
        where: key of the slice, and its value.
        measure: measure of the comparison; ``unit`` and ``is_lower`` are the measure's: lower is better.
        cases: number of cases of the slice that this run was to look at.
        best: the experiment that is ahead of most others, case by case; of equal ones, that with the best mean.
        mean: mean of its ``n`` values; ``interval`` is the 95 % one, None for one value.
        against: the best minus each other experiment with a value, the nearest first.
        without: experiments that have values elsewhere, but none on this slice.
    """

    data: str
    where: Where
    measure: str
    unit: str
    is_lower: bool
    cases: int
    best: str
    n: int
    mean: float
    interval: Interval | None
    against: Sequence[PairDifference]
    without: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The slice in the notation of gates."""
        return "=".join(self.where)

    @property
    def beaten(self) -> list[PairDifference]:
        """Experiments that are significantly worse than the best."""
        return [cell for cell in self.against if cell.is_significant and self._is_ahead(cell)]

    @property
    def ahead(self) -> list[PairDifference]:
        """Experiments that are significantly better than the best: possible where some cases lack a value."""
        return [cell for cell in self.against if cell.is_significant and not self._is_ahead(cell)]

    @property
    def equal(self) -> list[PairDifference]:
        """Experiments with the same value as the best on every case."""
        return [cell for cell in self.against if cell.is_level]

    @property
    def is_level(self) -> bool:
        """Whether all have the same value on every case, so that none is the best."""
        return len(self.equal) == len(self.against)

    @property
    def open(self) -> list[PairDifference]:
        """Experiments that differ from the best on some cases, but not significantly."""
        told = [*self.beaten, *self.ahead, *self.equal]
        return [cell for cell in self.against if cell not in told]

    @property
    def winners(self) -> list[str]:
        """The best and its equals, where every other is significantly worse; else nobody."""
        won = self.beaten and len(self.beaten) + len(self.equal) == len(self.against)
        return [self.best, *(cell.second for cell in self.equal)] if won else []

    def _is_ahead(self, cell: PairDifference) -> bool:
        return cell.found is not None and (cell.found.difference < 0) == self.is_lower

    def as_json(self) -> dict[str, Any]:
        """Return the standing for ``summary.json``."""
        return {
            "data": self.data,
            "slice": dict([self.where]),
            "measure": self.measure,
            "cases": self.cases,
            "best": self.best,
            "n": self.n,
            "mean": self.mean,
            "interval": list(self.interval) if self.interval else None,
            "winner": self.winners[0] if len(self.winners) == 1 else None,
            "winners": self.winners,
            "against": [cell.as_json() for cell in self.against],
            "without": list(self.without),
        }


@dataclass(frozen=True, slots=True)
class Standings:
    """The standings on all slices that were asked for; those of the same data and measure follow each other.

    Attributes:
        found: a standing for each slice.
        blank: slices without a standing, and why.
        tests: size of the family over which p-values are adjusted.
        several: whether ``found`` are about more than one data set.
    """

    found: Sequence[SliceStanding] = ()
    blank: Sequence[str] = ()
    tests: int = 0
    several: bool = False


# Finds which experiment wins on which slice of the cases, and with what significance.
#
# The best of a slice is chosen on the same cases that it is tested on. So its test is the most extreme of all pairs,
# and must count as that: Holm's family has every pair on every requested slice and measure. With only the pairs of the
# best as the family, one of ten equal experiments would win, or beat another, in one run out of six.

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
    """Return the difference with the sides exchanged. The p-values stay because they are two-sided."""
    turned = replace(cell, first=cell.second, second=cell.first)
    if cell.found is None:
        return turned
    found = cell.found
    interval = Interval(-found.interval.high, -found.interval.low) if found.interval else None
    effect = None if found.effect is None else -found.effect
    return replace(turned, found=found._replace(difference=-found.difference, interval=interval, effect=effect))


# Writes for the terminal which experiment wins on which slice, and which differences are significant. 79 columns.

_WIDTH = 79
_WIDEST_NAME = 36
_TIE = "\N{NO-BREAK SPACE}"
FEW = 10
"""With fewer cases than this a test has little power, and the lines say so."""
_HEAD = (
    "the best of each slice, its mean and its lead over the same cases, with 95 % intervals; a winner beats every "
    "other; p, the larger of t and permutation test, and the lead's interval are by Holm over {}: all pairs on all "
    "slices"
)


def standing_lines(found: Standings) -> list[str]:
    """Return the lines; none where no two experiments have the same data."""
    tests = _kept_together(f"{found.tests} tests")
    lines = _wrapped(_HEAD.format(tests)) if found.found else []
    for (data, _), group in groupby(found.found, lambda each: (each.data, each.measure)):
        lines += _group(list(group), f" on {data}" if found.several else "")
    return [_cut(line) for line in [*lines, *(part for why in found.blank for part in _wrapped(why))]]


def _group(group: Sequence[SliceStanding], data: str) -> Iterator[str]:
    """Yield the slices of one measure."""
    names = [_short(each.name) for each in group]
    title = f"{measure_said(group[0].measure)}{data}"
    width = max(map(len, [title, *names]))
    cases = max(5, *(len(str(each.cases)) for each in group))
    yield f"{title:<{width}}  {'cases':>{cases}}  best"
    for name, each in zip(names, group, strict=True):
        best = "all" if each.is_level else " = ".join(each.winners) or each.best
        yield f"{name:<{width}}  {each.cases:>{cases}}  {best} {mean_said(each)}"
        yield from _wrapped("; ".join(_told(each)), "  ")


def mean_said(each: SliceStanding) -> str:
    """Return the best one's mean with its interval, and the number of cases where some have no value."""
    between = f" {bounds(*each.interval, each.unit, digits=3)}" if each.interval else ""
    return f"{value_said(each.mean, each.unit)}{between}{_of(each.n, each)}"


def _told(each: SliceStanding) -> Iterator[str]:
    """Yield the winner, or which experiments do not differ significantly from the best, and which do."""
    few = f"only {each.cases} cases, " if each.cases < FEW else ""
    if each.winners:
        nearest, *others = each.beaten
        win = "wins" if len(each.winners) == 1 else "win, with the same value on every case"
        yield f"{few}{' = '.join(each.winners)} {win}: {_difference(nearest, each)} over {_names([nearest], each)}"
        yield from [f"over {_differences(others, each)}"] if others else []
    else:
        yield f"{few}no winner: {_undecided(each)}"
        yield from _others(each)
    if each.without:
        yield f"no value: {', '.join(each.without)}"


def _others(each: SliceStanding) -> Iterator[str]:
    """Yield which experiments differ significantly from a best that has not won."""
    if each.equal and not each.is_level:
        yield f"the same on every case: {_names(each.equal, each)}"
    if each.ahead:
        yield f"behind {_differences(each.ahead, each)}"
    if each.beaten:
        yield f"beats {_differences(each.beaten, each)}"


def _undecided(each: SliceStanding) -> str:
    if each.is_level:
        return "all are the same on every case"
    if not each.open:
        return "not every other is beaten"
    first, *others = each.open
    more = f"; nor from {_names(others, each)}" if others else ""
    return f"no sure difference from {_names([first], each)}, {_difference(first, each)}{more}"


def _difference(cell: PairDifference, each: SliceStanding) -> str:
    """Return a difference with its interval and p, or the reason for none."""
    if cell.found is None:
        return cell.reason
    between = f" {bounds(*cell.found.interval, each.unit, signed=True, digits=3)}" if cell.found.interval else ""
    return _kept_together(f"{_signed(cell.found.difference, each.unit)}{between} ({_p(cell)})")


def _differences(cells: Sequence[PairDifference], each: SliceStanding) -> str:
    """Return names with differences."""
    found = [(cell, cell.found.difference) for cell in cells if cell.found]
    return ", ".join(
        _kept_together(f"{_names([cell], each)} {_signed(difference, each.unit)} ({_p(cell)})")
        for cell, difference in found
    )


def _p(cell: PairDifference) -> str:
    if cell.p_t is None or cell.p_permutation is None:
        return f"no test: {cell.found.reason}" if cell.found else "no test"
    return f"p {p_said(max(cell.p_t, cell.p_permutation))}"


def _signed(value: float, unit: str) -> str:
    return ("+" if value >= 0 else "") + value_said(value, unit)


def _names(cells: Sequence[PairDifference], each: SliceStanding) -> str:
    """Return the other experiments, with the number of common cases where that is smaller than the slice."""
    return ", ".join(_kept_together(cell.second + (_of(cell.found.n, each) if cell.found else "")) for cell in cells)


def _of(n: int, each: SliceStanding) -> str:
    return f" (n={n})" if n < each.cases else ""


def _wrapped(text: str, indent: str = "") -> list[str]:
    lines = wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace(_TIE, " ") for line in lines]


def _kept_together(text: str) -> str:
    """Return the text with its spaces tied, so that no line breaks inside it."""
    return text.replace(" ", _TIE)


def _short(name: str) -> str:
    flat = " ".join(name.split())
    return flat if len(flat) <= _WIDEST_NAME else f"{flat[: _WIDEST_NAME - 1]}…"


def _cut(line: str) -> str:
    return line.rstrip() if len(line.rstrip()) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def best_of(measure: str, tables: Mapping[str, SuiteTable], cells: Sequence[PairDifference]) -> frozenset[str]:
    """Return the experiments that are better than every other with values of ``measure``; empty where there is none.

    An experiment is better where both tests of ``cells`` are significant after Holm's correction. Experiments with the
    same value on every case win together: neither is better than the other, and each is better than all others.
    """
    having = {name for name, table in tables.items() if table.has(measure)}
    mine = [each for each in cells if each.measure == measure and each.quantile is None and each.found]
    beats = {(_winner(each, tables), _loser(each, tables)) for each in mine if each.is_significant}
    same = {pair for each in mine if each.is_level for pair in ((each.first, each.second), (each.second, each.first))}
    best = {
        name
        for name in having
        if any((name, other) in beats for other in having)
        and all(other == name or (name, other) in beats | same for other in having)
    }
    # Random sign flips differ a little between pairs. Where only one of two equal experiments wins, neither does.
    return frozenset(best if all(twin in best for name, twin in same if name in best) else ())


def _winner(cell: PairDifference, tables: Mapping[str, SuiteTable]) -> str:
    assert cell.found is not None
    lower = tables[cell.first].columns[cell.measure].measure.better == "lower"
    return cell.first if (cell.found.difference > 0) != lower else cell.second


def _loser(cell: PairDifference, tables: Mapping[str, SuiteTable]) -> str:
    return cell.second if _winner(cell, tables) == cell.first else cell.first


_TIMES_AND_COST = ("ms", "usd", "tokens")
"""Units of measures that differ from one call to the next."""


def equal_groups(tables: Mapping[str, SuiteTable]) -> list[list[str]]:
    """Return the experiments in groups of equal ones, times and costs left out; one without any value is alone."""
    groups: dict[object, list[str]] = {}
    for name, table in tables.items():
        groups.setdefault(_values_of(table) or name, []).append(name)
    return list(groups.values())


def _values_of(table: SuiteTable) -> object:
    """Return what is equal for tables with equal values, None without any.

    Arrays are compared as bytes: a run may have 20,000 trials.
    """
    quality = {name: column for name, column in table.columns.items() if column.measure.unit not in _TIMES_AND_COST}
    valued = frozenset((name, column.values.tobytes()) for name, column in quality.items() if table.has(name))
    return (tuple(table.ids), table.states.tobytes(), valued) if valued else None


ANSWERS = (
    "answer_correctness",
    "nugget_recall",
    "token_f1",
    "expectations",
    "g_mean",
    "faithfulness",
    "answer_relevancy",
)
"""Measures of what an experiment answers. The first that most experiments have is compared, unless more is told."""
JUDGED_FIRST = ("factuality", "hri", "g_mean")
"""Judged measures that stand first where neither the project nor its gates name any."""
RETRIEVAL = ("evidence_recall", "recall@5", "context_precision")
"""Measures of what an experiment finds. A gate on one of any cutoff is compared instead."""
_FINDS = ("evidence_recall", "recall@", "context_precision", "ndcg@", "mrr@")

_MOST_NAMED = 2
"""Most measures that a run is spoken of by because gates or judges have them."""
_FAR = 100
"""More than so many times the questions of a run are said to be too many."""


@dataclass(frozen=True, slots=True)
class Headline:
    """What a project wants to be told first.

    Attributes:
        named: the measures of ``rag_headline``.
        gated: the measures of gates that are on all questions.
    """

    named: Sequence[str] = ()
    gated: Sequence[str] = ()


NOTHING_NAMED = Headline()


@dataclass(frozen=True, slots=True)
class Lead:
    """The best experiments of one data on one measure.

    Attributes:
        standing: the comparison of all of them.
        nearest: the best against the nearest other that is not the same on every case; None where there is none.
        more: how many questions more, like these, would show the difference to the nearest in four runs of five; None
            where it is shown, or where no reasonable number would.
    """

    standing: SliceStanding
    nearest: PairDifference | None
    more: int | None

    @property
    def best(self) -> list[str]:
        """The best experiment, and those that have its value on every case."""
        return [self.standing.best, *(cell.second for cell in self.standing.equal)]

    @property
    def is_sure(self) -> bool:
        """Whether the best are significantly better than every other."""
        return bool(self.standing.winners)

    @property
    def is_level(self) -> bool:
        """Whether all experiments have the same value on every case."""
        return self.standing.is_level


@dataclass(frozen=True, slots=True)
class Field:
    """The experiments of one data.

    Attributes:
        data: name of the data.
        names: the experiments.
        leads: the best of them: in wrong answers, in what they answer, in what they find; empty for one experiment.
        groups: the experiments in groups of those that have the same value of every measure on every case.
        tests: size of the family over which the p-values of the leads are adjusted.
    """

    data: str
    names: Sequence[str]
    leads: Sequence[Lead]
    groups: Sequence[Sequence[str]]
    tests: int

    @property
    def subject(self) -> str:
        """The experiment to speak of first: that with the fewest wrong answers, else the best in what it answers."""
        return self.leads[0].standing.best if self.leads else self.names[0]

    @property
    def equals(self) -> list[Sequence[str]]:
        """The groups with several experiments."""
        return [group for group in self.groups if len(group) > 1]


def is_retrieval(measure: str) -> bool:
    """Whether a measure is one of what an experiment finds."""
    return measure.startswith(_FINDS)


def fields_of(
    tables: Mapping[str, SuiteTable], suites: Mapping[str, SuiteRecord], headline: Headline = NOTHING_NAMED
) -> list[Field]:
    """Return a field for each data, that with the most experiments first."""
    tables = that_answer(tables)
    rivals = by_data(tables, suites)
    wanted = {data: _compared_measures(mine, headline) for data, mine in rivals.items()}
    found = standings_over_all(tables, suites, {data: wanted[data] for data in rivals if len(rivals[data]) > 1})
    fields = [
        Field(
            data,
            list(mine),
            [
                _lead_over_nearest(each, tables)
                for measure in wanted[data]
                for each in found.found
                if _is(each, data, measure)
            ],
            equal_groups(mine),
            found.tests,
        )
        for data, mine in rivals.items()
    ]
    return sorted(fields, key=lambda field: -len(field.names))


def _is(standing: SliceStanding, data: str, measure: str) -> bool:
    return standing.data == data and standing.measure == measure


def _compared_measures(tables: Mapping[str, SuiteTable], headline: Headline) -> list[str]:
    """Return what is compared: wrong answers, the headline, what is found.

    The headline is what the project names, else what gates are on, else what judges said, else one usual measure.
    """
    wrong = [WRONG] if _most_have(tables, [WRONG]) else []
    named = [name for name in headline.named if _most_have(tables, [name])]
    gated = [name for name in headline.gated if _most_have(tables, [name]) and name in (*ANSWERS, *JUDGED_FIRST)]
    judged = [name for name in JUDGED_FIRST if _most_have(tables, [name])]
    usual = [] if wrong else _most_have(tables, ANSWERS)
    found = [each for each in headline.gated if is_retrieval(each)]
    searched = _most_have(tables, found) or _most_have(tables, RETRIEVAL)
    return [*dict.fromkeys([*wrong, *(named or (gated or judged)[:_MOST_NAMED] or usual), *searched])]


def _most_have(tables: Mapping[str, SuiteTable], measures: Sequence[str]) -> list[str]:
    """Return the measure that most experiments have, the first of several; none where no experiment has any."""
    found = {name: sum(table.has(name) for table in tables.values()) for name in measures}
    return [max(found, key=lambda name: found[name])] if any(found.values()) else []


def _lead_over_nearest(standing: SliceStanding, tables: Mapping[str, SuiteTable]) -> Lead:
    others = [cell for cell in standing.against if cell.found is not None and not cell.is_level]
    nearest = next(iter([*(cell for cell in others if cell in standing.open), *others]), None)
    return Lead(standing, nearest, _more(standing, nearest, tables) if nearest in standing.open else None)


def _more(standing: SliceStanding, cell: PairDifference | None, tables: Mapping[str, SuiteTable]) -> int | None:
    if cell is None or cell.found is None or not cell.found.difference or cell.errors:
        return None
    first, second = (tables[name].values(standing.measure, {}) for name in (cell.first, cell.second))
    a, b = in_both(first, second)
    sign = 1 if cell.found.difference > 0 else -1
    gaps = [sign * gap for gap in differences(a, b).values()]
    clusters = tables[cell.first].clusters_of(a)
    try:
        # Each end of the interval that has to exclude 0.
        confidence = (1 + cell.confidence) / 2
        reach = BoundReach(gaps, span_of(gaps, standing.unit, True), confidence, is_difference=True, clusters=clusters)
        needed = reach.cases(abs(cell.found.difference))
    except UndefinedError:
        return None
    return needed - len(gaps) if needed is not None and len(gaps) < needed <= _FAR * len(gaps) else None
