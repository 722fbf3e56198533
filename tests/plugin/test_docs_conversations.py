"""The pages on conversations, simulated users, agents and traces do what they say: their code is run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rag_harness import StepTrace
from rag_harness.__main__ import main
from rag_harness.core.settings import Settings
from rag_harness.core.settings.table import options
from rag_harness.core.types import Scenario
from rag_harness.data.queries import lines_of, read_queries
from rag_harness.data.query_lines import MOST_TURNS
from rag_harness.diagnosis.cause_lines import _LINES_OF_MESSAGE, _MOST_TURNS
from rag_harness.diagnosis.interventions import GOLD_SEARCHES, STOPPED
from rag_harness.evaluation.measures import agents, known_measures, measure_named
from rag_harness.evaluation.measures.measure import RowMeasure
from rag_harness.models.endpoints import key_variable
from rag_harness.records.cases import MOST_PLAYED, USUAL_TURNS
from rag_harness.runs.conversations import SHOWN
from rag_harness.runs.gates import parse_gate
from tests.plugin.conftest import Suite
from tests.unit.page.exports.otlp_receiver import otlp_receiver
from tests.unit.pipelines.endpoint.tracing_service import tracing_service
from tests.unit.pipelines.otel.exported.files import langfuse, otlp, phoenix, written

# The pages on conversations do what they say: their conversations, their assistant and their commands are run.

DOCS = Path(__file__).parents[2] / "docs"
PAGE, HISTORY, MEASURES, REFERENCE = (
    (DOCS / page).read_text(encoding="utf-8")
    for page in (
        "how-to/conversations.md",
        "how-to/conversation-history.md",
        "how-to/measure-conversations.md",
        "reference/conversations.md",
    )
)


def block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def commands(page: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in page.splitlines() if line.startswith("    pytest ")]


@pytest.fixture
def mine(suite: Suite) -> Suite:
    (suite.path / "conversations.jsonl").write_text(block("json"))
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_my_rag=block("python"))
    return suite


def test_its_conversations_are_asked_with_the_reference_replies(mine: Suite) -> None:
    everything, one = commands(PAGE)
    mine.run(*everything).assert_outcomes(passed=5)
    rows = {row["query_id"]: row for row in mine.rows("mine")}
    assert rows["conv_007#3"]["llm_answer"] == "You asked 2 questions before: Do you ship to Mars?"
    mine.run(*one, "--rag-gate-partial", "--rag-overwrite").assert_outcomes(passed=3, failed=1)  # the gate
    node = re.search(r"`(test_my_rag\.py::\S+)`", PAGE)
    assert node is not None
    mine.run(*everything, node[1], "--rag-overwrite").assert_outcomes(passed=1)


def test_both_histories_are_two_experiments(mine: Suite) -> None:
    (command,) = commands(HISTORY)
    mine.run(*command, "--rag-gate=mine: error_rate <= mine-own").stdout.fnmatch_lines(["*not the same questions*"])
    assert len(mine.rows("mine")) == len(mine.rows("mine-own")) == 5
    own: dict[str, dict[str, object]] = {str(row["query_id"]): row for row in mine.rows("mine-own")}
    assert json.loads(json.dumps(own["conv_008#2"]["inputs"]))["history"][1]["content"].startswith("You asked 0")


def test_explain_shows_the_chat_as_the_page_does(mine: Suite) -> None:
    mine.run(*commands(PAGE)[0]).assert_outcomes(passed=5)
    section = PAGE.partition("\n## When a turn fails\n")[2].partition("\n## ")[0]
    command, *shown = [line.removeprefix("    ") for line in section.splitlines() if line.startswith("    ")]
    ran = mine.pytester.run(sys.executable, "-m", "rag_harness", *shlex.split(command)[1:])
    assert ran.outlines[: len(shown)] == shown
    assert f"the last {_MOST_TURNS} turns, {_LINES_OF_MESSAGE} lines a message" in section


def test_it_says_what_a_user_sees_and_how_long_a_conversation_may_be() -> None:
    assert f'"{SHOWN}"' in HISTORY
    assert f"more than {MOST_TURNS} turns" in REFERENCE


def test_its_gates_are_gates_and_its_measures_are_there() -> None:
    (gates,) = re.findall(r"```gates\n(.*?)```", MEASURES, re.DOTALL)
    assert all(parse_gate(gate, k=5) for gate in gates.splitlines())
    (command,) = commands(MEASURES)
    named = next(each for each in command if each.startswith("--rag-measures=")).partition("=")[2].split(",")
    assert {*named} <= {*known_measures()}
    table = REFERENCE.partition("## Measures of turns")[2]
    assert {*re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)} == {*named} - {"faithfulness"}


# The pages on agents do what they say: their agent is run, their gates are judged on it, their calls are there.

ROOT = Path(__file__).parents[2]
DOCS_AGENTS_PAGE, TOOLS, DOCS_AGENTS_REFERENCE, RESULTS = (
    (ROOT / "docs" / page).read_text(encoding="utf-8")
    for page in ("how-to/agents.md", "how-to/expected-tools.md", "reference/agents.md", "dev/results/agents.md")
)


def gates_of(page: str) -> list[str]:
    return str(re.findall(r"```gates\n(.*?)```", page, re.DOTALL)[0]).splitlines()


GATES = gates_of(DOCS_AGENTS_REFERENCE)
DOCS_AGENTS_MEASURES = {
    made.called
    for module in (agents, agents)
    for made in vars(module).values()
    if isinstance(made, type) and issubclass(made, RowMeasure) and hasattr(made, "called")
}


def test_its_agent_is_run_and_passes_its_gates(suite: Suite) -> None:
    conftest, test = re.findall(r"```python\n(.*?)```", DOCS_AGENTS_PAGE, re.DOTALL)
    (lines,) = re.findall(r"```json\n(.*?)```", TOOLS, re.DOTALL)
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makeconftest(conftest)
    suite.pytester.makepyfile(test_agent=test)
    (suite.path / "kb" / "refunds.md").write_text("# Refunds\n\nWe refund within 5 working days.\n")
    (suite.path / "kb" / "queries.jsonl").write_text(lines, encoding="utf-8")
    result = suite.run(*(f"--rag-gate={gate}" for gate in GATES))
    assert result.ret == 0
    result.stdout.fnmatch_lines_random([f"passed *{gate.replace('[', '[[]')} *n=*" for gate in GATES])
    rows = {str(row["query_id"]): row for row in suite.rows("mine")}
    assert [step["name"] for step in rows["q1"]["stages"]] == ["plan", "search", "search", "days_between"]  # type: ignore[attr-defined]
    assert rows["q2"]["llm_answer"] == "You are welcome."


def test_it_has_a_gate_on_each_measure_of_agents() -> None:
    named = {parse_gate(gate, k=5).measure.partition("@")[0] for gate in GATES}
    assert named == DOCS_AGENTS_MEASURES <= set(known_measures())
    assert all(measure_named(parse_gate(gate, k=5).measure) for gate in GATES)
    assert {*gates_of(DOCS_AGENTS_PAGE), *gates_of(TOOLS)} <= {*GATES}


def test_each_call_in_its_table_is_there() -> None:
    named = re.findall(r"trace\.(\w+)\(", DOCS_AGENTS_REFERENCE.partition("| call |")[2].partition("\n\n")[0])
    assert named == ["search", "ranked", "tool", "complete", "step"]
    assert all(hasattr(StepTrace, name) for name in named)


def test_links_and_changes_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", DOCS_AGENTS_PAGE + TOOLS):
        assert (ROOT / "docs" / "how-to" / target).exists(), target
    causes = (ROOT / "docs" / "reference" / "causes.md").read_text(encoding="utf-8")
    assert f"`{GOLD_SEARCHES[0]}`, `_2`, `_3`" in causes
    assert f"`{STOPPED}`" in causes


def test_what_it_says_of_the_study_is_so() -> None:
    lines = (ROOT / "data" / "kb" / "agent_queries.jsonl").read_text(encoding="utf-8").splitlines()
    pages = [len(json.loads(line)["context_reference"]) for line in lines]
    assert f"{pages.count(2)} need two pages, {pages.count(3)} three" in RESULTS


# The pages on traces do what they say: their code is run.

PAGES = {
    name: (ROOT / "docs" / page).read_text(encoding="utf-8")
    for name, page in {
        "in process": "how-to/traces.md",
        "by hand": "how-to/traces-by-hand.md",
        "service": "how-to/traces-service.md",
        "production": "how-to/traces-production.md",
        "backend": "how-to/traces-backend.md",
        "reference": "reference/traces.md",
    }.items()
}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], re.DOTALL)


def code_of_two_pages() -> list[str]:
    return [*blocks("in process", "python"), *blocks("by hand", "python")]


def test_spans_by_hand(suite: Suite) -> None:
    test, conftest = code_of_two_pages()
    suite.pytester.makeconftest(conftest)
    suite.pytester.makepyfile(test)
    suite.run().assert_outcomes(passed=4)
    rows: dict[Any, Any] = {row["query_id"]: row for row in suite.rows("mine")}
    hits = {name: [hit["filename"] for hit in row["stages"][0].get("hits", ())] for name, row in rows.items()}
    assert hits["q_direct_001"] == ["returns.md"]
    assert hits["q_direct_002"] == ["shipping.md"]
    assert hits["q_negative_001"] == []


def test_three_lines_of_langchain(suite: Suite) -> None:
    for package in ("langchain_core", "openinference"):
        if find_spec(package) is None:
            pytest.skip(
                f"{package} is not installed: pip install openinference-instrumentation-langchain langchain-core"
            )
    (conftest,) = blocks("in process", "python-langchain")
    folder = suite.path / "app"
    shutil.copytree(ROOT / "examples" / "kb", suite.path / "kb", dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples" / "langchain", folder, ignore=shutil.ignore_patterns("test_*", "pytest.ini"))
    (suite.path / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(folder)!r})\n{conftest}")
    suite.pytester.makepyfile(code_of_two_pages()[0])
    suite.run().assert_outcomes(passed=6)
    rows: list[Any] = suite.rows("mine")
    assert all(len(row["retrieved_chunks"]) == 3 for row in rows)
    assert all(chunk["metadata"]["filename"].endswith(".md") for row in rows for chunk in row["retrieved_chunks"])


def test_commands_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("traces.jsonl"), otlp(1), *phoenix(2), langfuse(3))
    commands = re.findall(r"^    rag-harness (.+)$", PAGES["production"], re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        more = ["--profile=mock"] if command.startswith("traces") else []
        assert main([*command.split(), *more]) == 0
    assert len(Path("rows.jsonl").read_text().splitlines()) == 3
    assert len(Path("asked.jsonl").read_text().splitlines()) == 1


@pytest.mark.long
def test_a_service_that_sends_its_spans(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    (described,) = blocks("service", "toml")
    with tracing_service() as service:
        more = f"traces_port = {service.port}\ntraces_late = 0.1\n"
        (suite.path / "mine.toml").write_text(f'url = "{service.url}"\n{described}{more}')
        suite.pytester.makepyfile(code_of_two_pages()[0])
        record = suite.run("--rag-endpoint=mine.toml", "--rag-mode=record")
        record.assert_outcomes(passed=4)
    suite.run("--rag-endpoint=mine.toml", "--rag-mode=replay", "--rag-overwrite").assert_outcomes(passed=4)
    rows: list[Any] = suite.rows("mine")
    assert all([stage.get("kind") for stage in row["stages"]] == [None, "retrieve", "generate"] for row in rows)
    assert all(row["timings_recorded"] and row["usage"]["prompt_tokens"] == 30 for row in rows)
    with tracing_service() as service:
        (suite.path / "mine.toml").write_text(f'url = "{service.url}"\n{described}')
        several = suite.run("--rag-endpoint=mine.toml", "--rag-mode=record", "--rag-overwrite", "-n", "2")
        assert "has several processes" in str(several.stdout) + str(several.stderr)
        assert service.headers == []


def test_scores_stand_on_the_traces_of_the_app(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", raising=False)
    run, export = blocks("backend", "sh")[0].splitlines()
    test, conftest = code_of_two_pages()
    suite.pytester.makeconftest(conftest)
    suite.pytester.makepyfile(test)
    with otlp_receiver() as backend:
        said = suite.run(*run.replace("http://127.0.0.1:4318", backend.url).split()[1:])
        said.assert_outcomes(passed=4)
        assert {span.trace_id for span in backend.trials} == {row["trace_id"] for row in suite.rows("mine")}
        assert all(span.name == "invoke_workflow mine" for span in backend.trials)
        assert all(backend.below(span)[0].attributes["gen_ai.operation.name"] == "retrieval" for span in backend.trials)
        before = dict(backend.spans)
        monkeypatch.chdir(suite.path)
        assert main(export.replace("http://127.0.0.1:4318", backend.url).split()[1:]) == 0
        assert backend.spans == before
    assert "4 trials with" in capsys.readouterr().out


def test_each_attribute_that_it_names_is_read() -> None:
    code = "".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "rag_harness" / "pipelines" / "otel").glob("*.py")
    )
    table = PAGES["reference"].partition("## Attributes")[2].partition("## Hits")[0]
    named = {
        name for name in re.findall(r"`([^`]+)`", table) if not re.match(r"llm\.\w+_messages|gen_ai\.\w+put\.", name)
    }
    assert len(named) > 25
    assert [name for name in named if f'"{name}"' not in code] == []


# The pages on simulated users do what they say: their scenarios are played, their limits are those of the code.

DOCS_SIMULATED_USER_PAGE, BY_A_MODEL, DOCS_SIMULATED_USER_REFERENCE = (
    (ROOT / "docs" / page).read_text(encoding="utf-8")
    for page in ("how-to/simulate-users.md", "how-to/simulate-users-with-a-model.md", "reference/scenarios.md")
)
ONE, FOUR = re.findall(r"```json\n(.*?)```", DOCS_SIMULATED_USER_PAGE + DOCS_SIMULATED_USER_REFERENCE, re.DOTALL)


def test_its_example_is_a_scenario_with_each_field_that_there_is() -> None:
    raw = json.loads(ONE)
    turns, wrong = lines_of(json.dumps(raw))
    assert not wrong
    assert len(turns) == raw["scenario"]["max_turns"] == 6
    documented = set(re.findall(r"^\| `(\w+)` \|", DOCS_SIMULATED_USER_REFERENCE, re.MULTILINE))
    assert documented == set(raw["scenario"]) == {each.name for each in fields(Scenario)} - {"ground_truth"}
    assert f"{USUAL_TURNS} by default and {MOST_PLAYED} at most" in DOCS_SIMULATED_USER_REFERENCE


def test_its_options_variable_and_measure_are_there() -> None:
    flags = {f"--rag-{each.name.replace('_', '-')}" for each in options()}
    assert {
        *re.findall(r"--rag-[a-z-]+", DOCS_SIMULATED_USER_PAGE + BY_A_MODEL + DOCS_SIMULATED_USER_REFERENCE)
    } - flags == set()
    settings = Settings(user_model="gpt-x", user_base_url="https://models.example.org/v1", chat_base_url="https://x/v1")
    assert f"`{key_variable(settings, 'user')}`" in BY_A_MODEL
    assert measure_named("goal_reached").name in DOCS_SIMULATED_USER_PAGE


def test_its_four_scenarios_are_about_the_shipped_pages(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text(FOUR, encoding="utf-8")
    cases = read_queries(tmp_path / "queries.jsonl", ROOT / "data" / "kb", types=())
    assert {case.query.place["conversation"] for case in cases} == {"sim_tent", "sim_late", "sim_cancel", "sim_fish"}
    for case in cases:
        for each in case.evidence:
            assert each.quote in (ROOT / "data" / "kb" / each.filename).read_text(encoding="utf-8")


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_its_four_scenarios_are_played_and_end(suite: Suite, workers: str) -> None:
    (suite.path / "played.jsonl").write_text(FOUR, encoding="utf-8")
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    result = suite.run(workers, "--rag-run=e3", f"--rag-kb={ROOT / 'data' / 'kb'}", "--rag-queries=played.jsonl", "-rs")
    rows = suite.rows("e3-sim")
    result.assert_outcomes(passed=len(rows), skipped=17 - len(rows))
    assert {str(row["query_id"]).partition("#")[0] for row in rows} == {
        "sim_tent",
        "sim_late",
        "sim_cancel",
        "sim_fish",
    }
    result.stdout.fnmatch_lines(["e3-sim: 4 conversations with a simulated user (a script): *"])
