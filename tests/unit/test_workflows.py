"""Workflows, actions and hooks: what they run, and what they may do."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_harness.__main__ import COMMANDS, main
from rag_harness.core.package import COMMAND, NAME, VERSION
from rag_harness.core.settings.profiles import parsed_toml
from tests.unit.page.exports.hosts.fake_hosts import TOKEN, FakeHost, fake_host
from tests.unit.page.runs import gate, summarise, write_study

# The workflows of this repository and the component for GitLab: what they may do, what a release has to pass.

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(each.name for each in FOLDER.iterdir())
PUBLISHERS = {"testpypi": "github.event_name == 'workflow_dispatch'", "pypi": "github.event_name == 'push'"}


def workflow(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return read


def steps(name: str) -> list[dict[str, Any]]:
    return [each for job in workflow(name)["jobs"].values() for each in job["steps"]]


def component() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the inputs of GitLab's component, and its job."""
    spec, jobs = yaml.safe_load_all((ROOT / "templates" / "rag-harness.yml").read_text(encoding="utf-8"))
    (job,) = jobs.values()
    return spec["spec"]["inputs"], job


def test_actions_of_others_are_pinned_by_commit() -> None:
    for name in WORKFLOWS:
        text = (FOLDER / name).read_text(encoding="utf-8")
        used = [each["uses"] for each in steps(name) if "uses" in each]
        assert used, name
        assert [each for each in used if not re.fullmatch(r"(actions|pypa)/[a-z-]+@[0-9a-f]{40}", each)] == [], name
        assert [each for each in used if f"{each} # v" not in text] == [], name


def test_one_action_has_one_version_everywhere() -> None:
    files = [*FOLDER.iterdir(), ROOT / "action.yml", ROOT / "comment" / "action.yml"]
    used = re.findall(r"uses: (\S+)@(\S+)", "\n".join(each.read_text(encoding="utf-8") for each in files))
    assert len(dict(used)) == len(set(used))


def test_nothing_is_permitted_that_is_not_needed_and_no_secret_is_read() -> None:
    for name in WORKFLOWS:
        assert workflow(name)["permissions"] in ({}, {"contents": "read"}), name
        assert "secrets" not in (FOLDER / name).read_text(encoding="utf-8"), name
        assert not [each for each in steps(name) if "${{" in each.get("run", "")], name
        assert all(job["timeout-minutes"] for job in workflow(name)["jobs"].values()), name
        checkouts = [each for each in steps(name) if "checkout" in each.get("uses", "")]
        assert all(each["with"] == {"persist-credentials": False} for each in checkouts), name


def test_what_may_publish_runs_nothing_of_the_repository() -> None:
    jobs = workflow("release.yml")["jobs"]
    assert {name for name, job in jobs.items() if "id-token" in job["permissions"]} == PUBLISHERS.keys()
    assert jobs["build"]["permissions"] == {"contents": "read"}
    for name, condition in PUBLISHERS.items():
        job = jobs[name]
        assert (job["needs"], job["permissions"]) == ("build", {"id-token": "write"})
        assert job["environment"]["name"] == name
        assert job["environment"]["url"].endswith(f"/p/{NAME}")
        assert job["if"].startswith(condition)
        assert [each["uses"].partition("@")[0] for each in job["steps"]] == [
            "actions/download-artifact",
            "pypa/gh-action-pypi-publish",
        ]
        assert job["steps"][1]["with"]["attestations"] is True
        assert ("repository-url" in job["steps"][1]["with"]) is (name == "testpypi")


def test_a_release_is_built_once_and_checked_before_it_is_kept() -> None:
    names = [
        each.get("name") or each["uses"].partition("@")[0] for each in workflow("release.yml")["jobs"]["build"]["steps"]
    ]
    text = (FOLDER / "release.yml").read_text(encoding="utf-8")
    assert text.count("python -m build") == 1
    assert names.index("actions/upload-artifact") == len(names) - 2  # then the list of what it brings
    order = [
        "build",
        "twine check --strict",
        "release_check.py",
        "--version",
        "pytest -q",
        "pip-audit",
        "licences.py",
        "cyclonedx-py",
    ]
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)


