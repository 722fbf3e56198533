"""``.pre-commit-hooks.yaml``: hooks of other repositories that call commands of ours."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_harness.__main__ import COMMANDS, main
from rag_harness.core.package import COMMAND

HOOKS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
)
BY_ID = {hook["id"]: hook for hook in HOOKS}
NEEDED = {"id", "name", "entry", "language"}
"""Keys that pre-commit demands of a hook."""


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_calls_a_command_that_exists(hook: dict[str, Any]) -> None:
    assert hook.keys() >= NEEDED
    command, group, name = shlex.split(hook["entry"])
    assert command == COMMAND
    assert name in COMMANDS[group][1]
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)


@pytest.mark.parametrize(
    ("hook", "file", "runs"),
    [
        ("rag-queries-check", "docs/a.md", True),
        ("rag-queries-check", "queries.jsonl", True),
        ("rag-queries-check", "docs/a.pdf", True),
        ("rag-queries-check", "src/app.py", False),
        ("rag-kb-validate", "data/kb/a.md", True),
        ("rag-kb-validate", "golden.json", True),
        ("rag-kb-validate", "image.png", False),
    ],
)
def test_a_hook_runs_for_files_of_its_kind(hook: str, file: str, runs: bool) -> None:
    assert bool(re.search(BY_ID[hook]["files"], file)) is runs


def test_a_question_that_its_page_has_left_behind_stops_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "docs" / "returns.md"
    page.parent.mkdir()
    page.write_text("# Returns\n\nLamps may be returned within 45 days.\n")
    row = {"query_id": "q1", "query": "How long may a lamp be returned?", "context_reference": ["returns.md"]}
    Path("queries.jsonl").write_text(json.dumps({**row, "ground_truth": "45 days"}) + "\n")
    asked = [*shlex.split(BY_ID["rag-queries-check"]["entry"])[1:], "docs", "--queries", "queries.jsonl"]
    assert main(asked) == 0, capsys.readouterr()
    page.rename(page.with_name("other.md"))
    assert main(asked) == 1
