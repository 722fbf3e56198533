"""Named data: tables of pyproject.toml; a knowledge base on the command line stands in for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings.loading import DataSpec, load_settings

BOOK = """
[tool.rag_harness.data.book]
kb = "book"
queries = "book/questions.jsonl"
gates = ["t1: recall@5 >= 0.8"]
"""


def test_it_is_read_from_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(BOOK)
    found = load_settings(rootdir=tmp_path).data
    assert found == (DataSpec("book", "book", "book/questions.jsonl", "", (), ("t1: recall@5 >= 0.8",)),)


def test_a_knowledge_base_on_the_command_line_replaces_it_and_its_gates(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(BOOK)
    (found,) = load_settings({"kb_dir": "mine"}, rootdir=tmp_path).data
    assert (found.name, found.kb, found.queries, found.instead) == ("book", "mine", "", "mine")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("book = 3", "expected a table with kb"),
        ("book = {queries = 'q.jsonl'}", "has no kb"),
        ("golden = {kb = 'x'}", "the name is taken"),
        ("book = {kb = 3}", "kb is 3: expected a string"),
        ("book = {kb = 'x', gates = 'e1: x >= 1'}", "expected a list of strings"),
        ("book = {kb = 'x', querys = 'q'}", "Unknown key 'querys'. Did you mean 'queries'?"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, table: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.rag_harness.data]\n{table}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(rootdir=tmp_path)
    assert said in str(caught.value)
