"""The workflows of this repository and the component for GitLab: what they may do, what a release has to pass."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_harness.core.package import NAME, VERSION
from rag_harness.core.settings.profiles import parsed_toml

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
