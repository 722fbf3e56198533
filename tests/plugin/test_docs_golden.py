"""The pages about golden sets and the shipped data are right: examples are read and run, numbers are counted again."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rag_harness.data.golden import read_golden
from rag_harness.runs.golden_suite import RETRIEVERS
from tests.plugin.conftest import Suite
from tests.plugin.test_docs_gates import ROOT, blocks

PAGE = (ROOT / "docs/how-to/golden.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs/reference/golden.md").read_text(encoding="utf-8")
DATA = (ROOT / "data/README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("language", "entries"), [("json", 3), ("csv", 3)])
def test_golden_example_is_read_and_found(suite: Suite, language: str, entries: int) -> None:
    (example,) = blocks(PAGE, language)
    (code,) = blocks(PAGE, "python")
    assert len(example.splitlines()) <= 5
    file = suite.path / f"golden.{language}"
    file.write_text(example, encoding="utf-8")
    assert len(read_golden(file)) == entries
    for other in suite.path.glob("test_*.py"):
        other.unlink()
    suite.pytester.makepyfile(test_retrieval=code)
    result = suite.run(f"--rag-golden={file.name}", "--rag-kb=kb", "--rag-k=3")
    result.assert_outcomes(passed=entries)


def test_every_retriever_is_in_the_table() -> None:
    section = REFERENCE.partition("## Retrievers")[2].partition("\n## ")[0]
    assert set(RETRIEVERS) <= set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE))


def _shipped(name: str) -> list[dict[str, Any]]:
    text = (ROOT / name).read_text(encoding="utf-8")
    found: list[dict[str, Any]] = (
        json.loads(text) if name.endswith("json") else list(map(json.loads, text.split("\n")[:-1]))
    )
    return found


def _plan() -> dict[str, Any]:
    plan: dict[str, Any] = json.loads((ROOT / "data/kb/structure.json").read_text(encoding="utf-8"))
    return plan


def _table(heading: str) -> dict[str, list[str]]:
    """Return the rows of a table by their first cell."""
    section = DATA.partition(f"## {heading}")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    return {row[0]: row[1:] for row in rows[2:]}


def test_counts_of_pages() -> None:
    pages = _plan()["pages"]
    kinds = ("tabular", "logical", "mixed")
    counts = Counter((page["category"], page["kind"]) for page in pages)
    rows = {name: [str(counts[name, kind]) for kind in kinds] for name, _ in counts}
    shown = _table("Pages")
    assert {name: cells[:3] for name, cells in shown.items() if name != "all"} == rows
    assert shown["all"] == [*(str(sum(page["kind"] == kind for page in pages)) for kind in kinds), str(len(pages))]
    words = [len(file.read_text(encoding="utf-8").split()) for file in (ROOT / "data/kb").glob("*.md")]
    assert f"{min(words)} to {max(words)} words each, {sum(words) / len(words):.0f} on average" in DATA


def test_counts_of_questions() -> None:
    queries = _shipped("data/kb/queries.jsonl")
    counts = Counter((query["query_type"], query["metadata"]["difficulty"]) for query in queries)
    shown = _table("Questions")
    for query_type in ("direct", "multi_hop", "negative"):
        cells = [counts[query_type, level] for level in ("easy", "medium", "hard")]
        assert shown[query_type][:4] == [str(each) for each in [*cells, sum(cells)]]
    assert shown["all"][3] == str(len(queries))
    versions = Counter(query["query_type"] for query in queries if query["metadata"].get("version_conflict"))
    total = f"{versions.total()} ask about a fact on which versions disagree"
    assert f"{total} ({versions['direct']} direct, {versions['multi_hop']} multi-hop)" in DATA


def test_counts_of_golden_entries() -> None:
    counts = Counter(entry["query_type"] for entry in _shipped("test_retrieval_golden/golden.json"))
    assert {name: cells[0] for name, cells in _table("Golden set").items()} == {n: str(c) for n, c in counts.items()}
    assert f"## Golden set: {counts.total()}" in DATA


def test_direct_questions_are_about_the_pages_that_were_drawn() -> None:
    script = ROOT / "data/draw_pages.py"
    drawn = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    direct = [query for query in _shipped("data/kb/queries.jsonl") if query["query_type"] == "direct"]
    assert drawn.split() == [word for query in direct for word in (query["query_id"], *query["context_reference"])]


def test_files_of_the_data_folder_are_named() -> None:
    files = {file.name for file in (ROOT / "data").iterdir() if file.is_file()} - {Path("README.md").name}
    assert all(f"`{name}`" in DATA for name in files)
