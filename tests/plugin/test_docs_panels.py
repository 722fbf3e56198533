"""judge-with-a-panel.md does what it says: its command names a panel, its refusals are as the tool has them."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import load_settings
from rag_harness.evaluation.judges.traits import check_one_judge
from rag_harness.models.endpoints import panel_of
from rag_harness.records.manifest import panel_label, silent_reason
from tests.plugin.conftest import Suite
from tests.plugin.test_panels import asked, panel

__all__ = ["panel"]


PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "judge-with-a-panel.md").read_text(encoding="utf-8")


def settings() -> Settings:
    command = next(line for line in PAGE.splitlines() if line.startswith("    pytest -m e3"))
    said = dict(part.removeprefix("--rag-").split("=") for part in shlex.split(command) if "=" in part)
    return replace(load_settings({}), judge=said["judge"], panel=said["panel"])  # type: ignore[arg-type]


def test_its_command_names_the_panel_that_it_says() -> None:
    members = [(member.judge, member.model) for member in panel_of(settings())]
    assert f"`{panel_label(settings().panel, members)}`" in PAGE
    rules = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert rules == {"majority", "mean", "median"}


def test_its_calibrations_are_of_each_judge_of_its_command() -> None:
    named = {shlex.split(line)[-1] for line in PAGE.splitlines() if line.startswith("    rag-harness judge calibrate")}
    assert named == {str(member) for member in panel_of(settings())}


def test_its_reason_is_that_of_a_silent_judge() -> None:
    assert silent_reason({"x": ""}, 3).partition("silent: ")[0] + "silent: …" in PAGE


def test_what_takes_one_judge_refuses_a_panel() -> None:
    with pytest.raises(SettingsError, match="one judge at a time"):
        check_one_judge(settings(), "rag-harness judge score")


def test_another_rule_asks_nobody(panel: Suite) -> None:
    for rule in ("mean", "majority", "median"):
        options = ["--rag-measures=faithfulness", "--rag-judge=kind@plain,strict@plain", f"--rag-panel={rule}"]
        panel.run(*options).assert_outcomes(passed=4)
        assert asked(panel) == {"kind plain": 4, "strict plain": 4}
