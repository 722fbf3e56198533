"""The figure that compares the experiments: a panel for each main measure, a row with an interval for each of them."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.page.charts import Dot, Dots, Estimate, dots
from rag_harness.page.content import Cell, Figure, Table
from rag_harness.page.drawings.estimated import estimate, estimate_in_words, right_declines, right_declines_estimate
from rag_harness.page.drawings.experiments import colours_of, drawn_of, equal_notes, left_out
from rag_harness.page.figures import NONE, no_value
from rag_harness.page.run import Run
from rag_harness.report.equals import equal_groups
from rag_harness.report.suite_table import SuiteTable

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
