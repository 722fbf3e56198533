"""Records and replays the HTTP calls of tests that call a pipeline of the user's own."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from rag_harness.errors import PrerequisiteError
from rag_harness.models.recording.cassettes import OWN, Cassettes
from rag_harness.models.recording.other_transports import other_transports_patched
from rag_harness.models.recording.own_calls import is_qdrant
from rag_harness.models.recording.playback import Playback
from rag_harness.models.recording.scrubbing import Scrub, secrets_of
from rag_harness.models.recording.transports import patched
from rag_harness.plugin.screen import failed, stop_tests
from rag_harness.work.local_work import is_harness_at_work

if TYPE_CHECKING:
    from rag_harness.plugin.session import RagSession

OWN_CASSETTES: pytest.StashKey[dict[Scrub | None, Cassettes]] = pytest.StashKey()


@dataclass(frozen=True)
class OwnRecording:
    """What a test has replayed and recorded so far."""

    used: list[Path]
    """Files that were replayed or written, in the order of their first use."""
    made: list[Path]
    """Files that were written."""


@contextmanager
def recording(request: pytest.FixtureRequest, session: RagSession, scrub: Scrub | None) -> Iterator[OwnRecording]:
    """Replay and record the HTTP calls that a test makes in the block, by the rules of the run."""
    own = OwnRecording([], [])
    try:
        playback = _playback(request, session, scrub, own)
    except PrerequisiteError as error:
        _stop(request, error)
    if playback is None:
        yield own
        return

    def skips(url: object) -> bool:
        return is_harness_at_work() or is_qdrant(url, session.settings)

    with patched(playback, lambda asked: skips(asked.url)), other_transports_patched(playback, skips):
        yield own
    if playback.broken:
        _stop(request, playback.broken)


def _playback(
    request: pytest.FixtureRequest, session: RagSession, scrub: Scrub | None, own: OwnRecording
) -> Playback | None:
    """Return the rules of the run; None if all calls are live.

    Raises:
        PrerequisiteError: a setting cannot be used, or the folder cannot be written.
    """
    settings, node = session.settings, request.node
    if not session.access.reads_recordings:
        return None
    records = session.access.records
    return Playback(
        own_cassettes(session, scrub),
        may_call=records,
        keep=records,
        ask_again=settings.rerecord,
        refuse=f"Record it: pytest {shlex.quote(node.nodeid)} --rag-mode=record",
        tell=_Teller(node, own),
    )


class _Teller:
    """Tells a test what its recording did. A miss is shown below the test: SDKs hide it behind "Connection error"."""

    def __init__(self, node: Any, own: OwnRecording) -> None:
        self._node, self._own = node, own
        self._misses: set[str] = set()

    def __call__(self, what: str, about: Any) -> None:
        if what == "missed":
            if about not in self._misses:
                self._node.add_report_section("call", "rag_recording", about)
            self._misses.add(about)
            return
        if what == "made" and about not in self._own.made:
            self._own.made.append(about)
        if about not in self._own.used:
            self._own.used.append(about)


def own_cassettes(session: RagSession, scrub: Scrub | None) -> Cassettes:
    """Return the recordings of the user's own calls, cleaned by ``scrub``. One object a process and ``scrub``."""
    stash, settings = session.config.stash, session.settings
    # A conftest.py of a subfolder may define another scrub.
    known = stash.setdefault(OWN_CASSETTES, {})
    if scrub not in known:
        folder = settings.folder("cassettes") / OWN
        known[scrub] = Cassettes(folder, secrets_of(settings), scrub, settings.abridge)
    return known[scrub]


def _stop(request: pytest.FixtureRequest, error: Exception) -> NoReturn:
    stop_tests(request.config, error)
    raise failed(error) from None
