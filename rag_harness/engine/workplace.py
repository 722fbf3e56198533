"""A workplace answers trials and judges rows, in this process or on other machines. The engine decides when."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rag_harness.engine.trial import TrialOutcome
from rag_harness.engine.trial_request import FIRST, TrialRequest, answer_trial
from rag_harness.engine.trial_rows import KeepPrompt, Trial
from rag_harness.settings import Settings

if TYPE_CHECKING:
    # A run that judges nothing imports no judge.
    from rag_harness.measures import Score
    from rag_harness.measures.judged import JudgedMeasure, Material
    from rag_harness.protocols import Experiment

AskJudge: TypeAlias = "Callable[[Material, Sequence[JudgedMeasure], int], Coroutine[Any, Any, Mapping[str, Score]]]"
"""Asks a judge about one answer, and returns the scores by measure. n > 0 is the nth repeat of the judgement."""


class Workplace(Protocol):
    """Answers and judges. All arguments are plain values, except the pipeline of an experiment."""

    @property
    def ask(self) -> AskJudge | None:
        """Asks the judge of another process; None where the judge is in this one."""
        ...

    @property
    def is_here(self) -> bool:
        """Whether the workplace is this process. Then an experiment has to be prepared here."""
        ...

    async def answer(
        self, trial: Trial, experiment: Experiment, fingerprint: str, asking: TrialRequest = FIRST
    ) -> TrialOutcome:
        """Run one trial of ``experiment``. Its row may be of a derived experiment. A failure is a value."""
        ...

    async def aclose(self) -> None:
        """Close what was opened, on the loop that has used it."""
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

    async def answer(
        self, trial: Trial, experiment: Experiment, fingerprint: str, asking: TrialRequest = FIRST
    ) -> TrialOutcome:
        """Run one trial."""
        return await answer_trial(trial, experiment, self.settings, fingerprint, self.keep_prompt, asking)

    async def aclose(self) -> None:
        """Do nothing: nothing was opened."""
