"""Makes the simulated user of a run: a script, or a model of role ``user`` where one is named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_harness.models.prompts import Prompts
from rag_harness.protocols import ChatModel
from rag_harness.registry.noted_parts import noting
from rag_harness.settings import Settings
from rag_harness.types import Scenario
from rag_harness.users.model_user import ModelMove
from rag_harness.users.moves import Exchange, Move, ends_by_rules
from rag_harness.users.script import scripted

SCRIPT = "a script"
"""Who plays the user without a model."""


@dataclass(frozen=True, slots=True)
class SimulatedUser:
    """Who plays the users of a run.

    Attributes:
        by: ``a script``, or the model's name.
        ingredients: what decides what is said, by name; part of the experiment's fingerprint.
        code: the modules that say it.
    """

    by: str = SCRIPT
    ingredients: Mapping[str, Any] = field(default_factory=dict)
    code: Collection[str] = (scripted.__module__,)
    _model: tuple[ChatModel, Prompts] | None = None

    def known(self, scenario: Scenario, before: Sequence[Exchange]) -> Move | None:
        """Return what the user says, or that it ends; None where its model has to be asked."""
        return ends_by_rules(scenario, before, bool(scenario.asks)) if self._model else scripted(scenario, before)

    def move(self, scenario: Scenario, before: Sequence[Exchange]) -> ModelMove:
        """Return the pipeline that asks the model what comes next."""
        assert self._model is not None
        return ModelMove(*self._model, scenario, tuple(before))


def played_by(settings: Settings) -> str:
    """Return who plays the users of a run, for people."""
    return settings.user_model or SCRIPT


def simulated_user(settings: Settings, parts: Callable[[], Any]) -> SimulatedUser:
    """Return the user of a run. ``parts`` returns those of the run; they are asked for where a model plays."""
    if not settings.user_model:
        return SimulatedUser()
    with noting() as made:
        chat, prompts = parts().chat("user"), parts().prompts("user")
    code = {ModelMove.__module__, *(module for each in made.code.values() for module in each)}
    return SimulatedUser(settings.user_model, dict(made.of), code, (chat, prompts))
