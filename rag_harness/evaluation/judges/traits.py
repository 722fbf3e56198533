"""Traits, costs and parts of judges and of panels, and their checks before the first query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from inspect import getattr_static, isclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from rag_harness.core.errors import ModelOutputError, RegistryError, SettingsError, unknown
from rag_harness.core.log import log
from rag_harness.core.protocols import ChatModel, JudgeParts, TextEmbedder
from rag_harness.core.registry import registered, resolve, rivals, stated_truth
from rag_harness.core.settings import Settings, access_of
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.models.calls import asked_again
from rag_harness.models.endpoints import (
    Endpoints,
    check_called,
    endpoint_of,
    judge_name,
    judges_in_process,
    settings_of_judges,
)

if TYPE_CHECKING:
    from rag_harness.models.array_store import ArrayStore
    from rag_harness.pipelines.parts import RunParts


@dataclass(frozen=True, slots=True)
class JudgeTraits:
    """The attributes of a judge of these names. One that does not state them has these values.

    Attributes:
        asks_model: whether it asks the chat model of role ``judge``; None where it does not say.
        deterministic: whether it says the same of the same answer, however often it is asked.
        reads_conversation: whether it understands a question with the messages before it. One that compares words does
            not.
    """

    asks_model: bool | None = None
    deterministic: bool = False
    reads_conversation: bool = True


_NAMES = ("asks_model", "deterministic", "reads_conversation")


def traits(judge: Any) -> JudgeTraits:
    """Return the traits that a judge, or its class, states."""
    stated = {name: said for name in _NAMES if (said := stated_truth(judge, name)) is not None}
    return JudgeTraits(**stated)


def traits_of(settings: Settings) -> JudgeTraits:
    """Return the traits of the judge that the settings name; none where it is not installed here.

    It is made only where its class does not tell.
    """
    factory = _factory(judge_name(settings))
    kind = _class_of(factory)
    if kind is not None and all(stated_truth(kind, name) is not None for name in _NAMES):
        return traits(kind)
    return traits(_made(factory, settings))


def asks_a_model(settings: Settings) -> bool:
    """Return whether a judge of the run asks the chat model of role ``judge``."""
    return any(
        not judges_in_process(each) and bool(traits_of(each).asks_model) for each in settings_of_judges(settings)
    )


def judges_asking(settings: Settings, authors: Sequence[tuple[str, str, str]]) -> dict[str, bool]:
    """Return whether each judge of a run asks a model, by its name; without those that do not say.

    ``authors`` are the judges that judged, those of a panel in its order, by name, model and revision.
    """
    each = settings_of_judges(settings) if authors else ()
    pairs = zip(authors, each, strict=False) if settings.panel else ((author, each[0]) for author in authors)
    said = {author[0]: traits_of(judge).asks_model for author, judge in pairs if author[1]}
    return {name: asks for name, asks in said.items() if asks is not None}


def says_the_same(settings: Settings) -> bool:
    """Return whether a repeated judgement always gives the same result, because the judge is deterministic."""
    return traits_of(settings).deterministic


def model_of_judge(settings: Settings) -> str:
    """Return the name of the model that the settings' judge has: that of role ``judge``, or its own."""
    if not judges_in_process(settings) and traits_of(settings).asks_model:
        return endpoint_of(settings, "judge").model
    factory = _factory(judge_name(settings))
    stated = getattr_static(_class_of(factory), "model", None)
    return stated if isinstance(stated, str) else str(getattr(_made(factory, settings), "model", settings.judge_model))


def _factory(name: str) -> Any:
    """Return what makes the judge of this name; None where it is not installed, or cannot be imported."""
    try:
        return resolve("judges", name)
    except Exception as error:  # a user's own module may raise anything; who judges with it is told so
        log.info("The judge %s cannot be imported, so it does not say what it is: %s", name, error)
        return None


def _class_of(factory: Any) -> type | None:
    """Return the class of a factory's product: it is this class, or its annotation names one."""
    if isclass(factory):
        return factory
    try:
        found = get_type_hints(factory).get("return")
    except Exception:  # an annotation may name anything, also what is not imported
        return None
    return found if isclass(found) and not getattr(found, "_is_protocol", False) else None


@lru_cache(maxsize=16)
def _made(factory: Any, settings: Settings) -> Any:
    """Return the judge, made for its attributes alone; None where it cannot be made."""
    pass  # imported for judges of a project only
    from rag_harness.pipelines.parts import RunParts

    try:
        return factory(CountedParts(RunParts(settings)))
    except Exception as error:  # the same: who judges with it is told so
        log.info("The judge %s cannot be made, so it does not say what it is: %s", judge_name(settings), error)
        return None


# The cost of judging a row: tokens and calls of the judge's model. They count for the row that asked first.


@dataclass
class JudgingCost:
    """Tokens and calls of one row's judging; ``recorded`` is the number of replayed calls."""

    usage: Usage = Usage()
    recorded: int = 0

    def add(self, completion: Completion) -> None:
        """Count a reply."""
        self.usage += completion.usage
        self.recorded += completion.recorded


_counting: ContextVar[JudgingCost | None] = ContextVar("rag_judge_spent", default=None)


@contextmanager
def spending() -> Iterator[JudgingCost]:
    """Count the calls inside the block, also those of tasks that it starts."""
    spent = JudgingCost()
    token = _counting.set(spent)
    try:
        yield spent
    finally:
        _counting.reset(token)


