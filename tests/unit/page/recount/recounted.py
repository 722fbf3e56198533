"""Which table is recounted how. A table that nobody knows is a problem too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.unit.page.recount import compared_tables as compared
from tests.unit.page.recount import plain_tables as plain
from tests.unit.page.recount.page_tables import ShownTable, tables_in
from tests.unit.page.recount.plain_tables import Check
from tests.unit.page.recount.rows import RunFiles, read_files

CHECKS: Mapping[str, Check] = {
    "table-gates": compared.gates,
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
    "table-moved-": compared.moved,
    "table-causes": plain.causes,
}
NOT_RECOUNTED: Mapping[str, str] = {
    "about N more would settle it": "a plan for another run; rag_harness.stats.settling has tests of its own",
}
"""Numbers of tables that are not computed again, and why."""


def problems(html: str, output: Path, only: str = "") -> list[str]:
    """Return what is wrong with the tables of a page, or with ``only`` one of them, a line each."""
    files, tables = read_files(output), tables_in(html)
    chosen = {name: table for name, table in tables.items() if only in ("", name)}
    return [f"{name}: {what}" for name, table in chosen.items() for what in _problems(files, name, table) if what]


def _problems(files: RunFiles, name: str, table: ShownTable) -> Iterator[str]:
    starts = (known for known in CHECKS if known.endswith("-") and name.startswith(known))
    check = CHECKS.get(name) or CHECKS.get(next(starts, ""))
    if check is None:
        yield "nobody recounts this table"
        return
    yield from check(files, table)
