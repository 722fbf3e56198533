"""Which queries moved between two experiments, or between two runs of one: the largest moves first."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.page.content import Cell, Table, words
from rag_harness.page.figures import counted, measure_title, value_said
from rag_harness.page.run import Run
from rag_harness.report.misses import cut
from rag_harness.types import TrialId

SHOWN = 20
_SAME = 1e-12
_QUERY = 90
Move = tuple[str, float, float]
"""Case, value before, value after."""


def moved(now_run: Run, now: str, before_run: Run, before: str, measure: str) -> list[Table]:
    """Return a table of queries that went up and one of those that went down; less where there are none.

    Args:
        now_run: whose trials are linked.
        now: the experiment whose value is the later one.
        before_run: of the other value.
        before: its experiment.
        measure: that both have.
    """
    new, old = now_run.tables[now].values(measure, {}), before_run.tables[before].values(measure, {})
    moves = sorted(((case, old[case], new[case]) for case in new if case in old), key=lambda m: (m[1] - m[2], m[0]))
    sides = {"up": [m for m in moves if m[2] - m[1] > _SAME], "down": [m for m in moves[::-1] if m[1] - m[2] > _SAME]}
    name = f"moved-{now_run.name if now_run is not before_run else ''}-{now}-{before}-{measure}"
    return [
        _table(now_run, now, before_run, before, measure, which, side, name) for which, side in sides.items() if side
    ]


def _table(
    now_run: Run, now: str, before_run: Run, before: str, measure: str, which: str, moves: Sequence[Move], name: str
) -> Table:
    found = now_run.tables[now].columns[measure].measure
    is_good = (which == "up") == (found.better == "higher")
    texts = now_run.queries_of(now, [case for case, _, _ in moves[:SHOWN]])
    rows = [
        [
            Cell(case, trial=now_run.address(TrialId(now, case))),
            Cell(value_said(old, found.unit), trial=before_run.address(TrialId(before, case))),
            Cell(value_said(new, found.unit), "good" if is_good else "bad", trial=now_run.address(TrialId(now, case))),
            *words(cut(texts.get(case, ""), _QUERY)),
        ]
        for case, old, new in moves[:SHOWN]
    ]
    more = [f"and {len(moves) - SHOWN} more"] if len(moves) > SHOWN else []
    caption = f"{counted(len(moves), 'query', 'queries')} went {which}, {measure_title(found)}"
    head = ("query", f"before: {before}", f"after: {now}", "question")
    return Table(f"{name}-{which}", head, rows, caption, more)
