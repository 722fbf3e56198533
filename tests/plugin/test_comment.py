"""The comment on a pull request about the shipped study."""

from __future__ import annotations

import re
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from rag_harness.__main__ import main
from tests.unit.page.test_comment_markdown import sound

_CHANGES = (
    (r"\d{4}-\d\d-\d\dT[\d:.+\u2060]+", "TIME"),
    (r"recorded [^;)]*", "recorded THEN"),
    (r"(?<=at commit )[0-9a-f\u2060]+|(?<=git checkout )[0-9a-f]+", "COMMIT"),
)
"""What another day, or another commit, changes in it."""


def test_what_the_comment_says_of_the_study(study: Path, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert main(["report", str(study / "out"), "-o", str(tmp_path / "comment.md")]) == 0
    text = sound((tmp_path / "comment.md").read_text(encoding="utf-8"))
    for found, put in _CHANGES:
        text = re.sub(found, put, text)
    assert text == snapshot
