"""The pages about questions, knowledge bases and documents: their commands are known, their fields are those that are
read, and their chunker cuts."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import parser_of
from rag_harness.data.queries import KNOWN_TYPES, QueryLine, lines_of, read_queries
from rag_harness.records.cases import scenario_of
from tests.plugin.conftest import Suite

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    *("generate", "review-questions", "check-questions", "draft-conversations", "init", "golden"),
    *("generate-kb", "generate-kb-with-a-model", "validate-kb", "import-export", "export-scores", "your-documents"),
    *("ingest", "ingest-large", "unreadable-files"),
)
FIELDS = (DOCS / "reference" / "queries.md").read_text(encoding="utf-8")


def first_cells(heading: str) -> list[str]:
    section = FIELDS.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [
        name for cell in re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE) for name in re.findall("`(.+?)`", cell)
    ]


@pytest.mark.parametrize("name", PAGES)
def test_commands_are_known(name: str) -> None:
    page = (DOCS / "how-to" / f"{name}.md").read_text(encoding="utf-8")
    found = re.findall(r"^    rag-harness (.+?)(?:   .*|  # .*| && .*)?$", page, re.MULTILINE)
    assert found
    for words in map(shlex.split, found):
        assert callable(parser_of(words).parse_args(words).run)


def test_every_field_of_a_line_is_on_the_page() -> None:
    fields = [*first_cells("A question"), *first_cells("A turn of a conversation"), "scenario"]
    assert sorted(fields) == sorted(QueryLine.model_fields)
    scenario, problems = scenario_of(dict.fromkeys(first_cells("A scenario")))
    assert scenario is None
    assert not [each for each in problems if "key" in each]
    assert all(f"`{each}`" in FIELDS for each in KNOWN_TYPES)


def test_lines_on_the_page_are_read(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```json\n(.*?)```", FIELDS, re.DOTALL)
    (tmp_path / "queries.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "returns.md").write_text("# Returns\n\nLamps can be returned within 45 days.\n", encoding="utf-8")
    assert len(read_queries(tmp_path / "queries.jsonl", tmp_path, ())) == 2
    assert lines_of(json.dumps({"query_id": "q", "query": "How?", "question": 1}))[1] == [
        "question: no field of a question. Did you mean 'query'?"
    ]


def test_a_chunker_of_ones_own(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "how-to" / "own-chunker.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ((name, place),) = re.findall(r'^(\w+) = "(my_package\.\w+:\w+)"$', page, re.MULTILINE)
    package, about = suite.path / "site" / "my_package", suite.path / "site" / "my_package-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "paragraphs.py").write_text(code, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[rag_harness.chunkers]\n{name} = {place}\n")
    monkeypatch.setenv("PYTHONPATH", str(suite.path / "site"), prepend=os.pathsep)
    (command,) = re.findall(r"^    pytest (.*)$", page, re.MULTILINE)
    suite.run(*shlex.split(command)).assert_outcomes(passed=4)
    rows: list[Any] = suite.rows()
    texts = [chunk["text"] for row in rows for chunk in row["retrieved_chunks"]]
    assert texts
    assert not [text for text in texts if "\n\n" in text]
