"""Tables made by hand: a value, or none, of each case for each experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rag_harness.evaluation.measures import measure_named
from rag_harness.records.manifest import SuiteRecord
from rag_harness.tables.blocks import Totals
from rag_harness.tables.requested_measures import read_slices
from rag_harness.tables.standings import Standings, standings
from rag_harness.tables.suite_table import CaseState, Column, SuiteTable

Values = Sequence[float | None]


def table(labels: Sequence[Mapping[str, str]], **measured: Values) -> SuiteTable:
    """Return a table with these labels and values; a measure's ``@`` is written ``_at_``."""
    n = len(labels)
    columns = {}
    for name, values in measured.items():
        measure = measure_named(name.replace("_at_", "@"))
        found = np.array([np.nan if value is None else value for value in values])
        columns[measure.name] = Column(measure, found, np.isnan(found).astype(np.uint8), ["", "no ground truth"])
    ids = [f"q{place:03}" for place in range(n)]
    return SuiteTable(ids, labels, np.full(n, CaseState.OK, dtype=np.uint8), columns, Totals(n))


def kinds(**counts: int) -> list[dict[str, str]]:
    """Return the labels of so many cases of each kind."""
    return [{"kind": kind} for kind, n in counts.items() for _ in range(n)]


def stand(
    tables: Mapping[str, SuiteTable], *asked: str, data: Mapping[str, str] | None = None, judge: str = ""
) -> Standings:
    """Return the standings; ``data`` names that of an experiment, ``judge`` is that of the last one."""
    last = list(tables)[-1]
    records = {
        name: SuiteRecord(
            data=(data or {}).get(name, "queries"),
            file="",
            fingerprints=[],
            total=1,
            selected="all",
            authors=[(judge if judge and name == last else "embedded", "m", "1")],
        )
        for name in tables
    }
    return standings(tables, records, read_slices(asked, 10))
