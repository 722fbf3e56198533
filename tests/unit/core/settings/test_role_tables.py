"""Roles as tables of a profile: what they fill in, what goes before them, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings, masked
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.roles import RequestFields
from rag_harness.models.endpoints import panel_of, settings_of_judges
from rag_harness.models.recording.scrubbing import secrets_of

PROFILE = "[tool.rag_harness.profiles.mine]"
ROLE = PROFILE.replace("]", ".{}]")
SENT = {"model": "m", "temperature": 0.0, "max_tokens": 1024, "stream": True, "stream_options": {}, "seed": 7}


@pytest.fixture(autouse=True)
def no_keys_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OWN_KEY", "RAG_JUDGE_API_KEY", "RAG_JUDGE_NEAR_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def loaded(folder: Path, *lines: str, **given: Any) -> Settings:
    (folder / "pyproject.toml").write_text("\n".join(lines), encoding="utf-8")
    return load_settings({"profile": "mine", **given}, {}, folder)


def of_judge(folder: Path, line: str) -> Settings:
    return loaded(folder, ROLE.format("judge"), line)


@pytest.mark.parametrize("role", ["judge", "writer", "rewrite", "user"])
def test_each_role_is_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    monkeypatch.setenv("OWN_KEY", "sk-own-0123456789")
    table = 'model = "m"\nbase_url = "https://m.example/v1"\napi_key_env = "OWN_KEY"\nreasoning_effort = "low"'
    settings = loaded(tmp_path, ROLE.format(role), table)
    found = [getattr(settings, f"{role}_{name}") for name in ("model", "base_url", "api_key")]
    assert found == ["m", "https://m.example/v1", "sk-own-0123456789"]
    assert RequestFields.read(getattr(settings, f"{role}_request")).set == {"reasoning_effort": "low"}
    elsewhere = loaded(tmp_path, ROLE.format(role), table, **{f"{role}_base_url": "https://other.example/v1"})
    assert getattr(elsewhere, f"{role}_api_key") == ""


def test_the_table_of_answers_sets_options_below_the_command_line(tmp_path: Path) -> None:
    table = (
        'model = "gpt-x"\nbase_url = "https://m.example/v1"\ntemperature = 0.7\nseed = 3\nmax_tokens = 99\ntop_p = 0.5'
    )
    settings = loaded(tmp_path, ROLE.format("answer"), table)
    assert (settings.chat_model, settings.chat_base_url) == ("gpt-x", "https://m.example/v1")
    assert (settings.temperature, settings.seed, settings.max_output_tokens) == (0.7, 3, 99)
    assert RequestFields.read(settings.chat_request) == RequestFields({"top_p": 0.5})
    said = loaded(tmp_path, ROLE.format("answer"), table, temperature=0.0)
    assert (said.temperature, said.seed) == (0.0, 3)
    assert loaded(tmp_path, ROLE.format("answer"), 'drop = ["temperature", "seed"]', temperature=0.2).chat_request == (
        RequestFields(drop=("seed",)).text
    )


def test_a_profile_without_tables_is_as_it_was(tmp_path: Path) -> None:
    settings = loaded(tmp_path, PROFILE, 'chat_model = "m"')
    assert not any([settings.chat_request, settings.judge_request, settings.user_request, settings.judge_tables])
    assert RequestFields.read("").applied(SENT) == SENT


def test_fields_are_set_and_dropped(tmp_path: Path) -> None:
    lines = 'drop = ["stream", "temperature"]\nmax_completion_tokens = 9\nextra_body = { provider = { only = ["x"] } }'
    fields = RequestFields.read(of_judge(tmp_path, lines).judge_request)
    assert fields.applied(SENT) == {"model": "m", "seed": 7, "max_completion_tokens": 9, "provider": {"only": ["x"]}}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("temprature = 0", "Unknown field 'temprature'. Did you mean 'temperature'?"),
        ('modle = "x"', "Unknown field 'modle'. Did you mean 'model'?"),
        ('api_key = "sk-1"', "Unknown field 'api_key'. Did you mean 'api_key_env'?"),
        ("top_k = 3", "What only your server knows stands in extra_body = { top_k = … }."),
        ('drop = ["temprature"]', "drop: Unknown field 'temprature'. Did you mean 'temperature'?"),
        ('drop = ["messages"]', "drop: Unknown field 'messages'."),
        ('drop = "seed"', "drop is 'seed': expected a list of fields, [\"temperature\"]"),
        ('seed = 1\ndrop = ["seed"]', "seed is set, and it is in drop: keep one of them"),
        ("max_tokens = 1\nmax_completion_tokens = 2", "max_tokens and max_completion_tokens are one limit"),
        (
            "stream = false",
            'stream cannot be set: the harness decides it, because it reads the reply. drop = ["stream"]',
        ),
        ("n = 2", "n cannot be set: the harness decides it"),
        ("extra_body = { messages = [] }", "extra_body: messages cannot be set"),
        ("extra_body = { seed = 1 }", "extra_body: seed is a field of its own: write it beside extra_body"),
        ('extra_body = { api_key = "sk-1" }', "extra_body: api_key looks like a key"),
        ("extra_body = { day = 1979-05-27 }", "cannot be sent: expected what JSON has"),
        ("temperature = true", "temperature is True: expected a number"),
        ("temperature = nan", "temperature is nan: expected a number"),
        ("temperature = -1", "temperature is -1: expected 0 or more"),
        ("seed = 1.5", "seed is 1.5: expected a whole number"),
        ("max_tokens = 0", "max_tokens is 0: expected 1 or more"),
        ("reasoning_effort = 3", "reasoning_effort is 3: expected a text"),
        ("model = 3", "model is 3: expected a string"),
        ('base_url = "https://sk-1@m.example/v1"', "base_url holds a user or a password"),
        ('base_url = "https://m.example/v1?key=sk-1"', "base_url holds the value of 'key'"),
        ('base_url = "https://[::1"', "base_url is no address"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        of_judge(tmp_path, line)
    assert str(caught.value).startswith("pyproject.toml, profile 'mine', role 'judge'")
    assert said in str(caught.value)
    assert "sk-1" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((PROFILE, "judge = 3"), "role 'judge' is 3: expected a table"),
        ((PROFILE, 'judge_model = "m"'), "judge_model: write model into [tool.rag_harness.profiles.mine.judge]"),
        ((PROFILE, 'chat_model = "m"', ROLE.format("answer"), 'model = "n"'), "chat_model is said twice"),
        ((ROLE.format("jugde"), 'model = "m"'), "Unknown key 'jugde'. Did you mean 'judge'?"),
        ((PROFILE, "judges = 3"), "judges is 3: expected tables, one a judge"),
        ((ROLE.format("judges"), "near = 3"), "judge 'near' is 3: expected a table"),
        ((ROLE.format("judges.near"), "tempreature = 1"), "judge 'near': Unknown field 'tempreature'"),
        ((ROLE.format('judges."a,b"'), 'model = "m"'), "a name has no comma"),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path: Path, lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, *lines)
    assert said in str(caught.value)


PANEL = (
    ROLE.format("judge"),
    'model = "far"\nbase_url = "https://far.example/v1"\napi_key_env = "OWN_KEY"\ntemperature = 0.5',
    ROLE.format("judges.near"),
    'model = "meta/llama-3:8b"\nbase_url = "https://near.example/v1"\ndrop = ["temperature"]',
)


def test_each_judge_of_a_panel_has_its_address_its_key_and_its_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_KEY", "sk-of-far-0123456789")
    settings = loaded(tmp_path, *PANEL, judge="fused@near,fused,fused@other", panel="mean")
    found = [(each.judge_model, each.judge_base_url, each.judge_api_key) for each in settings_of_judges(settings)]
    far = "https://far.example/v1", "sk-of-far-0123456789"
    assert found == [("meta/llama-3:8b", "https://near.example/v1", ""), ("far", *far), ("other", *far)]
    drop, warm = RequestFields(drop=("temperature",)).text, RequestFields({"temperature": 0.5}).text
    assert [each.judge_request for each in settings_of_judges(settings)] == [drop, warm, warm]
    monkeypatch.setenv("RAG_JUDGE_NEAR_API_KEY", "sk-of-near-0123456789")
    assert settings_of_judges(settings)[0].judge_api_key == "sk-of-near-0123456789"
    assert "sk-of-near-0123456789" in secrets_of(settings)
    assert "sk-of" not in f"{settings!r} {masked(settings)}"


def test_one_judge_may_be_a_table_too(tmp_path: Path) -> None:
    settings = loaded(tmp_path, *PANEL, judge="fused@near")
    assert (settings.judge, settings.judge_model) == ("fused", "meta/llama-3:8b")
    assert settings.judge_base_url == "https://near.example/v1"
    assert settings_of_judges(settings) == (settings,)


def test_two_tables_of_one_model_are_refused(tmp_path: Path) -> None:
    again = (ROLE.format("judges.again"), 'model = "meta/llama-3:8b"')
    settings = loaded(tmp_path, *PANEL, *again)
    with pytest.raises(SettingsError, match=r"twice: fused@meta/llama-3:8b\. Scores are kept under both names"):
        panel_of(replace(settings, judge="fused@near,fused@again", panel="mean"))
