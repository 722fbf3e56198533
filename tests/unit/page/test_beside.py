"""Intervals are worked out while trials are packed, and are those that would have been worked out later."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from rag_harness.page.run import intervals_beside
from rag_harness.runs.gates.evidence import interval_of_mean
from tests.unit.page.runs import read, write_study

INTERVAL = "rag_harness.tables.suite_table.interval_of_mean"


def test_they_are_there_when_the_block_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, other, asked = read(write_study(tmp_path)), threading.get_ident(), set[int]()
    later = {name: table.interval("recall@5") for name, table in read(tmp_path)[0].selected.items() if name != "e1"}

    def noted(values: Sequence[float], unit: str, clusters: object) -> tuple[float, float] | None:
        asked.add(threading.get_ident())
        assert clusters is None
        return interval_of_mean(values, unit)

    monkeypatch.setattr(INTERVAL, noted)
    with intervals_beside(runs):
        pass
    assert other not in asked
    asked.clear()
    assert {name: runs[0].selected[name].interval("recall@5") for name in later} == later
    assert not asked


def test_what_fails_there_is_raised_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(values: Sequence[float], unit: str, clusters: object) -> tuple[float, float]:
        raise ZeroDivisionError

    monkeypatch.setattr(INTERVAL, broken)
    with pytest.raises(ZeroDivisionError), intervals_beside(read(write_study(tmp_path))):
        pass
