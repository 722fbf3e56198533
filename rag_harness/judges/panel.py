"""The judges of a panel, each with parts of its own: the same budget, limits, stores and recordings, another model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.judges.parts_around import PartsAround
from rag_harness.judges.traits import says_the_same
from rag_harness.models.endpoints import Endpoints
from rag_harness.models.judge_panel import settings_of_judges
from rag_harness.protocols import ChatModel, JudgeParts
from rag_harness.settings import Settings

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts


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


class _MemberParts(PartsAround):
    """The parts of a run for one judge of a panel. Its chat model is called within the limits of the run."""

    def __init__(self, parts: RunParts, settings: Settings) -> None:
        super().__init__(parts)
        self._own = settings
        self._endpoints = Endpoints(settings, lambda: parts.cassettes, lambda: parts.stores, parts.endpoints.meter)
        parts.endpoints.close_too(self._endpoints.aclose)

    @property
    def settings(self) -> Settings:
        return self._own

    def chat(
        self,
        role: str = "answer",
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
    ) -> ChatModel:
        return self._endpoints.chat(role, temperature=temperature, max_output_tokens=max_output_tokens)
