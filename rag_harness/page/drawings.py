"""The figures of the report: a function of a run returns each, or None without data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from rag_harness.evaluation.measures.judged import (
    ANSWERED_UNANSWERABLE,
    CORRECT_ABSTENTION,
    UNMEASURED,
    WRONG_ABSTENTION,
    kinds_shown,
)
from rag_harness.page.charts import (
    Curve,
    CurveLine,
    CurvePoint,
    Distribution,
    Dot,
    Dots,
    Estimate,
    HeatMap,
    Histogram,
    Lines,
    Pie,
    PieSlice,
    Point,
    Scatter,
    Series,
    Stacked,
    StackedBar,
    curve,
    dots,
    heat_map,
    histogram,
    lines,
    pie,
    scatter,
    stacked,
)
from rag_harness.page.content import NONE, Cell, Figure, Table, interval_said, no_value, word_cells
from rag_harness.page.estimates import (
    MOST_COLOURS,
    PLAIN,
    QUALITY,
    STUDY,
    colours_of,
    drawn_of,
    equal_notes,
    estimate,
    estimate_in_words,
    kind_fill,
    left_out,
    right_declines,
    right_declines_estimate,
    together_or_apart,
    with_interval,
)
from rag_harness.page.run import Run
from rag_harness.runs.gates.evidence import interval_of_mean
from rag_harness.runs.gates.verdict import value_said
from rag_harness.stats import clopper_pearson, quantile
from rag_harness.stats.means import quantile_interval_of
from rag_harness.tables.abstention import Abstention
from rag_harness.tables.conversations import Drift, TurnMean, by_turn, drift_of, has_turns
from rag_harness.tables.pairwise import RISKS
from rag_harness.tables.standings import equal_groups
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import SHORT_MEASURE_NAMES
from rag_harness.tables.wording import counted, joined_names

_MAIN = ("recall@5", "evidence_recall", "faithfulness", "answer_relevancy")
_OTHERS = ("g_mean", "factuality", "answer_correctness", "nugget_recall", "token_f1")
"""Where a run has few of the main measures, these fill the figure."""
_FEWEST = 4
_RIGHT, _WRONG = "right declines", "false_abstention_rate"
_TITLES = {_RIGHT: "right declines ↑", _WRONG: "wrong declines ↓"}
_NOTE = "Lines are 95 % intervals. ↑: higher is better. ↓: lower is better."
_DECLINES = (
    "Right declines: of the questions that the documents do not answer, the share where the experiment says that it "
    "does not know. Wrong declines: the same, of the questions that the documents answer."
)


def figure(run: Run) -> Figure | None:
    """Return a panel for each main measure that some experiment has; None without a value.

    Experiments that are equal in everything have one row, with all their names.
    """
    measures = _measures(run)
    if not measures:
        return None
    groups = equal_groups(run.experiments)
    names = {group[0]: " = ".join(group) for group in groups}
    drawn, colours = drawn_of(run, names), colours_of(run)
    drawings = []
    for number, measure in enumerate(measures):
        rows = tuple(Dot(names[name], _estimate(run.tables[name], measure), colours[name]) for name in drawn)
        chart = Dots(ident=f"compared-{number}", title=_title(measure), rows=rows, include=(0.0, 1.0))
        drawings.append(dots(chart))
    notes = [_NOTE, *([_DECLINES] if {*measures} & {*_TITLES} else []), *equal_notes(groups)]
    title = "How the experiments compare" if len(run.experiments) > 1 else "The main measures"
    titles = [_title(measure) for measure in measures]
    table = _table(run, measures, titles)
    return Figure(title, drawings, table, [*notes, *left_out(run, list(names), drawn)], titles, "alike")


def _measures(run: Run) -> list[str]:
    tables = run.experiments.values()
    main, others = ([m for m in names if any(table.has(m) for table in tables)] for names in (_MAIN, _OTHERS))
    declines = [m for m in (_RIGHT, _WRONG) if any(_estimate(table, m) for table in tables)]
    return [*main, *others[: max(0, _FEWEST - len(main))], *declines]


def _title(measure: str) -> str:
    return _TITLES.get(measure, f"{measure} ↑")


def _estimate(table: SuiteTable, measure: str) -> Estimate | None:
    return right_declines_estimate(table) if measure == _RIGHT else estimate(table, measure)


def _table(run: Run, measures: Sequence[str], titles: Sequence[str]) -> Table:
    rows = [[Cell(name), *(_cell(table, measure) for measure in measures)] for name, table in run.experiments.items()]
    return Table("figure-compared", ("experiment", *titles), rows, "Means with their 95 % intervals")


def _cell(table: SuiteTable, measure: str) -> Cell:
    found = _estimate(table, measure)
    if found is None:
        return Cell(NONE, "mute", hint="no such question") if measure == _RIGHT else no_value(table, measure)
    values = right_declines(table) if measure == _RIGHT else table.values(measure, {})
    return Cell(estimate_in_words(found), hint=f"n = {len(values)}")


_MEASURES = ("recall@5", "answer_correctness", "expectations", "faithfulness", "retention", "token_f1")
_MOST_MEASURES, _MOST_TURNS = 4, 8
_ABOUT_0 = (-0.05, 0.05)
_TURNS_NOTE = (
    "Bars and lines are 95 % intervals, with conversations as clusters. Drift is the change from one turn to the next, "
    "within conversations: below 0 later turns are worse."
)
_LATER = "{} is turn {} and all later ones."


def turns(run: Run) -> Figure | None:
    """Return the means of each measure by turn, and its drift; None where no case is a turn after the first."""
    tables = {name: table for name, table in run.experiments.items() if has_turns(table)}
    measures = [name for name in _MEASURES if any(table.has(name) for table in tables.values())][:_MOST_MEASURES]
    if not measures:
        return None
    found = [_Measured(name, {each: table for each, table in tables.items() if table.has(name)}) for name in measures]
    groups = equal_groups(tables)
    names = {group[0]: " = ".join(group) for group in groups}
    drawn, places = drawn_of(run, names, MOST_COLOURS), _in_order({turn for each in found for turn in each.turns})
    shown, colours = {name: names[name] for name in drawn}, colours_of(run)
    drawings = [svg for each in found for svg in (_lines(each, places, shown, colours), _dots(each, shown, colours))]
    titles = [title for each in found for title in (f"{each.measure} ↑ by turn", f"drift of {each.measure}, a turn")]
    later = [_LATER.format(turn, turn.rstrip("+")) for turn in places if turn.endswith("+")]
    notes = [_TURNS_NOTE, *later, *equal_notes(groups), *left_out(run, [*names], drawn)]
    return Figure("Measures by turn", drawings, _turns_table(found, places), notes, titles, "pairs")


@dataclass(frozen=True)
class _Measured:
    """A measure with the experiments that have it."""

    measure: str
    tables: Mapping[str, SuiteTable]

    @cached_property
    def means(self) -> Mapping[str, Mapping[str, TurnMean]]:
        """The means by experiment and turn."""
        found = {name: by_turn(table, self.measure, _MOST_TURNS) for name, table in self.tables.items()}
        return {name: {each.turn: each for each in means} for name, means in found.items()}

    @cached_property
    def drifts(self) -> Mapping[str, Drift | None]:
        return {name: drift_of(table, self.measure) for name, table in self.tables.items()}

    @property
    def turns(self) -> set[str]:
        return {turn for means in self.means.values() for turn in means}

    def at(self, experiment: str, turn: str) -> Estimate | None:
        found = self.means.get(experiment, {}).get(turn)
        return with_interval(found.value, found.interval) if found else None

    def drift(self, experiment: str) -> Estimate | None:
        found = self.drifts.get(experiment)
        return with_interval(found.slope, found.interval) if found else None


def _in_order(turns: set[str]) -> list[str]:
    return sorted(turns, key=lambda turn: (int(turn.rstrip("+")), turn))


def _lines(found: _Measured, places: Sequence[str], names: Mapping[str, str], colours: Mapping[str, int]) -> str:
    series = tuple(
        Series(said, tuple(found.at(name, turn) for turn in places), colours[name])
        for name, said in names.items()
        if name in found.tables
    )
    ident, title = f"turns-{_MEASURES.index(found.measure)}", f"{found.measure} by turn"
    return lines(Lines(ident=ident, title=title, categories=tuple(places), series=series, include=(0.0, 1.0)))


def _dots(found: _Measured, names: Mapping[str, str], colours: Mapping[str, int]) -> str:
    rows = tuple(Dot(said, found.drift(name), colours[name]) for name, said in names.items())
    ident, title = f"drift-{_MEASURES.index(found.measure)}", f"drift of {found.measure}, a turn"
    return dots(Dots(ident=ident, title=title, rows=rows, include=_ABOUT_0))


def _turns_table(found: Sequence[_Measured], places: Sequence[str]) -> Table:
    rows = [_row(each, name, places) for each in found for name in each.tables]
    head = ("experiment", "measure", *(f"turn {turn}" for turn in places), "drift, a turn")
    return Table("figure-turns", head, rows, "Means by turn, and drift, with 95 % intervals")


def _row(found: _Measured, name: str, places: Sequence[str]) -> list[Cell]:
    means, drift = found.means[name], found.drifts[name]
    cells = [
        Cell(estimate_in_words(found.at(name, turn)), hint=f"n = {means[turn].n}") if turn in means else Cell(NONE)
        for turn in places
    ]
    behind = counted(drift.conversations, "conversation") if drift else ""
    return [Cell(name), Cell(found.measure), *cells, Cell(estimate_in_words(found.drift(name), "score"), hint=behind)]


# A figure of the rank of the first relevant document: the share of the questions that have one among the first k.

_MEASURE = "mrr@10"
_DEPTHS = (1, 2, 3, 5, 10)
_AXES = "Across: k. Up: the share of the cases with a relevant document among the first k."


def ranks(run: Run) -> Figure | None:
    """Return the share of the cases by depth; None where nothing was retrieved."""
    found = {name: firsts for name, table in run.experiments.items() if (firsts := _ranks(table))}
    alike = {name: _alike(run.experiments[name]) for name in found}
    if not found:
        return None
    title = "Found among the first k"
    shares = {name: [_share(firsts, k, alike[name]) for k in _DEPTHS] for name, firsts in found.items()}
    drawn, colours = drawn_of(run, found), colours_of(run)
    series = tuple(Series(name, tuple(shares[name]), colours[name]) for name in drawn)
    depths, include = tuple(map(str, _DEPTHS)), (0.0, 1.0)
    chart = Lines(ident="ranks", title=title, categories=depths, series=series, percent=True, include=include)
    rows = [
        [Cell(name), *word_cells(*map(estimate_in_words, values), f"{len(found[name]):,}")]
        for name, values in shares.items()
    ]
    head = ("experiment", *(f"k = {k}" for k in _DEPTHS), "n")
    table = Table("figure-ranks", head, rows, "Share of the cases")
    how = "by conversation or other clusters" if any(alike.values()) else "Clopper and Pearson"
    notes = [f"From {_MEASURE}, with 95 % intervals ({how}).", *left_out(run, [*found], drawn)]
    return together_or_apart(chart, lines, table, [_AXES, *notes])


def _ranks(table: SuiteTable) -> list[int]:
    """Return the rank of each case, which is the reciprocal of the measure's value; 0 is beyond the tenth."""
    values = table.values(_MEASURE, {}) if _MEASURE in table.columns else {}
    return [round(1 / value) if value > 0 else 0 for value in values.values()]


