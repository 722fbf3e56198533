"""Turns of conversations that go on from the pipeline's own answers: each is asked when the turn before it is over."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from rag_harness.plugin.begun_anew import BegunAnew, Known, Stored
from rag_harness.work.once import Once

if TYPE_CHECKING:
    from rag_harness.engine.own_history import OwnHistory
    from rag_harness.engine.played_turns import PlayedTurns
    from rag_harness.engine.trial import Ended, TrialOutcome
    from rag_harness.engine.trial_request import TrialRequest
    from rag_harness.engine.trial_rows import Trial
    from rag_harness.models.anew import Session
    from rag_harness.plugin.equipment import Equipment
    from rag_harness.plugin.judgements import Judgements
    from rag_harness.plugin.session import RagSession
    from rag_harness.results.row import ExperimentResult
    from rag_harness.types import Case, TrialId

AskTurn = Callable[["Trial", "TrialRequest"], "Coroutine[Any, Any, TrialOutcome]"]
"""Asks a turn."""


class OwnTurns:
    """The conversations of one process.

    Args:
        session: state of the run.
        equipment: its engine runs the turns.
        judgements: judge what simulated users say.
    """

    def __init__(self, session: RagSession, equipment: Equipment, judgements: Judgements) -> None:
        self._session, self._kit, self._judgements = session, equipment, judgements
        self._history: Once[OwnHistory] = Once(self._make_history)
        self._users: Once[PlayedTurns] = Once(self._make_users)
        self._turns: dict[str, dict[str, list[Case]]] = {}
        self._submitted: set[Hashable] = set()
        self.anew = BegunAnew(session, self.whole)

    def _make_history(self) -> OwnHistory:
        from rag_harness.engine.own_history import OwnHistory

        return OwnHistory(self._session.settings.failed_turn)

    def _make_users(self) -> PlayedTurns:
        from rag_harness.plugin.simulated_users import played_turns

        return played_turns(self._session, self._kit, self._judgements, self.history)

    @property
    def history(self) -> OwnHistory:
        """What was said, as far as this process knows."""
        return self._history.get()

    def are(self, trial: Trial) -> bool:
        """Return whether the trial is a turn that is asked with the answers before it."""
        return bool(trial.case.query.place) and self._session.histories.is_own(trial.experiment)

    def up_to(self, trial: Trial) -> list[Trial]:
        """Return the turns of the trial's conversation up to itself, in their order."""
        last = int(trial.case.query.place["turn"])
        return [turn for turn in self.whole(trial) if int(turn.case.query.place["turn"]) <= last]

    def whole(self, trial: Trial) -> list[Trial]:
        """Return all turns of the trial's conversation, in their order."""
        from dataclasses import replace

        turns = self._of(trial.experiment)[trial.case.query.place["conversation"]]
        return [replace(trial, case=case) for case in turns]

    def _of(self, experiment: str) -> dict[str, list[Case]]:
        if experiment not in self._turns:
            from rag_harness.engine.own_history import conversations

            self._turns[experiment] = conversations(self._session.cases.all_of(experiment))
        return self._turns[experiment]

    def session_of(self, trial: Trial, repeat: int = 1) -> Session:
        """Return in what session a turn is asked, where a service keeps the conversation."""
        return "anew" if self.anew.is_so(trial, repeat) else self.history.session_of(trial, repeat)

    def stored(self, trial: Trial, find: Stored, known: Known) -> tuple[ExperimentResult, bool] | None:
        """Return the stored row of a turn, if it and all turns before it were asked with the answers that are stored.

        Otherwise the conversation goes on from the first turn that has no such row. A turn before which its
        conversation has ended has no row: ``ended`` then says so.
        """
        from rag_harness.engine.own_history import is_asked
        from rag_harness.engine.trial import TrialOutcome

        found = None
        if trial.id in self._submitted or self.anew.decide(trial, known):
            return None
        for turn in self.up_to(trial):
            if turn.id != trial.id and self.history.knows(turn):
                continue
            asked = self._asked_so_far(turn)
            if isinstance(asked, TrialOutcome):
                self.history.take_outcome(turn, asked)
                continue
            found = find(turn) if asked is not None else None
            if asked is None or found is None or not is_asked(found[0], asked):
                return None
            self.history.take(turn, found[0])
        self.anew.keep(trial)
        return found if self.ended(trial) is None else None

    def _asked_so_far(self, turn: Trial) -> Trial | TrialOutcome | None:
        """Return what a turn is asked, or what came of it, where no user has to be asked for that."""
        from rag_harness.engine.trial import TrialOutcome

        asked = self.history.asked(turn)
        return asked if isinstance(asked, TrialOutcome) else self._users.get().known(asked)

    def ended(self, trial: Trial) -> Ended | None:
        """Return where and why a turn's conversation has ended before it, if that is known."""
        return self.history.ended(trial) if self.are(trial) else None

    def submit(self, trial: Trial, fingerprint: str, answer: AskTurn) -> None:
        """Submit a turn, whose row gets this fingerprint, and before it those of its conversation that are not over."""

        def job(turn: Trial) -> Callable[[], Coroutine[Any, Any, TrialOutcome]]:
            return lambda: self._answered(turn, fingerprint, answer)

        self.anew.keep(trial)
        self.submit_in_a_row(trial, lambda turn: turn.id, job)

    def submit_in_a_row(
        self,
        trial: Trial,
        key: Callable[[Trial], Hashable],
        job: Callable[[Trial], Callable[[], Coroutine[Any, Any, Any]]],
        repeat: int = 1,
    ) -> None:
        """Submit the jobs of a conversation's turns up to this one, each after the one before it, and each once.

        Turns that are over are left out: their rows were stored.
        """
        before: Hashable = None
        for turn in self.up_to(trial):
            if key(turn) not in self._submitted and not self.history.knows(turn, repeat):
                self._submitted.add(key(turn))
                self._kit.engine.get().submit(key(turn), job(turn), after=before)
            before = key(turn)

    def noting(self, trial: Trial, fingerprint: str) -> AbstractContextManager[None]:
        """Return a context in which it is kept that a turn was sent, where the service keeps the conversation."""
        if self._session.histories.session_of(trial.experiment.partition("+")[0]) is None:
            return nullcontext()
        from rag_harness.engine.sent_turns import noting_sent_turn

        return noting_sent_turn(trial, self._session.settings, fingerprint, self._kit.journal.get().keep)

    async def _answered(self, turn: Trial, fingerprint: str, answer: AskTurn) -> TrialOutcome:
        from rag_harness.engine.trial import TrialOutcome
        from rag_harness.engine.trial_request import TrialRequest

        asked = await self.asked(turn)
        if isinstance(asked, TrialOutcome):
            outcome = asked
        else:
            with self.noting(asked, fingerprint):
                outcome = await answer(asked, TrialRequest(session=self.session_of(turn)))
        self.history.take_outcome(turn, outcome)
        return outcome

    def said_before(self, trial: TrialId) -> list[str]:
        """Return the lines of what simulated users have said before a turn, for the writer of the files, once."""
        users = self._users.made
        return [line.decode() for line in users.new_lines(trial.experiment, trial.query_id)] if users else []

    async def asked(self, turn: Trial, repeat: int = 1) -> Trial | TrialOutcome:
        """Return what a turn is asked, all turns before it being over, or what came of it if it cannot be asked."""
        from rag_harness.engine.trial import TrialOutcome

        asked = self.history.asked(turn, repeat)
        return asked if isinstance(asked, TrialOutcome) else await self._users.get().asked(asked, repeat)
