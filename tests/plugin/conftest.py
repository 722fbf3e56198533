"""A suite of three pages and four questions, on the mock profile: core install, no model."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy  # noqa: F401
import openai  # noqa: F401
import pytest
import yaml  # noqa: F401
from filelock import FileLock

from tests.plugin.study import replay
from tests.plugin.warm_python import warm_python

# Imported here, before any test: pytester takes out of sys.modules what a test imports, and C extensions do not bear to
# be imported twice.


# Tests read the sections that a person sees with -v; those of the run in brief take the variable away.
os.environ["RAG_SECTIONS"] = "all"

PAGES = {
    "returns.md": "# Returns\n\nYou can return a lamp within 45 days.\n\n"
    "## Refunds\n\nWe refund within 5 working days.\n",
    "shipping.md": "# Shipping\n\nExpress delivery costs €9.90 in Zone 1.\n",
    "warranty.md": "# Warranty\n\nThe warranty lasts 2 years.\n",
}
QUERIES: list[dict[str, object]] = [
    {
        "query_id": "q_direct_001",
        "query": "return a lamp",
        "context_reference": ["returns.md"],
        "ground_truth": "45 days",
    },
    {"query_id": "q_direct_002", "query": "express delivery costs", "context_reference": ["shipping.md"]},
    {"query_id": "q_direct_003", "query": "how long is the warranty", "context_reference": ["warranty.md"]},
    {"query_id": "q_negative_001", "query_type": "negative", "query": "live fish"},
]
TEST = """
import pytest

@pytest.mark.e3
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
INI = "[pytest]\naddopts = -p no:cacheprovider\nrag_kb_dir = kb\nrag_profile = mock\n"
ADDOPTS = "-p no:hypothesispytest -p no:syrupy"


@pytest.fixture(scope="session")
def started_python() -> Iterator[str]:
    """Share one Python that has started among all runs of suites: starting takes three quarters of a small run."""
    with warm_python() as program:
        yield program


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Replay the shipped study once for all workers; ``said.txt`` has what pytest said, ``out`` the results."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "study"
    with FileLock(f"{folder}.lock"):
        if not (folder / "said.txt").exists():
            folder.mkdir(exist_ok=True)
            result = replay(folder, "-m", "e1 or e2 or e3 or e4")
            assert result.returncode == 0, result.stdout[-2000:]
            (folder / "said.txt").write_text(result.stdout)
    return folder


@pytest.fixture
def study_cache(study: Path, tmp_path: Path) -> Path:
    """A copy of what the replay of the study has kept: judgements, causes, parsed code. A run may write to its own."""
    return copy_data(study / "none", tmp_path / "cache")


@pytest.fixture
def cold_python() -> None:
    """Start Python anew in this test: its start, or the group of its processes, is what is looked at."""


@pytest.fixture(autouse=True)
def quick_start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes that a test with a suite starts come from the Python that has started."""
    if "pytester" in request.fixturenames and "cold_python" not in request.fixturenames:
        monkeypatch.setattr(sys, "executable", request.getfixturevalue("started_python"))


@pytest.fixture(autouse=True)
def few_plugins(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out of the runs of a suite what only our own tests need: hypothesis alone takes a second of each.

    And let them keep byte code: each of several hundred starts would compile the modules of the plugin.
    """
    if "pytester" in request.fixturenames:
        # It takes PYTEST_ADDOPTS out of the environment, so it has to be there first.
        request.getfixturevalue("pytester")
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", ADDOPTS)


