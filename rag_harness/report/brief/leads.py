"""Which experiments are best, in what they find and in what they answer, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_harness.gates.bounds import span_of
from rag_harness.report.equals import equal_groups
from rag_harness.report.pairwise import PairDifference
from rag_harness.report.standing import SliceStanding
from rag_harness.report.standings import by_data, standings_over_all
from rag_harness.report.suite_table import SuiteTable
from rag_harness.results.manifest import SuiteRecord
from rag_harness.stats.by_case import differences, in_both
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.settling import BoundReach

ANSWERS = (
    "answer_correctness",
    "nugget_recall",
    "token_f1",
    "expectations",
    "g_mean",
    "faithfulness",
    "answer_relevancy",
)
"""Measures of what an experiment answers. The first that most experiments have is compared."""
RETRIEVAL = ("evidence_recall", "recall@5", "context_precision")
"""Measures of what an experiment finds."""
_FAR = 100
"""More than so many times the questions of a run are said to be too many."""


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
        leads: the best of them: in what they find, in what they answer; empty for one experiment.
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
        """The experiment to speak of first: the best in what it answers."""
        return self.leads[-1].standing.best if self.leads else self.names[0]

    @property
    def equals(self) -> list[Sequence[str]]:
        """The groups with several experiments."""
        return [group for group in self.groups if len(group) > 1]


def fields_of(tables: Mapping[str, SuiteTable], suites: Mapping[str, SuiteRecord]) -> list[Field]:
    """Return a field for each data, that with the most experiments first."""
    rivals = by_data(tables, suites)
    wanted = {data: _wanted(mine) for data, mine in rivals.items()}
    found = standings_over_all(tables, suites, {data: wanted[data] for data in rivals if len(rivals[data]) > 1})
    fields = [
        Field(
            data,
            list(mine),
            [_lead(each, tables) for measure in wanted[data] for each in found.found if _is(each, data, measure)],
            equal_groups(mine),
            found.tests,
        )
        for data, mine in rivals.items()
    ]
    return sorted(fields, key=lambda field: -len(field.names))


def _is(standing: SliceStanding, data: str, measure: str) -> bool:
    return standing.data == data and standing.measure == measure


def _wanted(tables: Mapping[str, SuiteTable]) -> list[str]:
    """Return the measure of what is found, and that of what is answered, where there are such."""
    having = [
        {name: sum(table.has(name) for table in tables.values()) for name in measures}
        for measures in (RETRIEVAL, ANSWERS)
    ]
    return [max(found, key=lambda name: found[name]) for found in having if any(found.values())]


def _lead(standing: SliceStanding, tables: Mapping[str, SuiteTable]) -> Lead:
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
