"""A shop of twelve pages with two questions each, a space over it, and races on the mock profile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_harness.diagnosis.reruns import DerivedRuns, running
from rag_harness.diagnosis.tuning.space import read_space
from rag_harness.diagnosis.tuning.tuner import Tuned, Tuner
from rag_harness.runs.fingerprint import fingerprint_of
from tests.unit.pipelines.mock_parts import parts_of, write_kb

THINGS = ("lamp", "tent", "stove", "rope", "boot", "kayak", "bike", "map", "knife", "torch", "pack", "jacket")
PAGES = {
    f"{thing}.md": f"# {thing.title()}s\n\nYou can return a {thing} within {n + 10} days.\n\n"
    f"## Care\n\nWash the {thing} at {n + 20} degrees, then dry it in the shade.\n"
    for n, thing in enumerate(THINGS)
}
SPACE = """
objective = "evidence_recall"
[parameters]
retriever = ["dense", "bm25", "hybrid"]
top_k = [1, 2, 3]
rerank = false
"""


def questions() -> list[dict[str, Any]]:
    """Return two questions a page, the second of them without the page's words for it."""
    return [
        {
            "query_id": f"{thing}_{kind}",
            "query": text.format(thing),
            "ground_truth": f"{n + start}",
            "context_reference": [f"{thing}.md"],
            "evidence": [{"filename": f"{thing}.md", "quote": f"{n + start} {unit}"}],
        }
        for n, thing in enumerate(THINGS)
        for kind, text, start, unit in (
            ("return", "how long may I return a {}", 10, "days"),
            ("care", "how hot may I clean my {} in the shade", 20, "degrees"),
        )
    ]


def write_shop(root: Path, monkeypatch: pytest.MonkeyPatch, space: str = SPACE) -> Path:
    """Write the shop and its space, and return ``root``."""
    write_kb(root, PAGES, monkeypatch)
    write_questions(root, questions())
    (root / "space.toml").write_text(space, encoding="utf-8")
    return root


def write_questions(root: Path, asked: list[dict[str, Any]]) -> None:
    """Write the questions of the shop."""
    text = "".join(json.dumps(each) + "\n" for each in asked)
    (root / "kb" / "queries.jsonl").write_text(text, encoding="utf-8")


def tuned(root: Path, watch: Callable[[DerivedRuns], None] | None = None, **changes: Any) -> Tuned:
    """Race the space of a shop. ``watch`` sees what runs the trials, before it runs any."""
    parts = parts_of(root, cache_dir=str(root / "cache"), **changes)
    space = read_space(root / "space.toml")
    with running(root / "output", parts) as runs:
        if watch is not None:
            watch(runs)

        def fingerprint(made: Any) -> str:
            return fingerprint_of(made, parts.settings, parts.data(made.data).queries_digest)

        return Tuner(space, runs, parts, fingerprint, root / "output", lambda _: None).run()


class Watched:
    """Notes what is asked. After ``most`` trials it breaks off, as a process that is killed."""

    def __init__(self, most: int = 10**9) -> None:
        self.asked: list[tuple[str, str]] = []
        self.most = most

    def __call__(self, runs: DerivedRuns) -> None:
        submit = runs._submit

        def watched(ask: Any) -> None:
            if len(self.asked) == self.most:
                raise KeyboardInterrupt
            self.asked.append((ask.derived, ask.case.query.query_id))
            submit(ask)

        runs._submit = watched  # type: ignore[method-assign]
