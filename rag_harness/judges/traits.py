"""What a judge says of itself: whether it asks a model, says the same again, and reads what was said before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import getattr_static, isclass
from typing import Any, get_type_hints

from rag_harness.files.log import log
from rag_harness.measures.judged import Judge
from rag_harness.models.endpoints import endpoint_of
from rag_harness.models.judge_panel import settings_of_judges
from rag_harness.models.model_names import judge_name, judges_in_process
from rag_harness.registry import resolve
from rag_harness.registry.own_parts import stated_truth
from rag_harness.settings import Settings


@dataclass(frozen=True, slots=True)
class JudgeTraits:
    """The attributes of a judge of these names. One that does not state them is taken as it stands here.

    Attributes:
        asks_model: whether it asks the chat model of role ``judge``; None where it does not say.
        deterministic: whether it says the same of the same answer, however often it is asked.
        reads_conversation: whether it understands a question with what was said before it. One that compares words does
            not.
    """

    asks_model: bool | None = None
    deterministic: bool = False
    reads_conversation: bool = True


_NAMES = ("asks_model", "deterministic", "reads_conversation")


def traits(judge: Any) -> JudgeTraits:
    """Return what a judge, or its class, says of itself."""
    stated = {name: said for name in _NAMES if (said := stated_truth(judge, name)) is not None}
    return JudgeTraits(**stated)


def traits_of(settings: Settings) -> JudgeTraits:
    """Return what the judge that the settings name says of itself; nothing, where it is not installed here.

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
    """Return the class of what a factory makes: it is this class, or its annotation names one."""
    if isclass(factory):
        return factory
    try:
        found = get_type_hints(factory).get("return")
    except Exception:  # an annotation may name anything, also what is not imported
        return None
    return found if isclass(found) and not getattr(found, "_is_protocol", False) else None


class JudgeAround:
    """A judge with something put around it, which says of itself what the judge does."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def model(self) -> str:
        return self._judge.model

    @property
    def asks_model(self) -> bool:
        return bool(traits(self._judge).asks_model)

    @property
    def deterministic(self) -> bool:
        return traits(self._judge).deterministic

    @property
    def reads_conversation(self) -> bool:
        return traits(self._judge).reads_conversation


@lru_cache(maxsize=16)
def _made(factory: Any, settings: Settings) -> Any:
    """Return the judge, made for its attributes alone; None where it cannot be made."""
    from rag_harness.judges.spent import CountedParts  # imported for judges of a project only
    from rag_harness.pipelines.parts import RunParts

    try:
        return factory(CountedParts(RunParts(settings)))
    except Exception as error:  # the same: who judges with it is told so
        log.info("The judge %s cannot be made, so it does not say what it is: %s", judge_name(settings), error)
        return None
