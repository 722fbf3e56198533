"""The page about CI: what it shows has the names, inputs and permissions that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_harness.__main__ import COMMANDS, main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
ACTION, FORK, COMPONENT, HOOKS = (yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))


def inputs_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(yaml.safe_load_all((ROOT / name).read_text(encoding="utf-8")))
    inputs: dict[str, Any] = found.get("spec", found)["inputs"]
    return inputs


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= 600


def test_the_action_gets_inputs_that_it_has_and_the_permissions_that_it_needs() -> None:
    (job,) = ACTION["jobs"].values()
    (ours,) = [step for step in job["steps"] if step["uses"].startswith("OWNER/rag_harness@")]
    assert ours["with"].keys() <= inputs_of("action.yml").keys()
    assert ACTION["permissions"] == {"contents": "read", "pull-requests": "write", "statuses": "write"}
    said = " ".join(each["description"] for each in inputs_of("action.yml").values())
    assert all(f"{name} write" in said for name, granted in ACTION["permissions"].items() if granted == "write")


def test_the_workflow_for_forks_follows_the_first_and_checks_nothing_out() -> None:
    # YAML 1.1 reads the key `on` as true.
    assert FORK[True]["workflow_run"]["workflows"] == [ACTION["name"]]
    (job,) = FORK["jobs"].values()
    assert [step["uses"] for step in job["steps"]] == ["OWNER/rag_harness/comment@COMMIT"]
    assert FORK["permissions"] == {"actions": "read", "pull-requests": "write"}


def test_the_component_gets_inputs_that_it_has() -> None:
    (included,) = COMPONENT["include"]
    assert included["component"].endswith("/rag_harness/rag-harness@COMMIT")
    assert included["inputs"].keys() <= inputs_of("templates/rag-harness.yml").keys()


def test_the_hooks_are_there() -> None:
    (repository,) = HOOKS["repos"]
    known = {each["id"] for each in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    assert {each["id"] for each in repository["hooks"]} == known


def test_a_command_has_the_options_that_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    named = re.findall(r"`(?:rag-harness) (ci [^`]+)`", PAGE)
    assert named
    for group, command, *given in map(shlex.split, named):
        assert command in COMMANDS[group][1]
        with pytest.raises(SystemExit, match="0"):
            main([group, command, "--help"])
        shown = capsys.readouterr().out
        assert [option for option in given if option.startswith("--") and option not in shown] == [], command
