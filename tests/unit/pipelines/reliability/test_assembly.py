"""What an experiment is made of: an edit of any step counts, so that no row of another version is taken for its own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from rag_harness.files.sources import source_digest
from rag_harness.pipelines.reliability.assembly import sources


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
