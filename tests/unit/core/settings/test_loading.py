"""What is served is what was evaluated, and what a call costs."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.config.findpaths import locate_config
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings, affecting
from rag_harness.core.settings.loading import DataSpec, ini_values, load_settings
from rag_harness.core.settings.profiles import BUILT_IN_PROFILES, EMBEDDED_URL, SHIPPED, Price, Prices, prices_of

# What is served is what was evaluated: the suite's file, as pytest itself finds and reads it.

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
        "The ini key rag_cassettes is not an option any more: the folder is cassettes/ below the one that "
        "--rag-project names."
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


# What a call costs, and what is said of a table that cannot be used.


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("gpt-4o-mini", 0.15),
        ("openai/gpt-4o-mini", 0.15),
        ("openai/gpt-4o-mini:nitro", 0.15),
        ("gpt-4o-mini-2024-07-18", 0.15),
        ("openrouter/openai/gpt-4o-mini", 0.15),
        ("gpt-4o-2024-08-06", 2.5),
        ("gpt-4o-2024-05-13", 5.0),
        ("x-ai/grok-beta", 5.0),
        ("anthropic/claude-3.5-sonnet", 3.0),
        ("claude-3-5-sonnet-20241022", 3.0),
        ("claude-3-5-sonnet-latest", 3.0),
        ("mistral-small-latest", 0.15),
        ("text-embedding-3-small", 0.02),
        ("embedded/extractive", 0.0),
        ("mock/placeholder", 0.0),
        ("own/model", None),
        ("", None),
        ("gpt-4o-minimal", None),
    ],
)
def test_a_million_tokens_of_prompt(model: str, usd: float | None) -> None:
    assert Prices.load().cost(model, 1_000_000, 0) == usd


def test_both_sides_count() -> None:
    assert Prices({"m": Price(1.0, 10.0)}).cost("m", 500_000, 100_000) == pytest.approx(1.5)


@given(st.text(max_size=60))
def test_any_name_can_be_asked_for(model: str) -> None:
    cost = Prices.load().cost(model, 10, 10)
    assert cost is None or cost >= 0


def test_the_shipped_table_prices_the_shipped_profiles() -> None:
    prices = Prices.load()
    assert all(prices.price(profile.chat_model) is not None for profile in BUILT_IN_PROFILES.values())
    assert prices.version == "1"
    assert len(prices.models) > 60
    assert "source = " in SHIPPED.read_text(encoding="utf-8")


def test_a_table_of_ones_own_extends_and_overrides(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(
        'version = "mine"\n[models]\n"own/m" = {input = 1, output = 2}\n"gpt-4o" = {input = 9, output = 9}\n'
    )
    prices = Prices.load(file)
    assert prices.cost("own/m", 1_000_000, 1_000_000) == 3
    assert prices.cost("openai/gpt-4o", 1_000_000, 0) == 9
    assert prices.cost("gpt-4o-mini", 1_000_000, 0) == 0.15
    assert prices.version == "mine"
    assert Prices.load().cost("gpt-4o", 1_000_000, 0) == 2.5


def test_a_table_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text("[models.m]\ninput = 1\noutput = 2\n")
    first = Prices.load(file)
    file.unlink()
    assert Prices.load(str(file)) is first


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('[modles."m"]\ninput = 1\noutput = 1', "Unknown key 'modles'. Did you mean 'models'?"),
        ("[models.m]\ninptu = 1\noutput = 1", "models.'m': Unknown key 'inptu'. Did you mean 'input'?"),
        ("[models.m]\noutput = 1", "models.'m': input is missing. Give USD per million tokens; 0 is free."),
        ("[models.m]\ninput = 1", "models.'m': output is missing."),
        ("[models.m]\ninput = -1\noutput = 1", "models.'m': input is -1: expected a number of USD"),
        ('[models.m]\ninput = "1"\noutput = 1', "models.'m': input is '1': expected a number of USD"),
        ("[models.m]\ninput = true\noutput = 1", "models.'m': input is True: expected a number"),
        ("[models.m]\ninput = nan\noutput = 1", "models.'m': input is nan: expected a number"),
        ("[models.m]\ninput = 1\noutput = inf", "models.'m': output is inf: expected a number"),
        ("[models]\nm = 5", "models.'m' is 5: expected { input = …, output = … }"),
        ("models = 5", "models is 5: expected a table of models."),
        ("[models.gpt-4.1]\ninput = 1\noutput = 1", 'A name with a dot needs quotes: [models."gpt-4.1"].'),
        ("[models", "cannot be read: Expected"),
    ],
)
def test_a_table_with_a_typo_is_named(tmp_path: Path, table: str, said: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(table, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings({"prices": "prices.toml"}, {}, tmp_path)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_table_that_is_not_there_or_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml cannot be read: .*No such file.*--rag-prices"):
        load_settings({"prices": "nowhere.toml"}, {}, tmp_path)
    (tmp_path / "odd.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(SettingsError, match=r"odd\.toml cannot be read"):
        load_settings({"prices": "odd.toml"}, {}, tmp_path)


def test_a_mock_behind_a_server_of_ones_own_is_not_free_by_its_name() -> None:
    here = Settings(chat_model="mock/x", chat_base_url=EMBEDDED_URL)
    there = Settings(chat_model="mock/x", chat_base_url="http://127.0.0.1:9/v1")
    assert prices_of(here).is_free("mock/x")
    assert prices_of(there).price("mock/x") is None
    assert prices_of(there).price("gpt-4o-mini") == prices_of(here).price("gpt-4o-mini") is not None
