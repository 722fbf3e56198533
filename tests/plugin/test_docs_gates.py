"""The pages about gates, CI, panels and citations do what they say: what they show is read and run."""

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
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

import pytest
import yaml
from iniconfig import IniConfig

from rag_harness.__main__ import main
from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings, options
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import limit_of
from rag_harness.evaluation.judges.traits import check_one_judge
from rag_harness.evaluation.measures import known_measures, measure_named
from rag_harness.models.endpoints import panel_of
from rag_harness.records.manifest import panel_label, silent_reason
from rag_harness.runs.gates import Gate, grammar, judge, parse_gate, verdict_lines
from rag_harness.runs.gates.grammar import BASELINE, PromiseKind, Reference, TurnsKind
from tests.plugin.conftest import Suite
from tests.plugin.study import replay
from tests.plugin.test_docs_tutorials import commands
from tests.plugin.test_panels import asked, panel
from tests.unit.pages import found, place, read
from tests.unit.runs.gates.test_gates import of

__all__ = ["panel"]


# The pages about gates do what they say: gates are read, the configuration is run, the reference is complete.

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "data" / "README.md"]
PAGE = read(DOCS / "how-to/gates.md")
FORMS = DOCS / "reference/gates.md"
MEASURES = read(DOCS / "reference/measures.md")
OWN_MEASURE = read(DOCS / "how-to/own-measure.md")
_BLOCK = re.compile(r"```gates\n(.*?)```", re.DOTALL)
_LINE = re.compile(r"^.*\S.*$", re.MULTILINE)
_OPTION = re.compile(r'--rag-gate[ =]"(.+?)"')
_FLAG = re.compile(r"--rag-[a-z-]*[a-z]")
_REMOVED = re.compile(r"^## Removed options$.*", re.MULTILINE | re.DOTALL)
TEST = "def test_finds_what_is_expected(rag_retrieval):\n    assert rag_retrieval.found\n"
ENTRIES = [
    {"query": "return a lamp", "expected_document_id": "returns.md", "justification": "j", "query_type": "plain"},
    {"query": "express costs", "expected_document_id": "shipping.md", "justification": "j", "query_type": "table"},
    {"query": "zone 1 delivery", "expected_document_id": "shipping.md", "justification": "j", "query_type": "table"},
]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def _gates(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each gate of a page."""
    text = read(page)
    for block in _BLOCK.finditer(text):
        for line in _LINE.finditer(block[1]):
            yield place(page, text, block.start(1) + line.start()), line[0]
    yield from found(_OPTION, page)


def _forms() -> list[Gate]:
    return [parse_gate(text, k=10) for _, text in _gates(FORMS)]


def test_the_reference_has_every_part_of_a_gate() -> None:
    """A part that the grammar gets is an attribute of the gate, and the page has to show it with a value."""
    plain = parse_gate("recall@5 >= 0.9", k=5)
    names = {each.name for each in fields(Gate)}
    assert {name for name in names for gate in _forms() if getattr(gate, name) != getattr(plain, name)} == names


def test_the_reference_has_every_form_of_each_part() -> None:
    gates = _forms()
    assert {gate.op for gate in gates} == set(grammar._OPERATORS)
    assert {gate.quantile for gate in gates} - {None} == {*map(int, re.findall(r"\d+", grammar._QUANTILE.pattern)[:3])}
    limits = [value for gate in gates for _, value in gate.slice]
    assert {limit[0] for value in limits if (limit := limit_of(value))} == set(grammar._OPERATORS)
    assert any(not limit_of(value) for value in limits)
    assert any(len(gate.slice) > 1 for gate in gates)
    right = [gate.right for gate in gates]
    others = [each for each in right if isinstance(each, Reference)]
    to = {(each.name == BASELINE, (each.offset > 0) - (each.offset < 0)) for each in others}
    assert to >= {(False, 0), (False, 1), (False, -1), (True, 0), (True, -1)}
    assert any(text.lstrip().startswith("recall@k") for _, text in _gates(FORMS)), "a gate without a name"


def test_the_reference_has_every_function_of_a_measure() -> None:
    gates = _forms()
    over = [gate.over for gate in gates if gate.over and not gate.turns]
    assert {each.kind for each in over} == set(get_args(PromiseKind))
    assert {each.limit[0] for each in over if each.limit} == set(grammar._LIMITS)
    assert {each.kind for each in over if not each.limit} == set(get_args(PromiseKind))
    assert {each.kind for each in over if each.limit} == set(get_args(PromiseKind)) - {"worst_of_"}
    turns = [gate.turns for gate in gates if gate.turns]
    assert {each.kind for each in turns} == set(get_args(TurnsKind))
    assert {bool(each.limit) for each in turns if each.kind == "all"} == {True, False}
    assert {gate.over.kind for gate in gates if gate.over and gate.turns} == set(get_args(PromiseKind))


def test_each_gate_of_a_page_is_read() -> None:
    faults = [f"{where}: {why}" for page in PAGES for where, text in _gates(page) if (why := _misread(text))]
    assert not faults, "\n".join(faults)


def _misread(text: str) -> str:
    try:
        gate = parse_gate(text, k=10)
        name, again = measure_named(gate.measure).name, parse_gate(str(gate), k=10)
    except SettingsError as error:
        return str(error)
    return "" if (name, again) == (gate.measure, gate) else f"{text} is read as {gate}, and that as {again} of {name}"


def test_what_the_reference_says_is_refused_is_refused() -> None:
    refused = blocks(read(FORMS), "gates-refused")[0].splitlines()
    assert len(refused) >= 20
    faults = [text for text in refused if not _is_refused(text)]
    assert not faults, "\n".join(["these are read:", *faults])


def _is_refused(text: str) -> bool:
    try:
        parse_gate(text, k=10)
    except SettingsError:
        return True
    return False


def test_what_to_do_is_shown_as_the_page_says() -> None:
    """18 of 60 questions found nothing; 55 of 60 answers cite a chunk."""
    section = read(DOCS / "how-to/gate-consequences.md")
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
    (command,) = re.findall(r"^    pytest (test_retrieval.* -v)$", PAGE, re.MULTILINE)
    result = suite.run("--rag-profile=mock", *shlex.split(command))
    assert result.ret == 0
    (shown,) = re.findall(r"\n\n((?:    passed.+\n(?:     +\S.+\n)?)+)", PAGE)
    assert dedent(shown) in result.stdout.str()
    wanted = [parse_gate(each, k=3) for each in IniConfig("", config)["pytest"]["rag_gate"].split("\n")]
    assert [line for line in dedent(shown).splitlines() if line.startswith("passed")] == [
        line for line in result.stdout.lines if line.startswith("passed") and any(str(gate) in line for gate in wanted)
    ]


def test_save_and_compare_as_the_page_says(suite: Suite) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_retrieval=TEST)
    (suite.path / "golden.json").write_text(json.dumps(ENTRIES))
    section = read(DOCS / "how-to/gate-against-a-baseline.md")
    saves, compares = (shlex.split(line) for line in re.findall(r"^    pytest (.*)", section, re.MULTILINE))
    assert suite.run(*saves, "--rag-k=3").ret == 0
    result = suite.run(*compares, "--rag-k=3")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["passed *golden: ndcg@10 >= baseline - 0.02*"])


def test_scores_in_any_list_stop_early_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(read(DOCS / "how-to/stop-early.md"), "python")
    exec(code, {"query_ids": [f"q{n}" for n in range(200)], "score_of": lambda _: 1.0})
    assert capsys.readouterr().out.startswith("passed settled after ")


def test_every_measure_is_in_the_table_with_its_unit_and_direction() -> None:
    rows = re.findall(r"^\| `([\w@]+)` \| (\w+) \| (\w+) \|", MEASURES, re.MULTILINE)
    shown = {name.removesuffix("@k"): (name.endswith("@k"), unit, better) for name, unit, better in rows}
    assert set(shown) == set(known_measures())
    for name, (takes_cutoff, unit, better) in shown.items():
        measure = measure_named(f"{name}@5" if takes_cutoff else name)
        assert (measure.unit, measure.better) == (unit, better), name


def test_the_measure_on_the_page_measures(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    (code, judged), (toml,) = blocks(OWN_MEASURE, "python"), blocks(OWN_MEASURE, "toml")
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


def test_the_summary_on_the_page_is_what_the_shipped_suite_writes(suite: Suite) -> None:
    (example,) = map(json.loads, blocks(read(DOCS / "reference/verdicts.md"), "json"))
    # tests/plugin/test_shipped.py replays it in a Python that starts anew; here it may come from the warm one.
    result = replay(suite.path, "test_retrieval_golden")
    assert result.returncode == 0, result.stdout[-2000:]
    written = json.loads((suite.path / "out" / "summary.json").read_text())
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


def test_every_option_on_a_page_exists() -> None:
    known = {f"--rag-{each.name.replace('_', '-')}" for each in options()} | {"--rag-kb"}
    named = [(where, flag) for page in PAGES for where, flag in found(_FLAG, page, but=_REMOVED)]
    faults = [f"{where}: {flag}" for where, flag in named if flag not in known]
    assert not faults, "\n".join(faults)


def test_what_the_pages_of_judges_set_is_known() -> None:
    (measures,) = re.findall(r"^    rag_measures = (.+)", read(DOCS / "how-to/judge-answers.md"), re.M)
    assert set(measures.split(", ")) <= set(known_measures())
    (gate,) = re.findall(r"^ {8}(e3: .+)", read(DOCS / "how-to/calibrate-a-judge.md"), re.M)
    assert parse_gate(gate, k=5) != parse_gate(gate.replace("~calibrated", ""), k=5)


# The workflows for continuous integration do what their pages say: they are read, and the one of a service is run.


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
        text = "x" if BROKEN else open(f"kb/{page}").read()
        self.say({"answer": "Yes.", "contexts": [{"text": text, "document": "none" if BROKEN else page}]})
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


# judge-with-a-panel.md does what it says: its command names a panel, its refusals are as the tool has them.

DOCS_PANELS_PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "judge-with-a-panel.md").read_text(encoding="utf-8")


def settings() -> Settings:
    command = next(line for line in DOCS_PANELS_PAGE.splitlines() if line.startswith("    pytest -m e3"))
    said = dict(part.removeprefix("--rag-").split("=") for part in shlex.split(command) if "=" in part)
    return replace(load_settings({}), judge=said["judge"], panel=said["panel"])  # type: ignore[arg-type]


def test_its_command_names_the_panel_that_it_says() -> None:
    members = [(member.judge, member.model) for member in panel_of(settings())]
    assert f"`{panel_label(settings().panel, members)}`" in DOCS_PANELS_PAGE
    rules = set(re.findall(r"^\| `(\w+)` \|", DOCS_PANELS_PAGE, re.MULTILINE))
    assert rules == {"majority", "mean", "median"}


def test_its_calibrations_are_of_each_judge_of_its_command() -> None:
    named = {
        shlex.split(line)[-1]
        for line in DOCS_PANELS_PAGE.splitlines()
        if line.startswith("    rag-harness judge calibrate")
    }
    assert named == {str(member) for member in panel_of(settings())}


def test_its_reason_is_that_of_a_silent_judge() -> None:
    assert silent_reason({"x": ""}, 3).partition("silent: ")[0] + "silent: …" in DOCS_PANELS_PAGE


def test_what_takes_one_judge_refuses_a_panel() -> None:
    with pytest.raises(SettingsError, match="one judge at a time"):
        check_one_judge(settings(), "rag-harness judge score")


def test_another_rule_asks_nobody(panel: Suite) -> None:
    for rule in ("mean", "majority", "median"):
        options = ["--rag-measures=faithfulness", "--rag-judge=kind@plain,strict@plain", f"--rag-panel={rule}"]
        panel.run(*options).assert_outcomes(passed=4)
        assert asked(panel) == {"kind plain": 4, "strict plain": 4}


# The pages about citations do what they say: command and configuration are run, each measure is in the reference.

DOCS_CITATIONS_DOCS = Path(__file__).parents[2] / "docs"
DOCS_CITATIONS_PAGE = (DOCS_CITATIONS_DOCS / "how-to" / "citations.md").read_text(encoding="utf-8")
REFERENCE = (DOCS_CITATIONS_DOCS / "reference" / "citations.md").read_text(encoding="utf-8")
PIPELINE = """
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

TEXTS = ["You can return a lamp within 45 days.", "Express delivery costs 9 euros."]

class Citing:
    def answer(self, query):
        hits = tuple(Hit(Chunk(f"{n}.md#1", f"{n}.md", text, 0, len(text)), 1.0, n) for n, text in enumerate(TEXTS, 1))
        wrong = 1 if "express" in query.text else 2
        said = f"{TEXTS[0]} [Source 1] {TEXTS[1]} [Source {wrong}] All of it is easy."
        return PipelineOutput(Answer(said, citations=(1, wrong)), retrieved=hits, context=hits)

@pytest.fixture(scope="session")
def rag_pipeline():
    return Citing()
"""
DOCS_CITATIONS_TEST = """
import pytest

@pytest.mark.rag_experiment("cites")
def test_cites(rag_result):
    assert rag_result.ok

@pytest.mark.rag_experiment("also")
def test_also(rag_result):
    assert rag_result.ok
"""


def docs_citations_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCS_CITATIONS_PAGE, re.DOTALL)


def test_the_command_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (answer,) = docs_citations_blocks("json")
    (tmp_path / "answers.jsonl").write_text(answer)
    (command,) = re.findall(r"^    rag-harness (.*)", DOCS_CITATIONS_PAGE, re.MULTILINE)
    assert main(command.split()) == 0
    (shown,) = re.findall(r"\nprints\n\n((?:    .+\n)+)", DOCS_CITATIONS_PAGE)
    assert capsys.readouterr().out == dedent(shown)
    said = json.loads((tmp_path / "scores.jsonl").read_text())
    third = said["details"]["misattributed"]["claims"][2]
    assert [(each["source"], each["cited"]) for each in third["sources"]] == [(3, True), (2, False)]
    for key in ("source", "value", "support", "quote"):
        assert f"`{key}`" in DOCS_CITATIONS_PAGE
        assert key in third["sources"][1]


def test_its_measures_are_gated_sliced_and_shown(suite: Suite) -> None:
    (config,) = docs_citations_blocks("ini")
    suite.pytester.makeini(config + "addopts = -p no:cacheprovider\nrag_kb_dir = kb\nrag_profile = mock\n")
    suite.pytester.makeconftest(PIPELINE)
    suite.pytester.makepyfile(DOCS_CITATIONS_TEST)
    result = suite.run("-v")
    assert result.ret == 0
    gates = IniConfig("", config)["pytest"]["rag_gate"].strip().split("\n")
    for gate, value in zip(gates, ("0.875", "0.583", "0.125", "0.000"), strict=True):
        text = gate.partition(" else ")[0].replace("[", "[[]")
        result.stdout.fnmatch_lines([f"passed *{text}*{value}*"])
    result.stdout.fnmatch_lines(["others *citation_coverage *citation_support *misattributed ↓", "cites - also *"])
    result.stdout.fnmatch_lines(["citation_support *cases *best", "query_type=direct *0.833*"])
    summary = json.loads((suite.path / "output" / "summary.json").read_text())
    assert summary["cites"]["misattributed"] == pytest.approx(0.125)


def test_every_measure_of_citations_by_claim_is_in_the_reference() -> None:
    named = [name for name in known_measures() if name.startswith(("citation_support", "citation_coverage"))]
    assert len(named) == 6
    assert all(f"`{name}`" in REFERENCE for name in [*named, "misattributed"])
