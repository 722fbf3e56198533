"""The pages on simulated users do what they say: their scenarios are played, their limits are those of the code."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from rag_harness.core.settings import Settings
from rag_harness.core.settings.table import options
from rag_harness.core.types import Scenario
from rag_harness.data.queries import lines_of, read_queries
from rag_harness.evaluation.measures import measure_named
from rag_harness.models.endpoints import key_variable
from rag_harness.records.cases import MOST_PLAYED, USUAL_TURNS
from tests.plugin.conftest import Suite

ROOT = Path(__file__).parents[2]
PAGE, BY_A_MODEL, REFERENCE = (
    (ROOT / "docs" / page).read_text(encoding="utf-8")
    for page in ("how-to/simulate-users.md", "how-to/simulate-users-with-a-model.md", "reference/scenarios.md")
)
ONE, FOUR = re.findall(r"```json\n(.*?)```", PAGE + REFERENCE, re.DOTALL)


def test_its_example_is_a_scenario_with_each_field_that_there_is() -> None:
    raw = json.loads(ONE)
    turns, wrong = lines_of(json.dumps(raw))
    assert not wrong
    assert len(turns) == raw["scenario"]["max_turns"] == 6
    documented = set(re.findall(r"^\| `(\w+)` \|", REFERENCE, re.MULTILINE))
    assert documented == set(raw["scenario"]) == {each.name for each in fields(Scenario)} - {"ground_truth"}
    assert f"{USUAL_TURNS} by default and {MOST_PLAYED} at most" in REFERENCE


def test_its_options_variable_and_measure_are_there() -> None:
    flags = {f"--rag-{each.name.replace('_', '-')}" for each in options()}
    assert {*re.findall(r"--rag-[a-z-]+", PAGE + BY_A_MODEL + REFERENCE)} - flags == set()
    settings = Settings(user_model="gpt-x", user_base_url="https://models.example.org/v1", chat_base_url="https://x/v1")
    assert f"`{key_variable(settings, 'user')}`" in BY_A_MODEL
    assert measure_named("goal_reached").name in PAGE


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
