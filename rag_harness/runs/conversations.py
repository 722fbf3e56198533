"""Conversations under way: their history, turns that a service has received, and simulated users."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.core.errors import CriticalError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.table import FailedTurn
from rag_harness.core.types import SESSION, Answer, Case, Expectation, Failure, PipelineOutput, Query
from rag_harness.evaluation.measures.expectations import KEPT, JudgedExpectations, numbers_kept
from rag_harness.models.calls import Session, asked_again, noting_what_is_sent
from rag_harness.pipelines.simulated_user import (
    MOVE,
    SAYS,
    EndMove,
    Exchange,
    ModelMove,
    Move,
    SayMove,
    SimulatedUser,
    left_role,
    move_of,
)
from rag_harness.records.manifest import repeat_fingerprint, repeat_name, user_fingerprint, user_name
from rag_harness.records.row import ExperimentResult, RowStage, storable
from rag_harness.records.scores import ScoreLine, row_digest
from rag_harness.runs.judging import JudgedRow
from rag_harness.runs.trial import ConversationEnd, KeepPrompt, Trial, TrialOutcome, make_row, run_trial

_CUT_OFF = Failure(
    stage="ask",
    error_type="CutOff",
    message="the run was cut off when this question was sent, before an answer came. The service may have heard it, so "
    "the next run begins the conversation again.",
)


@contextmanager
def noting_sent_turn(
    trial: Trial, settings: Settings, fingerprint: str, keep: Callable[[bytes], Awaitable[None]]
) -> Iterator[None]:
    """Keep a row with an error when a turn is sent in the block. Its own row takes the place of that.

    Args:
        trial: the turn, with what was said before it.
        settings: of the run.
        fingerprint: of its row.
        keep: writes a line to the disk.
    """
    is_noted = False

    async def note() -> None:
        nonlocal is_noted
        if not is_noted:
            is_noted = True
            row = make_row(trial, PipelineOutput(Answer("")), _CUT_OFF, 0.0, settings, fingerprint)
            await keep(row.line().encode())

    with noting_what_is_sent(note):
        yield


def session_of_row(row: ExperimentResult) -> Any:
    """Return the session of the turn after this row's; None where there is none."""
    return next((stage.detail[SESSION] for stage in row.stages if SESSION in stage.detail), None)


def is_one_session(rows: Sequence[ExperimentResult]) -> bool:
    """Return whether each turn was asked in the session of the turns before it. ``rows`` are in their order."""
    session: Any = None
    for row in rows:
        if row.inputs.get(SESSION) != session:
            return False
        said = session_of_row(row)
        session = session if said is None else said
    return True


def was_perhaps_heard(row: ExperimentResult) -> bool:
    """Return whether a service may have heard the question of a failed row, whose answer is not recorded.

    A service that keeps the conversation itself would then hear it twice. What could not be read of an answer that came
    is read again from its recording.
    """
    is_recorded = row.mode != "live" and row.error is not None and row.error.stage not in ("request", "ask")
    return not row.ok and not is_recorded


SHOWN = "Sorry, something went wrong. Please ask again."
"""What a user sees where a turn has failed, and so what later turns have as its reply."""


@dataclass(frozen=True, slots=True)
class _FinishedTurn:
    """A finished turn: question and reply, or the reason why it has no reply.

    ``session`` is set where a service stores the conversation. An earlier run may have begun it. A simulated user gets
    ``declined`` and ``kept`` with the reply.
    """

    query: str
    reply: str = ""
    failed: str = ""
    not_run: str = ""
    session: Any = None
    is_earlier: bool = False
    ended: ConversationEnd | None = None
    declined: bool = False
    kept: frozenset[int] = frozenset()

    @property
    def messages(self) -> list[dict[str, Any]]:
        asked = {"role": "user", "content": self.query}
        if self.failed:
            return [asked, {"role": "assistant", "content": SHOWN, "failed": True}]
        return [asked, {"role": "assistant", "content": self.reply}]

    @property
    def exchange(self) -> Exchange:
        return Exchange(self.query, SHOWN if self.failed else self.reply, self.declined, bool(self.failed), self.kept)


