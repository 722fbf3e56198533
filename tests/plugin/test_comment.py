"""The comment on a pull request about the shipped study."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from rag_harness.__main__ import main
from tests.plugin.study import replay
from tests.unit.page.test_comment import sound

_CHANGES = (
    (r"\d{4}-\d\d-\d\dT[\d:.+\u2060]+", "TIME"),
    # Experiments whose answers are equally old share a line: how many lines there are hangs on the hour.
    (r"(?m)^- (?:Answers of [^\n]*(?:replayed|computed)|Origins of other)[^\n]*\n", ""),
    (r"(?<=\(recorded )[^)]*", "THEN"),
    (r"(?<=at commit )[0-9a-f\u2060]+|(?<=git checkout )[0-9a-f]+", "COMMIT"),
)
"""What another day, or another commit, changes in it."""


def said_of(output: Path, folder: Path) -> str:
    """Return the comment on a run, without what another day changes."""
    assert main(["report", str(output), "-o", str(folder / "comment.md")]) == 0
    text = sound((folder / "comment.md").read_text(encoding="utf-8"))
    for found, put in _CHANGES:
        text = re.sub(found, put, text)
    return text


def test_what_the_comment_says_of_the_study(study: Path, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert said_of(study / "out", tmp_path) == snapshot


@pytest.mark.long
def test_what_the_comment_says_of_the_textbook_with_its_failed_gates(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    result = replay(tmp_path, "-m", "t1")
    assert result.returncode == 1, result.stdout[-2000:]
    text = said_of(tmp_path / "out", tmp_path)
    assert text.startswith("## ❌ FAIL: 3 of 71 gates failed, ")
    assert text == snapshot
