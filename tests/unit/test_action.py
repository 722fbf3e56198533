"""The actions for GitHub: what they run, what they never put into a script, how one comment is kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_harness.core.package import NAME, VERSION
from tests.unit.page.exports.hosts.fake_hosts import TOKEN, FakeHost, fake_host
from tests.unit.page.runs import gate, summarise, write_study

ROOT = Path(__file__).parents[2]
FILES = ("action.yml", "comment/action.yml")
FIRST = "<!-- rag-harness: . -->"


def action(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    return read


def steps(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = action(name)["runs"]["steps"]
    return found


def step(name: str, called: str) -> dict[str, Any]:
    (found,) = [each for each in steps(name) if each["name"] == called]
    return found


def test_an_action_is_composite_and_each_step_says_what_it_does() -> None:
    for name in FILES:
        assert action(name)["runs"]["using"] == "composite", name
        assert all(each["description"] and "default" in each for each in action(name)["inputs"].values()), name
        for each in steps(name):
            assert each["name"], name
            assert ("run" in each) != ("uses" in each), (name, each["name"])
            # A composite action has no shell of its own.
            assert "uses" in each or each["shell"] == "bash", (name, each["name"])


def test_nothing_that_others_chose_is_put_into_a_script() -> None:
    chosen = re.compile(r"\$\{\{|\beval\b|\bbash -c\b")
    scripts = [(name, each["name"], each.get("run", "")) for name in FILES for each in steps(name)]
    assert [each[:2] for each in scripts if chosen.search(each[2])] == []


def test_actions_of_others_are_pinned_by_commit() -> None:
    for name in FILES:
        text = (ROOT / name).read_text(encoding="utf-8")
        used = [each["uses"] for each in steps(name) if "uses" in each]
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
    names = [each["name"] for each in steps("action.yml")]
    for each in steps("action.yml")[names.index("Run the suite") + 1 :]:
        assert each["if"].startswith("always()"), each["name"]


def test_a_fork_gets_no_comment_from_its_own_run() -> None:
    condition = step("action.yml", "Comment")["if"]
    assert "github.event_name == 'pull_request'" in condition
    assert "!github.event.pull_request.head.repo.fork" in condition
    assert not [each for each in steps("comment/action.yml") if "checkout" in each.get("uses", "")]


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
    # As where the host refuses it, which tests/unit/page/exports/hosts/test_commit_status.py sees.
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
    assert "ci status" not in "".join(each.get("run", "") for each in steps("comment/action.yml"))
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
