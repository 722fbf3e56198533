"""``rag-harness queries import`` over small pages of a shop."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rag_harness.__main__ import main
from rag_harness.core.types import Case
from rag_harness.data.queries import read_queries

PAGES = {
    "returns.md": "# Returns\n\nYou can return a lamp within **45 days** of delivery.\n\n"
    "We refund within 5 working days after the parcel has come back.\n",
    "delivery/fees.md": "# Fees\n\nExpress delivery costs €9.90 in [Zone 1](zones.md) and takes one day.\n",
}


class Imported(NamedTuple):
    """What an import wrote and said."""

    status: int
    said: str
    lines: list[dict[str, Any]]
    cases: list[Case]


Importing = Callable[..., Imported]


@pytest.fixture
def importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Importing:
    """Write a file, import it, and read what was written as a run reads it."""
    monkeypatch.chdir(tmp_path)
    for name, text in PAGES.items():
        (tmp_path / "kb" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "kb" / name).write_text(text)

    def run(name: str, content: str | bytes | None, *arguments: str, kb: bool = True) -> Imported:
        if content is not None:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        status = main(["queries", "import", name, "--force", *(["--kb", "kb"] if kb else []), *arguments])
        captured = capsys.readouterr()
        written = Path("queries.jsonl")
        if status > 1:
            return Imported(status, captured.err, [], [])
        lines = [json.loads(line) for line in written.read_text().splitlines()]
        return Imported(status, captured.out, lines, read_queries(written, Path("kb"), types=()))

    return run
