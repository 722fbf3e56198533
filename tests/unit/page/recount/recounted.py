"""Which table is recounted how. A table that nobody knows is a problem too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.unit.page.recount import compared_tables as compared
from tests.unit.page.recount import figure_tables as figure
from tests.unit.page.recount import gate_table
from tests.unit.page.recount import plain_tables as plain
from tests.unit.page.recount import slice_tables as sliced
from tests.unit.page.recount.page_tables import ShownTable, tables_in, whole
from tests.unit.page.recount.plain_tables import Check
from tests.unit.page.recount.rows import RunFiles, read_files

CHECKS: Mapping[str, Check] = {
    "table-gates": gate_table.gates,
    "table-gates-passed": gate_table.gates,
    "table-gates-not-judged": gate_table.gates,
    "table-decisions": gate_table.decisions,
    "table-trials": plain.trials,
    "table-unmeasured": plain.measures_without,
    "table-errors": plain.errors,
    "table-scorecard": plain.scorecard,
    "table-scorecard-others": plain.scorecard,
    "table-categories": plain.categories,
    "table-costs": plain.costs,
    "table-times": plain.times,
    "table-pairwise-study": compared.study,
    "table-pairwise-others": compared.matrix,
    "table-pairwise-unjudged": compared.matrix_by_measure,
    "table-slices": sliced.best,
    "table-slices-pairs": sliced.pairs,
    "table-moved-[0-9]+-.+": compared.moved_between_runs,
    "table-moved-.+": compared.moved,
    "table-diff-.+": compared.changes,
    "table-causes": plain.causes,
    "table-figure-compared": figure.compared,
    "table-figure-taxonomy": figure.kinds,
    "table-figure-time": figure.against_time,
    "table-figure-cost": figure.against_cost,
    "table-figure-risk": figure.risk,
    "table-figure-ranks": figure.ranks,
    "table-figure-risk-coverage": figure.risk_coverage,
    "table-figure-reliability": figure.reliability,
    "table-figure-slices": figure.slices,
}
NOT_RECOUNTED: Mapping[str, str] = {
    "about N more would settle it": "a plan for another run; rag_harness.stats.paired_tests has tests of its own",
    "table-measures": "names, versions and formulas of measures: no figures of the run",
    "table-kinds": "definitions",
    "table-differing-[0-9]+": "settings and versions as both run.json have them",
}
"""Numbers of tables that are not computed again, and why."""


def problems(html: str, *outputs: Path, only: str = "") -> list[str]:
    """Return what is wrong with the tables of a page of these runs, or with ``only`` one of them, a line each."""
    files, tables = read_files(*outputs), tables_in(html)
    names = [name for name in tables if name == (only or name)]
    return [f"{name}: {what}" for name in names for what in table_problems(files, name, tables) if what]


def table_problems(files: RunFiles, name: str, tables: dict[str, ShownTable]) -> Iterator[str]:
    """Yield what is wrong with one table; an empty text where something is right."""
    # A wide matrix is cut into parts, whose tests are one family.
    first = re.sub(r"^(table-pairwise-[a-z]+)-\d+$", r"\1", name)
    check = next((check for known, check in CHECKS.items() if re.fullmatch(known, first)), None)
    if check is not None:
        yield from check(files, whole(tables, first) if first.startswith("table-pairwise") else tables[first])
    elif not any(re.fullmatch(known, name) for known in NOT_RECOUNTED):
        yield "nobody recounts this table"
