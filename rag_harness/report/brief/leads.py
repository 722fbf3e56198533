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
from rag_harness.report.wrong import WRONG, that_answer
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
    wanted = {data: _wanted(mine, headline) for data, mine in rivals.items()}
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


def _wanted(tables: Mapping[str, SuiteTable], headline: Headline) -> list[str]:
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
