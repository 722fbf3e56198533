"""Who is asked in which role: fallbacks, one object for the same question, one budget and one limiter a server."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import RegistryError, SettingsError
from rag_harness.core.settings import Settings, affecting
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.roles import RequestFields
from rag_harness.core.types import Completion, Message
from rag_harness.evaluation.judges.factory import panel_score
from rag_harness.evaluation.judges.traits import check_judge, check_one_judge
from rag_harness.evaluation.measures import Score
from rag_harness.models import endpoints as module
from rag_harness.models.array_store import StoreRoom
from rag_harness.models.calls import asked_again
from rag_harness.models.dry_run import MockChat
from rag_harness.models.endpoints import (
    Endpoint,
    Endpoints,
    PanelMember,
    chat_name,
    endpoint_of,
    key_variable,
    panel_of,
    settings_of_judges,
)
from rag_harness.models.openai_chat import OpenAIChat
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.manifest import judge_label, panel_label
from tests.unit.models.chat.test_openai import stream
from tests.unit.server import refusal, serving

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
