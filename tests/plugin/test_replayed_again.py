"""A replay into a new folder, with the cache of another replay: the same files, and nothing judged or run again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.plugin.conftest import copy_data
from tests.plugin.study import ROOT, replay
from tests.plugin.test_brief import HEAD, section
from tests.plugin.test_pictures import SHOWN, TAKE

TIMES = {"finished_at", "ms", "retrieval_time_ms", "rerank_time_ms", "total_time_ms", "date", "run", "stages_ms"}
PLACES = {"output", "logs", "cache_dir"}


class Replayed(NamedTuple):
    """A replay: its folder, what it said, and its files."""

    folder: Path
    said: str
    files: dict[str, Any]


def _content(value: Any) -> Any:
    if isinstance(value, dict):
        left_out = TIMES | PLACES
        if False in (value.get("timings_recorded"), value.get("recorded")):
            left_out |= {"llm_time_ms", "ttft_ms"}  # of an answer that was computed now
        return {name: _content(each) for name, each in value.items() if name not in left_out}
    return [_content(each) for each in value] if isinstance(value, list) else value


def left(folder: Path) -> dict[str, Any]:
    """Return every file of a run but for times and places; its derived rows, too."""
    found: dict[str, Any] = {}
    for file in sorted((folder / "out").rglob("*.json*")):
        lines = [file.read_text()] if file.suffix == ".json" else file.read_text().splitlines()
        found[file.relative_to(folder).as_posix()] = [_content(json.loads(line)) for line in lines]
    return found


def again(folder: Path, cache: Path, python: str) -> Replayed:
    folder.mkdir()
    # All questions: where fewer are asked, others are the worst, whose derived trials are not recorded.
    result = replay(folder, "-m", "e3", f"--rag-cache-dir={cache}", python=python)
    assert "200 passed" in result.stdout, result.stdout + result.stderr
    return Replayed(folder, result.stdout, left(folder))


@pytest.fixture(scope="module")
def cache(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the replay of all experiments has kept, of which that of one needs a part."""
    return copy_data(study / "none", tmp_path_factory.mktemp("cache") / "cache")


def _kept(cache: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in cache.glob("*/*/*.kept")}


@pytest.fixture(scope="module")
def from_cache(tmp_path_factory: pytest.TempPathFactory, cache: Path, started_python: str) -> Replayed:
    """A replay that has its scores and causes from the cache."""
    kept = _kept(cache)
    assert {file.parents[1].name for file in kept} == {"causes", "scores", "texts"}
    found = again(tmp_path_factory.mktemp("first") / "run", cache, started_python)
    assert _kept(cache) == kept  # nothing new was found
    return found


def test_a_replay_from_the_cache_leaves_what_one_without_any_has_left(from_cache: Replayed, study: Path) -> None:
    """The study had no cache, and judged and ran all again; it has other experiments, too."""
    files, of_all = from_cache.files, left(study)
    own = {name for name in files if re.search(r"/e3\b|/e3_", name)}
    assert {name.partition("/e3")[0] for name in own} >= {"out", "out/scores", "out/derived"}
    assert {name: files[name] for name in own} == {name: of_all[name] for name in own}
    causes = [each for each in of_all["out/causes.jsonl"] if each["experiment"] == "e3"]
    assert files["out/causes.jsonl"] == causes != []


@pytest.mark.long
def test_a_replay_leaves_the_same_from_the_cache_and_from_one_that_is_damaged(
    from_cache: Replayed, cache: Path, tmp_path: Path, started_python: str
) -> None:
    """A damaged cache has nothing that can be used, so all is judged and run again, as without any."""
    assert any(name.startswith("out/derived/") for name in from_cache.files)
    assert from_cache.files["out/causes.jsonl"]
    assert from_cache.files["out/scores/e3_filtered_rag.jsonl"]
    damaged = {file: content[: len(content) // 2] for file, content in _kept(cache).items()}
    for file, content in damaged.items():
        file.write_bytes(content)
    assert again(tmp_path / "run", cache, started_python).files == from_cache.files
    # What was worked out anew is kept anew.
    renewed = {file.parents[1].name for file, content in _kept(cache).items() if content != damaged.get(file)}
    assert renewed == {"causes", "scores", "texts"}


def test_terminal_and_readme_show_the_end_of_the_first_command(from_cache: Replayed) -> None:
    lines = [line.replace(str(from_cache.folder / "out"), "output") for line in section(from_cache.said.splitlines())]
    (readme, *_) = re.findall(r"```\n(rag .*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert readme.splitlines() == lines
    assert SHOWN["terminal.png"][1:] == lines, TAKE
    assert HEAD in SHOWN["terminal.png"][0]
