"""Record and replay of what pipelines of a user's own call by HTTP, by the rules of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

from rag_harness.models.recording.app_calls import AppCassettes, AppPlayback, no_app_answers, threads_of_apps
from rag_harness.models.recording.cassettes import OWN
from rag_harness.models.recording.network_guard import LOOPBACK
from rag_harness.models.recording.other_transports import other_transports_patched
from rag_harness.models.recording.scrubbing import Scrub, secrets_of
from rag_harness.models.recording.transports import patched
from rag_harness.models.recording.unrecorded import unrecorded_calls
from rag_harness.settings import Settings, access_of


@contextmanager
def own_calls_covered(settings: Settings, scrub: Scrub | None) -> Iterator[None]:
    """Record or replay, in the block, what runs in ``answering_app`` calls by HTTP. Count what cannot be recorded.

    Raises:
        DataError: answers are to be stored in a folder that cannot be written.
    """
    access = access_of(settings)
    playback = AppPlayback(
        AppCassettes(settings.folder("cassettes") / OWN, secrets_of(settings), scrub, settings.abridge),
        may_call=not access.calls_nobody,
        keep=access.records,
        ask_again=settings.rerecord and access.records,
        refuse="Record it: --rag-mode=record",
    )

    def skips(url: object) -> bool:
        return no_app_answers() or is_qdrant(url, settings)

    with ExitStack() as stack:
        stack.enter_context(patched(playback, lambda asked: skips(asked.url)))
        stack.enter_context(other_transports_patched(playback, skips))
        stack.enter_context(threads_of_apps())
        stack.enter_context(
            unrecorded_calls.counted(
                lambda: not no_app_answers(), lambda host, port: is_qdrant(f"http://{host}:{port}", settings)
            )
        )
        yield


def is_qdrant(url: Any, settings: Settings) -> bool:
    """Return whether a call goes to the Qdrant server that the user configured on this machine."""
    asked, known = urlsplit(str(url)), urlsplit(settings.qdrant_url)
    return known.hostname in LOOPBACK and asked.hostname in LOOPBACK and asked.port == known.port
