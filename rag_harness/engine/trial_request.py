"""How a trial is asked for when it is not the first time: once more, or from given hits. Used here and on a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_harness.engine.trial import TrialOutcome, run_trial
from rag_harness.engine.trial_rows import KeepPrompt, Trial
from rag_harness.errors import RagHarnessError
from rag_harness.models.anew import Session, asked_again, asked_in
from rag_harness.pipelines.given_searches import GivenSearches, giving
from rag_harness.protocols import Experiment
from rag_harness.registry.own_parts import is_own_code, stated_truth
from rag_harness.settings import Settings
from rag_harness.types import Hit, PipelineOutput, Query


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """What is asked of a trial beyond its case. It can be pickled, and is sent to workers.

    Attributes:
        turn: how often the case was asked before; each turn has seeds of its own. 0 is the first time.
        hits: used instead of the pipeline's own retrieval; None where the pipeline retrieves.
        searches: what is given in place of searches of the pipeline; None where it makes all of them.
        keeps_failures: whether the row of a failure is a result, and is journalled.
        session: the session of a turn, where a service keeps conversations itself.
    """

    turn: int = 0
    hits: tuple[Hit, ...] | None = None
    keeps_failures: bool = True
    searches: GivenSearches | None = None
    session: Session = ""

    def keeps(self, outcome: TrialOutcome) -> bool:
        """Return whether the row of ``outcome`` belongs into a journal."""
        return outcome.row is not None and (outcome.row.ok or self.keeps_failures)


FIRST = TrialRequest()
"""The first time, with nothing given."""


@dataclass(frozen=True, slots=True)
class GivenHitsPipeline:
    """A pipeline that answers from the hits it was made with."""

    experiment: Experiment
    hits: Sequence[Hit]

    async def answer(self, query: Query) -> PipelineOutput:
        """Answer from the given hits.

        Raises:
            RagHarnessError: the experiment does not say how.
        """
        if self.experiment.answer_from is None:
            raise RagHarnessError(
                f"Experiment {self.experiment.id!r} was given {len(self.hits)} hits to answer from, and does not say "
                f"how. Build it as Experiment(…, answer_from=…)."
            )
        return await self.experiment.answer_from(query, self.hits)


async def answer_trial(
    trial: Trial,
    experiment: Experiment,
    settings: Settings,
    fingerprint: str,
    keep_prompt: KeepPrompt,
    asking: TrialRequest = FIRST,
) -> TrialOutcome:
    """Run ``trial`` with the pipeline of ``experiment`` as ``asking`` says; a failure is a value."""
    pipeline = experiment.pipeline if asking.hits is None else GivenHitsPipeline(experiment, asking.hits)
    with asked_again(asking.turn), asked_in(asking.session), giving(asking.searches):
        outcome = await run_trial(trial, pipeline, settings, fingerprint, keep_prompt, experiment.find_page)
    said = says_retrieval(experiment)
    if outcome.row is None or said is None:
        return outcome
    return replace(outcome, row=outcome.row.model_copy(update={"retrieves": said}))


def says_retrieval(experiment: Experiment) -> bool | None:
    """Return whether an experiment says that it retrieves; None where it does not say.

    One of this package alone says it by its parts.
    """
    if experiment.retrieves is not None:
        return experiment.retrieves
    if (stated := stated_truth(experiment.pipeline, "retrieves")) is not None:
        return stated
    return True if experiment.retriever is not None else None if is_own_code(experiment.code) else False