def count_elsewhere(spent: JudgingCost) -> None:
    """Count the calls of another process, in the block around this call."""
    here = _counting.get()
    if here is not None:
        here.usage += spent.usage
        here.recorded += spent.recorded


class CountedParts:
    """The parts of a run for a judge, whose chat models count their calls.

    Args:
        parts: parts of the run.
        again: how often the judge was asked before. Its models then get other seeds, and its stores are empty and keep
            nothing. None where it may use earlier replies.
    """

    def __init__(self, parts: JudgeParts, again: int | None = None) -> None:
        self._parts, self._again = parts, again

    @property
    def repeat(self) -> int:
        """How often the judge was asked before."""
        return self._again or 0

    @property
    def settings(self) -> Settings:
        return self._parts.settings

    @property
    def stores(self) -> Any:
        return self._parts.stores if self._again is None else _EmptyStores()

    @property
    def cassettes(self) -> Any:
        return self._parts.cassettes

    def chat(self, role: str = "answer", **chosen: Any) -> ChatModel:
        return _CountedChat(self._parts.chat(role, **chosen), self._again)

    def embedder(self, model: str = "") -> TextEmbedder:
        return self._parts.embedder(model)


class _EmptyStores:
    def open(self, kind: str, model: str, revision: str) -> ArrayStore:  # noqa: ARG002 - every store is empty
        from rag_harness.models.array_store import ArrayStore

        return ArrayStore([Path()])

    def flush(self) -> None:
        """Keep nothing."""


class _CountedChat:
    """A model whose calls are counted, and whose seeds are shifted where it is asked ``again``.

    The shift is here, not around the judging: a judge shares calls between rows.
    """

    def __init__(self, inner: ChatModel, again: int | None) -> None:
        self._inner, self._again = inner, again

    @property
    def model(self) -> str:
        return self._inner.model

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        try:
            with nullcontext() if self._again is None else asked_again(self._again):
                completion = await self._inner.complete(messages, response_format)
        except ModelOutputError as error:
            _count(error.said)
            raise
        _count(completion)
        return completion


def _count(completion: Completion | None) -> None:
    spent = _counting.get()
    if spent is not None and completion is not None:
        spent.add(completion)


def parts_of_judges(parts: RunParts) -> tuple[JudgeParts, ...]:
    """Return the parts for each judge of the run, in the order of the panel; those of the run for one judge.

    Raises:
        SettingsError: the panel cannot be used.
    """
    each = settings_of_judges(parts.settings)
    return (parts,) if each == (parts.settings,) else tuple(_MemberParts(parts, settings) for settings in each)


def all_say_the_same(settings: Settings) -> bool:
    """Whether a repeated judgement always gives the same result: every judge of the run is deterministic."""
    return all(says_the_same(each) for each in settings_of_judges(settings))


class _MemberParts:
    """The parts of a run for one judge of a panel. Its chat model is called within the limits of the run."""

    def __init__(self, parts: RunParts, settings: Settings) -> None:
        self.settings, self.embedder, self._parts = settings, parts.embedder, parts
        endpoints = Endpoints(settings, lambda: parts.cassettes, lambda: parts.stores, parts.endpoints.meter)
        parts.endpoints.close_too(endpoints.aclose)
        self.chat = endpoints.chat

    @property
    def stores(self) -> Any:
        return self._parts.stores

    @property
    def cassettes(self) -> Any:
        return self._parts.cassettes


def check_judge(settings: Settings) -> None:
    """Check the judge, or each judge of a panel, before a run that judges.

    Raises:
        SettingsError: the panel cannot be used.
        RegistryError: no judge has that name, or several have it.
        PrerequisiteError: the judge cannot be called. The message has the reason.
    """
    for each in settings_of_judges(settings):
        _check_judge(each)
    if settings.panel and settings.engine == "ray":
        raise SettingsError("A panel of judges is asked from the process of the tests: leave out --rag-engine=ray.")


def check_one_judge(settings: Settings, what: str) -> None:
    """Check the judge of ``what``, which takes one judge.

    Raises:
        PrerequisiteError: the settings name a panel, or the judge cannot be called. The message has the reason.
    """
    if "," in settings.judge or settings.panel:
        raise SettingsError(f"{what} takes one judge at a time, and --rag-judge={settings.judge} is a panel.")
    check_judge(settings)


def _check_judge(settings: Settings) -> None:
    name = judge_name(settings)
    if name not in registered("judges"):
        raise RegistryError(unknown("judge", name, registered("judges")))
    if len(found := rivals("judges", name)) > 1:
        raise RegistryError(
            f"{len(found)} judges are called {name!r}: {' and '.join(found)}. Which of them would judge is left to "
            f"chance. Uninstall one, or register yours by another name."
        )
    asked = endpoint_of(settings, "judge")
    has_no_server = asked.base_url in ("", EMBEDDED_URL)
    if not (has_no_server or access_of(settings).calls_network) or not asks_a_model(settings):
        return
    if has_no_server:
        raise SettingsError(
            f"The judge {name!r} asks a chat model, but {asked.model!r} is the reader in this process. Name one with "
            f"--rag-judge-model and base_url of the profile's role judge, or leave --rag-judge out."
        )
    check_called(settings, "judge")