def _alike(table: SuiteTable) -> Sequence[str] | None:
    """Return the cluster of each case that has a rank; None without clusters."""
    return table.clusters_of(table.values(_MEASURE, {}))


def _share(firsts: Sequence[int], k: int, alike: Sequence[str] | None) -> Estimate:
    found = [float(1 <= rank <= k) for rank in firsts]
    share, between = sum(found) / len(found), interval_of_mean(found, "share", alike)
    if between is None:
        return Estimate(share)
    return Estimate(share, min(between[0], share), max(between[1], share))


# A figure of the distribution of the hallucination risk: a mean hides the few harmful answers.

_AT = (0.5, 0.95, 0.99)


def risk(run: Run) -> Figure | None:
    """Return the distribution of the risk of each experiment; None where none has one."""
    measure = next((m for m in RISKS if any(_values(table, m) for table in run.experiments.values())), "")
    if not measure:
        return None
    found = {name: values for name, table in run.experiments.items() if (values := _values(table, measure))}
    name = SHORT_MEASURE_NAMES.get(measure, measure)
    title = f"How {name} is distributed"
    drawn, colours = drawn_of(run, found), colours_of(run)
    series = tuple(
        Distribution(experiment, tuple(sorted(found[experiment].values())), colours[experiment]) for experiment in drawn
    )
    chart = Histogram(ident="risk", title=title, series=series, x_label=f"{name} of an answer, lower is better")
    rows = [
        [Cell(name), *word_cells(f"{len(values):,}", *_figures(values, run.experiments[name].clusters_of(values)))]
        for name, values in found.items()
    ]
    head = ("experiment", "answers", "mean", "median", "p95", "p99", "largest")
    left = [experiment for experiment in run.experiments if experiment not in found]
    notes = [*([f"No {name}: {', '.join(left)}."] if left else []), *left_out(run, [*found], drawn)]
    table = Table("figure-risk", head, rows, "Quantiles with 95 % intervals")
    return together_or_apart(chart, histogram, table, notes, f"Across: {chart.x_label}. Up: the share of the answers.")


