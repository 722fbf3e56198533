"""Blocks of data that are packed while later ones are made are those of the finished payload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.page import payload as index
from rag_harness.page.payload import Packing, packed, payload_of, script_json
from tests.unit.page.runs import read
from tests.unit.rows import make_row
from tests.unit.suite_tables import write_run


@pytest.fixture(autouse=True)
def blocks_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "BLOCK", 2)


@pytest.mark.parametrize(("is_plain", "pack"), [(False, packed), (True, script_json)])
def test_early_and_late_blocks_are_packed_alike(tmp_path: Path, is_plain: bool, pack: Any) -> None:
    begun: dict[str, str] = {}
    write_run(tmp_path, [make_row(query_id=f"q{n}") for n in range(5)])
    runs = read(tmp_path)
    with Packing(is_plain) as packing:

        def begin(name: str, value: Any) -> None:
            begun[name] = json.dumps(value)
            packing.begin(name, value)

        payload = payload_of(runs, finished=begin)
        found = list(packing.of(payload))
    assert [*begun] == ["trials-0", "trials-1"]  # the third block is not full
    assert found == [(name, pack(value)) for name, value in payload_of(runs).blocks()]
    assert begun == {name: json.dumps(value) for name, value in payload.blocks() if name in begun}
    assert [len(block) for block in payload.trials] == [2, 2, 1]
