"""What an experiment is made of: an edit of any step counts, so that no row of another version is taken for its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from rag_harness.files.sources import source_digest
from rag_harness.pipelines.reliability.assembly import sources

ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    source_digest.cache_clear()
    yield
    source_digest.cache_clear()


@pytest.mark.parametrize(
    "module",
    [
        "pipelines.planning",
        "pipelines.subquestions",
        "pipelines.generation",
        "pipelines.trace",
        "models.replies",
        "retrieval.retrievers",
        "reader.terms",
        "calibration.confidence_file",
        "calibration.logistic",
        "contradictions",
    ],
)
def test_an_edit_of_what_the_steps_use_counts(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sources()
    found = find_spec(f"rag_harness.{module}")
    assert found is not None
    edited, read = Path(str(found.origin)), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda file: read(file) + b"# edited" * (file == edited))
    source_digest.cache_clear()
    assert sources() != before


@pytest.mark.parametrize("name", ["r1", "r1-original", "r2", "r3", "r4", "r5", "r6"])
def test_the_shipped_calibrations_are_of_the_code_as_it_is(name: str) -> None:
    made_of = json.loads((ROOT / "reliability" / f"{name}.json").read_bytes())["made_of"]
    now = source_digest("rag_harness.pipelines.reliability.quality")
    assert made_of["experiment"] == name
    assert made_of["code of the signals"] == now, "run all r's, then: rag-harness reliability calibrate output"