def _values(table: SuiteTable, measure: str) -> Mapping[str, float]:
    return table.values(measure, {}) if measure in table.columns else {}


def _figures(found: Mapping[str, float], clusters: Sequence[str] | None) -> list[str]:
    values = sorted(found.values())
    ends = [quantile_interval_of([*found.values()], at, clusters) for at in _AT]
    between = [f" {interval_said(*each)}" if each else "" for each in ends]
    quantiles = [f"{value_said(quantile(values, at))}{said}" for at, said in zip(_AT, between, strict=True)]
    return [value_said(sum(values) / len(values)), *quantiles, value_said(values[-1])]


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
    tables = {name: table for name, table in experiments.items() if 2 * len(_sliced_measures(table)) > len(measures)}
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
    notes = ["Means without intervals: of a small slice they say little. The number of cases is in the table."]
    notes += [f"Not drawn, for most of these measures are not defined: {', '.join(left)}."] if left else []
    notes += [*equal_notes(groups), *left_out(run, list(names), drawn)]
    table = Table("figure-slices", head, rows, "Means by slice")
    return Figure(title, drawings, table, notes, [names[name] for name in drawn], "alike")


def _sliced_measures(table: SuiteTable) -> list[str]:
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


_POINTS = 200
_BINS = 10
_SHOWN = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def risk_coverage(run: Run) -> Figure | None:
    """Return the share of wrong answers among the most confident ones; None where no answer states a confidence."""
    if not run.abstentions:
        return None
    title = "Risk against coverage"
    found = {each.experiment: each for each in run.abstentions}
    drawn, colours = drawn_of(run, found), colours_of(run)
    series = tuple(CurveLine(name, tuple(_thinned(found[name])), colour=colours[name]) for name in drawn)
    given, wrong = "share of the answers that are given", "share of these that is wrong"
    chart = Curve(ident="risk-coverage", title=title, series=series, x_label=given, y_label=wrong)
    head = ("experiment", "answers", "AUROC", *(f"wrong in the surest {share:.0%}" for share in _SHOWN))
    rows = [[Cell(each.experiment), *word_cells(*_abstention_figures(each))] for each in run.abstentions]
    return _figure(run, chart, Table("figure-risk-coverage", head, rows), [*found])


