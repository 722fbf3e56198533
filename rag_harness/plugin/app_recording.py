"""Records and replays the HTTP calls of pipelines of a user's own, while they are made and while they answer trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.models.recording.app_calls import (
    AppCassettes,
    AppPlayback,
    answering_app,
    no_app_answers,
    threads_of_apps,
)
from rag_harness.models.recording.cassettes import OWN
from rag_harness.models.recording.other_transports import other_transports_patched
from rag_harness.models.recording.scrubbing import secrets_of
from rag_harness.models.recording.transports import patched
from rag_harness.models.recording.unrecorded import unrecorded_calls
from rag_harness.plugin.items import own_fixture
from rag_harness.plugin.own_recording import is_qdrant

if TYPE_CHECKING:
    from rag_harness.plugin.session import RagSession

_ARE_RECORDED: pytest.StashKey[bool] = pytest.StashKey()


def record_apps(session: RagSession) -> None:
    """Replay and record what pipelines of a user's own call by HTTP, from now on until the run ends.

    HTTP libraries are patched before the first test: ``rag_recording`` patches them for a test, and takes only its own
    patch away.

    Raises:
        DataError: answers are to be stored in a folder that cannot be written.
    """
    if _ARE_RECORDED in session.config.stash or not session.access.covers_own_calls:
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

    def skips(url: object) -> bool:
        return no_app_answers() or is_qdrant(url, settings)

    session.closing.enter_context(patched(playback, lambda asked: skips(asked.url)))
    session.closing.enter_context(other_transports_patched(playback, skips))
    session.closing.enter_context(threads_of_apps())

    def is_qdrants(host: str, port: int) -> bool:
        return is_qdrant(f"http://{host}:{port}", settings)

    counted = unrecorded_calls.counted(lambda: not no_app_answers(), is_qdrants)
    session.closing.enter_context(counted)


def registers_apps(session: RagSession) -> bool:
    """Return whether a selected experiment is one that another package has registered."""
    from rag_harness.registry import registered

    return not session.own_experiments.isdisjoint(registered("pipelines"))


@contextmanager
def making_app(session: RagSession, item: pytest.Item, fixture: pytest.FixtureDef[Any]) -> Iterator[None]:
    """Record and replay what a fixture calls that a test's own ``rag_pipeline`` is made of.

    It may embed the documents, for example. That is done before the first trial, in a fixture of any scope.

    Raises:
        RecordingMissError: what it has called is not recorded, and this mode calls nobody.
    """
    if fixture.argname not in _makers(item):
        yield
        return
    record_apps(session)
    with answering_app() as calls:
        yield
    if calls.refused is not None:
        raise calls.refused


def _makers(item: pytest.Item) -> set[str]:
    """Return the names of the fixtures that make a test's own pipeline; none where it gets the plugin's."""
    own = own_fixture(item)
    found: set[str] = set()
    waiting = [own] if own is not None else []
    known: Mapping[str, Any] = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
    while waiting:
        fixture = waiting.pop()
        if fixture.argname not in found and not str(fixture.func.__module__).startswith("rag_harness."):
            found.add(fixture.argname)
            waiting += [known[name][-1] for name in fixture.argnames if known.get(name)]
    return found
