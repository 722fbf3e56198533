from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.core import package
from rag_harness.core.errors import PrerequisiteError, RegistryError, SettingsError
from rag_harness.core.registry import registered
from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.profiles import BUILT_IN_PROFILES, Profile
from rag_harness.evaluation.judges.mock import MockJudge
from rag_harness.evaluation.judges.traits import check_judge
from rag_harness.models.endpoints import check_api_keys, check_user

SECRET = "sk-secret-0123456789"
REMOTE = "https://models.example/v1"


def settings_of(profile: str, mode: Any = "live", **changes: Any) -> Settings:
    chosen: Profile = BUILT_IN_PROFILES[profile]
    names = {name: getattr(chosen, name) for name in Profile.__dataclass_fields__}
    return replace(Settings(profile=profile, mode=mode), **{**names, **changes})


@pytest.fixture(autouse=True)
def no_keys_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "RAG_CHAT_API_KEY", "OWN_KEY", "DRY_RUN"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("mode", ["auto", "replay"])
def test_modes_that_call_no_network_model_need_none(mode: str) -> None:
    check_api_keys(settings_of("openrouter", mode))


@pytest.mark.parametrize("profile", ["embedded", "mock"])
@pytest.mark.parametrize("mode", ["record", "live"])
def test_local_profiles_need_none(profile: str, mode: str) -> None:
    check_api_keys(settings_of(profile, mode))


@pytest.mark.parametrize("mode", ["record", "live"])
def test_both_missing_keys_are_named_at_once(mode: str) -> None:
    with pytest.raises(PrerequisiteError) as caught:
        check_api_keys(settings_of("openrouter", mode))
    said = str(caught.value)
    assert "OPENROUTER_API_KEY is not set" in said
    assert "OPENAI_API_KEY is not set" in said
    assert f"mode {mode} of profile 'openrouter' calls x-ai/grok-beta at https://openrouter.ai" in said
    assert "embeds with text-embedding-3-small at https://api.openai.com" in said
    assert "--rag-profile=embedded" in said


def test_only_what_is_missing_is_named_and_no_key_is_shown() -> None:
    with pytest.raises(PrerequisiteError) as caught:
        check_api_keys(settings_of("openrouter", openrouter_api_key=SECRET))
    assert "OPENROUTER_API_KEY" not in str(caught.value)
    assert SECRET not in str(caught.value)
    check_api_keys(settings_of("openrouter", openrouter_api_key=SECRET, openai_api_key=SECRET))


def test_key_in_a_variable_of_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        f"""[tool.rag_harness.profiles.own]
chat_model = "own/model"
chat_base_url = "{REMOTE}"
chat_api_key_env = "OWN_KEY"
embed_model = "mock/hashed-words"
""",
        encoding="utf-8",
    )
    chosen = {"profile": "own", "mode": "live"}
    with pytest.raises(PrerequisiteError, match="OWN_KEY is not set"):
        check_api_keys(load_settings(chosen, rootdir=tmp_path))
    monkeypatch.setenv("OWN_KEY", SECRET)
    check_api_keys(load_settings(chosen, rootdir=tmp_path))


def test_remote_endpoint_without_a_named_variable() -> None:
    with pytest.raises(PrerequisiteError, match="RAG_CHAT_API_KEY is not set"):
        check_api_keys(settings_of("embedded", chat_base_url=REMOTE))
    check_api_keys(settings_of("embedded", chat_base_url=REMOTE, chat_api_key=SECRET))


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:8000"])
def test_endpoints_on_this_machine_need_none(host: str) -> None:
    url = f"http://{host}/v1"
    check_api_keys(settings_of("openrouter", chat_base_url=url, embed_base_url=url))


@pytest.mark.parametrize("host", ["192.168.1.7:8000", "10.0.0.2", "[fd00::1]:8000", "vllm:8000"])
def test_nor_do_those_of_a_private_network(host: str) -> None:
    test_endpoints_on_this_machine_need_none(host)


@pytest.mark.parametrize("host", ["8.8.8.8", "models.example", "vllm.example:8000"])
def test_servers_of_others_do(host: str) -> None:
    with pytest.raises(PrerequisiteError, match="OPENAI_API_KEY is not set"):
        check_api_keys(settings_of("openrouter", embed_base_url=f"http://{host}/v1", openrouter_api_key=SECRET))