def reliability(run: Run) -> Figure | None:
    """Return the share of right answers by stated confidence; None where no confidence is a share."""
    found = {each.experiment: _binned(each) for each in run.abstentions if _is_share(each)}
    if not found:
        return None
    title = "Reliability of the confidence"
    drawn, colours = drawn_of(run, found), colours_of(run)
    series = tuple(CurveLine(name, tuple(_points(found[name])), colour=colours[name]) for name in drawn)
    chart = Curve(
        ident="reliability",
        title=title,
        series=series,
        x_label="confidence that is stated",
        y_label="share that is right",
        reference=((0.0, 0.0), (1.0, 1.0)),
        reference_label="as stated",
    )
    alike = {name: run.experiments[name].are_named_alike for name in found}
    rows = [_confidence_row(name, alike[name], *each) for name, bins in found.items() for each in bins]
    head = ("experiment", "stated", "mean stated", "right", "95 % interval", "answers")
    return _figure(run, chart, Table("figure-reliability", head, rows), [*found])


def _figure(run: Run, chart: Curve, table: Table, found: Sequence[str]) -> Figure:
    notes = left_out(run, found, drawn_of(run, found))
    return together_or_apart(chart, curve, table, notes, f"Across: {chart.x_label}. Up: {chart.y_label}.")


