"""The actions for GitHub: what they run, what they never put into a script, how one comment is kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_harness.registry.installed import NAME, VERSION

ROOT = Path(__file__).parents[2]
FILES = ("action.yml", "comment/action.yml")
KEEPER = ROOT / "action" / "keep_comment.sh"
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


@pytest.mark.parametrize("name", FILES)
def test_an_action_is_composite_and_each_step_says_what_it_does(name: str) -> None:
    assert action(name)["runs"]["using"] == "composite"
    assert all(each["description"] and "default" in each for each in action(name)["inputs"].values())
    for each in steps(name):
        assert each["name"]
        assert ("run" in each) != ("uses" in each)
        assert "uses" in each or each["shell"] == "bash"  # a composite action has no shell of its own


@pytest.mark.parametrize("name", FILES)
def test_nothing_that_others_chose_is_put_into_a_script(name: str) -> None:
    assert not [each["name"] for each in steps(name) if "${{" in each.get("run", "")]
    scripts = "\n".join(each.get("run", "") for each in steps(name))
    assert not re.search(r"\beval\b|\bbash -c\b", scripts)


@pytest.mark.parametrize("name", FILES)
def test_actions_of_others_are_pinned_by_commit(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    used = [each["uses"] for each in steps(name) if "uses" in each]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", each) for each in used)
    assert all(f"{each} # v" in text for each in used)


@pytest.mark.parametrize("name", FILES)
def test_every_input_that_is_read_is_declared_and_the_other_way_round(name: str) -> None:
    read = set(re.findall(r"inputs\.([a-z-]+)", (ROOT / name).read_text(encoding="utf-8")))
    assert read == action(name)["inputs"].keys()


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
    fork = "test_it.py --rag-mode=live --rag-gate 'golden: recall@5 >= 0 $(touch harm)' -p no:cacheprovider"
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


GH = """#!{python}
import json, os, sys
with open(os.environ["CALLS"], "a") as calls:
    body = [each[6:] for each in sys.argv if each.startswith("body=@")]
    print(json.dumps([sys.argv[1:], open(body[0]).read() if body else ""]), file=calls)
if "--jq" in sys.argv:
    print(os.environ["PULLS" if "GET" in sys.argv else "FOUND"])
sys.exit(int(os.environ.get("WRITES", "0")) if "--silent" in sys.argv else 0)
"""


def keep(tmp_path: Path, body: str = "## PASS\n", **env: str) -> tuple[str, list[tuple[list[str], str]]]:
    """Run the script with a ``gh`` that notes its calls; return what it said, and the calls with their bodies."""
    fake = tmp_path / "gh"
    fake.write_text(GH.format(python=sys.executable))
    fake.chmod(0o755)
    (tmp_path / "body.md").write_text(body, encoding="utf-8")
    given = {"MARKER": ".", "NUMBER": "7", "FOUND": "", "PULLS": "", "GITHUB_REPOSITORY": "o/r", **env}
    path = f"{tmp_path}:{os.environ['PATH']}"
    places = {"BODY": str(tmp_path / "body.md"), "CALLS": str(tmp_path / "calls"), "PATH": path}
    ran = bash(str(KEEPER), ROOT, **places, **given)
    assert ran.returncode == 0, ran.stderr
    calls = tmp_path / "calls"
    return ran.stdout, [tuple(json.loads(line)) for line in calls.read_text().splitlines()] if calls.exists() else []


def test_a_first_comment_is_written(tmp_path: Path) -> None:
    _, (looked, wrote) = keep(tmp_path)
    assert looked[0][:3] == ["api", "--paginate", "repos/o/r/issues/7/comments?per_page=100"]
    assert wrote[0][1:4] == ["--method", "POST", "repos/o/r/issues/7/comments"]
    assert wrote[1] == f"{FIRST}\n## PASS\n"


def test_a_comment_that_is_there_is_kept_up_to_date(tmp_path: Path) -> None:
    _, (looked, wrote) = keep(tmp_path, FOUND="41\n52")
    assert wrote[0][1:4] == ["--method", "PATCH", "repos/o/r/issues/comments/41"]
    assert "env.LOGIN" in looked[0][-1]
    assert "startswith(env.FIRST)" in looked[0][-1]


def test_a_marker_cannot_leave_its_comment(tmp_path: Path) -> None:
    _, calls = keep(tmp_path, MARKER="a --> @all")
    first, _, body = calls[-1][1].partition("\n")
    assert first.startswith("<!-- rag-harness: a-")
    assert first.count(">") == 1
    assert body == "## PASS\n"


def test_a_long_text_is_cut_and_says_so(tmp_path: Path) -> None:
    _, calls = keep(tmp_path, body="ä" * 40_000)
    assert len(calls[-1][1]) < 65_536
    assert calls[-1][1].endswith("Cut after 60000 bytes. The whole text is in the results of the run.\n")


def test_a_comment_that_may_not_be_written_is_a_warning(tmp_path: Path) -> None:
    said, _ = keep(tmp_path, WRITES="1")
    assert said.startswith("::warning::The comment cannot be written.")


def test_the_pull_request_of_a_fork_is_that_of_the_event(tmp_path: Path) -> None:
    head = {"HEAD_OWNER": "fork", "HEAD_BRANCH": "mine", "HEAD_SHA": "abc"}
    _, (asked, *_, wrote) = keep(tmp_path, NUMBER="", PULLS="12", **head)
    assert "head=fork:mine" in asked[0]
    assert ".head.sha == env.HEAD_SHA" in asked[0][-1]
    assert "repos/o/r/issues/12/comments" in wrote[0]
    (tmp_path / "calls").unlink()
    said, calls = keep(tmp_path, NUMBER="", PULLS="", **head)
    assert said.startswith("No open pull request has this commit")
    assert len(calls) == 1


def test_the_text_of_a_fork_mentions_nobody(tmp_path: Path) -> None:
    (tmp_path / "comment.md").write_text("recall@5 by @everyone\n")
    script = step("comment/action.yml", "Comment")["run"].rsplit("\n", 2)[0]
    ran = bash(script, FROM=str(tmp_path / "comment.md"), BODY=str(tmp_path / "body.md"))
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "body.md").read_text() == "recall@\u200b5 by @\u200beveryone\n"
    (tmp_path / "link").symlink_to(tmp_path / "comment.md")
    (tmp_path / "body.md").unlink()
    assert "no text" in bash(script, FROM=str(tmp_path / "link"), BODY=str(tmp_path / "body.md")).stdout
    assert not (tmp_path / "body.md").exists()
