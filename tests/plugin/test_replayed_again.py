"""A replay into a new folder, with the cache of another replay: the same files, and nothing judged or run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.study import replay

TIMES = {"finished_at", "ms", "retrieval_time_ms", "rerank_time_ms", "total_time_ms", "date", "run", "stages_ms"}
PLACES = {"output", "logs", "cache_dir"}


def _content(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _content(each) for name, each in value.items() if name not in TIMES | PLACES}
    return [_content(each) for each in value] if isinstance(value, list) else value


def left(folder: Path) -> dict[str, Any]:
    """Return every file of a run but for times and places; its derived rows, too."""
    found: dict[str, Any] = {}
    for file in sorted((folder / "out").rglob("*.json*")):
        lines = [file.read_text()] if file.suffix == ".json" else file.read_text().splitlines()
        found[file.relative_to(folder).as_posix()] = [_content(json.loads(line)) for line in lines]
    return found


def again(folder: Path, cache: Path) -> dict[str, Any]:
    folder.mkdir()
    # All questions: where fewer are asked, others are the worst, whose derived trials are not recorded.
    result = replay(folder, "-m", "e3", f"--rag-cache-dir={cache}")
    assert "200 passed" in result.stdout, result.stdout + result.stderr
    return left(folder)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, Any]:
    return again(tmp_path_factory.mktemp("first") / "run", cache)


def _kept(cache: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in cache.glob("*/*/*.kept")}


def test_a_second_replay_leaves_the_same_from_the_cache(first: dict[str, Any], cache: Path, tmp_path: Path) -> None:
    kept = _kept(cache)
    assert {file.parents[1].name for file in kept} == {"causes", "scores"}
    assert again(tmp_path / "run", cache) == first
    assert any(name.startswith("out/derived/") for name in first)
    assert first["out/causes.jsonl"]
    assert first["out/scores/e3_filtered_rag.jsonl"]
    assert _kept(cache) == kept  # nothing new was found


def test_a_damaged_cache_changes_nothing(first: dict[str, Any], cache: Path, tmp_path: Path) -> None:
    for file, content in _kept(cache).items():
        file.write_bytes(content[: len(content) // 2])
    assert again(tmp_path / "run", cache) == first
