"""What a call costs, and what is said of a table that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.profiles import BUILT_IN_PROFILES, EMBEDDED_URL, SHIPPED, Price, Prices, prices_of


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
