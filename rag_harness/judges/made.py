"""Makes the judge that the settings name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from rag_harness.judges.all_questions import AllQuestions
from rag_harness.judges.citations import CitationsOff
from rag_harness.judges.parts_around import PartsAround
from rag_harness.judges.spent import CountedParts
from rag_harness.judges.traits import traits
from rag_harness.measures.judged import Judge
from rag_harness.models.anew import asked_again
from rag_harness.models.model_names import chat_name, judge_name
from rag_harness.models.recording.store import ArrayStore
from rag_harness.protocols import ChatModel, JudgeParts
from rag_harness.registry import module_of, resolve
from rag_harness.registry.noted_parts import note
from rag_harness.registry.own_parts import is_own, may_be_kept, stated_fingerprint
from rag_harness.settings import Settings
from rag_harness.types import Completion, Message


def judge_of(parts: JudgeParts, bare: Judge | None = None) -> Judge:
    """Return the judge of a run, made from its parts, or of one that is made. It never sees citation marks.

    Raises:
        RegistryError: no judge has the name in the settings.
        PrerequisiteError: it needs a package that is not installed.
    """
    return AllQuestions(bare or bare_judge(parts), parts.embedder, parts.settings.judge_request)


def bare_judge(parts: JudgeParts) -> Judge:
    """Return the judge as whoever wrote it has made it.

    Raises:
        RegistryError, PrerequisiteError: as ``judge_of``.
    """
    name = judge_name(parts.settings)
    note("judge", module_of("judges", name), CitationsOff.__module__, CountedParts.__module__)
    return cast("Judge", resolve("judges", name)(CountedParts(parts)))


def scores_fingerprint(judge: Judge, settings: Settings) -> str | None:
    """Return what is to stand in the keys of a judge's scores beside its revision; None where none may be reused.

    Scores of a judge of a user's own, or of one that asks a model by a user's own adapter, hang on what nobody sees,
    unless the judge states a ``fingerprint``.
    """
    name = judge_name(settings)
    model, url = settings.judge_model or settings.chat_model, settings.judge_base_url or settings.chat_base_url
    asked = chat_name(replace(settings, chat_model=model, chat_base_url=url)) if traits(judge).asks_model else ""
    if asked and is_own(module_of("chat", asked)):
        return None
    return stated_fingerprint(judge) if may_be_kept(judge, module_of("judges", name)) else None


def asked_anew(parts: JudgeParts, repeat: int) -> Judge:
    """Return the same judge without earlier replies. Each repeat has a seed of its own."""
    return judge_of(_Anew(parts, repeat))


class _Anew(PartsAround):
    """The parts of a run that are asked with other seeds, and stores that are empty and keep nothing."""

    def __init__(self, parts: JudgeParts, repeat: int) -> None:
        super().__init__(parts)
        self._repeat = repeat

    @property
    def repeat(self) -> int:
        return self._repeat

    @property
    def stores(self) -> Any:
        return self

    def open(self, kind: str, model: str, revision: str) -> ArrayStore:  # noqa: ARG002 - every store is empty
        return ArrayStore([Path()])

    def flush(self) -> None:
        """Keep nothing."""

    def around(self, model: ChatModel) -> ChatModel:
        return _AskedAgain(model, self._repeat)


@dataclass(frozen=True)
class _AskedAgain:
    """A model with shifted seeds. The shift is here, not around the judging: a judge shares calls between rows."""

    inner: ChatModel
    repeat: int

    @property
    def model(self) -> str:
        return self.inner.model

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        with asked_again(self.repeat):
            return await self.inner.complete(messages, response_format)
