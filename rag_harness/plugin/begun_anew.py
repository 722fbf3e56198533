"""Conversations that a service keeps itself: whether a run goes on in an earlier session, or begins them anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_harness.engine.trial_rows import Trial
    from rag_harness.plugin.session import RagSession
    from rag_harness.results.row import ExperimentResult

Stored = Callable[["Trial"], "tuple[ExperimentResult, bool] | None"]
"""Returns the stored row of a turn, whatever was said before it, and whether an earlier run has made it."""
Known = Callable[["Trial"], "ExperimentResult | None"]
"""Returns the last row of a turn, also one that ended with an error."""
_Key = tuple[str, str, int]


class BegunAnew:
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
            from rag_harness.engine.sent_turns import is_one_session, was_perhaps_heard

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
