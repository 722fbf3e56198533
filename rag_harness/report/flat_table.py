"""A table of records with the same columns, which is written as CSV and as Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rag_harness.report.trial_columns import Kind, Record


class Records(Protocol):
    """Records with the kind of each column, in their order."""

    @property
    def columns(self) -> Mapping[str, Kind]: ...

    def __iter__(self) -> Iterator[Record]: ...


@dataclass(frozen=True, slots=True)
class FlatTable:
    """Records that are in memory."""

    columns: Mapping[str, Kind]
    records: Sequence[Record]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)
