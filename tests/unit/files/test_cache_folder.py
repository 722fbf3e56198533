"""The cache: what is in it, when it was used last, and what goes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from filelock import FileLock

from rag_harness.__main__ import main
from rag_harness.core.cache import CacheEntry, entries_of, note_use, stale

NOW = 1_000_000.0
DAY = 86_400.0


def entry(cache: Path, kind: str, name: str, days: float, size: int = 4096) -> Path:
    folder = cache / kind / name
    folder.mkdir(parents=True)
    (folder / "one.safetensors").write_bytes(b"x" * size)
    when = time.time() - days * DAY
    os.utime(folder / "one.safetensors", (when, when))
    os.utime(folder, (when, when))
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    entry(tmp_path, "vectors", "mini", 2)
    entry(tmp_path, "tokens", "mini", 40, 100_000)
    entry(tmp_path, "indexes", "shard", 90)
    (tmp_path / "package.json").write_text("{}")
    return tmp_path


def test_entries_come_with_the_least_used_first(cache: Path) -> None:
    found = entries_of(cache)
    assert [(each.kind, each.path.name) for each in found] == [
        ("indexes", "shard"),
        ("tokens", "mini"),
        ("vectors", "mini"),
    ]
    assert found[1].bytes >= 100_000


def test_what_is_opened_was_used_now(cache: Path) -> None:
    note_use(cache / "indexes" / "shard")
    assert entries_of(cache)[-1].kind == "indexes"
    note_use(cache / "nothing")  # a cache that is not there, or may not be written, is no error


def made(kind: str, days: float, size: int) -> CacheEntry:
    return CacheEntry(kind, Path(kind), size, NOW - days * DAY)


def test_old_entries_go_and_then_the_least_used_until_enough_is_left() -> None:
    entries = [made("a", 50, 10), made("b", 20, 30), made("c", 5, 40), made("d", 0.01, 100)]
    assert [each.kind for each in stale(entries, NOW, 30 * DAY, float("inf"))] == ["a"]
    assert [each.kind for each in stale(entries, NOW, 30 * DAY, 150)] == ["a", "b"]
    # What may be in use stays, however small the cache is to be.
    assert [each.kind for each in stale(entries, NOW, 30 * DAY, 0)] == ["a", "b", "c"]


def test_the_command_removes_what_is_old_and_nothing_else(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cache / "mine").mkdir()
    assert main(["cache", "prune", str(cache), "--dry-run"]) == 0
    assert (cache / "tokens" / "mini").exists()
    assert "would go: tokens" in capsys.readouterr().out
    assert main(["cache", "prune", str(cache)]) == 0
    assert sorted(each.name for each in cache.iterdir()) == [
        *("building.lock", "indexes", "mine", "package.json", "tokens", "vectors")
    ]
    assert [each.kind for each in entries_of(cache)] == ["vectors"]
    assert list((cache / "tokens").iterdir()) == []
    assert "2 of 3 entries are removed" in capsys.readouterr().out


def test_the_status_says_size_and_use(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "status", str(cache)]) == 0
    said = capsys.readouterr().out
    assert "tokens: vectors of words, for the reranker and the judge, " in said
    assert said.splitlines()[0].startswith("indexes")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--older", "soon"], "expected a duration"),
        (["--most", "2"], "expected a size"),
    ],
)
def test_what_cannot_be_read_removes_nothing(
    cache: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", "prune", str(cache), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert len(entries_of(cache)) == 3


def test_a_folder_that_is_no_cache_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photos" / "summer").mkdir(parents=True)
    assert main(["cache", "prune", str(tmp_path)]) == 2
    assert "is no cache of ours" in capsys.readouterr().err
    assert main(["cache", "status", str(tmp_path / "gone")]) == 2
    assert (tmp_path / "photos" / "summer").exists()


def test_a_link_out_of_the_cache_is_never_followed(cache: Path, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (cache / "vectors" / "link").symlink_to(outside, target_is_directory=True)
    assert [each.path.name for each in entries_of(cache) if each.kind == "vectors"] == ["mini"]


def test_nothing_goes_while_a_run_builds(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FileLock(cache / "building.lock"):
        assert main(["cache", "prune", str(cache)]) == 2
    assert "A run is building" in capsys.readouterr().err
    assert len(entries_of(cache)) == 3
