"""The script that sets a floor: its rule, and that it looks at one half of the questions."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Case, Query
from tests.unit.studies.textbook.book import PAGES

# Benchmarks are scripts and no package: a type checker would meet the file under two names.
_script: Any = import_module("benchmarks.textbook_floor")
best_floor, is_development, main, share_below = (
    _script.best_floor,
    _script.is_development,
    _script.main,
    _script.share_below,
)


@given(st.lists(st.floats(-1, 1, width=32), max_size=60))
def test_the_highest_floor_at_which_few_find_nothing(cosines: list[float]) -> None:
    floor = best_floor(cosines)
    assert floor == 0 or share_below(cosines, floor) <= 0.05
    assert floor == 1 or share_below(cosines, floor + 0.01) > 0.05


def test_one_of_twenty_may_find_nothing() -> None:
    assert best_floor([0.3] + [0.625] * 19) == 0.62
    assert best_floor([0.3, 0.4] + [0.625] * 18) == 0.4


def test_halves_by_the_text_of_a_question() -> None:
    halves = [is_development(Case(Query(f"q{n}", f"question {n}"))) for n in range(200)]
    assert 70 < sum(halves) < 130
    assert is_development(Case(Query("a", "question 3"))) == is_development(Case(Query("b", "question 3")))


def test_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    page = {"context_reference": ["module-1/chapter-1-nodes.md"]}
    queries = [{"query_id": f"q{n}", "query": f"a topic carries messages {n}", **page} for n in range(20)]
    outside = [{"query_id": f"n{n}", "query": f"zebra {n}", "query_type": "negative"} for n in range(10)]
    lines = "".join(json.dumps(query) + "\n" for query in [*queries, *outside])
    (tmp_path / "queries.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.setenv("RAG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["textbook_floor.py", "--book", str(tmp_path), "--profile", "mock"])
    main()
    said = capsys.readouterr().out
    assert "answerable questions of the development half" in said
    assert "mock/hashed-words: 0." in said
    monkeypatch.setattr(sys, "argv", ["textbook_floor.py", "--book", str(tmp_path / "none")])
    with pytest.raises(SystemExit, match=r"queries.jsonl. Name the questions"):
        main()
