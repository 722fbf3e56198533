"""A test that failed and is run again, as pytest-rerunfailures does: it asks again, or says that it did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from rag_harness.plugin.items import trial_id_of
from rag_harness.plugin.shipped import RunAgainOn, Shipped
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    import pytest

    from rag_harness.engine.trial import TrialOutcome
    from rag_harness.engine.trial_rows import Trial
    from rag_harness.plugin.equipment import Equipment
    from rag_harness.plugin.judgements import Judgements
    from rag_harness.plugin.own_turns import OwnTurns
    from rag_harness.plugin.session import RagSession
    from rag_harness.protocols import Experiment
    from rag_harness.results.row import ExperimentResult
    from rag_harness.types import TrialId


class RunAgain:
    """Asks for a new answer where a test failed on the last one, in one process.

    Args:
        session: state of the run.
        equipment: answers trials.
        judgements: forget what was said of the last answer.
        own_turns: know which trials are turns that others go on from.
    """

    def __init__(self, session: RagSession, equipment: Equipment, judgements: Judgements, own_turns: OwnTurns) -> None:
        self._session, self._kit = session, equipment
        self._judgements, self._own_turns = judgements, own_turns
        self._answers: dict[TrialId, ExperimentResult] = {}
        self._times: Counter[TrialId] = Counter()
        self._items: list[pytest.Item] = []

    def result(
        self, item: pytest.Item, trial: Trial, experiment: Experiment, last: Shipped
    ) -> tuple[Shipped, RunAgainOn]:
        """Return what a test gets that is run again, and whether that is a new answer.

        Args:
            item: the test.
            trial: its trial.
            experiment: of the trial.
            last: what the test, or a process before this one, was given first.
        """
        self._items = item.session.items
        known = self._answers.get(trial.id, last.row)
        found = self._asked(trial, experiment) if self._may_ask(trial, known) else None
        # No answer replaces one: what the next run takes over would be another row than what this one was judged by.
        if found is None or found.repeats_itself or (known.ok and not found.ok):
            return replace(last, row=known), "same"
        self._answers[trial.id] = found
        self._judgements.forget(trial.id)
        return Shipped(found), "new"

    def _may_ask(self, trial: Trial, known: ExperimentResult) -> bool:
        """Whether a new answer is nobody else's business: no judgement, repeat, turn or other test is about the last.

        A recorded or computed answer would come back as it is.
        """
        session = self._session
        is_alone = self._tests_of[trial.id] == 1 and not self._own_turns.are(trial) and trial.experiment != GOLDEN
        is_looked_at = (
            session.wanted.judged_measures(trial.experiment)
            or session.settings.repeats > 1
            or session.settings.stop_early
            or trial.experiment in session.snapshots.of
        )
        return is_alone and not is_looked_at and not known.repeats_itself

    @cached_property
    def _tests_of(self) -> Counter[TrialId]:
        return Counter(found for each in self._items if (found := trial_id_of(each)) is not None)

    def _asked(self, trial: Trial, experiment: Experiment) -> ExperimentResult | None:
        """Ask now, and return the row; None where it was not run, as where the budget is spent."""
        self._times[trial.id] += 1
        key = trial.id, "run again", self._times[trial.id]
        fingerprint = self._session.identities.fingerprint(experiment)
        engine, workplace = self._kit.engine.get(), self._kit.workplace.get()
        engine.submit(key, lambda: workplace.answer(trial, experiment, fingerprint), first=True)
        outcome = cast("TrialOutcome", engine.result(key))
        engine.forget(key)
        return outcome.row


def run_again_lines(found: Mapping[str, RunAgainOn]) -> Iterator[str]:
    """Yield how many tests were run again after they had failed, by what they looked at then."""
    from rag_harness.report.wording import counted

    counts = Counter(found.values())
    if n := counts["new"]:
        yield f"{counted(n, 'test')} failed and {_were(n)} run again on a new answer, whose row replaced the failed one"
    if n := counts["same"]:
        yield (
            f"{counted(n, 'test')} failed and {_were(n)} run again on the same answer: one that is recorded, judged, "
            "repeated, kept, or shared with another test or turn is not asked for again"
        )


def _were(n: int) -> str:
    return "was" if n == 1 else "were"
