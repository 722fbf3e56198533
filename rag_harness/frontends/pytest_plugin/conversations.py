"""Conversations in a run: turns after own answers, sessions of services, and simulated users."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from rag_harness.core.concurrency import Lazy

if TYPE_CHECKING:
    from rag_harness.core.settings import Settings
    from rag_harness.core.types import Case, TrialId
    from rag_harness.frontends.pytest_plugin.judgements import Judgements
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trials import RunResources
    from rag_harness.models.calls import Session
    from rag_harness.records.row import ExperimentResult
    from rag_harness.runs.conversations import OwnHistory, PlayedTurns, RoleJudge
    from rag_harness.runs.trial import ConversationEnd, Trial, TrialOutcome, TrialRequest


Stored = Callable[["Trial"], "tuple[ExperimentResult, bool] | None"]
"""Returns the stored row of a turn, whatever was said before it, and whether an earlier run has made it."""
Known = Callable[["Trial"], "ExperimentResult | None"]
"""Returns the last row of a turn, also one that ended with an error."""
_Key = tuple[str, str, int]


class ServiceSessions:
    """Decides it once a conversation, and once a repeat of one.

    Args:
        session: state of the run.
        whole: returns the turns of a trial's conversation.
    """

    def __init__(self, session: RagSession, whole: Callable[[Trial], list[Trial]]) -> None:
        self._session, self._whole = session, whole
        self._found: dict[_Key, bool] = {}
        self._kept: set[_Key] = set()

    def decide(self, trial: Trial, known: Known, repeat: int = 1) -> bool:
        """Return whether the conversation of a trial is asked from its first turn, and not from recordings.

        It is where the service may have heard a question that has no answer, where rows are missing between others or
        are of several sessions, or where the service would not say that it has forgotten an earlier run.
        """
        key = _key(trial, repeat)
        reading = self._session.histories.session_of(trial.experiment)
        if reading is None:
            return False
        if key not in self._kept:
            from rag_harness.runs.conversations import is_one_session, was_perhaps_heard

            rows = [known(turn) for turn in self._whole(trial)]
            are_there = [row for row in rows if row is not None]
            # On a cluster, nobody notes what nodes have sent.
            may_resume = reading.may_resume and self._session.settings.engine == "local"
            # A simulated user may have ended its conversation there. If not, the next turn is refused as not known.
            is_played = trial.case.scenario is not None
            is_cut_off = 0 < len(are_there) < len(rows) and not may_resume and not is_played
            is_torn = rows[: len(are_there)] != are_there or not is_one_session(are_there)
            self._found[key] = is_cut_off or is_torn or any(map(was_perhaps_heard, are_there))
        return self._found[key]

    def keep(self, trial: Trial, repeat: int = 1) -> None:
        """Note that the conversation is under way, so that it stays decided."""
        self._kept.add(_key(trial, repeat))

    def is_so(self, trial: Trial, repeat: int = 1) -> bool:
        """Return what was decided."""
        return self._found.get(_key(trial, repeat), False)


def _key(trial: Trial, repeat: int) -> _Key:
    return trial.experiment, trial.case.query.place["conversation"], repeat


AskTurn = Callable[["Trial", "TrialRequest"], "Coroutine[Any, Any, TrialOutcome]"]
"""Asks a turn."""


class OwnTurns:
    """The conversations of one process.

    Args:
        session: state of the run.
        equipment: its engine runs the turns.
        judgements: judge what simulated users say.
    """

    def __init__(self, session: RagSession, equipment: RunResources, judgements: Judgements) -> None:
        self._session, self._kit, self._judgements = session, equipment, judgements
        self._history: Lazy[OwnHistory] = Lazy(self._make_history)
        self._users: Lazy[PlayedTurns] = Lazy(self._make_users)
        self._turns: dict[str, dict[str, list[Case]]] = {}
        self._submitted: set[Hashable] = set()
        self.restarted = ServiceSessions(session, self.whole)

    def _make_history(self) -> OwnHistory:
        from rag_harness.runs.conversations import OwnHistory

        return OwnHistory(self._session.settings.failed_turn)

    def _make_users(self) -> PlayedTurns:

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
            from rag_harness.runs.conversations import conversations

            self._turns[experiment] = conversations(self._session.cases.all_of(experiment))
        return self._turns[experiment]

    def session_of(self, trial: Trial, repeat: int = 1) -> Session:
        """Return in what session a turn is asked, where a service keeps the conversation."""
        return "restarted" if self.restarted.is_so(trial, repeat) else self.history.session_of(trial, repeat)

    def stored(self, trial: Trial, find: Stored, known: Known) -> tuple[ExperimentResult, bool] | None:
        """Return the stored row of a turn, if it and all turns before it were asked with the answers that are stored.

        Otherwise the conversation goes on from the first turn that has no such row. A turn before which its
        conversation has ended has no row: ``ended`` then says so.
        """
        from rag_harness.runs.conversations import is_asked
        from rag_harness.runs.trial import TrialOutcome

        found = None
        if trial.id in self._submitted or self.restarted.decide(trial, known):
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
        self.restarted.keep(trial)
        return found if self.ended(trial) is None else None

    def _asked_so_far(self, turn: Trial) -> Trial | TrialOutcome | None:
        """Return what a turn is asked, or its outcome, as far as no simulated user has to be asked."""
        from rag_harness.runs.trial import TrialOutcome

        asked = self.history.asked(turn)
        return asked if isinstance(asked, TrialOutcome) else self._users.get().known(asked)

    def ended(self, trial: Trial) -> ConversationEnd | None:
        """Return where and why a turn's conversation has ended before it, if that is known."""
        return self.history.ended(trial) if self.are(trial) else None

    def submit(self, trial: Trial, fingerprint: str, answer: AskTurn) -> None:
        """Submit a turn, whose row gets this fingerprint, and before it those of its conversation that are not over."""

        def job(turn: Trial) -> Callable[[], Coroutine[Any, Any, TrialOutcome]]:
            return lambda: self._answered(turn, fingerprint, answer)

        self.restarted.keep(trial)
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
        from rag_harness.runs.conversations import noting_sent_turn

        return noting_sent_turn(trial, self._session.settings, fingerprint, self._kit.journal.get().keep)

    async def _answered(self, turn: Trial, fingerprint: str, answer: AskTurn) -> TrialOutcome:
        from rag_harness.runs.trial import TrialOutcome, TrialRequest

        asked = await self.asked(turn)
        if isinstance(asked, TrialOutcome):
            outcome = asked
        else:
            with self.noting(asked, fingerprint):
                outcome = await answer(asked, TrialRequest(session=self.session_of(turn)))
        self.history.take_outcome(turn, outcome)
        return outcome

    def said_before(self, trial: TrialId) -> list[str]:
        """Return, once, the lines of what simulated users said before a turn. The writer of the files needs them."""
        users = self._users.made
        return [line.decode() for line in users.new_lines(trial.experiment, trial.query_id)] if users else []

    async def asked(self, turn: Trial, repeat: int = 1) -> Trial | TrialOutcome:
        """Return what a turn is asked, or its outcome if it cannot be asked. All turns before it are finished."""
        from rag_harness.runs.trial import TrialOutcome

        asked = self.history.asked(turn, repeat)
        return asked if isinstance(asked, TrialOutcome) else await self._users.get().asked(asked, repeat)


