"""Sessions of a service that keeps conversations itself: which one a question belongs to, and whether it is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from uuid import uuid4

from rag_harness.errors import ModelOutputError, SessionLostError
from rag_harness.models.anew import seed_shift, session_of_turn
from rag_harness.pipelines.endpoint.paths import Path, described
from rag_harness.settings.endpoint_spec import EndpointSpec
from rag_harness.types import SESSION, Query

SessionId: TypeAlias = "str | int"
"""The id of a session, sent back with the type that the service gave it."""
LONGEST_ID = 2_000
"""Most characters of an id. A longer text is an answer or a page."""
SESSION_SLOT = "{{session}}"
"""Where a header holds the id, and what stands for it in recordings."""
_FORGOTTEN = (404, 410)
"""Statuses that say "no such session" to a turn that is not the first."""


@dataclass(frozen=True)
class Talk:
    """A question in its session.

    Attributes:
        sessions: those of its service.
        query: the question.
        session: the id that is sent with it; None where the service has not stated one yet.
        is_first: whether it begins the session.
    """

    sessions: Sessions
    query: Query
    session: SessionId | None
    is_first: bool

    def sent_in(self, session: SessionId | None) -> Talk:
        """Return the question as it is sent in a session."""
        return replace(self, session=session)

    def check_may_ask(self) -> None:
        """Refuse to go on in a session of an earlier run, where the service would not say that it has forgotten it.

        Raises:
            SessionLostError: it would not.
            ModelOutputError: the session has become that of another conversation.
        """
        self.sessions.check_may_ask(self.query)
        self.sessions.take(self.session, self.query)

    def check_not_lost(self, document: Any, status: int = 200) -> None:
        """Refuse an answer which says that the session is not known.

        Raises:
            SessionLostError: it says so.
        """
        if not self.is_first:
            self.sessions.check_not_lost(document, status, self.query)

    def after(self, document: Any, is_new: bool = False) -> SessionId | None:
        """Return the session of the next turn, by an answer. ``is_new`` says that the answer is no recording.

        Raises:
            ModelOutputError: the answer states no id that can be used, or the id of another conversation.
            SessionLostError: it states the id of another session.
        """
        found = self.sessions.after(document, self)
        if is_new:
            self.sessions.take(found, self.query)
        return found


class Sessions:
    """The sessions of one service, in this process.

    Args:
        spec: the service; ``spec.session`` describes its sessions.
    """

    def __init__(self, spec: EndpointSpec) -> None:
        self._name, self._where, self._reading = spec.name, spec.where, spec.session
        self._path, self._lost = (
            Path(text, f"{spec.name}: session.{key}") if text else None
            for key, text in (("path", spec.session.path), ("lost", spec.session.lost))
        )
        self._owners: dict[SessionId, tuple[str, int]] = {}

    def of(self, query: Query) -> Talk:
        """Return a question in the session of the turns before it.

        Raises:
            SessionLostError: turns were asked before it, and nobody knows in which session.
        """
        session: SessionId | None = query.inputs.get(SESSION)
        if session is None and any(not message.get("failed") for message in _history(query, "assistant")):
            raise SessionLostError(
                f"{self._name} keeps conversations itself, and it is not known in which session the turns before "
                f"{query.query_id} were asked. It was not asked: it would answer without a memory of them. Ask the "
                f"conversation from its first turn, with its own answers as history."
            )
        return Talk(self, query, session, is_first=session is None)

    def chosen(self, query: Query) -> SessionId | None:
        """Return the id of a new session, where the client chooses it."""
        if not self._reading.id:
            return None
        conversation = query.place.get("conversation", query.query_id)
        # What stands for the conversation must not be read as a placeholder.
        parts = (part.replace("{{conversation}}", conversation) for part in self._reading.id.split("{{uuid}}"))
        return checked_id(str(uuid4()).join(parts), f"{self._name}: session.id")

    def check_may_ask(self, query: Query) -> None:
        """As ``Talk.check_may_ask``."""
        if session_of_turn.get() == "earlier" and not self._reading.may_resume:
            raise SessionLostError(
                f"{query.query_id} was not asked: the turns before it were asked by an earlier run, and {self._name} "
                f"would not say that it has forgotten them. The next run begins the conversation anew. To go on in "
                f"such sessions, say in {self._where} how an answer shows that a session is not known, session.lost, "
                f"or that none gets lost, session.resumes = true."
            )

    def check_not_lost(self, document: Any, status: int, query: Query) -> None:
        """As ``Talk.check_not_lost``."""
        found = self._lost.find(document) if self._lost else []
        if any(each is not None and each is not False for each in found):
            raise self._forgotten(query, f"session.lost = {self._reading.lost!r} finds {described(found[0])}")
        if status in _FORGOTTEN:
            raise self._forgotten(query, f"it answered with status {status}")

    def opened(self, document: Any) -> SessionId:
        """Return the id of a session, by the reply to the request that opened it.

        Raises:
            ModelOutputError: the reply states no id that can be used.
        """
        found = self._stated(document, "the reply to session.open")
        assert found is not None
        return found

    def after(self, document: Any, talk: Talk) -> SessionId | None:
        """As ``Talk.after``."""
        if self._path is None or self._reading.open:
            return talk.session
        may_lack = self._path.is_optional and not talk.is_first and not self._reading.changes
        found = self._stated(document, "the answer", may_lack)
        if found is None:
            return talk.session
        if not talk.is_first and found != talk.session and not self._reading.changes:
            how = f"asked in {_short(talk.session)}, it answered in {_short(found)}"
            raise self._forgotten(talk.query, how)
        return found

    def _stated(self, document: Any, what: str, may_lack: bool = False) -> SessionId | None:
        assert self._path is not None
        found, where = self._path.find(document), f"{self._name}: session.path = {self._path.text!r}"
        if not found and may_lack:
            return None
        if not found:
            raise ModelOutputError(f"{where} finds nothing in {what}. {self._path.nearest(document)}.")
        return checked_id(found[0], where)

    def take(self, session: SessionId | None, query: Query) -> None:
        """Note whose session it is.

        Raises:
            ModelOutputError: it is the session of another conversation.
        """
        if session is None:
            return
        whose = query.place.get("conversation", f"{query.query_id} {query.text}"), seed_shift.get()
        owner = self._owners.setdefault(session, whose)
        if owner != whose:
            raise ModelOutputError(
                f"{self._name}: {query.query_id} has the session {_short(session)}, and so has {owner[0]!r}: two "
                f"conversations would share a memory. Look at session in {self._where}. A service that was started "
                f"again may also have begun to count anew; then the next run helps."
            )

    def _forgotten(self, query: Query, how: str) -> SessionLostError:
        return SessionLostError(
            f"{self._name} has forgotten the session of {query.query_id}: {how}. The next run begins the conversation "
            f"anew: an answer without a memory of the turns before it does not count."
        )


def checked_id(value: Any, where: str) -> SessionId:
    """Return the id of a session.

    Raises:
        ModelOutputError: it is no text of one to ``LONGEST_ID`` characters, and no whole number.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip() and len(value) <= LONGEST_ID:
        return value
    said = f"a text of {len(value):,} characters" if isinstance(value, str) else described(value)
    raise ModelOutputError(
        f"{where} finds {said}; a session is a text of 1 to {LONGEST_ID:,} characters, or a whole number."
    )


