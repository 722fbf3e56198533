"""Figures about stated confidence: risk over coverage, and calibration."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.page.charts import Curve, CurveLine, CurvePoint, curve
from rag_harness.page.content import Cell, Figure, Table, word_cells
from rag_harness.page.drawings.experiments import colours_of, drawn_of, left_out, together_or_apart
from rag_harness.page.figures import NONE, interval_said
from rag_harness.page.run import Run
from rag_harness.report.abstention import Abstention
from rag_harness.stats import clopper_pearson

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
    rows = [[Cell(each.experiment), *word_cells(*_figures(each))] for each in run.abstentions]
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
    rows = [_row(name, alike[name], *each) for name, bins in found.items() for each in bins]
    head = ("experiment", "stated", "mean stated", "right", "95 % interval", "answers")
    return _figure(run, chart, Table("figure-reliability", head, rows), [*found])


def _figure(run: Run, chart: Curve, table: Table, found: Sequence[str]) -> Figure:
    notes = left_out(run, found, drawn_of(run, found))
    return together_or_apart(chart, curve, table, notes, f"Across: {chart.x_label}. Up: {chart.y_label}.")


def _thinned(each: Abstention) -> Sequence[CurvePoint]:
    n = len(each.curve.risk)
    places = sorted({round(place * (n - 1) / max(_POINTS - 1, 1)) for place in range(min(_POINTS, n))} | {n - 1})
    return [CurvePoint(float(each.curve.coverage[at]), float(each.curve.risk[at])) for at in places]


def _figures(each: Abstention) -> list[str]:
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


def _row(name: str, are_alike: bool, number: int, mean: float, n: int, right: int) -> list[Cell]:
    stated = f"{number / _BINS:.1f} to {(number + 1) / _BINS:.1f}"
    between = NONE if are_alike else interval_said(*clopper_pearson(right, n))
    return word_cells(name, stated, f"{mean:.3f}", f"{right / n:.3f}", between, f"{n:,}")
