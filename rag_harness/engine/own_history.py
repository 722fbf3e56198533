"""Conversations that go on from the pipeline's own answers: what was said before each turn, as turns are answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.engine.sent_turns import session_of_row
from rag_harness.engine.trial import TrialOutcome
from rag_harness.engine.trial_rows import Trial
from rag_harness.models.anew import Session
from rag_harness.results.row import ExperimentResult
from rag_harness.results.storable import storable
from rag_harness.settings.table import FailedTurn
from rag_harness.types import SESSION, Case

SHOWN = "Sorry, something went wrong. Please ask again."
"""What a user sees where a turn has failed, and so what later turns have as its reply."""


@dataclass(frozen=True, slots=True)
class _Said:
    """A turn that is over: question and reply, or why there is none; and its session, of this run or an earlier one."""

    query: str
    reply: str = ""
    failed: str = ""
    not_run: str = ""
    session: Any = None
    is_earlier: bool = False

    @property
    def messages(self) -> list[dict[str, Any]]:
        asked = {"role": "user", "content": self.query}
        if self.failed:
            return [asked, {"role": "assistant", "content": SHOWN, "failed": True}]
        return [asked, {"role": "assistant", "content": self.reply}]


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
        is_earlier = is_stored or row.timings_recorded
        said = _Said(row.query, row.llm_answer, row.why, session=session_of_row(row), is_earlier=is_earlier)
        self._of(trial, repeat)[_turn(trial.case)] = said

    def take_outcome(self, trial: Trial, outcome: TrialOutcome, repeat: int = 1, is_stored: bool = False) -> None:
        """Take what came of a turn, which may not have been run."""
        if outcome.row is not None:
            self.take(trial, outcome.row, repeat, is_stored)
        else:
            self._of(trial, repeat)[_turn(trial.case)] = _Said(trial.case.query.text, not_run=outcome.not_run)

    def asked(self, trial: Trial, repeat: int = 1) -> Trial | str:
        """Return the trial with what was said before it as its history, or why it cannot be asked.

        All turns before it are over.
        """
        said, messages = self._of(trial, repeat), []
        for turn in range(1, _turn(trial.case)):
            before = said.get(turn)
            if before is None or before.not_run:
                # A reason names the turn that began it, also where several could not be asked after it.
                return before.not_run if before else f"turn {turn} has no answer"
            if before.failed and self._failed_turn == "skip":
                return f"turn {turn} failed: {before.failed}"
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

    def is_of_this(self, row: ExperimentResult, trial: Trial, repeat: int = 1) -> bool:
        """Return whether a stored row was asked with what was said here: its history is that of the trial."""
        asked = self.asked(trial, repeat)
        return not isinstance(asked, str) and bool(row.inputs == storable(asked.case.query.inputs))

    def _of(self, trial: Trial, repeat: int) -> dict[int, _Said]:
        return self._said.setdefault((trial.experiment, _place(trial.case)["conversation"], repeat), {})


def conversations(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return the turns of each conversation by its id, in their order. Cases that are no turns are left out."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        if place := case.query.place:
            found.setdefault(place["conversation"], []).append(case)
    return {name: sorted(turns, key=_turn) for name, turns in found.items()}


def _place(case: Case) -> dict[str, str]:
    return case.query.place


def _turn(case: Case) -> int:
    return int(_place(case)["turn"])
