"""The line of the README for who has documents and no questions."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import Suite
from tests.unit.authoring.questions.shop import folder

README = Path(__file__).parents[2] / "README.md"


def test_questions_for_a_strangers_documents_are_asked_at_once(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = re.findall(r"^    (rag-harness kb queries .*)$", README.read_text(encoding="utf-8"), re.M)
    writing, asking = (shlex.split(command) for command in line.split("&&"))
    folder(suite.path)
    monkeypatch.chdir(suite.path)
    assert main(writing[1:]) == 0
    queries = [json.loads(each) for each in (suite.path / "my_docs" / "queries.jsonl").read_text().splitlines()]
    suite.run(*asking[1:]).assert_outcomes(passed=len(queries))
    rows = {row["query_id"]: row for row in suite.rows()}
    assert rows.keys() == {query["query_id"] for query in queries}
