"""Conversations under way: their history, and turns that a service has received."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.core.settings import Settings
from rag_harness.core.settings.table import FailedTurn
from rag_harness.core.types import SESSION, Answer, Case, Failure, PipelineOutput
from rag_harness.evaluation.measures.expectations import numbers_kept
from rag_harness.models.call_context import Session, noting_what_is_sent
from rag_harness.pipelines.simulated_user import Exchange
from rag_harness.records.json_safe import storable
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.trial import ConversationEnd, Trial, TrialOutcome, make_row

# Turns that were sent to a service which keeps conversations: a later run knows of them before an answer came.

_CUT_OFF = Failure(
    stage="ask",
    error_type="CutOff",
    message="the run was cut off when this question was sent, before an answer came. The service may have heard it, so "
    "the next run begins the conversation anew.",
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


# Conversations that go on from the pipeline's own answers: what was said before each turn, as turns are answered.

SHOWN = "Sorry, something went wrong. Please ask again."
"""What a user sees where a turn has failed, and so what later turns have as its reply."""


@dataclass(frozen=True, slots=True)
class _Said:
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
        self._said: dict[tuple[str, str, int], dict[int, _Said]] = {}

    def knows(self, trial: Trial, repeat: int = 1) -> bool:
        """Return whether the turn is over."""
        return _turn(trial.case) in self._of(trial, repeat)

    def take(self, trial: Trial, row: ExperimentResult, repeat: int = 1, is_stored: bool = True) -> None:
        """Take the row of a turn. ``is_stored`` says that it was not made now."""
        kept = numbers_kept(trial.case, row, trial.case.scenario.reached) if trial.case.scenario and row.ok else ()
        is_earlier = is_stored or row.timings_recorded
        said = _Said(row.query, row.llm_answer, row.error_text, session=session_of_row(row), is_earlier=is_earlier)
        said = replace(said, declined=row.abstained, kept=frozenset(kept))
        self._of(trial, repeat)[_turn(trial.case)] = said

    def take_outcome(self, trial: Trial, outcome: TrialOutcome, repeat: int = 1, is_stored: bool = False) -> None:
        """Record the outcome of a turn. The turn may not have been run."""
        if outcome.row is not None:
            self.take(trial, outcome.row, repeat, is_stored)
        else:
            over = _Said(trial.case.query.text, not_run=outcome.not_run, ended=outcome.ended)
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

    def _last_in_a_session(self, trial: Trial, repeat: int) -> _Said | None:
        said = self._of(trial, repeat)
        before = (said[turn] for turn in range(_turn(trial.case) - 1, 0, -1) if turn in said)
        return next((each for each in before if each.session is not None), None)

    def ended(self, trial: Trial, repeat: int = 1) -> ConversationEnd | None:
        """Return where and why its conversation has ended before a turn; None where it has not, as far as is known."""
        said = self._of(trial, repeat).get(_turn(trial.case))
        return said.ended if said else None

    def _of(self, trial: Trial, repeat: int) -> dict[int, _Said]:
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
