"""The page about gates does what it says: its gates are read, its configuration is run, its tables are complete."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from iniconfig import IniConfig

from rag_harness.gates import judge, parse_gate, verdict_lines
from rag_harness.measures import known_measures, measure_named
from rag_harness.settings import options
from tests.plugin.conftest import Suite
from tests.plugin.study import replay
from tests.unit.test_gates import of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/gates.md").read_text(encoding="utf-8")
MEASURES = (ROOT / "docs/reference/measures.md").read_text(encoding="utf-8")
OTHER_PAGES = (
    "docs/how-to/conversations.md",
    "docs/how-to/beir.md",
    "docs/how-to/golden.md",
    "docs/how-to/mtrag.md",
    "docs/how-to/run-affected.md",
    "docs/reference/golden.md",
    "docs/reference/queries.md",
    "docs/explanation/judging.md",
    "docs/reference/measures.md",
    "docs/how-to/metamorphic.md",
    "docs/how-to/pairwise.md",
    "docs/explanation/trust.md",
    "docs/how-to/simulated.md",
    "docs/explanation/verdicts.md",
    "CONTRIBUTING.md",
    "data/README.md",
)
_FLAG = re.compile(r"--rag-[a-z-]*[a-z]")
TEST = "def test_finds_what_is_expected(rag_retrieval):\n    assert rag_retrieval.found\n"
ENTRIES = [
    {"query": "return a lamp", "expected_document_id": "returns.md", "justification": "j", "query_type": "plain"},
    {"query": "express costs", "expected_document_id": "shipping.md", "justification": "j", "query_type": "table"},
    {"query": "zone 1 delivery", "expected_document_id": "shipping.md", "justification": "j", "query_type": "table"},
]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def _gates() -> list[str]:
    alone = [line for block in blocks(PAGE, "gates") for line in block.splitlines() if line.strip()]
    from_ini = [line for text in blocks(PAGE, "ini") for line in IniConfig("", text)["pytest"]["rag_gate"].split("\n")]
    return [*alone, *from_ini, *re.findall(r'--rag-gate[ =]"(.+?)"', PAGE)]


def test_the_page_has_gates_of_every_form() -> None:
    gates = [parse_gate(text, k=10) for text in _gates()]
    assert len(gates) >= 20
    assert {gate.op for gate in gates} == {">=", "<=", ">", "<"}
    assert any(len(gate.slice) > 1 for gate in gates)
    assert any(gate.quantile for gate in gates)
    assert any(gate.otherwise and gate.confidence for gate in gates)


@pytest.mark.parametrize("text", dict.fromkeys(_gates()))
def test_gate(text: str) -> None:
    gate = parse_gate(text, k=10)
    assert measure_named(gate.measure).name == gate.measure
    assert parse_gate(str(gate), k=10) == gate


def test_what_to_do_is_shown_as_the_page_says() -> None:
    """18 of 60 questions found nothing; 55 of 60 answers cite a chunk."""
    (section,) = re.findall(r"## What to do when it fails\n(.*?)\n## ", PAGE, re.DOTALL)
    found, cited = (parse_gate(line, k=10) for line in blocks(section, "gates")[0].splitlines())
    verdicts = [judge(found, {"t1": of(*[1] * 18, *[0] * 42)}), judge(cited, {"t1": of(*[1] * 55, *[0] * 5)})]
    (shown,) = re.findall(r"\n\n((?:    .+\n)+)", section)
    assert dedent(shown).splitlines() == "\n".join(verdict_lines(verdicts)).splitlines()


def test_configuration(suite: Suite) -> None:
    """Every gate of the ini example is judged, and holds."""
    (config,) = blocks(PAGE, "ini")
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makeini(config)
    suite.pytester.makepyfile(test_retrieval=TEST)
    (suite.path / "golden.json").write_text(json.dumps(ENTRIES))
    result = suite.run("--rag-profile=mock")
    assert result.ret == 0
    wanted = [parse_gate(each, k=3) for each in IniConfig("", config)["pytest"]["rag_gate"].split("\n")]
    result.stdout.fnmatch_lines([f"passed *{str(gate).replace('[', '[[]')} *" for gate in wanted])


def test_save_and_compare_as_the_page_says(suite: Suite) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_retrieval=TEST)
    (suite.path / "golden.json").write_text(json.dumps(ENTRIES))
    (section,) = re.findall(r"## Baselines\n(.*?)\n## ", PAGE, re.DOTALL)
    saves, compares = (shlex.split(line) for line in re.findall(r"^    pytest (.*)", section, re.MULTILINE))
    assert suite.run(*saves, "--rag-k=3").ret == 0
    result = suite.run(*compares, "--rag-k=3")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["passed *golden: ndcg@10 >= baseline - 0.02 *"])


def test_every_measure_is_in_the_table_with_its_unit_and_direction() -> None:
    rows = re.findall(r"^\| `([\w@]+)` \| (\w+) \| (\w+) \|", MEASURES, re.MULTILINE)
    shown = {name.removesuffix("@k"): (name.endswith("@k"), unit, better) for name, unit, better in rows}
    assert set(shown) == set(known_measures())
    for name, (takes_cutoff, unit, better) in shown.items():
        measure = measure_named(f"{name}@5" if takes_cutoff else name)
        assert (measure.unit, measure.better) == (unit, better), name


def test_the_measure_on_the_page_measures(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    (code, judged), (toml,) = blocks(MEASURES, "python"), blocks(MEASURES, "toml")
    site = suite.path / "site"
    (site / "mine-1.0.dist-info").mkdir(parents=True)
    (site / "mine-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    points = toml.replace('[project.entry-points."rag_harness.measures"]', "[rag_harness.measures]").replace('"', "")
    points += "groundedness = my_package.groundedness:Groundedness\n"
    (site / "mine-1.0.dist-info" / "entry_points.txt").write_text(points)
    (site / "my_package").mkdir()
    (site / "my_package" / "brevity.py").write_text(code)
    (site / "my_package" / "groundedness.py").write_text(judged)
    monkeypatch.setenv("PYTHONPATH", str(site))
    result = suite.run("--rag-gate=e3: brevity <= 60", "--rag-gate=e3: groundedness >= 0")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["passed *e3: brevity <= 60 *n=3", "passed *e3: groundedness >= 0 *"])


def test_workflows_are_yaml_that_runs_pytest() -> None:
    workflows = [yaml.safe_load(block) for block in blocks(PAGE, "yaml")]
    assert len(workflows) == 4
    for workflow in workflows[1:3]:
        (job,) = workflow["jobs"].values()
        (command,) = [step["run"] for step in job["steps"] if step.get("run", "").startswith("pytest ")]
        assert shlex.split(command)[0] == "pytest"
        assert "\n" not in command.strip()
        assert [step["if"] for step in job["steps"] if "upload-artifact" in step.get("uses", "")] == ["always()"]


def test_the_action_gets_inputs_that_it_has() -> None:
    (job,) = yaml.safe_load(blocks(PAGE, "yaml")[3])["jobs"].values()
    (ours,) = [step for step in job["steps"] if step["uses"].startswith("OWNER/rag_harness@")]
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert ours["with"].keys() <= inputs.keys()
    asked = shlex.split(ours["with"]["args"])
    parse_gate(asked[asked.index("--rag-gate") + 1], 5)


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


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl, which the workflow calls")
def test_the_workflow_of_a_service_runs_as_it_is_written(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    (job,) = yaml.safe_load(blocks(PAGE, "yaml")[0].replace("8000", port))["jobs"].values()
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
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}")
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


def test_the_summary_on_the_page_is_what_the_shipped_suite_writes(tmp_path: Path) -> None:
    (example,) = map(json.loads, blocks(PAGE, "json"))
    result = replay(tmp_path, "test_retrieval_golden")
    assert result.returncode == 0, result.stdout[-2000:]
    written = json.loads((tmp_path / "out" / "summary.json").read_text())
    written["gates"] = [gate for gate in written["gates"] if gate["gate"].startswith("golden")]
    assert set(example["gates"][0]) == set(written["gates"][0])
    assert _shortened(written, example) == example


def _shortened(written: Any, example: Any) -> Any:
    """Return of what was written the keys and items that the example has, numbers to four digits."""
    if isinstance(example, dict):
        return {key: _shortened(written[key], value) for key, value in example.items()}
    if isinstance(example, list):
        return [_shortened(had, value) for had, value in zip(written, example, strict=False)]
    return round(written, 4) if isinstance(written, float) else written


@pytest.mark.parametrize("page", ["docs/how-to/gates.md", *OTHER_PAGES])
def test_every_option_on_the_page_exists(page: str) -> None:
    known = {f"--rag-{each.name.replace('_', '-')}" for each in options()} | {"--rag-kb"}
    assert set(_FLAG.findall((ROOT / page).read_text(encoding="utf-8"))) <= known


@pytest.mark.parametrize("page", ["docs/how-to/gates.md", *OTHER_PAGES])
def test_links_lead_somewhere(page: str) -> None:
    file = ROOT / page
    for target in re.findall(r"\]\((?!http)([^)#]+)", file.read_text(encoding="utf-8")):
        assert (file.parent / target).exists(), target
