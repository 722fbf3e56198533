"""Turns that were sent to a service which keeps conversations: a later run knows of them before an answer came."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rag_harness.engine.trial_rows import Trial, make_row
from rag_harness.models.anew import noting_what_is_sent
from rag_harness.results.row import ExperimentResult
from rag_harness.settings import Settings
from rag_harness.types import SESSION, Answer, Failure, PipelineOutput

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
