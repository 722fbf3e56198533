"""import-export.md and the pages for those who come from other tools do what they say: their files are imported,
their commands run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import venv
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from rag_harness.__main__ import main, parser_of
from rag_harness.authoring.importing.importer import SOURCES
from rag_harness.core.settings import options
from rag_harness.page.exports.targets import TARGETS
from tests.plugin.conftest import Suite
from tests.unit.page.exports.conftest import GATES, write_summary
from tests.unit.tables.trial_run import write_output

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "import-export.md").read_text(encoding="utf-8")
IMPORTING = (DOCS / "reference" / "importing.md").read_text(encoding="utf-8")
TABLES = (DOCS / "how-to" / "questions-in-tables.md").read_text(encoding="utf-8")
EXPORTS = (DOCS / "how-to" / "export-scores.md").read_text(encoding="utf-8")
SERVICE = """
from rag_harness import Answer, Chunk, Hit, PipelineOutput

class my_service:
    async def ask(question):
        page, text = ("returns.md", "Within 45 days.") if "return" in question else ("shipping.md", "It costs €9.90.")
        hit = Hit(Chunk(f"{page}#chunk_0", page, text), score=1.0, rank=1)
        return PipelineOutput(Answer(text), retrieved=(hit,), context=(hit,))

"""
PROFILE = "addopts = -p no:cacheprovider\nrag_profile = mock\n"
GOLDENS = """
import json
FIELDS = "input", "expected_output", "context", "source_file"

class Golden(dict):
    def __init__(self, **fields):
        assert set(fields) <= set(FIELDS)
        super().__init__({"actual_output": None, "source_file": None} | fields)

class EvaluationDataset:
    def __init__(self, goldens):
        self.goldens = goldens

    def save_as(self, file_type, directory, file_name):
        with open(f"{directory}/{file_name}.{file_type}", "w") as file:
            json.dump(self.goldens, file)

    @classmethod
    def from_list(cls, samples):
        return cls(samples)

    def to_jsonl(self, file):
        with open(file, "w") as written:
            written.writelines(json.dumps(each) + chr(10) for each in self.goldens)
"""
"""Stands for the packages of both tools, which write files with these fields."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def commands(page: str, begin: str) -> list[list[str]]:
    found = re.findall(rf"^    ({re.escape(begin)} .*)", page, re.MULTILINE)
    return [shlex.split(re.split(r" {3,}", each)[0]) for each in found]


def test_the_import_prints_and_writes_what_the_page_says(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(suite.path)
    (config,) = blocks(PAGE, "yaml")
    Path("promptfooconfig.yaml").write_text(config, encoding="utf-8")
    command, mapped = commands(PAGE, "rag-harness queries import")
    assert callable(parser_of(mapped[1:]).parse_args(mapped[1:]).run)
    assert main(command[1:]) == 1
    (shown,) = re.findall(r"`rag-harness queries import .*` prints\n\n((?:    .+\n)+)", PAGE)
    assert capsys.readouterr().out == dedent(shown)
    (written,) = blocks(PAGE, "json")
    assert Path("queries.jsonl").read_text(encoding="utf-8") == written


def test_a_table_is_asked_as_the_page_says(suite: Suite) -> None:
    (table,) = blocks(TABLES, "csv")
    (suite.path / "questions.csv").write_text(table, encoding="utf-8")
    (command,) = commands(TABLES, "pytest")
    assert command[0] == "pytest"
    result = suite.run(*command[1:], "--rag-gate", "e3: recall@5 >= 0")
    result.assert_outcomes(passed=2)
    assert [row["query_id"] for row in suite.rows()] == ["a1", "a2"]


@pytest.mark.parametrize("target", ["csv", "parquet"])
def test_files_are_exported_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_summary(write_output(tmp_path / "output"), GATES)
    (command,) = [each for each in commands(EXPORTS, "rag-harness results export") if each[5] == target]
    assert main(command[1:]) == 0
    assert command[7] in capsys.readouterr().out


def test_every_tool_and_option_is_on_the_page() -> None:
    assert {each[5] for each in commands(EXPORTS, "rag-harness results export")} >= set(TARGETS)
    assert all(f"`{name}`" in IMPORTING for name in SOURCES)
    assert all(f"`{name}`" in EXPORTS for name in TARGETS)
    assert "map" in {each.name for each in options()}


def run_page(suite: Suite, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import the file that the page's own code has written, and run its test with its gates."""
    monkeypatch.chdir(suite.path)
    (command,) = commands(page, "rag-harness queries import")
    assert main([*command[1:], "--force"]) == 0
    (config,) = blocks(page, "ini")
    suite.pytester.makeini(config + PROFILE)
    suite.pytester.makepyfile(SERVICE + blocks(page, "python")[-1])
    result = suite.run()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["passed *mine: recall@5 >= 0.9*"])
    lines = [json.loads(line) for line in (suite.path / "kb" / "queries.jsonl").read_text().splitlines()]
    assert [line["context_reference"] for line in lines] == [["returns.md"], ["shipping.md"]]


def test_from_promptfoo(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "how-to" / "from-promptfoo.md").read_text(encoding="utf-8")
    (config,) = blocks(page, "yaml")
    assert yaml.safe_load(config)["tests"]
    (suite.path / "promptfooconfig.yaml").write_text(config, encoding="utf-8")
    run_page(suite, page, monkeypatch)


@pytest.mark.parametrize("tool", ["ragas", "deepeval"])
def test_from_tools_in_python(suite: Suite, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    page = (DOCS / "how-to" / f"from-{tool}.md").read_text(encoding="utf-8")
    monkeypatch.chdir(suite.path)
    theirs = re.sub(r"^from .*$", "", blocks(page, "python")[0], flags=re.MULTILINE)
    exec(compile(GOLDENS + theirs, f"from-{tool}.md", "exec"), {})
    run_page(suite, page, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("tool", ["ragas", "deepeval"])
def test_from_the_installed_package(suite: Suite, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    page = (DOCS / "how-to" / f"from-{tool}.md").read_text(encoding="utf-8")
    folder = suite.path / "venv"
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    # ragas 0.4.3 imports what langchain-community 0.4 has no more.
    wanted = [tool, *(["langchain-community<0.4"] if tool == "ragas" else [])]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    off = {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "RAGAS_DO_NOT_TRACK": "true"}
    subprocess.run([python, "-c", blocks(page, "python")[0]], check=True, cwd=suite.path, env=os.environ | off)
    run_page(suite, page, monkeypatch)