def _thinned(each: Abstention) -> Sequence[CurvePoint]:
    n = len(each.curve.risk)
    places = sorted({round(place * (n - 1) / max(_POINTS - 1, 1)) for place in range(min(_POINTS, n))} | {n - 1})
    return [CurvePoint(float(each.curve.coverage[at]), float(each.curve.risk[at])) for at in places]


def _abstention_figures(each: Abstention) -> list[str]:
    told = NONE if each.auroc is None else f"{each.auroc:.3f}"
    return [f"{len(each.curve.risk):,}", told, *(f"{each.curve.risk_at(share):.1%}" for share in _SHOWN)]


def _is_share(each: Abstention) -> bool:
    return bool(each.stated) and all(0 <= confidence <= 1 for confidence, _ in each.stated)


_Bin = tuple[int, float, int, int]
"""Number of the bin from 0, mean confidence, answers, right answers."""


def _binned(each: Abstention) -> list[_Bin]:
    bins: dict[int, list[tuple[float, float]]] = {}
    for confidence, wrong in each.stated:
        bins.setdefault(min(int(confidence * _BINS), _BINS - 1), []).append((confidence, wrong))
    return [
        (number, sum(c for c, _ in held) / len(held), len(held), sum(not wrong for _, wrong in held))
        for number, held in sorted(bins.items())
    ]


def _points(bins: Sequence[_Bin]) -> list[CurvePoint]:
    return [CurvePoint(mean, right / n, float(n)) for _, mean, n, right in bins]


def _confidence_row(name: str, are_alike: bool, number: int, mean: float, n: int, right: int) -> list[Cell]:
    stated = f"{number / _BINS:.1f} to {(number + 1) / _BINS:.1f}"
    between = NONE if are_alike else interval_said(*clopper_pearson(right, n))
    return word_cells(name, stated, f"{mean:.3f}", f"{right / n:.3f}", between, f"{n:,}")


_NEED_NO_CONTEXT = {CORRECT_ABSTENTION, WRONG_ABSTENTION, ANSWERED_UNANSWERABLE, UNMEASURED}


def taxonomy(run: Run) -> Figure | None:
    """Return the kinds of each experiment's answers; None where the measures that define them were not judged."""
    counted = {name: count for name, table in run.experiments.items() if (count := _kinds(table))}
    if not counted:
        return None
    told = kinds_shown(kind for count in counted.values() for kind in count)
    kinds = [kind for kind in told if any(count[kind] for count in counted.values())]
    drawn = drawn_of(run, counted)
    rows = tuple(StackedBar(name, tuple(float(counted[name][kind]) for kind in kinds)) for name in drawn)
    colours, title = tuple(map(kind_fill, kinds)), "Categories of answers"
    bars = stacked(Stacked(ident="taxonomy", title=title, parts=tuple(kinds), rows=rows, colours=colours))
    pies = [_pie(f"taxonomy-pie-{place}", name, counted[name], kinds) for place, name in enumerate(drawn)]
    cells = [[Cell(kind, kind=kind), *word_cells(*(f"{count[kind]:,}" for count in counted.values()))] for kind in told]
    table = Table("figure-taxonomy", ("category", *counted), cells, "Answers of each category")
    notes = [*_without_context(run, counted), *left_out(run, [*counted], drawn)]
    return Figure(title, [bars, *pies], table, notes, ["", *drawn])


def _without_context(run: Run, counted: Mapping[str, Counter[str]]) -> list[str]:
    """Say which experiments have categories for those answers alone that need no context."""
    names = [name for name, count in counted.items() if not {*count} - _NEED_NO_CONTEXT and count[UNMEASURED]]
    names = [name for name in names if not run.tables[name].totals.retrieves]
    if not names:
        return []
    has, its = ("has", "its") if len(names) == 1 else ("have", "their")
    return [
        f"{joined_names(names)} {has} no context: of {its} answers only those have a category that decline, or that "
        f"answer what the documents do not. The others are {UNMEASURED}."
    ]


