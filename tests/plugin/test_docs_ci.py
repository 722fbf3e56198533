"""The workflows for continuous integration do what their pages say: they are read, and the one of a service is run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plugin.conftest import Suite
from tests.plugin.test_docs_tutorials import commands

ROOT = Path(__file__).parents[2]


def _job(page: str, port: str = "8000", wait: str = "0.5") -> Any:
    """Return the only job of the only workflow of a page, which looks so often whether the service is there."""
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    (workflow,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (job,) = yaml.safe_load(workflow.replace("8000", port).replace("sleep 0.5", f"sleep {wait}"))["jobs"].values()
    return job


def test_workflows_are_yaml_that_runs_pytest() -> None:
    for page in ("ci-recordings.md", "ci-real-models.md"):
        job = _job(page)
        (command,) = [step["run"] for step in job["steps"] if step.get("run", "").startswith("pytest ")]
        assert shlex.split(command)[0] == "pytest"
        assert "\n" not in command.strip()
        assert [step["if"] for step in job["steps"] if "upload-artifact" in step.get("uses", "")] == ["always()"]


MY_SERVICE = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.say({"ready": True})
    def do_POST(self):
        query = json.loads(self.rfile.read(int(self.headers["content-length"])))["query"]
        page = "returns.md" if "lamp" in query else "shipping.md" if "express" in query else "warranty.md"
        self.say({"answer": "Yes.", "contexts": [{"text": "x", "document": "none" if BROKEN else page}]})
    def say(self, what):
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

BROKEN = os.path.exists("broken")
open("pid", "w").write(str(os.getpid()))
ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""
GH = """#!/bin/sh
echo "$@" > gh.txt
cat comment.md >> gh.txt
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl, which the workflow calls")
def test_the_workflow_of_a_service_runs_as_it_is_written(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    job = _job("ci-service.md", port, wait="0.05")
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makeini("[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_gate = my_service: recall@5 >= 0.8\n")
    (suite.path / "my_service.py").write_text(MY_SERVICE.replace("8000", port))
    read = '[read]\nanswer = "answer"\ncontexts = "contexts"\n'
    (suite.path / "my_service.toml").write_text(f'url = "http://127.0.0.1:{port}/query"\n{read}')
    tools = suite.path / "bin"
    tools.mkdir()
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o700)
    path = commands(suite.path / "environment", sys.executable)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{path}")
    assert _run_steps(suite.path, job) == {"install": 0, "start": 0, "ask": 0, "report": 0, "say": 0}
    said = (suite.path / "gh.txt").read_text()
    assert said.startswith("pr comment 17 --body-file comment.md")
    assert "## ✅ PASS: 1 of 1 gate passed, 0 failed" in said
    (suite.path / "broken").touch()
    assert _run_steps(suite.path, job) == {"install": 0, "start": 0, "ask": 1, "report": 0, "say": 0}
    assert "## ❌ FAIL: 1 of 1 gate failed" in (suite.path / "gh.txt").read_text()
    assert "](https://example.com/7#trials?open=my_service-" in (suite.path / "gh.txt").read_text()


def _run_steps(folder: Path, job: Any) -> dict[str, int]:
    """Run the steps in their order, each in a shell of its own; what needs the package index is left out."""
    came: dict[str, int] = {}
    try:
        for step in job["steps"]:
            if "run" not in step:
                continue
            name = step.get("name", "Install").split()[0].lower()
            given = (
                {"PULL_REQUEST": "17", "GH_TOKEN": "none", "REPORT": "https://example.com/7"} if "env" in step else {}
            )
            assert set(given) == set(step.get("env", {}))
            command = "true" if step["run"].startswith("python -m pip install ") else step["run"]
            if any(came.values()) and step.get("if") != "always()":
                continue
            shell = ["bash", "-e", "-c", command]
            env = {**os.environ, **given}
            came[name] = subprocess.run(shell, cwd=folder, env=env, timeout=90, check=False).returncode
    finally:
        if (folder / "pid").exists():
            os.kill(int((folder / "pid").read_text()), signal.SIGTERM)
            (folder / "pid").unlink()
    return came