class Suite:
    """Somebody else's repository that uses the plugin."""

    def __init__(self, pytester: pytest.Pytester, kept_index: Path) -> None:
        self.pytester = pytester
        self.path = pytester.path
        write_pages(self.path / "kb")
        copy_data(kept_index, self.path / ".rag_cache" / "indexes")
        pytester.makeini(INI)
        pytester.makepyfile(TEST)

    def write_queries(self, queries: list[dict[str, object]]) -> None:
        write_queries(self.path / "kb", queries)

    def set_table(self, name: str, **values: object) -> None:
        """Set ``[tool.rag_harness.NAME]`` of pyproject.toml, in place of what it was."""
        file, head = self.path / "pyproject.toml", f"[tool.rag_harness.{name}]"
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        others = re.sub(rf"(?ms)^{re.escape(head)}\n.*?(?=^\[|\Z)", "", before)
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        file.write_text(f"{others}\n{head}\n{lines}", encoding="utf-8")

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest in a process of its own: threads, log and network guard are not this process's business."""
        return self.pytester.runpytest_subprocess(*args)

    def rows(self, name: str = "e3_filtered_rag") -> list[dict[str, object]]:
        file = self.path / "output" / f"{name}.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def write_pages(folder: Path) -> None:
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    write_queries(folder, QUERIES)


def write_queries(folder: Path, queries: list[dict[str, object]]) -> None:
    lines = "".join(json.dumps(query) + "\n" for query in queries)
    (folder / "queries.jsonl").write_text(lines, encoding="utf-8")


@pytest.fixture(scope="session")
def kept_index(tmp_path_factory: pytest.TempPathFactory, started_python: str) -> Path:
    """The index of the suite's pages, as a run has built it.

    Each suite has a copy of it: building one waits for the disk, longer than all else of a small run takes.
    """
    folder = tmp_path_factory.mktemp("kept_index")
    write_pages(folder / "kb")
    (folder / "tox.ini").write_text(INI, encoding="utf-8")
    (folder / "test_answers.py").write_text(TEST, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        without_settings(patched)
        patched.delenv("PYTEST_XDIST_TESTRUNUID", raising=False)
        patched.setenv("PYTEST_ADDOPTS", ADDOPTS)
        ran = subprocess.run([started_python, "-m", "pytest"], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder / ".rag_cache" / "indexes"


def copy_data(folder: Path, copy: Path) -> Path:
    """Copy a folder without the holes in its files: an index of three pages has 64 MB of them."""
    return shutil.copytree(folder, copy, copy_function=_copy_file_data, dirs_exist_ok=True)


def _copy_file_data(source: str, target: str) -> None:
    with Path(source).open("rb") as read, Path(target).open("wb") as written:
        size, end = written.truncate(os.fstat(read.fileno()).st_size), 0
        with suppress(OSError):  # there are no more data
            while end < size:
                start = os.lseek(read.fileno(), end, os.SEEK_DATA)
                end = os.lseek(read.fileno(), start, os.SEEK_HOLE)
                os.pwrite(written.fileno(), os.pread(read.fileno(), end - start, start), start)
    shutil.copystat(source, target)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, kept_index: Path) -> Suite:
    without_settings(monkeypatch)
    return Suite(pytester, kept_index)


def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KB_DIR", "DRY_RUN", "OVERWRITE", "RAG_PROFILE", "RAG_MODE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def shared_suite(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, started_python: str, kept_index: Path
) -> Iterator[Suite]:
    """One suite for all tests of a module, which look at one run of it: make that run in a module's fixture."""
    asked = SimpleNamespace(function=None, node=request.node, config=request.config, addfinalizer=request.addfinalizer)
    with pytest.MonkeyPatch.context() as patched:
        pytester = pytest.Pytester(cast("pytest.FixtureRequest", asked), tmp_path_factory, patched, _ispytest=True)
        patched.setattr(sys, "executable", started_python)
        patched.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patched.setenv("PYTEST_ADDOPTS", ADDOPTS)
        without_settings(patched)
        yield Suite(pytester, kept_index)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch, cold_python: None) -> str:
    """Let runs of a suite find plugins that our own runs must not load: they would take part in every one of them."""
    folder = os.environ.get("RAG_TEST_BESIDE", "")
    if not folder:
        pytest.skip(
            "RAG_TEST_BESIDE names no folder: pip install --no-deps --target FOLDER pytest-asyncio pytest-recording"
        )
    monkeypatch.setenv("PYTHONPATH", folder)
    return folder


def files_below(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if "__pycache__" not in file.parts}
