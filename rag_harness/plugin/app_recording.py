"""Records and replays the HTTP calls of pipelines of a user's own, while they are made and while they answer trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.models.recording.app_calls import answering_app
from rag_harness.models.recording.own_calls import own_calls_covered
from rag_harness.plugin.items import own_fixture

if TYPE_CHECKING:
    from rag_harness.plugin.session import RagSession

_ARE_RECORDED: pytest.StashKey[bool] = pytest.StashKey()
_SET_UP: pytest.StashKey[dict[Any, str]] = pytest.StashKey()


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
    session.closing.enter_context(own_calls_covered(session.settings, session.scrub))


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
    if fixture not in _makers(item):
        yield
        return
    record_apps(session)
    with answering_app() as calls:
        yield
    if calls.refused is not None:
        raise calls.refused
    session.config.stash.setdefault(_SET_UP, {})[fixture] = calls.oldest


def set_up_from(item: pytest.Item) -> str:
    """Return when the oldest recording was made that a test's own pipeline was set up from; empty without one."""
    dates = item.config.stash.get(_SET_UP, {})
    return min(filter(None, (dates.get(fixture, "") for fixture in _makers(item))), default="") if dates else ""


def _makers(item: pytest.Item) -> set[Any]:
    """Return the fixtures that make a test's own pipeline; none where it gets the plugin's."""
    own = own_fixture(item)
    found: set[Any] = set()
    waiting = [own] if own is not None else []
    known: Mapping[str, Any] = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
    while waiting:
        fixture = waiting.pop()
        if fixture not in found and not str(fixture.func.__module__).startswith("rag_harness."):
            found.add(fixture)
            waiting += [known[name][-1] for name in fixture.argnames if known.get(name)]
    return found
