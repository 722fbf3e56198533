"""The shipped calibrations are of the code as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.registry.identity import code_digest

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("name", ["r1", "r1-original", "r2", "r3", "r4", "r5", "r6"])
def test_the_shipped_calibrations_are_of_the_code_as_it_is(name: str) -> None:
    made_of = json.loads((ROOT / "reliability" / f"{name}.json").read_bytes())["made_of"]
    now = code_digest("rag_harness.studies.reliability.quality")
    assert made_of["experiment"] == name
    assert made_of["code of the signals"] == now, "run all r's, then: rag-harness reliability calibrate output"