def _kinds(table: SuiteTable) -> Counter[str]:
    return Counter(kind for kind in table.categories or () if kind)


def _pie(ident: str, name: str, count: Counter[str], kinds: list[str]) -> str:
    slices = tuple(PieSlice(kind, float(count[kind]), kind_fill(kind)) for kind in kinds)
    return pie(Pie(ident=ident, title=f"{name}: {count.total():,} answers", slices=slices))


_FEWEST_EXPERIMENTS = 2
_FRONT = "The stepped line joins the experiments that no other beats on both. Bars are 95 % intervals."


def quality_for_time(run: Run) -> Figure | None:
    """Return quality against the median time of a trial; None where fewer than two experiments have both.

    Times of replayed answers are those of recorded calls, so they do not count.
    """
    points = {name: found for name, table in run.experiments.items() if (found := _time(table))}
    return _trade_off_figure(run, points, "time", "Quality against latency", "median time of a trial, ms", "ms")


def quality_for_money(run: Run) -> Figure | None:
    """Return quality against the cost of a trial; None where no price is known."""
    points = {name: found for name, table in run.experiments.items() if (found := _cost(table))}
    if not any(point.value for point in points.values()):
        return None
    return _trade_off_figure(run, points, "cost", "Quality against cost", "cost of a trial, USD", "usd")


def _trade_off_figure(
    run: Run, taken: dict[str, Estimate], ident: str, title: str, label: str, unit: str
) -> Figure | None:
    # An experiment without a context lacks the first measure, so what most experiments have is drawn.
    measure = max(QUALITY, key=lambda each: sum(run.tables[name].has(each) for name in taken))
    if sum(run.tables[name].has(measure) for name in taken) < _FEWEST_EXPERIMENTS:
        return None
    quality = {name: estimate(run.tables[name], measure) for name in taken}
    colours = colours_of(run)
    points = tuple(
        Point(name, taken[name], value, colours[name]) for name, value in quality.items() if value is not None
    )
    name = SHORT_MEASURE_NAMES.get(measure, measure)
    chart = Scatter(ident=f"quality-{ident}", title=title, points=points, x_label=label, y_label=name)
    rows = [
        [Cell(point.name), *word_cells(estimate_in_words(point.x, unit), estimate_in_words(point.y))]
        for point in points
    ]
    table = Table(f"figure-{ident}", ("experiment", label, name), rows, "With 95 % intervals")
    return Figure(title, [scatter(chart)], table, [_FRONT, *_not_drawn(run, {point.name for point in points}, unit)])


def _not_drawn(run: Run, drawn: set[str], unit: str) -> list[str]:
    """Say which experiments are not drawn, and why."""
    left = [name for name in run.experiments if name not in drawn]
    replayed = [name for name in left if unit == "ms" and run.tables[name].totals.recorded.any()]
    others = [name for name in left if name not in replayed]
    notes = [f"Not drawn, because their times are of recorded calls: {', '.join(replayed)}."] if replayed else []
    return [*notes, f"Not drawn, because one of the two is missing: {', '.join(others)}."] if others else notes


def _time(table: SuiteTable) -> Estimate | None:
    times = table.totals.times["total"]
    there = np.flatnonzero(~np.isnan(times) & ~table.totals.recorded)
    found = times[there].tolist()
    if not found:
        return None
    middle = quantile(sorted(found), 0.5)
    between = quantile_interval_of(found, 0.5, table.clusters_of([table.ids[int(place)] for place in there]))
    return Estimate(middle, *(end if np.isfinite(end) else None for end in between or ()))


def _cost(table: SuiteTable) -> Estimate | None:
    totals = table.totals
    return None if totals.cost_usd is None or not totals.rows else Estimate(totals.cost_usd / totals.rows)


# The figures of the report, one in each file: a function of a run returns the figure, or None without data.
#
# Each figure has a table of its data. The numbers are those of the report's other tables.

FigureOf: TypeAlias = Callable[[Run], "Figure | None"]
FIGURES: tuple[FigureOf, ...] = (
    taxonomy,
    quality_for_time,
    quality_for_money,
    risk,
    ranks,
    risk_coverage,
    reliability,
    turns,
    slices,
)
