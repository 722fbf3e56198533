"""Records and replays the HTTP calls of traced apps while they answer trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_harness.models.recording.app_calls import AppCassettes, AppPlayback, no_app_answers
from rag_harness.models.recording.cassettes import OWN
from rag_harness.models.recording.scrubbing import secrets_of
from rag_harness.models.recording.transports import patched
from rag_harness.plugin.own_recording import is_qdrant

if TYPE_CHECKING:
    from rag_harness.plugin.session import RagSession

_ARE_RECORDED: pytest.StashKey[bool] = pytest.StashKey()


def record_apps(session: RagSession) -> None:
    """Replay and record what traced apps call by HTTP, from now on until the run ends, by the rules of the run.

    HTTP libraries are patched before the first test: ``rag_recording`` patches them for a test, and takes only its own
    patch away. In mode auto, what is not recorded is called and not kept.

    Raises:
        DataError: answers are to be stored in a folder that cannot be written.
    """
    if _ARE_RECORDED in session.config.stash or not session.access.reads_recordings:
        return
    session.config.stash[_ARE_RECORDED] = True
    records, settings = session.access.records, session.settings
    playback = AppPlayback(
        AppCassettes(settings.path(settings.cassettes) / OWN, secrets_of(settings), session.scrub, settings.abridge),
        may_call=not session.access.calls_nobody,
        keep=records,
        ask_again=settings.rerecord and records,
        refuse="Record it: --rag-mode=record",
    )
    session.closing.enter_context(patched(playback, lambda asked: no_app_answers() or is_qdrant(asked.url, settings)))
