"""What is served is what was evaluated: the suite's file, as pytest itself finds and reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.config.findpaths import locate_config

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings.loading import ini_values

INI = "[pytest]\nrag_kb_dir = {kb}\nrag_gate =\n    e3: recall@5 >= 0.6\nrag_profile =\n"
FILES = {
    "pytest.toml": '[pytest]\nrag_kb_dir = "{kb}"\n',
    "pytest.ini": INI,
    ".pytest.ini": INI,
    "pyproject.toml": '[tool.pytest.ini_options]\nrag_kb_dir = "{kb}"\n',
    "tox.ini": INI,
    "setup.cfg": INI.replace("[pytest]", "[tool:pytest]"),
}


def of_pytest(folder: Path) -> object:
    found = locate_config(folder, [])[2]
    value = found.get("rag_kb_dir")
    return None if value is None else value.value


@pytest.mark.parametrize("names", [(name,) for name in FILES] + [tuple(FILES)[at : at + 2] for at in range(5)])
def test_the_file_that_pytest_reads_is_read(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).write_text(FILES[name].format(kb=f"of {name}"), encoding="utf-8")
    assert ini_values(tmp_path) == {"kb_dir": of_pytest(tmp_path)}


@pytest.mark.parametrize("name", ["pytest.ini", "pytest.toml"])
def test_a_file_named_for_pytest_hides_the_others_even_if_it_is_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(FILES["pyproject.toml"].format(kb="kb"), encoding="utf-8")
    assert ini_values(tmp_path) == {}
    assert of_pytest(tmp_path) is None


def test_a_table_of_pytest_9_counts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest]\nrag_kb_dir = "kb"\n', encoding="utf-8")
    assert ini_values(tmp_path) == {"kb_dir": of_pytest(tmp_path)} == {"kb_dir": "kb"}


@pytest.mark.parametrize(
    ("name", "text"), [("setup.cfg", "[metadata]\nname = x\n"), ("pyproject.toml", '[project]\nname = "x"\n')]
)
def test_a_file_without_the_section_sets_nothing(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert ini_values(tmp_path) == {}


def test_no_key_is_taken_from_a_file_that_is_committed(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nrag_chat_api_key = secret\nrag_top_k = 7\n", encoding="utf-8")
    assert ini_values(tmp_path) == {"top_k": "7"}


@pytest.mark.parametrize(("name", "text"), [("pytest.ini", "[pytest\n"), ("pytest.toml", "[pytest\n")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=name):
        ini_values(tmp_path)


def test_a_list_of_questions_is_read_and_one_that_judges_a_run_is_not(tmp_path: Path) -> None:
    lists = "rag_query_types =\n    own\n    other\nrag_gate =\n    e3: recall@5 >= 0.6\n"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{lists}")
    assert list(ini_values(tmp_path)) == ["query_types"]


def test_an_option_that_was_removed_is_refused_with_its_successor(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nrag_cassettes = recorded\n")
    with pytest.raises(SettingsError) as caught:
        ini_values(tmp_path)
    assert str(caught.value) == (
        "The ini key rag_cassettes is no option any more: the folder is cassettes/ below the one that --rag-project "
        "names."
    )
