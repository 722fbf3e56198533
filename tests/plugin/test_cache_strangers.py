"""A thing in the cache that is not a file is passed over: a pipe would wait for ever, a device has no end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_harness.core.cache import SUFFIX, read_kept, write_kept
from tests.plugin.conftest import Suite

STRANGERS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": lambda file: file.mkdir(),
    "device": lambda file: file.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_run_passes_over_what_is_no_file_in_the_cache(suite: Suite, stranger: str) -> None:
    suite.run("--rag-mode=live").assert_outcomes(passed=4)
    cache = suite.path / ".rag_cache"
    files = [each for each in cache.rglob("*") if each.is_file() and each.suffix != ".lock"]
    assert {each.relative_to(cache).parts[0] for each in files} >= {"chunks", "indexes", "languages", "vectors"}
    for file in files:
        file.unlink()
        STRANGERS[stranger](file)
    result = suite.pytester.runpytest_subprocess("--rag-mode=live", "--rag-overwrite", timeout=60)
    result.assert_outcomes(passed=4)
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("stranger", STRANGERS)
def test_kept_content_that_is_no_file_is_as_good_as_none(tmp_path: Path, stranger: str) -> None:
    file = tmp_path / f"a{SUFFIX}"
    STRANGERS[stranger](file)
    assert read_kept(file) is None
    write_kept(file, {"a": 1})
    assert read_kept(file) == (None if stranger == "folder" else {"a": 1})
