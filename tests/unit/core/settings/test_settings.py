"""Where a setting comes from, which source wins, and what roles of a profile fill in."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings, env_name, masked, options
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.roles import RequestFields
from rag_harness.models.endpoints import panel_of, settings_of_judges
from rag_harness.models.recording.scrubbing import secrets_of

# Where a setting comes from, which source wins, and what is said of a value that cannot be used.

SECRETS = [each.name for each in fields(Settings) if each.metadata.get("secret")]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in fields(Settings):
        monkeypatch.delenv(env_name(each), raising=False)


def write_profile(rootdir: Path, lines: str) -> None:
    (rootdir / "pyproject.toml").write_text(f"[tool.rag_harness.profiles.mine]\n{lines}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "variable", "raw", "read", "default"),
    [
        ("top_k", "RAG_TOP_K", ["1", "2", "3", "4"], [1, 2, 3, 4], 5),
        ("max_unmeasured", "RAG_MAX_UNMEASURED", ["0.1", "0.2", "0.3", "0.4"], [0.1, 0.2, 0.3, 0.4], 0.05),
        ("mode", "RAG_MODE", ["live", "record", "replay", "live"], ["live", "record", "replay", "live"], "auto"),
        ("overwrite", "OVERWRITE", ["yes", "false", "1", "0"], [True, False, True, False], False),
        ("kb_dir", "KB_DIR", ["a", "b", "c", "d"], ["a", "b", "c", "d"], "data/kb"),
        ("gate", "RAG_GATE", [["a", "b"], "c; d", "e", ["f"]], [("a", "b"), ("c", "d"), ("e",), ("f",)], ()),
    ],
)
def test_command_line_then_environment_then_dotenv_then_ini_then_default(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    variable: str,
    raw: list[Any],
    read: list[Any],
    default: Any,
) -> None:
    def found(command_line: dict[str, Any], ini: dict[str, Any]) -> Any:
        return getattr(load_settings(command_line, ini, tmp_path), name)

    assert found({}, {}) == default
    assert found({}, {name: raw[3]}) == read[3]
    (tmp_path / ".env").write_text(f'{variable}="{raw[2]}"\n')
    assert found({}, {name: raw[3]}) == read[2]
    monkeypatch.setenv(variable, raw[1])
    assert found({}, {name: raw[3]}) == read[1]
    assert found({name: raw[0]}, {name: raw[3]}) == read[0]


def test_a_variable_may_have_small_letters_and_gives_nothing_where_it_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("KB_DIR=pages\nRAG_TOP_K=\nrag_run=first\n")
    for name, value in {"KB_DIR": "", "rag_chunk_size": "300", "TOP_K": "3"}.items():
        monkeypatch.setenv(name, value)
    found = load_settings({}, {"top_k": "7"}, tmp_path)
    assert (found.kb_dir, found.top_k, found.run, found.chunk_size) == ("pages", 7, ("first",), 300)


def test_a_profile_stands_below_ini_and_above_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_profile(tmp_path, 'embed_model = "from-profile"')
    assert load_settings({}, {}, tmp_path).embed_model == "sentence-transformers/all-MiniLM-L6-v2"
    asked = {"profile": "mine"}
    assert load_settings(asked, {}, tmp_path).embed_model == "from-profile"
    assert load_settings(asked, {"embed_model": "from-ini"}, tmp_path).embed_model == "from-ini"
    monkeypatch.setenv("RAG_EMBED_MODEL", "from-environment")
    assert load_settings(asked, {"embed_model": "from-ini"}, tmp_path).embed_model == "from-environment"


@pytest.mark.parametrize("value", ["true", "1", "yes", "TRUE"])
def test_dry_run_is_replay_and_beats_a_mode_of_environment_and_ini(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("DRY_RUN", value)
    monkeypatch.setenv("RAG_MODE", "live")
    settings = load_settings({}, {"mode": "record"}, tmp_path)
    assert (settings.mode, settings.dry_run) == ("replay", True)
    assert load_settings({"mode": "replay"}, {}, tmp_path).mode == "replay"


def test_dry_run_against_the_command_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRY_RUN", "true")
    with pytest.raises(SettingsError) as caught:
        load_settings({"mode": "record"}, {}, tmp_path)
    assert str(caught.value) == (
        "DRY_RUN is true, which is mode replay, but --rag-mode asks for record. "
        "Leave --rag-mode out, or set DRY_RUN=false."
    )


@pytest.mark.parametrize("name", ["DRY_RUN", "OVERWRITE", "KB_DIR", "RAG_TOP_K", "RAG_MODE", "OPENAI_API_KEY"])
def test_an_empty_variable_counts_as_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    without = load_settings({}, {}, tmp_path)
    monkeypatch.setenv(name, "")
    assert load_settings({}, {}, tmp_path) == without


def test_variables_that_are_not_ours_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without = load_settings({}, {}, tmp_path)
    ours = {env_name(each) for each in fields(Settings)}
    for each in fields(Settings):
        if each.name.upper() not in ours:
            monkeypatch.setenv(each.name.upper(), "7")
    assert load_settings({}, {}, tmp_path) == without


def test_a_variable_that_was_renamed_is_told_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = r"^The variable RAG_INCONCLUSIVE is not an option any more: it is called undecided\.$"
    (tmp_path / ".env").write_text("RAG_INCONCLUSIVE=fail")
    with pytest.raises(SettingsError, match=said):
        load_settings(rootdir=tmp_path)
    (tmp_path / ".env").unlink()
    monkeypatch.setenv("RAG_INCONCLUSIVE", "fail")
    with pytest.raises(SettingsError, match=said):
        load_settings(rootdir=tmp_path)


def test_dotenv_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("\ufeffKB_DIR=pages\n", encoding="utf-8")
    assert load_settings({}, {}, tmp_path).kb_dir == "pages"


def test_dotenv_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"KB_DIR=caf\xe9\n")
    with pytest.raises(SettingsError) as caught:
        load_settings({}, {}, tmp_path)
    assert str(caught.value) == f"{tmp_path / '.env'}: not UTF-8 at byte 10. Save the file as UTF-8."


def settings_error(tmp_path: Path, **command_line: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(command_line, {}, tmp_path)
    return str(caught.value)


def test_a_bad_number_names_option_value_and_every_place(tmp_path: Path) -> None:
    assert settings_error(tmp_path, concurrency="many") == (
        "concurrency is 'many': Input should be a valid integer, unable to parse string as an integer. "
        "Set it with --rag-concurrency, RAG_CONCURRENCY or the ini key rag_concurrency."
    )


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("concurrency", "0", "Input should be greater than or equal to 1"),
        ("budget", "-1", "Input should be greater than or equal to 0"),
        ("budget", "nan", "Input should be a finite number"),
        ("rpm", "-3", "Input should be greater than or equal to 0"),
        ("tpm", "lots", "Input should be a valid number, unable to parse string as a number"),
        ("deadline", "0", "Input should be greater than 0"),
    ],
)
def test_a_limit_that_cannot_be_kept(tmp_path: Path, name: str, value: str, rule: str) -> None:
    assert settings_error(tmp_path, **{name: value}) == (
        f"{name} is {value!r}: {rule}. Set it with --rag-{name}, RAG_{name.upper()} or the ini key rag_{name}."
    )


def test_an_unknown_mode_lists_the_modes(tmp_path: Path) -> None:
    assert settings_error(tmp_path, mode="rply") == (
        "mode is 'rply': Input should be 'auto', 'replay', 'record' or 'live'. "
        "Set it with --rag-mode, RAG_MODE or the ini key rag_mode."
    )


def test_an_option_without_a_flag_names_only_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRY_RUN", "perhaps")
    assert settings_error(tmp_path) == (
        "dry_run is 'perhaps': Input should be a valid boolean, unable to interpret input. "
        "Set it with DRY_RUN in the environment or .env."
    )


def test_every_bad_value_is_reported_at_once(tmp_path: Path) -> None:
    lines = settings_error(tmp_path, concurrency="0", timeout="inf", temperature="nan", chunk_size="3").splitlines()
    assert {line.partition(" ")[0] for line in lines} == {"concurrency", "timeout", "temperature", "chunk_size"}


def test_an_unknown_profile_is_told_its_nearest(tmp_path: Path) -> None:
    assert settings_error(tmp_path, profile="openruter") == (
        "Unknown profile 'openruter'. Did you mean 'openrouter'? Known: embedded, mock, openrouter, simulated."
    )


@pytest.mark.parametrize("overlap", [100, 101])
def test_overlap_must_be_less_than_the_chunk(tmp_path: Path, overlap: int) -> None:
    expected = f"chunk_overlap is {overlap}, but must be less than chunk_size 100."
    assert settings_error(tmp_path, chunk_size=100, chunk_overlap=overlap) == expected
    assert load_settings({"chunk_size": 100, "chunk_overlap": 99}, {}, tmp_path).chunk_overlap == 99


def test_an_own_profile_fills_in_what_it_leaves_out(tmp_path: Path) -> None:
    write_profile(tmp_path, 'chat_model = "llama"\nrerank_model = "mine"')
    settings = load_settings({"profile": "mine"}, {}, tmp_path)
    assert (settings.chat_model, settings.rerank_model) == ("llama", "mine")
    assert (settings.chat_base_url, settings.chat_api_key_env) == ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY")


@pytest.mark.parametrize(
    ("pyproject", "message"),
    [
        (
            '[tool.rag_harness.profiles.mine]\nchat_modle = "x"',
            "pyproject.toml, profile 'mine': Unknown key 'chat_modle'. Did you mean 'chat_model'? Known: "
            "answer, chat_api_key_env, chat_base_url, chat_model, embed_base_url, embed_model, judge, judges, "
            "rerank_model, rewrite, stores_of, user, writer.",
        ),
        (
            "[tool.rag_harness.profiles.mine]\nchat_model = 5",
            "pyproject.toml, profile 'mine': chat_model is 5: expected a string.",
        ),
        (
            '[tool.rag_harness.profiles]\nmine = "x"',
            "pyproject.toml, profile 'mine' is 'x': expected a table, [tool.rag_harness.profiles.mine].",
        ),
        (
            "[tool.rag_harness]\nprofiles = 3",
            "{file}: tool.rag_harness.profiles is 3: expected tables, one a profile.",
        ),
        ("[tool", "{file} cannot be read: Expected ']' at the end of a table declaration (at end of document)"),
    ],
)
def test_a_profile_table_that_cannot_be_used(tmp_path: Path, pyproject: str, message: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(pyproject)
    assert settings_error(tmp_path) == message.format(file=file)


def test_keys_come_from_the_environment_or_dotenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("OPENROUTER_API_KEY=or-dotenv\nOPENAI_API_KEY=oa-dotenv\n")
    monkeypatch.setenv("OPENAI_API_KEY", "oa-environment")
    settings = load_settings({"profile": "openrouter"}, {}, tmp_path)
    assert (settings.chat_key, settings.openai_api_key) == ("or-dotenv", "oa-environment")
    monkeypatch.setenv("RAG_CHAT_API_KEY", "own")
    assert load_settings({"profile": "openrouter"}, {}, tmp_path).chat_key == "own"


def test_the_key_that_an_own_profile_names_may_stand_in_dotenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_profile(tmp_path, 'chat_base_url = "https://a.example/v1"\nchat_api_key_env = "EXAMPLE_KEY"')
    (tmp_path / ".env").write_text("EXAMPLE_KEY=from-dotenv\n")
    assert load_settings({"profile": "mine"}, {}, tmp_path).chat_key == "from-dotenv"
    monkeypatch.setenv("EXAMPLE_KEY", "from-environment")
    assert load_settings({"profile": "mine"}, {}, tmp_path).chat_key == "from-environment"


def test_a_key_is_not_sent_to_another_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "or-secret")
    write_profile(tmp_path, 'chat_base_url = "https://a.example/v1"')
    assert load_settings({"profile": "openrouter"}, {}, tmp_path).chat_key == "or-secret"
    assert load_settings({"profile": "mine"}, {}, tmp_path).chat_key == ""
    elsewhere = {"profile": "openrouter", "chat_base_url": "https://a.example/v1"}
    assert load_settings(elsewhere, {}, tmp_path).chat_key == ""


@given(st.fixed_dictionaries({name: st.text(min_size=6) for name in SECRETS}))
def test_no_key_is_shown(keys: dict[str, str]) -> None:
    held: dict[str, Any] = dict(keys)
    settings = replace(Settings(), **held)
    assert {name: masked(settings)[name] for name in SECRETS} == dict.fromkeys(SECRETS, "set")
    assert masked(settings) | dict.fromkeys(SECRETS, "not set") == masked(Settings())
    assert repr(settings) == repr(Settings())


def test_masked_says_which_keys_are_missing() -> None:
    assert {masked(Settings())[name] for name in SECRETS} == {"not set"}


def test_keys_have_no_flag() -> None:
    assert {each.name for each in options()} & {*SECRETS, "dry_run", "rootdir"} == set()


def test_paths_start_from_rootdir() -> None:
    settings = Settings(rootdir="/suite", kb_dir="pages")
    assert settings.queries_path == Path("/suite/pages/queries.jsonl")
    assert Settings(rootdir="/suite", queries="/q.jsonl").queries_path == Path("/q.jsonl")


def test_importing_the_table_costs_nothing() -> None:
    code = "import sys, rag_harness.core.settings.table; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pydantic", "numpy", "pytest"} & set(loaded)


# Roles as tables of a profile: what they fill in, what goes before them, what is refused.

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
        ("top_k = 3", "Put what only your server knows into extra_body = { top_k = … }."),
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
        ('base_url = "https://[::1"', "base_url is not an address"),
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
