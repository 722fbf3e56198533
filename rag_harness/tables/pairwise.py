"""Pairwise significance tests of all experiments, and the power of a run to detect differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from math import ceil, isfinite
from textwrap import wrap
from typing import Any, Literal

from rag_harness.core.errors import DataError, PrerequisiteError, unknown
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures import is_judged, measure_named
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.measure import CompositeMeasure
from rag_harness.records.manifest import SuiteRecord
from rag_harness.runs.gates.evidence import span_of
from rag_harness.stats import Interval, difference_interval, holm, holm_counts
from rag_harness.stats.inputs import UndefinedError, differences, in_both
from rag_harness.stats.means import ValueRange
from rag_harness.stats.paired_tests import BoundReach, Paired, paired, quantile_difference, spread_of
from rag_harness.tables.reader import SavedRun, SavedSuite
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import SHORT_MEASURE_NAMES, table
from rag_harness.tables.wording import better_named

# Compares every pair of experiments on every judged measure, over the same cases, with significance tests.
#
# There are two families of tests, each with Holm's correction. One is the study's: ``g_mean`` and the risk, which is
# ``hri``, or ``hri_gold`` where one of the two has no context. The other has all other measures. So additional judged
# measures do not weaken the study's tests.

Family = Literal["study", "others"]
RISKS = ("hri", "hri_gold")
"""Measures whose upper quantile is compared too: a mean hides the few harmful answers."""
_FIRST = ("g_mean", *RISKS, "context_precision", "faithfulness", "answer_relevancy", "factuality")
TAIL = 0.95
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class PairDifference:
    """The difference of a measure: ``first`` minus ``second``.

    Where ``found`` is None, ``reason`` says why it is not defined. ``quantile`` is None for the mean. ``p_t`` and
    ``p_permutation`` are adjusted by Holm over the ``family``; None without a test. ``among`` is the number of tests
    among which Holm's procedure judges this one; ``confidence`` of the interval follows from it. ``errors`` says that
    too many trials of one of them ended with an error: then neither is better.
    """

    first: str
    second: str
    measure: str
    family: Family
    found: Paired | None = None
    reason: str = ""
    quantile: float | None = None
    p_t: float | None = None
    p_permutation: float | None = None
    where: tuple[tuple[str, str], ...] = ()
    errors: str = ""
    among: int = 1

    @property
    def confidence(self) -> float:
        """The confidence of the interval: the one at which it excludes 0 where the test by t is significant."""
        return 1 - ALPHA / self.among

    @property
    def pair(self) -> str:
        """The pair as text, in the order of its difference."""
        return f"{self.first} - {self.second}"

    @property
    def is_significant(self) -> bool:
        """Whether both p-values are at most 5 %, the guarded interval does not contain 0, and errors are few."""
        if self.errors or self.p_t is None or self.p_permutation is None or max(self.p_t, self.p_permutation) > ALPHA:
            return False
        return self.found is None or excludes_0(self.found.interval)

    @property
    def is_level(self) -> bool:
        """Whether both have the same value on every case."""
        return self.found is not None and self.p_t is None and not self.found.difference

    def as_json(self) -> dict[str, Any]:
        """Return the fields for ``summary.json``."""
        found = self.found or Paired(0, float("nan"))
        bounds = [*found.interval] if found.interval else None
        return {
            "pair": [self.first, self.second],
            "measure": self.measure,
            "quantile": self.quantile,
            "family": self.family,
            "n": found.n,
            **({"clusters": found.clusters} if found.clusters else {}),
            "difference": found.difference if isfinite(found.difference) else None,
            "interval": bounds,
            "confidence": self.confidence,
            "d_z": found.effect,
            "p_t": found.p_t,
            "p_permutation": found.p_permutation,
            "p_t_holm": self.p_t,
            "p_permutation_holm": self.p_permutation,
            "reason": self.reason,
            **({"errors": self.errors} if self.errors else {}),
        }


def excludes_0(interval: Interval | None) -> bool:
    """Whether there is an interval that does not contain 0."""
    return interval is None or interval.low > 0 or interval.high < 0


def pairwise(tables: Mapping[str, SuiteTable], suites: Mapping[str, SuiteRecord]) -> list[PairDifference]:
    """Return a cell for each pair and measure, then the quantiles; none where no two have judged cases in common."""
    judged = [name for name, table in sorted(tables.items()) if name != GOLDEN and judged_measures(table)]
    cells = [cell for pair in _pairs(judged, suites) for cell in _cells(tables, suites, *pair)]
    met = {cell.pair for cell in cells if cell.found}
    cells = [cell for cell in cells if cell.pair in met]
    return [*adjusted(cells, tables), *_tails(tables, cells)]


def on_measure(
    tables: Mapping[str, SuiteTable], suites: Mapping[str, SuiteRecord], measure: str
) -> list[PairDifference]:
    """Return a cell for each pair of experiments on a measure without a judge. They are a family of their own."""
    having = [name for name, table in sorted(tables.items()) if name != GOLDEN and table.has(measure)]
    cells = (
        compared(tables, PairDifference(*pair, measure, "others"), unlike(suites, *pair, measure, judged=False))
        for pair in _pairs(having, suites)
    )
    return adjusted([*cells], tables)


def _pairs(names: Sequence[str], suites: Mapping[str, SuiteRecord]) -> list[tuple[str, str]]:
    """Return the pairs of experiments that were asked the same, the later one first."""
    return [(b, a) for a, b in combinations(names, 2) if suites[a].asked == suites[b].asked]


def judged_measures(table: SuiteTable) -> list[str]:
    """Return the judged measures and their composites, those of the study first."""
    found = [
        name for name, each in table.columns.items() if isinstance(each.measure, (JudgedMeasure, CompositeMeasure))
    ]
    return [*(name for name in _FIRST if name in found), *sorted(set(found) - set(_FIRST))]


def adjusted(cells: Sequence[PairDifference], tables: Mapping[str, SuiteTable]) -> list[PairDifference]:
    """Return the cells with the p-values and the intervals of each family adjusted."""
    families = {cell.family: [each for each in cells if each.family == cell.family and _tested(each)] for cell in cells}
    corrected = {_place(cell): _widened(cell, tables) for family in families.values() for cell in _corrected(family)}
    return [corrected.get(_place(cell), cell) for cell in cells]


def _place(cell: PairDifference) -> tuple[object, ...]:
    return cell.pair, cell.measure, cell.where


def _corrected(family: Sequence[PairDifference]) -> Iterator[PairDifference]:
    tests = [cell.found for cell in family if cell.found]
    if not tests:
        return
    by_t = [test.p_t for test in tests if test.p_t is not None]
    by_chance = [test.p_permutation for test in tests if test.p_permutation is not None]
    counts = map(max, holm_counts(by_t, ALPHA), holm_counts(by_chance, ALPHA))
    for cell, p_t, p_permutation, among in zip(family, holm(by_t), holm(by_chance), counts, strict=True):
        yield replace(cell, p_t=p_t, p_permutation=p_permutation, among=among)


def _widened(cell: PairDifference, tables: Mapping[str, SuiteTable]) -> PairDifference:
    """Return the cell with the interval of its confidence in place of the 95 % one."""
    if cell.among == 1 or cell.found is None or cell.found.interval is None:
        return cell
    values, span, clusters = _differences(tables, cell, *_values(tables, cell))
    interval = difference_interval([*values.values()], span, cell.confidence, clusters)
    return replace(cell, found=cell.found._replace(interval=interval))


def _differences(
    tables: Mapping[str, SuiteTable], cell: PairDifference, a: Mapping[str, float], b: Mapping[str, float]
) -> tuple[Mapping[str, float], ValueRange | None, list[str] | None]:
    """Return the differences of both sides' values, their range, and the cluster of each."""
    values, unit = differences(a, b), tables[cell.first].columns[cell.measure].measure.unit
    return values, span_of([*values.values()], unit, is_difference=True), tables[cell.first].clusters_of(a)


