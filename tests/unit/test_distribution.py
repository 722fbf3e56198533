"""What stands in pyproject.toml for the package index, and what goes into the archives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rag_harness
from rag_harness.core import package
from rag_harness.core.settings.profiles import parsed_toml

ROOT = Path(__file__).parents[2]
PROJECT: Mapping[str, Any] = parsed_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ABOUT, TARGETS = PROJECT["project"], PROJECT["tool"]["hatch"]["build"]["targets"]
FROM_PEP_301 = re.compile(r"[^:]+( :: [^:]+)+")


def test_name_and_version_are_those_that_the_code_says() -> None:
    assert (ABOUT["name"], ABOUT["version"]) == (package.NAME, package.VERSION)
    assert package.version() == package.VERSION == rag_harness.__version__
    assert ABOUT["scripts"] == {package.COMMAND: "rag_harness.__main__:main"}


def test_what_the_index_shows_is_there() -> None:
    shown = ["description", "readme", "license", "authors", "keywords", "classifiers", "urls"]
    assert [key for key in shown if not ABOUT.get(key)] == []


def test_files_that_are_named_are_there() -> None:
    for name in (ABOUT["readme"], *ABOUT["license-files"]):
        assert (ROOT / name).is_file()


def test_urls_have_the_labels_that_the_index_knows() -> None:
    assert {"homepage", "documentation", "repository", "issues", "changelog"} == {
        each.lower() for each in ABOUT["urls"]
    }
    assert all(url.startswith("https://") for url in ABOUT["urls"].values())


def test_classifiers_are_well_formed_and_say_no_licence_beside_the_expression() -> None:
    assert len(set(ABOUT["classifiers"])) == len(ABOUT["classifiers"])
    for each in ABOUT["classifiers"]:
        assert FROM_PEP_301.fullmatch(each)
        assert not each.startswith("License ::")  # the index refuses both
    assert len(set(ABOUT["keywords"])) == len(ABOUT["keywords"])


def test_the_wheel_is_the_package_alone() -> None:
    assert TARGETS["wheel"] == {"packages": ["rag_harness"]}
    assert not [each for each in (ROOT / "rag_harness").rglob("*.py") if re.fullmatch(r"test_.*|conftest", each.stem)]


def test_the_source_archive_leaves_recordings_out_and_keeps_what_is_built_from() -> None:
    left_out = TARGETS["sdist"]["exclude"]
    assert "/cassettes" in left_out
    assert all(each.startswith("/") for each in left_out)  # a bare name would leave out folders of the package, too
    needed = {"/rag_harness", "/pyproject.toml", *(f"/{each}" for each in (ABOUT["readme"], *ABOUT["license-files"]))}
    assert not needed & set(left_out)


def test_what_the_source_archive_holds_is_small() -> None:
    folders = (ROOT / name for name in ("rag_harness", "docs", "data", "tests", "benchmarks"))
    files = [each for folder in folders for each in folder.rglob("*") if "__pycache__" not in each.parts]
    sizes = {each: each.stat().st_size for each in files if each.is_file()}
    # Uncompressed. The archive has 5 MB of them now, and may have 15.
    assert sum(sizes.values()) < 30_000_000, sorted(sizes.items(), key=lambda each: -each[1])[:5]