def _short(session: SessionId | None) -> str:
    shown = repr(session)
    return f"{shown[:40]}…" if len(shown) > 41 else shown


def recorded_beside(query: Query) -> dict[str, Any]:
    """Return what recordings of a turn go by beside its request: its conversation, and what was said before it."""
    if not query.place:
        return {}
    history = [{"role": each["role"], "content": each["content"]} for each in _history(query)]
    return {"conversation": query.place["conversation"], "history": history}


def headers_in(headers: Sequence[tuple[str, str]], session: SessionId | None, name: str) -> Iterator[tuple[str, str]]:
    """Yield headers with the session in those that name it; without a session these are left out.

    Raises:
        ModelOutputError: the id has characters that no header may have.
    """
    for header, value in headers:
        if SESSION_SLOT not in value:
            yield header, value
        elif session is not None:
            said = str(session)
            if not (said.isascii() and said.isprintable()):
                raise ModelOutputError(
                    f"{name}: the session {said[:60]!r} cannot stand in the header {header!r}: a header is one line of "
                    f"ASCII. It was not sent."
                )
            yield header, value.replace(SESSION_SLOT, said)


def _history(query: Query, *roles: str) -> list[Mapping[str, Any]]:
    """Return what was said before a turn, or what some of the roles have said."""
    history = query.inputs.get("history", ()) if query.place else ()
    return [each for each in history if not roles or each["role"] in roles]
