"""A suite of somebody's own whose model is a server of these tests, and what of its run is on disk."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rag_harness.core.errors import DataError
from rag_harness.models.recording.cassette_file import read_interaction
from tests.chaos.processes import LONGEST, started

_TEST = """
import pytest

@pytest.mark.e1
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
_INI = "[pytest]\naddopts = -p no:cacheprovider\nrag_kb_dir = kb\nrag_profile = counting\n"
_PROFILE = """[tool.rag_harness.profiles.counting]
chat_model = "counting"
chat_base_url = "{url}"
chat_api_key_env = ""
embed_model = "mock/hashed-words"
embed_base_url = ""
rerank_model = "mock/word-overlap"
"""
_READS = '''
"""Notes which answers this process has read off its connections: those that it lost without reading are the machine's.
"""
import os, re
from aiohttp.client_proto import ResponseHandler

below, file = ResponseHandler.data_received, os.open("reads.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def data_received(self, data):
    for found in re.findall(rb"about (question \\d+)", data):
        os.write(file, found + b"\\n")
    below(self, data)


ResponseHandler.data_received = data_received
'''


def _is_whole(file: Path) -> bool:
    try:
        read_interaction(file)
    except DataError:
        return False
    return True


class Suite:
    """One folder: ``queries`` questions, asked of the model at ``url``."""

    def __init__(self, folder: Path, url: str, queries: int) -> None:
        self.folder, self.queries = folder, queries
        (folder / "kb").mkdir(parents=True, exist_ok=True)
        (folder / "kb" / "returns.md").write_text("# Returns\n\nLamps go back within 45 days.\n")
        rows = ({"query_id": f"q{n}", "query": f"question {n}"} for n in range(queries))
        (folder / "kb" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "pytest.ini").write_text(_INI)
        (folder / "pyproject.toml").write_text(_PROFILE.format(url=url))
        (folder / "test_e1.py").write_text(_TEST)
        (folder / "reads.py").write_text(_READS)
        self.said = folder / "said.txt"

    @contextmanager
    def running(self, *args: str, environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """Give a run that has just started."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest", "-p", "no:syrupy", *args]
        self.said.write_bytes(b"")
        with started(command, self.folder, self.said, environment) as process:
            yield process

    def run(self, *args: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run to the end; return the exit status and what was said."""
        with self.running(*args, environment=environment) as process:
            status = process.wait(LONGEST)
        return status, self.said.read_text(errors="replace")

    def kept(self, output: str = "output") -> set[str]:
        """Return the questions whose answers are on disk, whole."""
        folder = self.folder / output
        files = [*folder.glob("*.jsonl"), *folder.glob("journal/*.jsonl")]
        lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
        return {str(json.loads(line)["query"]) for line in lines if line.endswith(b"\n") and line.startswith(b"{")}

    def read(self) -> set[str]:
        """Return the questions whose answers a run has read that noted them: ``-p reads``."""
        file = self.folder / "reads.txt"
        return set(file.read_text().splitlines()) if file.exists() else set()

    def recorded(self) -> set[str]:
        """Return the questions whose answers are recorded, or begun to be and whole: the next run finds both."""
        files = [*self.folder.glob("cassettes/**/*.yaml"), *self.folder.glob("cassettes/**/.*.yaml.begun")]
        texts = [each.read_text() for each in files if each.suffix == ".yaml" or _is_whole(each)]
        return {found for text in texts for found in re.findall(r"Question: (question \d+)", text)}

    def rows(self, output: str = "output") -> list[str]:
        """Return the query ids of the result file."""
        file = self.folder / output / "e1_baseline.jsonl"
        return [json.loads(line)["query_id"] for line in file.read_bytes().splitlines()] if file.exists() else []