def test_the_matrix_is_what_is_promised() -> None:
    about = parsed_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    matrix = workflow("tests.yml")["jobs"]["unit"]["strategy"]["matrix"]
    assert f">={matrix['python'][0]}" == about["requires-python"]
    assert matrix["python"] == [f"3.{minor}" for minor in range(10, 15)]
    assert {each.partition("-")[0] for each in matrix["system"]} == {"ubuntu", "macos", "windows"}
    stated = [each.rpartition(" :: ")[2] for each in about["classifiers"] if " :: Python :: 3." in each]
    assert set(stated) <= set(matrix["python"])


def archives(folder: Path, version: str = VERSION) -> Path:
    folder.mkdir()
    for ending in ("-py3-none-any.whl", ".tar.gz"):
        (folder / f"pytest_rag_harness-{version}{ending}").touch()
    return folder


@pytest.mark.parametrize(
    ("version", "tag", "said"),
    [
        (VERSION, "", ""),
        ("0.0.9", "", "were to be there"),
        (VERSION, "v0.0.9", f"has to be v{VERSION}"),
        (VERSION, VERSION, f"has to be v{VERSION}"),
    ],
)
def test_a_wrong_version_is_refused(tmp_path: Path, version: str, tag: str, said: str) -> None:
    check = runpy.run_path(str(ROOT / ".ci" / "release_check.py"))["problems"]
    found = "\n".join(check(archives(tmp_path / "dist", version), tag))
    assert said in found
    assert bool(found) is bool(said)


def test_a_version_without_its_section_of_changes_is_refused(tmp_path: Path) -> None:
    names = runpy.run_path(str(ROOT / ".ci" / "release_check.py"))
    folder, check = archives(tmp_path / "dist"), names["problems"]
    for name in ("pyproject.toml", "CHANGELOG.md"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    check.__globals__["ROOT"] = tmp_path
    changes = tmp_path / "CHANGELOG.md"
    changes.write_text("# Changelog\n\n## [Unreleased]\n", encoding="utf-8")
    assert list(check(folder, f"v{VERSION}")) == [f"CHANGELOG.md has no section of {VERSION} with its date"]
    changes.write_text(f"# Changelog\n\n## [{VERSION}] - 2026-01-31\n", encoding="utf-8")
    assert not list(check(folder, f"v{VERSION}"))


def test_the_core_brings_licences_that_are_on_the_list() -> None:
    names = runpy.run_path(str(ROOT / ".ci" / "licences.py"))
    brought = names["brought_by"](NAME)
    assert {"numpy", "openai", "certifi", NAME} <= set(brought)
    assert "torch" not in brought  # an extra
    assert "torch" in names["brought_by"](f"{NAME}[local]")
    assert list(names["problems"](NAME)) == []


@pytest.mark.parametrize(
    ("stated", "refused"),
    [
        ("License-Expression: MIT", ""),
        ("License-Expression: Apache-2.0 OR GPL-3.0-only", ""),
        ("License-Expression: (Apache-2.0 AND MIT)", ""),
        ("License-Expression: MIT AND GPL-3.0-only", "MIT AND GPL-3.0-only"),
        ("License: MIT License\n        Copyright of somebody", ""),
        ("License: AGPL-3.0", "AGPL-3.0"),
        (
            "License: MIT\nClassifier: License :: OSI Approved :: GNU General Public License v3",
            "GNU General Public License v3",
        ),
        ("Summary: says nothing", "no licence stated"),
    ],
)
def test_a_licence_that_is_not_on_the_list_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: str, refused: str
) -> None:
    info = tmp_path / "planted_thing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: planted-thing\nVersion: 1.0\n{stated}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = runpy.run_path(str(ROOT / ".ci" / "licences.py"))
    found = list(names["problems"]("planted-thing"))
    assert [each.partition(" is not among")[0] for each in found] == ([f"planted-thing: {refused}"] if refused else [])


def test_the_component_installs_this_version_and_puts_no_input_into_a_script() -> None:
    inputs, job = component()
    assert inputs["version"]["default"] == VERSION
    assert re.fullmatch(inputs["version"]["regex"], VERSION)
    assert not re.fullmatch(inputs["version"]["regex"], "0.1.0 --pre")
    assert all(each["description"] and "default" in each for each in inputs.values())
    text = (ROOT / "templates" / "rag-harness.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\[\[ inputs\.([a-z-]+) \]\]", text)) == inputs.keys()
    assert not [line for line in (*job["script"], *job["after_script"]) if "[[ inputs" in line]
    assert job["variables"]["PYTEST_ADDOPTS"]["expand"] is False


