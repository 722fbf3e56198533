"""Files that a host of repositories reads: they name what exists, in the form that is asked for."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from rag_harness.__main__ import ALONE
from rag_harness.core.package import VERSION
from rag_harness.core.settings.profiles import parsed_toml
from tests.unit.pages import ROOT, found

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
KINDS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
"""Elements of a form, by GitHub's schema."""
PAGES = ("SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")
_LINK = re.compile(r"\]\(([^)#]{1,200})")


def read_yaml(file: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return read


def test_an_issue_form_has_the_form_that_is_asked_for() -> None:
    assert len(FORMS) >= 2
    for file in FORMS:
        form = read_yaml(file)
        assert {"name", "description", "body"} <= form.keys(), file.name
        named = [each for each in form["body"] if each["type"] != "markdown"]
        assert {each["type"] for each in form["body"]} <= KINDS, file.name
        assert len({each["id"] for each in named}) == len(named), file.name
        assert all(each["attributes"]["label"] for each in named), file.name


def test_a_bug_is_reported_with_what_doctor_says() -> None:
    body = read_yaml(ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml")["body"]
    (asked,) = [each for each in body if each.get("id") == "doctor"]
    assert asked["attributes"]["label"] == "Output of `rag-harness doctor`"
    assert "doctor" in ALONE
    assert asked["validations"] == {"required": True}
    assert asked["attributes"]["render"] == "text"  # else its lines would be read as Markdown


def test_the_citation_is_of_this_version_and_of_this_project() -> None:
    cited, about = read_yaml(ROOT / "CITATION.cff"), parsed_toml((ROOT / "pyproject.toml").read_text())["project"]
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["version"] == VERSION
    assert cited["license"] == about["license"]
    assert [each["name"] for each in cited["authors"]] == [each["name"] for each in about["authors"]]
    assert cited["repository-code"] == about["urls"]["Repository"]
    assert cited["url"] == about["urls"]["Homepage"]


def test_links_of_a_page_lead_to_files() -> None:
    links = [each for name in PAGES for each in found(_LINK, ROOT / name)]
    lost = [f"{where}: {each}" for where, each in links if not (each.startswith("https://") or (ROOT / each).is_file())]
    assert not lost, "\n".join(lost)


def test_the_changelog_has_versions_and_their_known_sections() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Changelog"
    versions = [line for line in lines if line.startswith("## ")]
    assert versions[0] == "## [Unreleased]"
    assert all(re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", line) for line in versions[1:])
    known = ("### Added", "### Changed", "### Deprecated", "### Removed", "### Fixed", "### Security")
    sections = [line for line in lines if line.startswith(("## ", "### "))]
    assert all(line in known for line in sections if line not in versions)
    body = lines[lines.index(versions[0]) :]
    assert all(line.startswith(("- ", "  ", "## ", "### ")) for line in body if line)
    # A section without an entry says nothing.
    filled = [line for line in body if line.startswith(("## ", "### ", "- "))]
    assert not [one for one, other in pairwise(filled) if one.startswith("### ") and not other.startswith("- ")]
