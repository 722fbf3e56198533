"""docs/how-to/draft-conversations.md: the drafted turns that it shows, and how many there are."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "draft-conversations.md").read_text(encoding="utf-8")
FIGURES = (ROOT / "docs" / "results" / "drafted-conversations.md").read_text(encoding="utf-8")
ASKED = 500


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], str]:
    """The turns, and what the command says."""
    file, said = tmp_path_factory.mktemp("drafted") / "queries.jsonl", StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        assert main(["kb", "queries", str(ROOT / "data/kb"), f"--conversations={ASKED}", "-o", str(file)]) == 1
    lines = file.read_text(encoding="utf-8").splitlines()
    return [turn for line in lines for turn in json.loads(line)["turns"]], said.getvalue()


@pytest.fixture
def turns(drafted: tuple[list[dict[str, Any]], str]) -> list[dict[str, Any]]:
    return drafted[0]


@pytest.mark.long
def test_turns_that_are_shown_are_drafted(turns: list[dict[str, Any]]) -> None:
    there = {(turn["metadata"]["turn_kind"], turn["query"], turn.get("standalone", "")) for turn in turns}
    shown = re.findall(r'^\| (\w+) \| "([^"]+)"[^|]* \| "?([^|"]*?)"? ?\|$', PAGE, re.MULTILINE)
    assert len(shown) == 6
    assert set(shown) <= there


def test_the_line_of_the_other_page_is_drafted(turns: list[dict[str, Any]]) -> None:
    page = (ROOT / "docs" / "how-to" / "draft-conversations.md").read_text(encoding="utf-8")
    found = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert found is not None
    shown = json.loads(found[1])
    (turn,) = (turn for turn in turns if turn.get("standalone") == shown["standalone"])
    assert shown == {key: turn[key] for key in shown} | {"metadata": {"turn_kind": turn["metadata"]["turn_kind"]}}


def test_figures_are_those_of_the_table(turns: list[dict[str, Any]]) -> None:
    kinds = Counter(turn["metadata"]["turn_kind"] for turn in turns)
    rows = re.findall(r"^\| (\w+(?:, \w+)+) \| ([\d, ]+) \|", FIGURES, re.MULTILINE)
    assert len(rows) == 2
    for names, row in rows:
        assert [int(count) for count in row.split(", ")] == [kinds[name] for name in names.split(", ")]
    assert f"{kinds['first']} conversations of {len(turns)} turns" in PAGE
    assert f"| turns | {len(turns)} |" in FIGURES


def test_it_says_why_there_are_fewer(drafted: tuple[list[dict[str, Any]], str]) -> None:
    block = PAGE.partition("    wrote my_docs/queries.jsonl: ")[2].partition("\n\n")[0]
    shown = [line.strip() for line in block.splitlines()]
    assert len(shown) == 7
    assert [line for line in shown if line != "…" and line not in drafted[1]] == []