def test_the_component_gates_and_a_fork_is_replayed_and_gets_no_note() -> None:
    _, job = component()
    run, after = "\n".join(job["script"]), job["after_script"]
    assert "--rag-not-judged=fail --junitxml=output/junit.xml" in run
    is_fork = '[ "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID" != "$CI_MERGE_REQUEST_PROJECT_ID" ]'
    assert f"if {is_fork}; then MODE=--rag-mode=replay; fi" in run
    (note,) = [n for n, line in enumerate(after) if "ci comment" in line]
    assert after.index(f"if {is_fork}; then exit 0; fi") < note
    assert job["artifacts"]["when"] == "always"
    assert "CI_JOB_TOKEN" not in "\n".join((run, *after))  # it may not write notes


# The actions for GitHub: what they run, what they never put into a script, how one comment is kept.

FILES = ("action.yml", "comment/action.yml")
FIRST = "<!-- rag-harness: . -->"


def action(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    return read


def action_steps(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = action(name)["runs"]["steps"]
    return found


def step(name: str, called: str) -> dict[str, Any]:
    (found,) = [each for each in action_steps(name) if each["name"] == called]
    return found


def test_an_action_is_composite_and_each_step_says_what_it_does() -> None:
    for name in FILES:
        assert action(name)["runs"]["using"] == "composite", name
        assert all(each["description"] and "default" in each for each in action(name)["inputs"].values()), name
        for each in action_steps(name):
            assert each["name"], name
            assert ("run" in each) != ("uses" in each), (name, each["name"])
            # A composite action has no shell of its own.
            assert "uses" in each or each["shell"] == "bash", (name, each["name"])


def test_nothing_that_others_chose_is_put_into_a_script() -> None:
    chosen = re.compile(r"\$\{\{|\beval\b|\bbash -c\b")
    scripts = [(name, each["name"], each.get("run", "")) for name in FILES for each in action_steps(name)]
    assert [each[:2] for each in scripts if chosen.search(each[2])] == []


def test_our_actions_pin_those_of_others_by_commit() -> None:
    for name in FILES:
        text = (ROOT / name).read_text(encoding="utf-8")
        used = [each["uses"] for each in action_steps(name) if "uses" in each]
        assert used, name
        assert [each for each in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", each)] == [], name
        assert [each for each in used if f"{each} # v" not in text] == [], name


def test_every_input_that_is_read_is_declared_and_the_other_way_round() -> None:
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in FILES}
    read = {name: set(re.findall(r"inputs\.([a-z-]+)", text)) for name, text in texts.items()}
    assert read == {name: set(action(name)["inputs"]) for name in FILES}


def test_the_version_that_is_installed_is_exact_and_this_one() -> None:
    assert action("action.yml")["inputs"]["version"]["default"] == VERSION
    script = step("action.yml", "Install")["run"].replace("python -m pip install", "echo")
    for version, status, said in (("0.1.0", 0, f"{NAME}==0.1.0"), ("0.1.0 --pre", 1, ""), ("", 1, ""), ("-r x", 1, "")):
        ran = bash(script, VERSION=version)
        assert ran.returncode == status
        assert said in ran.stdout


def test_a_fork_is_replayed_and_arguments_are_split_without_a_shell(tmp_path: Path) -> None:
    run = step("action.yml", "Run the suite")
    assert run["env"]["IS_FORK"] == "${{ github.event.pull_request.head.repo.fork && 'yes' || '' }}"
    (tmp_path / "test_it.py").write_text(
        "def test_it(request, record_property):\n"
        "    option = request.config.option\n"
        "    assert option.rag_gate == ['golden: recall@5 >= 0 $(touch harm)']\n"
        "    assert option.rag_mode == 'REPLAY'\n"
    )
    (tmp_path / "conftest.py").write_text("")
    script = run["run"].replace("python", sys.executable)
    # hypothesis, which is no part of this, is a good part of a start.
    alone = "-p no:cacheprovider -p no:hypothesispytest -p no:syrupy"
    fork = f"test_it.py --rag-mode=live --rag-gate 'golden: recall@5 >= 0 $(touch harm)' {alone}"
    for is_fork, mode in (("yes", "replay"), ("", "live")):
        test = (tmp_path / "test_it.py").read_text()
        (tmp_path / "test_it.py").write_text(re.sub(r"rag_mode == '\w+'", f"rag_mode == '{mode}'", test))
        ran = bash(script, at=tmp_path, PYTEST_ADDOPTS=fork, IS_FORK=is_fork)
        assert "1 passed" in ran.stdout, ran.stdout
    assert not (tmp_path / "harm").exists()


def test_what_comes_after_the_suite_comes_also_where_a_gate_fails() -> None:
    names = [each["name"] for each in action_steps("action.yml")]
    for each in action_steps("action.yml")[names.index("Run the suite") + 1 :]:
        assert each["if"].startswith("always()"), each["name"]


def test_a_fork_gets_no_comment_from_its_own_run() -> None:
    condition = step("action.yml", "Comment")["if"]
    assert "github.event_name == 'pull_request'" in condition
    assert "!github.event.pull_request.head.repo.fork" in condition
    assert not [each for each in action_steps("comment/action.yml") if "checkout" in each.get("uses", "")]


@pytest.mark.parametrize(("size", "is_cut"), [(900, False), (1_000_001, True)])
def test_a_summary_is_cut_below_the_size_that_github_takes(tmp_path: Path, size: int, is_cut: bool) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "comment.md").write_text("ä" * (size // 2) + "x" * (size % 2))
    script = step("action.yml", "Say how it came out")["run"].replace("rag-harness report", "true")
    ran = bash(script, at=tmp_path, REPORT="", GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    assert ran.returncode == 0, ran.stderr
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert len(summary.encode()) < 1_048_576
    assert ("Cut after 1000000 bytes." in summary) is is_cut
    assert summary.startswith("ä")


def bash(script: str, at: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a runner does."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=at,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def host() -> Iterator[FakeHost]:
    with fake_host() as found:
        yield found


def job(tmp_path: Path, host: FakeHost, **env: str) -> dict[str, str]:
    """Return variables of a job whose ``rag-harness`` and ``python3`` have, as on a runner, no package beside them."""
    for name, command in {"rag-harness": f"{sys.executable} -m rag_harness", "python3": f"{sys.executable} -S"}.items():
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (tmp_path / name).chmod(0o755)
    given = {"GITHUB_REPOSITORY": "o/r", "GH_TOKEN": TOKEN, "GITHUB_API_URL": host.url, "NAME": ".", **env}
    return {**given, "PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_ACTION_PATH": str(ROOT / "comment")}


def test_the_comment_is_written_and_what_may_not_be_is_a_warning(tmp_path: Path, host: FakeHost) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "comment.md").write_text("## PASS\n")
    script = step("action.yml", "Comment")["run"]
    ran = bash(script, at=tmp_path, **job(tmp_path, host, NUMBER="7"))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [each["body"] for each in host.comments.values()] == [f"{FIRST}\n## PASS\n"]
    host.refuses = "PATCH"
    ran = bash(script, at=tmp_path, **job(tmp_path, host, NUMBER="7"))
    assert ran.returncode == 0
    assert ran.stdout.startswith("::warning::The comment cannot be written.")


def test_the_status_is_that_of_the_pull_requests_commit(tmp_path: Path, host: FakeHost) -> None:
    asked = step("action.yml", "Set the status of the commit")
    assert asked["env"]["SHA"] == "${{ github.event.pull_request.head.sha || github.sha }}"
    assert asked["env"]["OUTCOME"] == "${{ steps.suite.outcome }}"
    assert "!github.event.pull_request.head.repo.fork" in asked["if"]
    assert step("action.yml", "Run the suite")["id"] == "suite"
    summarise(write_study(tmp_path / "output"), gate("e3: recall@5 >= 0.7"))
    ran = bash(asked["run"], at=tmp_path, **job(tmp_path, host, SHA="c0ffee", OUTCOME="success", REPORT=""))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [(each["sha"], each["state"]) for each in host.statuses] == [("c0ffee", "success")]
    # As where the host refuses it, which tests/unit/page/exports/hosts/test_github_gitlab.py sees.
    refused = job(tmp_path, host, SHA="c0ffee", OUTCOME="success", REPORT="")
    (tmp_path / "rag-harness").write_text("#!/bin/sh\nexit 2\n")
    ran = bash(asked["run"], at=tmp_path, **refused)
    assert ran.returncode == 0
    assert "::warning::The status cannot be set." in ran.stdout


def test_the_comment_for_a_fork_needs_the_standard_library_alone_and_sets_no_status(
    tmp_path: Path, host: FakeHost
) -> None:
    host.pulls = [{"number": 7, "head": {"label": "fork:mine", "sha": "abc"}}]
    (tmp_path / "comment.md").write_text("recall@5 by @everyone\n")
    places = {"FROM": str(tmp_path / "comment.md"), "BODY": str(tmp_path / "body.md")}
    script = step("comment/action.yml", "Comment")["run"]
    ran = bash(script, at=tmp_path, **job(tmp_path, host, HEAD="fork:mine", SHA="abc", **places))
    assert (ran.returncode, ran.stderr) == (0, "")
    (comment,) = host.comments.values()
    assert comment["body"] == f"{FIRST}\nrecall@\u200b5 by @\u200beveryone\n"
    assert "ci status" not in "".join(each.get("run", "") for each in action_steps("comment/action.yml"))
    ran = bash(script, at=tmp_path, **job(tmp_path, host, HEAD="fork:mine", SHA="old", **places))
    assert ran.stdout.startswith("No open pull request has this commit")
    assert len(host.comments) == 1


def test_the_text_of_a_fork_mentions_nobody(tmp_path: Path) -> None:
    (tmp_path / "comment.md").write_text("recall@5 by @everyone\n")
    script = step("comment/action.yml", "Comment")["run"].partition("\ncd ")[0]
    ran = bash(script, FROM=str(tmp_path / "comment.md"), BODY=str(tmp_path / "body.md"))
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "body.md").read_text() == "recall@\u200b5 by @\u200beveryone\n"
    (tmp_path / "link").symlink_to(tmp_path / "comment.md")
    (tmp_path / "body.md").unlink()
    assert "no text" in bash(script, FROM=str(tmp_path / "link"), BODY=str(tmp_path / "body.md")).stdout
    assert not (tmp_path / "body.md").exists()


# The page about CI: what it shows has the names, inputs and permissions that there are.

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


# ``.pre-commit-hooks.yaml``: hooks of other repositories that call commands of ours.

PRE_COMMIT_HOOKS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
)
BY_ID = {hook["id"]: hook for hook in PRE_COMMIT_HOOKS}
NEEDED = {"id", "name", "entry", "language"}
"""Keys that pre-commit demands of a hook."""


@pytest.mark.parametrize("hook", PRE_COMMIT_HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_calls_a_command_that_exists(hook: dict[str, Any]) -> None:
    assert hook.keys() >= NEEDED
    command, group, name = shlex.split(hook["entry"])
    assert command == COMMAND
    assert name in COMMANDS[group][1]
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)


@pytest.mark.parametrize(
    ("hook", "file", "runs"),
    [
        ("rag-queries-check", "docs/a.md", True),
        ("rag-queries-check", "queries.jsonl", True),
        ("rag-queries-check", "docs/a.pdf", True),
        ("rag-queries-check", "src/app.py", False),
        ("rag-kb-validate", "data/kb/a.md", True),
        ("rag-kb-validate", "golden.json", True),
        ("rag-kb-validate", "image.png", False),
    ],
)
def test_a_hook_runs_for_files_of_its_kind(hook: str, file: str, runs: bool) -> None:
    assert bool(re.search(BY_ID[hook]["files"], file)) is runs


def test_a_question_that_its_page_has_left_behind_stops_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "docs" / "returns.md"
    page.parent.mkdir()
    page.write_text("# Returns\n\nLamps may be returned within 45 days.\n")
    row = {"query_id": "q1", "query": "How long may a lamp be returned?", "context_reference": ["returns.md"]}
    Path("queries.jsonl").write_text(json.dumps({**row, "ground_truth": "45 days"}) + "\n")
    asked = [*shlex.split(BY_ID["rag-queries-check"]["entry"])[1:], "docs", "--queries", "queries.jsonl"]
    assert main(asked) == 0, capsys.readouterr()
    page.rename(page.with_name("other.md"))
    assert main(asked) == 1