class OwnHistory:
    """What was said in each conversation of each experiment. A repeat of a conversation is a conversation of its own.

    Args:
        failed_turn: ``shown``: later turns are told what a user sees of a turn that failed; ``skip``: they are not
            asked.
    """

    def __init__(self, failed_turn: FailedTurn = "shown") -> None:
        self._failed_turn = failed_turn
        self._said: dict[tuple[str, str, int], dict[int, _FinishedTurn]] = {}

    def knows(self, trial: Trial, repeat: int = 1) -> bool:
        """Return whether the turn is over."""
        return _turn(trial.case) in self._of(trial, repeat)

    def take(self, trial: Trial, row: ExperimentResult, repeat: int = 1, is_stored: bool = True) -> None:
        """Take the row of a turn. ``is_stored`` says that it was not made now."""
        kept = numbers_kept(trial.case, row, trial.case.scenario.reached) if trial.case.scenario and row.ok else ()
        is_earlier = is_stored or row.timings_recorded
        said = _FinishedTurn(
            row.query, row.llm_answer, row.error_text, session=session_of_row(row), is_earlier=is_earlier
        )
        said = replace(said, declined=row.abstained, kept=frozenset(kept))
        self._of(trial, repeat)[_turn(trial.case)] = said

    def take_outcome(self, trial: Trial, outcome: TrialOutcome, repeat: int = 1, is_stored: bool = False) -> None:
        """Record the outcome of a turn. The turn may not have been run."""
        if outcome.row is not None:
            self.take(trial, outcome.row, repeat, is_stored)
        else:
            over = _FinishedTurn(trial.case.query.text, not_run=outcome.not_run, ended=outcome.ended)
            self._of(trial, repeat)[_turn(trial.case)] = over

    def before(self, trial: Trial, repeat: int = 1) -> list[Exchange]:
        """Return the turns before this one as a user sees them. All of them are over, and have answers."""
        said = self._of(trial, repeat)
        return [said[turn].exchange for turn in range(1, _turn(trial.case))]

    def asked(self, trial: Trial, repeat: int = 1) -> Trial | TrialOutcome:
        """Return the trial with the earlier turns as its history, or its outcome if it cannot be asked.

        All turns before it are finished.
        """
        said, messages = self._of(trial, repeat), []
        for turn in range(1, _turn(trial.case)):
            before = said.get(turn)
            if before is None or before.not_run or before.ended:
                # A reason names the turn that began it, also where several could not be asked after it.
                why = before.not_run if before else f"turn {turn} has no answer"
                return TrialOutcome(None, not_run=why, ended=before.ended if before else None)
            if before.failed and self._failed_turn == "skip":
                return TrialOutcome(None, not_run=f"turn {turn} failed: {before.failed}")
            messages += before.messages
        last = self._last_in_a_session(trial, repeat)
        inputs = {name: value for name, value in trial.case.query.inputs.items() if name != "history"}
        said_before = {**({"history": messages} if messages else {}), **({SESSION: last.session} if last else {})}
        query = replace(trial.case.query, inputs={**inputs, **said_before})
        return replace(trial, case=replace(trial.case, query=query))

    def session_of(self, trial: Trial, repeat: int = 1) -> Session:
        """Return ``earlier`` where the session of the turns before this one was not begun now."""
        last = self._last_in_a_session(trial, repeat)
        return "earlier" if last is not None and last.is_earlier else ""

    def _last_in_a_session(self, trial: Trial, repeat: int) -> _FinishedTurn | None:
        said = self._of(trial, repeat)
        before = (said[turn] for turn in range(_turn(trial.case) - 1, 0, -1) if turn in said)
        return next((each for each in before if each.session is not None), None)

    def ended(self, trial: Trial, repeat: int = 1) -> ConversationEnd | None:
        """Return where and why its conversation has ended before a turn; None where it has not, as far as is known."""
        said = self._of(trial, repeat).get(_turn(trial.case))
        return said.ended if said else None

    def _of(self, trial: Trial, repeat: int) -> dict[int, _FinishedTurn]:
        return self._said.setdefault((trial.experiment, _place(trial.case)["conversation"], repeat), {})


