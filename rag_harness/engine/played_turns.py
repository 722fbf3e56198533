"""Asks simulated users what they say next, before each turn of a conversation that is played."""

from __future__ import annotations

from dataclasses import replace

from rag_harness.engine.own_history import OwnHistory
from rag_harness.engine.trial import Ended, TrialOutcome
from rag_harness.engine.trial_rows import Trial
from rag_harness.users.moves import Ends, Move
from rag_harness.users.script import scripted


class PlayedTurns:
    """The simulated users of one process.

    Args:
        history: what was said in each conversation.
    """

    def __init__(self, history: OwnHistory) -> None:
        self._history = history

    def known(self, asked: Trial, repeat: int = 1) -> Trial | TrialOutcome | None:
        """Return a turn with what its user says, or its end, where nobody has to be asked for that; else None.

        A turn of a recorded conversation is returned as it is.
        """
        scenario = asked.case.scenario
        if scenario is None:
            return asked
        return _done(asked, scripted(scenario, self._history.before(asked, repeat)))

    async def asked(self, asked: Trial, repeat: int = 1) -> Trial | TrialOutcome:
        """Return a turn with what its user says, or what came of it where the conversation is over."""
        known = self.known(asked, repeat)
        assert known is not None
        return known


def _done(asked: Trial, move: Move) -> Trial | TrialOutcome:
    if isinstance(move, Ends):
        turn = int(asked.case.query.place["turn"]) - 1
        return TrialOutcome(None, ended=Ended(turn, move.why, move.out_of_role))
    return replace(asked, case=replace(asked.case, query=replace(asked.case.query, text=move.text)))