def test_models_that_are_not_called_need_none() -> None:
    check_api_keys(settings_of("openrouter", chat_model="mock:placeholder", embed_model="mock/hashed-words"))


def test_openai_without_a_url_is_the_one_on_the_network() -> None:
    with pytest.raises(PrerequisiteError, match=r"OPENAI_API_KEY is not set.*api\.openai\.com"):
        check_api_keys(settings_of("embedded", embed_model="openai:text-embedding-3-small"))


def test_a_budget_needs_a_price(tmp_path: Path) -> None:
    known = settings_of("openrouter", openrouter_api_key=SECRET, openai_api_key=SECRET, budget=2.5)
    check_api_keys(known)
    strange = replace(known, chat_model="own/model")
    with pytest.raises(PrerequisiteError) as caught:
        check_api_keys(strange)
    assert str(caught.value) == (
        "The budget is 2.5 USD, but 'own/model' has no price. Give it one in a file for --rag-prices, USD per million "
        'tokens, 0 where it is free: [models."own/model"] input = …, output = …. Or leave the budget out.'
    )
    check_api_keys(replace(strange, budget=0.0))
    check_api_keys(replace(strange, mode="replay"))
    (tmp_path / "prices.toml").write_text('[models."own/model"]\ninput = 0\noutput = 0\n')
    check_api_keys(replace(strange, prices=str(tmp_path / "prices.toml")))


@pytest.mark.parametrize("role", ["writer_model", "rewrite_model"])
def test_so_has_every_model_that_is_named_for_a_role(role: str) -> None:
    known = settings_of("openrouter", openrouter_api_key=SECRET, openai_api_key=SECRET, budget=2.5)
    changed: dict[str, Any] = {role: "own/model"}
    with pytest.raises(PrerequisiteError, match="'own/model' has no price"):
        check_api_keys(replace(known, **changed))


@pytest.mark.parametrize("role", ["writer", "rewrite"])
def test_a_model_of_a_server_of_its_own_needs_a_key_of_its_own(role: str) -> None:
    named = {f"{role}_model": "m", f"{role}_base_url": REMOTE}
    with pytest.raises(PrerequisiteError, match=f"RAG_{role.upper()}_API_KEY is not set: mode live calls m at"):
        check_api_keys(settings_of("embedded", **named))
    check_api_keys(settings_of("embedded", **named, **{f"{role}_api_key": SECRET}))
    check_api_keys(settings_of("embedded", **{f"{role}_base_url": REMOTE}))
    check_api_keys(settings_of("embedded", **{**named, f"{role}_base_url": "http://127.0.0.1:8080/v1"}))


def test_the_model_that_plays_users_is_checked_where_it_is_asked() -> None:
    named = {"user_model": "own/model", "user_base_url": REMOTE}
    check_user(settings_of("embedded"))
    check_api_keys(settings_of("embedded", **named))  # a run without scenarios asks no user
    with pytest.raises(PrerequisiteError, match="RAG_USER_API_KEY is not set: mode live calls own/model at"):
        check_user(settings_of("embedded", **named))
    check_user(settings_of("embedded", **named, user_api_key=SECRET))
    check_user(replace(settings_of("embedded", **named), mode="replay"))
    with pytest.raises(PrerequisiteError, match="'own/model' has no price"):
        check_user(settings_of("embedded", **named, user_api_key=SECRET, budget=1.0))
    with pytest.raises(SettingsError, match="no server is named for it: add base_url to the profile's role"):
        check_user(settings_of("embedded", user_model="own/model"))
    with pytest.raises(PrerequisiteError, match="OPENROUTER_API_KEY is not set"):
        check_user(settings_of("openrouter", user_model="openai/gpt-4o-mini"))


def test_two_judges_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, bank = (
        SimpleNamespace(name=name, value=f"{name}:create", dist=SimpleNamespace(name=name), load=lambda: MockJudge)
        for name in "ab"
    )

    def points(points: list[Any]) -> None:
        monkeypatch.setattr(package, "entry_points_by", lambda: lambda group, name="": points)
        registered.cache_clear()

    settings = Settings(judge="a")
    bank.name = "a"
    points([shop, bank])
    with pytest.raises(RegistryError, match=r"2 judges are called 'a': a:create of a and b:create of b\. Which"):
        check_judge(settings)
    points([shop, shop])  # the same one, found in two folders
    check_judge(settings)
    monkeypatch.undo()
    registered.cache_clear()