def conversations(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return the turns of each conversation by its id, in their order. Other cases are left out."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        if place := case.query.place:
            found.setdefault(place["conversation"], []).append(case)
    return {name: sorted(turns, key=_turn) for name, turns in found.items()}


def _place(case: Case) -> dict[str, str]:
    return case.query.place


def _turn(case: Case) -> int:
    return int(_place(case)["turn"])


def is_asked(row: ExperimentResult, asked: Trial) -> bool:
    """Return whether a stored row was asked what a trial is asked: its words, after the same history."""
    query = asked.case.query
    return bool(row.query == storable(query.text) and row.inputs == storable(query.inputs))


IN_ROLE = "in_role"
"""The name of the score: 1 where the user kept to its role, 0 where not, none where the judge could not tell."""
CRITERIA = (
    "Every number, name, date and other claim in the answer stands in the question, or follows from what stands there.",
    "The answer is what the person of the question says next: it does not speak as the assistant, and it answers no "
    "question that the person has asked.",
)
"""What a judge is asked. Its question is the scenario with the conversation so far, its answer what the user says."""
_WANTED = tuple(Expectation("rubric", each, must=True) for each in CRITERIA)
AskJudge = Callable[[ExperimentResult, Case, Sequence[JudgedExpectations]], Awaitable[JudgedRow]]


@dataclass(frozen=True, slots=True)
class RoleJudge:
    """Asks the judge of a run about moves of users."""

    ask: AskJudge

    async def line(self, row: ExperimentResult, case: Case) -> ScoreLine:
        """Return the score of a move."""
        measure = JudgedExpectations()
        judged = await self.ask(row, replace(case, expect=_WANTED), [measure])
        score = judged.scores[measure.name]
        value = None if score.value is None else float(score.value >= 1)
        return ScoreLine(
            measure=IN_ROLE,
            version=1,
            experiment=row.experiment,
            query_id=row.query_id,
            row=row_digest(row),
            gold="",
            author=judged.author,
            value=value,
            reason=score.reason,
        )


def verdict_in(scores: Sequence[ScoreLine], row: ExperimentResult) -> ScoreLine | None:
    """Return the verdict on a move, by any judge. It decided whether the move was sent to the pipeline."""
    digest = row_digest(row)
    return next((each for each in scores if each.measure == IN_ROLE and each.row == digest and each.is_final), None)


# What a model says is a row of ``c1-sim+user``, and whether it kept to its role a score of that row. Both are on the
# disk before the turn is asked, so that a killed run pays for neither twice.

USER_STAGE = "user"
"""The stage of a turn's row that says who has said its question, and by what calls."""


@dataclass(frozen=True, slots=True)
class MovesKept:
    """Where the moves of users are kept, and found again.

    Attributes:
        fingerprint: returns that of an experiment's rows.
        find: returns the stored row of an experiment's query, with its fingerprint given; None where there is none.
        scores: returns the stored scores of a row by experiment and query.
        keep: writes a line to the disk.
        keep_prompt: keeps the messages of a call.
    """

    fingerprint: Callable[[str], str]
    find: Callable[[str, str, str], ExperimentResult | None]
    scores: Callable[[str, str], list[ScoreLine]]
    keep: Callable[[bytes], Awaitable[None]]
    keep_prompt: KeepPrompt


@dataclass(frozen=True, slots=True)
class _ToSay:
    """What a model is asked for: the trial whose answer is what the user says, and the pipeline that asks."""

    trial: Trial
    move: ModelMove
    fingerprint: str
    repeat: int


class PlayedTurns:
    """The simulated users of one process.

    Args:
        history: what was said in each conversation.
        user: who plays them.
        settings: of the run.
        kept: where their moves are kept.
        judge: judges whether what a model says follows from its scenario; None where rules alone tell.
    """

    def __init__(
        self, history: OwnHistory, user: SimulatedUser, settings: Settings, kept: MovesKept, judge: RoleJudge | None
    ) -> None:
        self._history, self._user, self._settings, self._kept, self._judge = history, user, settings, kept, judge
        self._new: dict[tuple[str, str], list[bytes]] = {}

    def new_lines(self, experiment: str, query_id: str) -> list[bytes]:
        """Return the lines of what was said, and judged, before a turn since this was last asked for."""
        return self._new.pop((experiment, query_id), [])

    async def _keep(self, experiment: str, query_id: str, line: bytes) -> None:
        self._new.setdefault((experiment.partition("+")[0], query_id), []).append(line)
        await self._kept.keep(line)

    def known(self, asked: Trial, repeat: int = 1) -> Trial | TrialOutcome | None:
        """Return a turn with what its user says, or its end, where nobody has to be asked for that; else None.

        A turn of a recorded conversation is returned as it is.
        """
        if asked.case.scenario is None:
            return asked
        before = self._history.before(asked, repeat)
        if (move := self._user.known(asked.case.scenario, before)) is not None:
            return self._done(asked, before, move)
        row = self._stored(self._to_say(asked, repeat))
        return None if row is None else self._done(asked, before, _judged(row, self._verdict(row)), row)

    async def asked(self, asked: Trial, repeat: int = 1) -> Trial | TrialOutcome:
        """Return a turn with the words of its user, or its outcome if it cannot be asked.

        Raises:
            CriticalError: no later move can be made either.
        """
        if asked.case.scenario is None:
            return asked
        before = self._history.before(asked, repeat)
        if (move := self._user.known(asked.case.scenario, before)) is not None:
            return self._done(asked, before, move)
        to_say = self._to_say(asked, repeat)
        row = self._stored(to_say) or await self._say(to_say)
        if isinstance(row, TrialOutcome):
            return row
        verdict = self._verdict(row)
        if self._judge is not None and verdict is None and isinstance(_move(row), SayMove):
            verdict = await self._judge.line(row, to_say.trial.case)
            await self._keep(row.experiment, row.query_id, verdict.line())
        return self._done(asked, before, _judged(row, verdict), row)

    async def _say(self, to_say: _ToSay) -> ExperimentResult | TrialOutcome:
        with asked_again(to_say.repeat - 1):
            outcome = await run_trial(
                to_say.trial, to_say.move, self._settings, to_say.fingerprint, self._kept.keep_prompt
            )
        row = outcome.row
        if outcome.critical:
            raise CriticalError(row.error_text if row is not None and not row.ok else str(outcome.error))
        if row is None:
            return TrialOutcome(None, not_run=outcome.not_run)
        if not row.ok:
            return TrialOutcome(None, not_run=f"its simulated user has failed: {row.error_text}")
        await self._keep(row.experiment, row.query_id, row.line().encode())
        return row

    def _to_say(self, asked: Trial, repeat: int) -> _ToSay:
        assert asked.case.scenario is not None
        move = self._user.move(asked.case.scenario, self._history.before(asked, repeat))
        name, fingerprint = asked.experiment, self._kept.fingerprint(asked.experiment)
        if repeat > 1:
            name, fingerprint = repeat_name(name, repeat), repeat_fingerprint(fingerprint, repeat)
        query = asked.case.query
        place = {key: query.inputs[key] for key in ("conversation", "turn")}
        trial = Trial(user_name(name), Case(Query(query.query_id, move.text, place), query_type="user"))
        return _ToSay(trial, move, user_fingerprint(fingerprint), repeat)

    def _stored(self, to_say: _ToSay) -> ExperimentResult | None:
        trial = to_say.trial
        row = self._kept.find(trial.experiment, to_say.fingerprint, trial.case.query.query_id)
        return row if row is not None and is_asked(row, trial) else None

    def _verdict(self, row: ExperimentResult) -> ScoreLine | None:
        return verdict_in(self._kept.scores(row.experiment, row.query_id), row)

    def _done(
        self, asked: Trial, before: Sequence[Exchange], move: Move, row: ExperimentResult | None = None
    ) -> Trial | TrialOutcome:
        if isinstance(move, EndMove):
            turn = int(asked.case.query.place["turn"]) - 1
            return TrialOutcome(None, ended=ConversationEnd(turn, move.why, move.out_of_role))
        query = replace(asked.case.query, text=move.text)
        kept = frozenset[int]().union(*(each.kept for each in before))
        made = row.stages[0] if row is not None and row.stages else RowStage(name=SAYS, ms=0)
        detail = {"by": self._user.by, **({KEPT: sorted(kept)} if kept else {})}
        stage = made.model_copy(update={"name": USER_STAGE, "detail": detail})
        return replace(asked, case=replace(asked.case, query=query), user=stage)


def _move(row: ExperimentResult) -> Move:
    decision = next(each for each in row.decisions if each.name == MOVE)
    return move_of(decision.outcome, row.llm_answer, decision.reason)


def _judged(row: ExperimentResult, verdict: ScoreLine | None) -> Move:
    """Return the move of a row; its conversation ends where a judge found that it left its role."""
    if verdict is not None and verdict.value == 0:
        return left_role(row.llm_answer, verdict.reason)
    return _move(row)
