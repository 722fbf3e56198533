"""Repeats of a trial: answers and scores with seeds of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_harness.core.settings import Settings
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.models.call_context import Session
from rag_harness.models.model_names import chat_name, is_simulated
from rag_harness.pipelines.experiments import answering, built_in
from rag_harness.records.experiment_names import is_played_name, repeat_fingerprint, repeat_name
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.engine import Workplace
from rag_harness.runs.trial import ConversationEnd, Trial, TrialRequest

if TYPE_CHECKING:
    from rag_harness.core.protocols import Experiment
    from rag_harness.runs.judging import Find, PanelJudging, RowJudge


JUDGE_SEEDS = 100
"""Number of seeds for the judgements of one answer. The next answer's seeds begin after them."""


def computes_its_answers(experiment: str, settings: Settings) -> bool:
    """Whether a repeat can only give the same answer: it is a built-in experiment with the embedded reader.

    The simulated model makes other faults with another seed, and a model that plays a user says something else.
    """
    if is_played_name(experiment) and settings.user_model:
        return False
    is_embedded = settings.chat_base_url == EMBEDDED_URL and chat_name(settings) == "openai"
    return answering(experiment) in built_in() and is_embedded and not is_simulated(settings)


@dataclass(frozen=True, slots=True)
class RepeatedTrial:
    """One repeat: its lines for the result files, in ``new`` those that the journal lacks, and its row.

    ``is_stored`` says that the row was not made now, ``ended`` that a simulated user has ended the repeat of its
    conversation before.
    """

    lines: tuple[bytes, ...] = ()
    new: tuple[bytes, ...] = ()
    row: ExperimentResult | None = None
    is_stored: bool = False
    ended: ConversationEnd | None = None


@dataclass(frozen=True, slots=True)
class Repeating:
    """How trials of one process are answered again.

    Attributes:
        workplace: where they are answered.
        judging: the judging of the repeat with this number.
        find: finds a score that need not be judged again.
        keep: writes a row to the disk before it is judged, for judging may take long.
    """

    workplace: Workplace
    judging: Callable[[int], RowJudge | PanelJudging]
    find: Find
    keep: Callable[[bytes], Awaitable[None]]

    async def answer(
        self, trial: Trial, repeat: int, experiment: Experiment, fingerprint: str, session: Session = ""
    ) -> ExperimentResult | None:
        """Answer for the time ``repeat``, keep the row and return it; None where the budget did not allow it."""
        again = replace(trial, experiment=repeat_name(trial.experiment, repeat))
        asking = TrialRequest(turn=repeat - 1, session=session)
        outcome = await self.workplace.answer(again, experiment, repeat_fingerprint(fingerprint, repeat), asking)
        if outcome.row is not None:
            await self.keep(outcome.row.line().encode())
        return outcome.row

    async def judge(
        self, trial: Trial, repeat: int, row: ExperimentResult, measures: Sequence[JudgedMeasure], turns: int
    ) -> tuple[bytes, ...]:
        """Return the lines of a row's new scores. The judge is asked ``turns`` times more."""
        if not measures or not row.ok:
            return ()
        return (await self.judging(repeat).row(row, trial.case, measures, self.find, turns)).new
