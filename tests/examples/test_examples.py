"""The examples of frameworks: short, and green where the framework is; ``-m long`` installs each by itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FRAMEWORKS = {"langchain": "langchain_core", "llamaindex": "llama_index", "haystack": "haystack"}
LINES = 30
QUESTIONS = 6


@pytest.mark.parametrize("example", FRAMEWORKS)
def test_what_a_user_writes_is_short(example: str) -> None:
    assert len((EXAMPLES / example / f"test_{example}.py").read_text(encoding="utf-8").splitlines()) < LINES


def test_each_example_stands_in_the_readme() -> None:
    folders = {folder.name for folder in EXAMPLES.iterdir() if (folder / "requirements.txt").is_file()}
    assert folders == set(FRAMEWORKS)
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}/`" in readme for name in folders)


@pytest.mark.parametrize(("example", "package"), FRAMEWORKS.items())
def test_where_the_framework_is_installed(example: str, package: str, tmp_path: Path) -> None:
    found = find_spec(package)
    if found is None or found.origin is None:  # a folder of this name is no package
        pytest.skip(f"{package} is not installed: pip install -r examples/{example}/requirements.txt, or -m long")
    check(Path(sys.executable), copied(example, tmp_path), example)


@pytest.mark.long
@pytest.mark.parametrize("example", FRAMEWORKS)
def test_in_an_environment_of_its_own(example: str, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = EXAMPLES / example / "requirements.txt"
    subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT, "-r", wanted], check=True)
    check(python, copied(example, tmp_path), example)


def copied(example: str, folder: Path) -> Path:
    """Copy an example with the pages that it reads, so that nothing is written into the repository."""
    for name in ("kb", example):
        shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("output", "logs", ".*", "__*"))
    return folder / example


def check(python: Path, folder: Path, example: str) -> None:
    """Run an example, then once more with the network closed: neither models nor telemetry may be asked."""
    said = run(python, folder, "-v")
    assert f"passed      {example}: recall@3 >= 0.8" in said
    assert "rag scorecard" in said
    rows = [json.loads(line) for line in (folder / "output" / f"{example}.jsonl").read_text("utf-8").splitlines()]
    asked = [row for row in rows if row["answerable"]]
    assert len(rows) == QUESTIONS
    assert all(row["citations"] == [1] and not row["invalid_citations"] for row in asked)
    assert all("[Source 1]" in row["llm_answer"] for row in asked)
    chunks = [chunk for row in asked for chunk in row["retrieved_chunks"]]
    assert all(chunk["chunk_id"].endswith(".md") and chunk["text"] for chunk in chunks)
    run(python, folder, "--rag-overwrite", "--rag-mode=replay", "-o", "rag_measures=")


def run(python: Path, folder: Path, *arguments: str) -> str:
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "PYTEST_"))}
    done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said: str = done.stdout
    assert f"{QUESTIONS} passed, 3 gates passed" in said
    return said