def _tested(cell: PairDifference) -> bool:
    return cell.found is not None and cell.found.p_t is not None


def _cells(
    tables: Mapping[str, SuiteTable], suites: Mapping[str, SuiteRecord], first: str, second: str
) -> Iterator[PairDifference]:
    names = {name: None for each in (first, second) for name in judged_measures(tables[each])}
    study = {"g_mean", _risk(tables[first], tables[second])}
    for name in sorted(names, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST)):
        cell = PairDifference(first, second, name, "study" if name in study else "others")
        yield compared(tables, cell, unlike(suites, first, second, name, judged=True))


def unlike(suites: Mapping[str, SuiteRecord], first: str, second: str, measure: str, judged: bool) -> str:
    """Return why the scores of two suites are not comparable, ``judged`` ones or others; empty where they are."""
    if suites[first].owes_otherwise(suites[second], measure):
        return "their answers owe different things"
    mine, theirs = suites[first].judged_by(measure), suites[second].judged_by(measure)
    if not judged or mine == theirs:
        return ""
    return "the rubric was changed between them" if mine[:2] == theirs[:2] else "they were judged by different judges"


def compared(
    tables: Mapping[str, SuiteTable], cell: PairDifference, reason: str = "", resamples: int = 10_000
) -> PairDifference:
    """Return the cell with its result, or with the reason for none; ``reason`` where it is already known."""
    if reason := reason or _undefined(tables, cell):
        return replace(cell, reason=reason)
    a, b = _values(tables, cell)
    _, span, clusters = _differences(tables, cell, a, b)
    found = paired([*a.values()], [*b.values()], span=span, clusters=clusters, resamples=resamples)
    if clusters is not None and cell.family == "study":
        # The study's tests are by question, as its plan says; the interval beside them is by cluster.
        alone = paired([*a.values()], [*b.values()], span=span, resamples=resamples)
        found = found._replace(p_t=alone.p_t, p_permutation=alone.p_permutation)
    said = {name: tables[name].errors_said for name in (cell.first, cell.second)}
    errors = "; ".join(f"{name}: {why}" for name, why in said.items() if why)
    return replace(cell, found=found, errors=errors, reason=f"{cell.pair}: {found.reason}" if found.reason else "")


