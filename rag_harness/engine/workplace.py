"""Where trials are answered and rows judged. The engine says when; a workplace is this process, or many elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rag_harness.engine.asking import FIRST, Asking, answer_trial
from rag_harness.engine.rows import KeepPrompt, Trial
from rag_harness.engine.trial import Outcome
from rag_harness.settings import Settings

if TYPE_CHECKING:
    # A run that judges nothing imports no judge.
    from rag_harness.measures import Score
    from rag_harness.measures.judged import JudgedMeasure, Material
    from rag_harness.protocols import Experiment

Ask: TypeAlias = "Callable[[Material, Sequence[JudgedMeasure], int], Coroutine[Any, Any, Mapping[str, Score]]]"
"""Asks a judge about one answer, and gives its score by measure; n > 0 is the nth time that it is asked again."""


class Workplace(Protocol):
    """Answers and judges. What it is given are values, but for the pipeline of an experiment."""

    @property
    def ask(self) -> Ask | None:
        """What asks the judge; None where the judge is one of this process."""
        ...

    @property
    def is_here(self) -> bool:
        """Whether it is this process, which then has to be prepared for an experiment."""
        ...

    async def answer(self, trial: Trial, experiment: Experiment, fingerprint: str, asking: Asking = FIRST) -> Outcome:
        """Run one trial of ``experiment``, whose rows may have another name; a failure is a value."""
        ...

    async def aclose(self) -> None:
        """Let go of what was opened, on the loop that has used it."""
        ...


@dataclass(frozen=True)
class Here:
    """This process.

    Args:
        settings: of the run.
        keep_prompt: keeps the messages of a call.
    """

    settings: Settings
    keep_prompt: KeepPrompt
    ask = None
    is_here = True

    async def answer(self, trial: Trial, experiment: Experiment, fingerprint: str, asking: Asking = FIRST) -> Outcome:
        """Run one trial."""
        return await answer_trial(trial, experiment, self.settings, fingerprint, self.keep_prompt, asking)

    async def aclose(self) -> None:
        """Nothing was opened."""
