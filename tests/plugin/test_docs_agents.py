"""The pages on agents do what they say: their agent is run, their gates are judged on it, their calls are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rag_harness import StepTrace
from rag_harness.diagnosis.interventions import GOLD_SEARCHES, STOPPED
from rag_harness.evaluation.measures import agents, known_measures, measure_named
from rag_harness.evaluation.measures.measure import RowMeasure
from rag_harness.runs.gates import parse_gate
from tests.plugin.conftest import Suite

ROOT = Path(__file__).parents[2]
PAGE, TOOLS, REFERENCE, RESULTS = (
    (ROOT / "docs" / page).read_text(encoding="utf-8")
    for page in ("how-to/agents.md", "how-to/expected-tools.md", "reference/agents.md", "dev/results/agents.md")
)


def gates_of(page: str) -> list[str]:
    return str(re.findall(r"```gates\n(.*?)```", page, re.DOTALL)[0]).splitlines()


GATES = gates_of(REFERENCE)
MEASURES = {
    made.called
    for module in (agents, agents)
    for made in vars(module).values()
    if isinstance(made, type) and issubclass(made, RowMeasure) and hasattr(made, "called")
}


def test_its_agent_is_run_and_passes_its_gates(suite: Suite) -> None:
    conftest, test = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
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
    assert named == MEASURES <= set(known_measures())
    assert all(measure_named(parse_gate(gate, k=5).measure) for gate in GATES)
    assert {*gates_of(PAGE), *gates_of(TOOLS)} <= {*GATES}


def test_each_call_in_its_table_is_there() -> None:
    named = re.findall(r"trace\.(\w+)\(", REFERENCE.partition("| call |")[2].partition("\n\n")[0])
    assert named == ["search", "ranked", "tool", "complete", "step"]
    assert all(hasattr(StepTrace, name) for name in named)


def test_links_and_changes_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", PAGE + TOOLS):
        assert (ROOT / "docs" / "how-to" / target).exists(), target
    causes = (ROOT / "docs" / "reference" / "causes.md").read_text(encoding="utf-8")
    assert f"`{GOLD_SEARCHES[0]}`, `_2`, `_3`" in causes
    assert f"`{STOPPED}`" in causes


def test_what_it_says_of_the_study_is_so() -> None:
    lines = (ROOT / "data" / "kb" / "agent_queries.jsonl").read_text(encoding="utf-8").splitlines()
    pages = [len(json.loads(line)["context_reference"]) for line in lines]
    assert f"{pages.count(2)} need two pages, {pages.count(3)} three" in RESULTS
