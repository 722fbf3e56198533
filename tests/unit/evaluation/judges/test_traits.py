"""What a judge says of itself, wherever it says it, and what follows before the first question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from rag_harness.core import package
from rag_harness.core.errors import PrerequisiteError, SettingsError
from rag_harness.core.protocols import JudgeParts
from rag_harness.core.registry import registered
from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges.mock import MockOpinion
from rag_harness.evaluation.judges.traits import (
    JudgeTraits,
    asks_a_model,
    check_judge,
    judges_asking,
    model_of_judge,
    says_the_same,
    traits,
    traits_of,
)
from rag_harness.evaluation.measures.opinion import Judge
from rag_harness.tables.summary import judge_said

REMOTE = {"chat_model": "gpt-x", "chat_base_url": "https://models.example/v1"}
Register = Callable[[Any], Settings]


class Plain:
    """A judge of an older package: it says nothing of itself."""

    name, model, revision = "own", "rules/1", "1"

    def opinion(self, material: Any, asks: Any) -> MockOpinion:
        return MockOpinion(material)


class Rules(Plain):
    asks_model, deterministic, reads_conversation = False, True, False


class Asks(Plain):
    asks_model, deterministic, reads_conversation = True, False, True


class Later(Plain):
    """A judge that knows only when it is made."""

    def __init__(self, parts: JudgeParts) -> None:
        self.asks_model, self.model = True, parts.settings.judge_model


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    """Let a factory be the judge ``own``, and return settings that name it."""

    def point(factory: Any) -> Settings:
        entry = SimpleNamespace(
            name="own", value="mine:create", dist=SimpleNamespace(name="mine"), load=lambda: factory
        )
        monkeypatch.setattr(package, "entry_points_by", lambda: lambda group, name="": [entry])
        registered.cache_clear()
        return Settings(judge="own", mode="live", judge_model="gpt-j", **REMOTE)

    yield point
    monkeypatch.undo()
    registered.cache_clear()


def made_unsaid(parts):  # type: ignore[no-untyped-def]
    return Rules()


def made_as_protocol(parts: JudgeParts) -> Judge:
    return Rules()


def made_as_itself(parts: JudgeParts) -> Rules:
    raise AssertionError("its class tells all, so it is not made")


@pytest.mark.parametrize("factory", [made_unsaid, made_as_protocol, made_as_itself, Rules])
def test_a_judge_says_it_by_its_class_or_once_it_is_made(register: Register, factory: Any) -> None:
    settings = register(factory)
    assert traits_of(settings) == JudgeTraits(asks_model=False, deterministic=True, reads_conversation=False)
    assert says_the_same(settings)
    assert not asks_a_model(settings)
    assert model_of_judge(settings) == "rules/1"
    check_judge(settings)  # it needs no key


def test_what_it_says_when_it_is_made_counts(register: Register) -> None:
    settings = register(Later)
    assert asks_a_model(settings)
    assert model_of_judge(settings) == "gpt-j"


def broken(parts: JudgeParts) -> Any:
    raise RuntimeError("no such judge here")


@pytest.mark.parametrize("factory", [lambda _parts: Plain(), broken, lambda _parts: MagicMock()])
def test_one_that_says_nothing_is_taken_as_one_that_asks_nobody(register: Register, factory: Any) -> None:
    settings = register(factory)
    assert traits_of(settings) == JudgeTraits(None, deterministic=False, reads_conversation=True)
    assert not asks_a_model(settings)
    check_judge(settings)


def test_one_that_asks_a_model_needs_its_server_its_key_and_a_price(register: Register) -> None:
    settings = register(Asks)
    with pytest.raises(PrerequisiteError, match="RAG_CHAT_API_KEY is not set: mode live judges with gpt-j at https"):
        check_judge(settings)
    with pytest.raises(SettingsError, match="The judge 'own' asks a chat model, but 'gpt-j' is the reader"):
        check_judge(Settings(judge="own", judge_model="gpt-j"))
    keyed = Settings(judge="own", mode="live", judge_model="gpt-j", chat_api_key="sk-1", **REMOTE)
    check_judge(keyed)
    with pytest.raises(PrerequisiteError, match="'gpt-j' has no price"):
        check_judge(Settings(**{**vars(keyed), "budget": 1.0}))


@pytest.mark.parametrize(
    ("asks", "said"),
    [(True, "m (an LLM, method own)"), (False, "m (method own, no LLM)"), (None, "m (method own)")],
)
def test_no_judge_is_called_an_llm_that_does_not_say_it_is_one(asks: bool | None, said: str) -> None:
    assert judge_said("own", "m", asks) == said


def test_the_record_of_a_run_says_of_each_judge_whether_it_asks(register: Register) -> None:
    assert judges_asking(register(Rules), [("own", "rules/1", "1")]) == {"own": False}
    assert judges_asking(register(lambda _parts: Plain()), [("own", "rules/1", "1")]) == {}
    assert judges_asking(register(Rules), [("nobody", "", "")]) == {}


@pytest.mark.parametrize("name", ["embedded", "encoder", "mock", "fused", "ragas"])
def test_the_judges_that_ship_say_it_by_their_class(name: str) -> None:
    found = traits_of(Settings(judge=name))
    assert found.asks_model is not None
    assert found.reads_conversation == found.asks_model
    assert traits(object()) == JudgeTraits()