def _risk(first: SuiteTable, second: SuiteTable) -> str:
    """Return the risk measure that both have. Without context, only the one against the relevant pages is defined."""
    both = all("hri" in table.columns and table.values("hri", {}) for table in (first, second))
    return "hri" if both else "hri_gold"


def _undefined(tables: Mapping[str, SuiteTable], cell: PairDifference) -> str:
    """Return why there is nothing to compare; empty where there is something."""
    for name in (cell.first, cell.second):
        table = tables[name]
        if cell.measure not in table.columns:
            return f"{name} was not judged on it"
        if not table.values(cell.measure, dict(cell.where)):
            why = table.absent(cell.measure, dict(cell.where)).most_common(1)
            return f"{name} has no value ({why[0][0] if why else 'no case'})"
    return "" if _values(tables, cell)[0] else f"{cell.pair}: no case has it in both"


def _values(tables: Mapping[str, SuiteTable], cell: PairDifference) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return both sides' values over the cases with a value on both, in the same order."""
    a, b = (tables[name].values(cell.measure, dict(cell.where)) for name in (cell.first, cell.second))
    return in_both(a, b)


def _tails(tables: Mapping[str, SuiteTable], cells: Sequence[PairDifference]) -> Iterator[PairDifference]:
    for cell in cells:
        if cell.measure in RISKS and cell.found:
            a, b = _values(tables, cell)
            yield _tail(cell, [*a.values()], [*b.values()], tables[cell.first].clusters_of(a))