def played_turns(session: RagSession, kit: RunResources, judgements: Judgements, history: OwnHistory) -> PlayedTurns:
    """Return what asks the simulated users of a run."""
    from dataclasses import replace

    from rag_harness.records.manifest import seconds_of
    from rag_harness.runs.conversations import MovesKept, PlayedTurns

    def fingerprint(name: str) -> str:
        experiment = session.experiments.known(name)
        assert experiment is not None
        return session.identities.fingerprint(experiment)

    def find(name: str, of: str, query_id: str) -> ExperimentResult | None:
        found = kit.stored.get().find(name, of, query_id)
        if found is None or not (found[1] and found[0].timings_recorded):
            return found and found[0]
        is_renewed = session.identities.has_recorded_since(name, seconds_of(found[0].finished_at))
        return None if is_renewed else found[0]

    kept = MovesKept(
        fingerprint,
        find,
        lambda name, query_id: kit.stored.get().scores_of(name, query_id),
        lambda line: kit.journal.get().keep(line),
        lambda messages: kit.prompts.get().keep(messages),
    )
    # A row's cost is by the price of the model that it is asked of.
    settings = replace(session.settings, chat_model=session.settings.user_model or session.settings.chat_model)
    return PlayedTurns(history, session.experiments.user.get(), settings, kept, _judge(session.settings, judgements))


def _judge(settings: Settings, judgements: Judgements) -> RoleJudge | None:
    """Return who judges what a model says as a user: the judge of the run, where it asks a model, too."""
    if not settings.user_model:
        return None
    from rag_harness.evaluation.judges.traits import asks_a_model
    from rag_harness.runs.conversations import RoleJudge

    if not asks_a_model(settings):
        return None
    return RoleJudge(judgements.of_user)
