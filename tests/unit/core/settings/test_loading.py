"""What is served is what was evaluated: the suite's file, as pytest itself finds and reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.config.findpaths import locate_config

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings, affecting
from rag_harness.core.settings.loading import DataSpec, ini_values, load_settings

# What is served is what was evaluated: the suite's file, as pytest itself finds and reads it.

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


# Options of a user's own parts: declared in pyproject.toml, set by name, known to the fingerprint.

DECLARED = """
[tool.rag_harness.options.boost]
default = 0.15
affects = "retrieval"
[tool.rag_harness.options.terse]
default = false
affects = "generation"
"""


def loaded(root: Path, *define: str, declared: str = DECLARED) -> Settings:
    (root / "pyproject.toml").write_text(declared)
    return load_settings({"define": list(define)}, rootdir=root)


def test_a_declared_option_has_its_default_or_what_was_given(tmp_path: Path) -> None:
    assert loaded(tmp_path).own == {"boost": 0.15, "terse": False}
    assert loaded(tmp_path, "boost=1", "terse = Yes").own == {"boost": 1.0, "terse": True}


def test_it_counts_where_it_says(tmp_path: Path) -> None:
    one, other = loaded(tmp_path), loaded(tmp_path, "boost=0.2")
    assert affecting(one, "retrieval") != affecting(other, "retrieval")
    assert affecting(one, "generation", "reranking") == affecting(other, "generation", "reranking")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("boots=1", "Unknown option 'boots'. Did you mean 'boost'?"),
        ("boost", "expected NAME=VALUE"),
        ("boost=much", "expected float, as its default 0.15 is"),
        ("terse=maybe", "expected bool"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(tmp_path: Path, given: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("boost = 3", "expected a table with default and affects"),
        ("boost = {default = 1}", "affects says what results it changes"),
        ("boost = {default = [1], affects = 'retrieval'}", "expected a string, a number or a boolean"),
        ("boost = {default = 1, affects = 'retrieval', typ = 'int'}", "Unknown key 'typ'"),
    ],
)
def test_a_declaration_that_says_too_little_is_refused(tmp_path: Path, declared: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, declared=f"[tool.rag_harness.options]\n{declared}\n")
    assert said in str(caught.value)


# Named data: tables of pyproject.toml; a knowledge base on the command line stands in for all of them.

BOOK = """
[tool.rag_harness.data.book]
kb = "book"
queries = "book/questions.jsonl"
gates = ["t1: recall@5 >= 0.8"]
"""


def test_it_is_read_from_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(BOOK)
    found = load_settings(rootdir=tmp_path).data
    assert found == (DataSpec("book", "book", "book/questions.jsonl", "", (), ("t1: recall@5 >= 0.8",)),)


def test_a_knowledge_base_on_the_command_line_replaces_it_and_its_gates(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(BOOK)
    (found,) = load_settings({"kb_dir": "mine"}, rootdir=tmp_path).data
    assert (found.name, found.kb, found.queries, found.instead) == ("book", "mine", "", "mine")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("book = 3", "expected a table with kb"),
        ("book = {queries = 'q.jsonl'}", "has no kb"),
        ("golden = {kb = 'x'}", "the name is taken"),
        ("book = {kb = 3}", "kb is 3: expected a string"),
        ("book = {kb = 'x', gates = 'e1: x >= 1'}", "expected a list of strings"),
        ("book = {kb = 'x', querys = 'q'}", "Unknown key 'querys'. Did you mean 'queries'?"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, table: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.rag_harness.data]\n{table}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(rootdir=tmp_path)
    assert said in str(caught.value)


# Phrases of a suite that decline.


def refusals(root: Path, written: str) -> tuple[str, ...]:
    (root / "pyproject.toml").write_text(f"[tool.rag_harness]\nrefusals = {written}\n", encoding="utf-8")
    return load_settings(rootdir=root).refusals


def test_a_suite_adds_its_phrases(tmp_path: Path) -> None:
    assert refusals(tmp_path, '["OUT_OF_SCOPE", "Sorry, chef"]') == ("OUT_OF_SCOPE", "Sorry, chef")
    assert load_settings(rootdir=tmp_path / "elsewhere").refusals == ()


@pytest.mark.parametrize("written", ['"OUT_OF_SCOPE"', "[1]", '["", "a b c"]', '["no"]', "{ a = 1 }"])
def test_what_is_no_list_of_phrases_is_refused(tmp_path: Path, written: str) -> None:
    with pytest.raises(SettingsError, match="refusals"):
        refusals(tmp_path, written)
