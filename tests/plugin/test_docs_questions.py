"""The pages about questions, golden sets, import, export and tuning do what they say: their examples are run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from rag_harness.__main__ import main, parser_of
from rag_harness.authoring.importing.importer import SOURCES
from rag_harness.core.settings import options
from rag_harness.core.settings.configurations import known_parameters, read_configuration
from rag_harness.core.settings.endpoints import read_endpoint
from rag_harness.data.golden import read_golden
from rag_harness.data.queries import KNOWN_TYPES, QueryLine, lines_of, read_queries
from rag_harness.diagnosis.tuning.outcome import read_outcome
from rag_harness.diagnosis.tuning.space import _KEYS, read_space
from rag_harness.page.exports.targets import TARGETS
from rag_harness.records.cases import scenario_of
from rag_harness.runs.golden_suite import RETRIEVERS
from tests.plugin.conftest import Suite
from tests.plugin.test_docs_gates import ROOT
from tests.plugin.test_docs_gates import blocks as docs_gates_blocks
from tests.unit.page.exports.conftest import GATES, write_summary
from tests.unit.tables.trial_run import write_output

# The pages about questions, knowledge bases and documents: their commands are known, their fields are those that are
# read, and their chunker cuts.

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    *("generate", "review-questions", "check-questions", "draft-conversations", "init", "golden"),
    *("generate-kb", "generate-kb-with-a-model", "validate-kb", "import-export", "export-scores", "your-documents"),
    *("ingest", "ingest-large", "unreadable-files"),
)
FIELDS = (DOCS / "reference" / "queries.md").read_text(encoding="utf-8")


def first_cells(heading: str) -> list[str]:
    section = FIELDS.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [
        name for cell in re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE) for name in re.findall("`(.+?)`", cell)
    ]


@pytest.mark.parametrize("name", PAGES)
def test_commands_are_known(name: str) -> None:
    page = (DOCS / "how-to" / f"{name}.md").read_text(encoding="utf-8")
    found = re.findall(r"^    rag-harness (.+?)(?:   .*|  # .*| && .*)?$", page, re.MULTILINE)
    assert found
    for words in map(shlex.split, found):
        assert callable(parser_of(words).parse_args(words).run)


def test_every_field_of_a_line_is_on_the_page() -> None:
    fields = [*first_cells("A question"), *first_cells("A turn of a conversation"), "scenario"]
    assert sorted(fields) == sorted(QueryLine.model_fields)
    scenario, problems = scenario_of(dict.fromkeys(first_cells("A scenario")))
    assert scenario is None
    assert not [each for each in problems if "key" in each]
    assert all(f"`{each}`" in FIELDS for each in KNOWN_TYPES)


def test_lines_on_the_page_are_read(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```json\n(.*?)```", FIELDS, re.DOTALL)
    (tmp_path / "queries.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "returns.md").write_text("# Returns\n\nLamps can be returned within 45 days.\n", encoding="utf-8")
    assert len(read_queries(tmp_path / "queries.jsonl", tmp_path, ())) == 2
    assert lines_of(json.dumps({"query_id": "q", "query": "How?", "question": 1}))[1] == [
        "question: no field of a question. Did you mean 'query'?"
    ]


def test_a_chunker_of_ones_own(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "how-to" / "own-chunker.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ((name, place),) = re.findall(r'^(\w+) = "(my_package\.\w+:\w+)"$', page, re.MULTILINE)
    package, about = suite.path / "site" / "my_package", suite.path / "site" / "my_package-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "paragraphs.py").write_text(code, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[rag_harness.chunkers]\n{name} = {place}\n")
    monkeypatch.setenv("PYTHONPATH", str(suite.path / "site"), prepend=os.pathsep)
    (command,) = re.findall(r"^    pytest (.*)$", page, re.MULTILINE)
    suite.run(*shlex.split(command)).assert_outcomes(passed=4)
    rows: list[Any] = suite.rows()
    texts = [chunk["text"] for row in rows for chunk in row["retrieved_chunks"]]
    assert texts
    assert not [text for text in texts if "\n\n" in text]


# The pages about golden sets and the shipped data are right: examples are read and run, numbers are counted again.

PAGE = (ROOT / "docs/how-to/golden.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs/reference/golden.md").read_text(encoding="utf-8")
DATA = (ROOT / "data/README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("language", "entries"), [("json", 3), ("csv", 3)])
def test_golden_example_is_read_and_found(suite: Suite, language: str, entries: int) -> None:
    (example,) = docs_gates_blocks(PAGE, language)
    (code,) = docs_gates_blocks(PAGE, "python")
    assert len(example.splitlines()) <= 5
    file = suite.path / f"golden.{language}"
    file.write_text(example, encoding="utf-8")
    assert len(read_golden(file)) == entries
    for other in suite.path.glob("test_*.py"):
        other.unlink()
    suite.pytester.makepyfile(test_retrieval=code)
    result = suite.run(f"--rag-golden={file.name}", "--rag-kb=kb", "--rag-k=3")
    result.assert_outcomes(passed=entries)


def test_every_retriever_is_in_the_table() -> None:
    section = REFERENCE.partition("## Retrievers")[2].partition("\n## ")[0]
    assert set(RETRIEVERS) <= set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE))


def _shipped(name: str) -> list[dict[str, Any]]:
    text = (ROOT / name).read_text(encoding="utf-8")
    found: list[dict[str, Any]] = (
        json.loads(text) if name.endswith("json") else list(map(json.loads, text.split("\n")[:-1]))
    )
    return found


def _plan() -> dict[str, Any]:
    plan: dict[str, Any] = json.loads((ROOT / "data/kb/structure.json").read_text(encoding="utf-8"))
    return plan


def _table(heading: str) -> dict[str, list[str]]:
    """Return the rows of a table by their first cell."""
    section = DATA.partition(f"## {heading}")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    return {row[0]: row[1:] for row in rows[2:]}


def test_counts_of_pages() -> None:
    pages = _plan()["pages"]
    kinds = ("tabular", "logical", "mixed")
    counts = Counter((page["category"], page["kind"]) for page in pages)
    rows = {name: [str(counts[name, kind]) for kind in kinds] for name, _ in counts}
    shown = _table("Pages")
    assert {name: cells[:3] for name, cells in shown.items() if name != "all"} == rows
    assert shown["all"] == [*(str(sum(page["kind"] == kind for page in pages)) for kind in kinds), str(len(pages))]
    words = [len(file.read_text(encoding="utf-8").split()) for file in (ROOT / "data/kb").glob("*.md")]
    assert f"{min(words)} to {max(words)} words each, {sum(words) / len(words):.0f} on average" in DATA


def test_counts_of_questions() -> None:
    queries = _shipped("data/kb/queries.jsonl")
    counts = Counter((query["query_type"], query["metadata"]["difficulty"]) for query in queries)
    shown = _table("Questions")
    for query_type in ("direct", "multi_hop", "negative"):
        cells = [counts[query_type, level] for level in ("easy", "medium", "hard")]
        assert shown[query_type][:4] == [str(each) for each in [*cells, sum(cells)]]
    assert shown["all"][3] == str(len(queries))
    versions = Counter(query["query_type"] for query in queries if query["metadata"].get("version_conflict"))
    total = f"{versions.total()} ask about a fact on which versions disagree"
    assert f"{total} ({versions['direct']} direct, {versions['multi_hop']} multi-hop)" in DATA


def test_counts_of_golden_entries() -> None:
    counts = Counter(entry["query_type"] for entry in _shipped("test_retrieval_golden/golden.json"))
    assert {name: cells[0] for name, cells in _table("Golden set").items()} == {n: str(c) for n, c in counts.items()}
    assert f"## Golden set: {counts.total()}" in DATA


def test_direct_questions_are_about_the_pages_that_were_drawn() -> None:
    script = ROOT / "data/draw_pages.py"
    drawn = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    direct = [query for query in _shipped("data/kb/queries.jsonl") if query["query_type"] == "direct"]
    assert drawn.split() == [word for query in direct for word in (query["query_id"], *query["context_reference"])]


def test_files_of_the_data_folder_are_named() -> None:
    files = {file.name for file in (ROOT / "data").iterdir() if file.is_file()} - {Path("README.md").name}
    assert all(f"`{name}`" in DATA for name in files)


# import-export.md and the pages for those who come from other tools do what they say: their files are imported,
# their commands run.

DOCS_IMPORT_EXPORT_PAGE = (DOCS / "how-to" / "import-export.md").read_text(encoding="utf-8")
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
    (config,) = blocks(DOCS_IMPORT_EXPORT_PAGE, "yaml")
    Path("promptfooconfig.yaml").write_text(config, encoding="utf-8")
    command, mapped = commands(DOCS_IMPORT_EXPORT_PAGE, "rag-harness queries import")
    assert callable(parser_of(mapped[1:]).parse_args(mapped[1:]).run)
    assert main(command[1:]) == 1
    (shown,) = re.findall(r"`rag-harness queries import .*` prints\n\n((?:    .+\n)+)", DOCS_IMPORT_EXPORT_PAGE)
    assert capsys.readouterr().out == dedent(shown)
    (written,) = blocks(DOCS_IMPORT_EXPORT_PAGE, "json")
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


# The pages on tuning: their two commands are run, each space on them is read, and their tables name what there is.

DOCS_TUNE_PAGE, DOCS_TUNE_SERVICE, KEYS = (
    (ROOT / "docs" / page).read_text(encoding="utf-8")
    for page in ("how-to/tune.md", "how-to/tune-a-service.md", "reference/spaces.md")
)
OF_A_SERVICE, ASKED = docs_gates_blocks(DOCS_TUNE_SERVICE, "toml")
SPACES = [*docs_gates_blocks(DOCS_TUNE_PAGE, "toml"), OF_A_SERVICE, *docs_gates_blocks(KEYS, "toml")]
(COMMANDS,) = docs_gates_blocks(DOCS_TUNE_PAGE, "sh")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with somebody's documents, and the page's first space."""
    (tmp_path / "my_docs").mkdir()
    for page in sorted((ROOT / "data/kb").glob("*.md"))[:20]:
        shutil.copy(page, tmp_path / "my_docs")
    (tmp_path / "space.toml").write_text(SPACES[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_two_commands_tune_anybody_s_documents(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in COMMANDS.splitlines():
        assert main([*shlex.split(line)[1:], "--profile", "mock"]) == 0
    said = capsys.readouterr().out
    outcome = read_outcome(folder / "output")
    assert outcome is not None
    assert outcome.held_out is not None
    assert len(outcome.entries) == 3 * 2 * 3 + 1
    for words in ("questions that it was not chosen by", "do not report that one", "The race ended after"):
        assert words in said
        assert words in DOCS_TUNE_PAGE
    tuned = read_configuration(folder / "tuned.toml")
    assert tuned.by_name["retriever"] == outcome.entry(outcome.winner).values["retriever"]
    assert main(["report", "output", "-o", "race.html"]) == 0


@pytest.mark.parametrize("number", range(len(SPACES)))
def test_each_space_is_read(tmp_path: Path, number: int) -> None:
    file = tmp_path / "space.toml"
    file.write_text(SPACES[number])
    assert len(list(read_space(file).combinations())) > 1


def test_every_key_and_every_parameter_is_named() -> None:
    rows = {name.strip("[]") for name in re.findall(r"^\| `([^`]+)`", KEYS, re.MULTILINE)}
    assert rows == {*_KEYS}
    assert {*known_parameters("")} <= {*re.findall(r"`(\w+)`", KEYS)}


def test_the_service_has_the_place_that_its_space_varies(tmp_path: Path) -> None:
    (tmp_path / "my_service.toml").write_text(ASKED)
    (tmp_path / "service.toml").write_text(OF_A_SERVICE)
    place = json.loads(read_endpoint(tmp_path / "my_service.toml").body)
    (varied,) = read_space(tmp_path / "service.toml").parameters
    for name in varied.name.removeprefix("body.").split("."):
        place = place[name]
    assert place == 5
