"""A service under test by its address: a few lines of TOML, and no Python that asks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.unit.server import Server, as_json, serving

TEST = """
import pytest

@pytest.mark.rag_experiment("my_service")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
SAID = {
    "answer": "You can return a lamp within 45 days. [Source 1]",
    "contexts": [
        {"text": "You can return a lamp within 45 days.", "id": "17"},
        {"text": "Of no page at all, it seems."},
    ],
}


def write_spec(suite: Suite, server: Server, more: str = "") -> Path:
    file = suite.path / "my_service.toml"
    file.write_text(f'url = "{server.url}/query"\n{more}\n[read]\nanswer = "answer"\ncontexts = "contexts"\n')
    return file


def chunks(row: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = row["retrieved_chunks"]
    return found


@pytest.fixture
def service(suite: Suite) -> Suite:
    (only,) = suite.path.glob("test_*.py")
    only.write_text(TEST)
    return suite


def test_a_service_is_recorded_and_replayed_without_python(service: Suite) -> None:
    with serving(as_json(SAID)) as server:
        write_spec(service, server)
        service.run("--rag-endpoint=my_service.toml", "--rag-mode=record").assert_outcomes(passed=4)
        assert sorted(each["query"] for each in server.requests) == [
            "express delivery costs",
            "how long is the warranty",
            "live fish",
            "return a lamp",
        ]
    first = service.rows("my_service")
    assert [chunk["chunk_id"] for chunk in chunks(first[0])][0] == "returns.md#17"
    result = service.run("--rag-endpoint=my_service.toml", "--rag-mode=replay", "--rag-overwrite")
    result.assert_outcomes(passed=4)
    assert [row["llm_answer"] for row in service.rows("my_service")] == [row["llm_answer"] for row in first]
    assert all(row["timings_recorded"] for row in service.rows("my_service"))