def _resamples(n: int) -> int:
    """Return the number of resamples. Many cases need fewer because their quantile varies less: 0.2 s, not 0.8 s."""
    return max(500, min(2000, 2_000_000 // n))


def _tail(
    cell: PairDifference, a: Sequence[float], b: Sequence[float], clusters: Sequence[str] | None
) -> PairDifference:
    tail = replace(cell, quantile=TAIL, p_t=None, p_permutation=None, among=1)
    try:
        difference, interval = quantile_difference(a, b, TAIL, clusters=clusters, resamples=_resamples(len(a)))
    except UndefinedError as why:
        return replace(tail, found=None, reason=f"{cell.pair}: {why}")
    of = len(set(clusters)) if clusters else 0
    return replace(tail, found=Paired(len(a), difference, interval, clusters=of), reason="")


# Writes the pairwise tests for the terminal: the study's with all figures, the others as a matrix. 100 columns.

PAIR_COLUMNS = ("n", "difference", "interval", "d_z", "p (t)", "p (perm)")
_INTERVALS = "intervals are 95 % ones, corrected as p is, unlike those of gates"
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


USUAL_MEASURES = ("recall@5", "mrr@10", "token_f1")
"""Measures that are shown for a run without judgements."""


@dataclass(frozen=True, slots=True)
class Power:
    """The power of n cases on a measure: of one experiment against a threshold, or of two over the same cases.

    ``detectable`` and ``needed`` are None where the values do not show the variance of others; ``reason`` says why.
    ``robust`` is the number of cases that a comparison without assumptions needs; None where there are not two
    experiments, or the measure has no range.
    """

    name: str
    measure: str
    slice: str
    n: int
    sd: float | None = None
    detectable: float | None = None
    needed: int | None = None
    robust: int | None = None
    reason: str = ""
    clusters: int = 0

    def cells(self) -> list[str]:
        """Return the row of the table."""
        figures = [f"{value:.3f}" if value is not None else "-" for value in (self.sd, self.detectable)]
        needed = [f"{cases:,}" if cases is not None else "-" for cases in (self.needed, self.robust)]
        counted = f"{self.n} in {self.clusters}" if self.clusters else str(self.n)
        return [self.name, measure_said(self.measure), self.slice or "all", counted, *figures, *needed]


def power_lines(run: SavedRun, difference: float = 0.05, measures: Sequence[str] = (), key: str = "") -> list[str]:
    """Return the table and its remarks, at most 100 columns wide.

    Raises:
        DataError: the difference, a measure or the slice key is not possible; says which are.
    """
    found = power(run, difference, measures, key)
    head = ["", "measure", "slice", "n", "sd", "detects", f"for {difference:g}", "robust"]
    reasons = {f"{each.name}, {measure_said(each.measure)}: {each.reason}": None for each in found if each.reason}
    lines = [
        "gates @95%, passed in 80 % of runs; detects: the smallest difference that n cases show;",
        f"for {difference:g}: cases that such a difference needs. e3: above a threshold; e3 - e2: e3 > e2, same cases",
        "robust: cases for e3 > e2 @95% robust, which holds also where a rare, large difference was missed",
        *(["n: cases, on so many pages or in so many other clusters"] if any(each.clusters for each in found) else []),
        *table([head, *(each.cells() for each in found)]),
        *reasons,
    ]
    return [cut(line) for line in lines]


def power(run: SavedRun, difference: float, measures: Sequence[str] = (), key: str = "") -> list[Power]:
    """Return the power for each measure and slice, of each suite and of each pair of suites over the same cases.

    Raises:
        DataError: the difference, a measure or the slice key is not possible; says which are.
    """
    chosen = _measures(run, measures)
    _check_difference(difference, chosen)
    slices = [{key: value} for value in _slices(run, key)] if key else [{}]
    suites = sorted(run.suites.items())
    found = [(name, [suite], run.clusters.get(name)) for name, suite in suites]
    experiments = [(name, suite) for name, suite in suites if name != GOLDEN]
    pairs = combinations(experiments, 2)
    found += [(f"{b} - {a}", [second, first], run.clusters.get(b)) for (a, first), (b, second) in pairs]
    asked = [(measure, where) for measure in chosen for where in slices]
    rows = [_power(name, sides, *each, difference, clusters) for name, sides, clusters in found for each in asked]
    return [row for row in rows if row.n]


def _power(
    name: str,
    sides: Sequence[SavedSuite],
    measure: str,
    where: Mapping[str, str],
    difference: float,
    clusters: Mapping[str, str] | None,
) -> Power:
    values = [suite.values(measure, where) for suite in sides]
    common = [case for case in values[0] if case in values[-1]]
    alike = [clusters[case] for case in common] if clusters else None
    row = Power(name, measure, next(iter(where.values()), ""), len(common), clusters=len(set(alike or ())))
    columns = [[side[case] for case in common] for side in values]
    if not common:
        return row
    try:
        sd = spread_of(*columns)
    except UndefinedError as why:
        return replace(row, reason=f"{why}, so nothing tells how others would spread")
    reach, robust = _reach(columns, measure, alike), None
    if len(columns) > 1 and _is_share(measure):
        robust = _reach(columns, measure, alike, is_robust=True).cases(difference)
    detectable, needed = reach.of(row.n), reach.cases(difference)
    reason = "" if needed else f"no number of cases shows a difference of {difference:g}"
    seen = detectable if isfinite(detectable) else None
    return replace(row, sd=sd, detectable=seen, needed=needed, robust=robust, reason=reason)


def _reach(
    columns: Sequence[Sequence[float]], measure: str, clusters: Sequence[str] | None, *, is_robust: bool = False
) -> BoundReach:
    """Return the reach of a gate's bound, on the side where the measure is better."""
    is_difference = len(columns) > 1
    values = [a - b for a, b in zip(*columns, strict=True)] if is_difference else list(columns[0])
    span = span_of(values, "share" if _is_share(measure) else "", is_difference)
    if better_named(measure) == "lower":
        values, span = [-value for value in values], (-span[1], -span[0]) if span else None
    return BoundReach(values, span, is_difference=is_difference and not is_robust, clusters=clusters)


def _measures(run: SavedRun, named: Sequence[str]) -> list[str]:
    known = list(dict.fromkeys(measure for suite in run.suites.values() for measure in suite.measures()))
    for name in named:
        if name not in known:
            raise DataError(f"{unknown('measure', name, known)} The run has no values of it.")
    judged = [name for name in known if is_judged(name)]
    return list(named) or judged or [name for name in USUAL_MEASURES if name in known] or known


def _check_difference(difference: float, measures: Sequence[str]) -> None:
    if not (isfinite(difference) and difference > 0):
        raise DataError(f"--difference {difference:g} is none: name one above 0, e.g. --difference 0.05.")
    shares = [name for name in measures if _is_share(name)]
    if difference > 1 and shares:
        raise DataError(f"--difference {difference:g}: no two means of {shares[0]}, a share, differ by more than 1.")


def _is_share(name: str) -> bool:
    try:
        return measure_named(name).unit == "share"
    except PrerequisiteError:
        return False  # a measure that is not registered here


def _slices(run: SavedRun, key: str) -> Iterator[str]:
    cases = [case.slices for suite in run.suites.values() for case in suite.cases.values()]
    values = sorted({slices[key] for slices in cases if key in slices})
    if not values:
        known = sorted({name for slices in cases for name in slices})
        raise DataError(unknown("slice key", key, known))
    yield from values


# How many cases a change between two runs needs to be sure, and which p so many cases can reach at best.

_DRAWN, _LEAST_DRAWN = 14, 1 / 10_001
"""From so many cases signs are drawn (``permutation_test``), and no p is smaller."""


def least_p(cases: int, tests: int = 1) -> float:
    """Return the smallest p, adjusted by Holm, that ``tests`` permutation tests can have, whatever the cases show.

    The cases that all move the same way are the extreme one of 2 ** cases sign flips, on either side.
    """
    return min(1.0, tests * (_LEAST_DRAWN if cases >= _DRAWN else 2.0 ** (1 - max(cases, 1))))


def fewest_cases(tests: int) -> int | None:
    """Return with how many cases p can be at most 5 %, adjusted for ``tests``; None where no number is enough."""
    if least_p(_DRAWN, tests) > ALPHA:
        return None
    return next(cases for cases in count(1) if least_p(cases, tests) <= ALPHA)


@dataclass(frozen=True, slots=True)
class CasesNeeded:
    """Cases like those of two runs that show a difference of a measure in 80 % of runs, as ``rag-harness power``."""

    now: SavedSuite
    before: SavedSuite
    measure: str
    unit: str
    clusters: Mapping[str, str] | None

    def of(self, gap: float, tests: int) -> int | None:
        """Return the number of all cases for a difference of ``gap``, where ``tests`` measures are tested.

        None where no number shows it.
        """
        from rag_harness.stats.paired_tests import BoundReach

        new, old = in_both(self.now.values(self.measure, {}), self.before.values(self.measure, {}))
        values = [*differences(new, old).values()]
        if sum(values) < 0:
            values = [-value for value in values]
        span = span_of(values, self.unit, is_difference=True)
        alike = [self.clusters[case] for case in new] if self.clusters else None
        reach = BoundReach(values, span, 1 - ALPHA / (2 * tests), is_difference=True, clusters=alike)
        found = reach.cases(gap)
        fewest, differing = fewest_cases(tests), sum(value != 0 for value in values)
        if found is None or fewest is None or not differing:
            return None
        return max(found, ceil(fewest * len(values) / differing))
