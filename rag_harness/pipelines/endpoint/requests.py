"""Requests to a service: templates of bodies, variables, history and sessions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from urllib.parse import quote, urljoin, urlsplit
from uuid import uuid4

from rag_harness.core.errors import (
    ModelCallError,
    ModelOutputError,
    PrerequisiteError,
    SessionLostError,
    SettingsError,
    unknown,
)
from rag_harness.core.settings.endpoints import SESSION_SENT, EndpointSpec, HistoryLimits, check_filled
from rag_harness.core.settings.roles import VARIABLE
from rag_harness.core.types import SESSION, Query
from rag_harness.models.calls import seed_shift, session_of_turn
from rag_harness.models.recording.scrubbing import REDACTED
from rag_harness.pipelines.endpoint.answer import AnswerPath, described

_ANY = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_SLOT = re.compile(r"\s*(\*?)\s*(\w[\w.-]*)\s*(\??)\s*")
_KNOWN = ("query", "query_id", "history", "messages", "inputs")
_HINT = "What else the user sent is {{inputs.NAME}}."
_ABSENT: Any = object()


class Template:
    """A request body with placeholders for the values of a query.

    A string that is only one placeholder becomes the value with its type. In a longer string the value becomes text.
    A placeholder with ``?`` at its end is optional: without a value, its key or item is left out. ``{{*history}}`` in
    a list inserts the items of the value. The first question of a conversation has an empty history.

    Args:
        value: any JSON.
        where: the place of the template, as messages name it.
        has_session: whether it may contain ``{{session}}``. Its key is left out until a session exists.

    Raises:
        SettingsError: a placeholder has a name that no query has.
    """

    def __init__(self, value: Any, where: str, has_session: bool = False) -> None:
        self._value, self._where = value, where
        _check(value, where, (*_KNOWN, "session") if has_session else _KNOWN)

    def fill(self, query: Query) -> Any:
        """Return the template with the values of ``query``.

        Raises:
            ModelCallError: the query lacks an input; names it, and the inputs of the query.
        """
        filled = self._filled(self._value, query)
        return None if filled is _ABSENT else filled

    def fill_url(self, query: Query) -> str:
        """Return the template of an address with the values of ``query``, URL-quoted.

        Raises:
            ModelCallError: the query lacks an input.
        """
        return _ANY.sub(lambda slot: quote(_as_text(self._value_of(slot[1], query)), safe=""), str(self._value))

    def _filled(self, value: Any, query: Query) -> Any:
        if isinstance(value, Mapping):
            filled = {key: self._filled(each, query) for key, each in value.items()}
            return {key: each for key, each in filled.items() if each is not _ABSENT}
        if isinstance(value, list):
            return [item for each in value for item in self._items(each, query)]
        return self._text(value, query) if isinstance(value, str) else value

    def _items(self, value: Any, query: Query) -> list[Any]:
        filled = self._filled(value, query)
        alone = _ANY.fullmatch(value.strip()) if isinstance(value, str) else None
        if alone and alone[1].strip().startswith("*"):
            return list(filled) if isinstance(filled, list) else [] if filled is _ABSENT else [filled]
        return [] if filled is _ABSENT else [filled]

    def _text(self, text: str, query: Query) -> Any:
        alone = _ANY.fullmatch(text.strip())
        if alone and "}}" not in alone[1]:
            return self._value_of(alone[1], query)
        return _ANY.sub(lambda slot: _as_text(self._value_of(slot[1], query)), text)

    def _value_of(self, slot: str, query: Query) -> Any:
        _, name, optional = _parts(slot)
        first, _, rest = name.partition(".")
        if first in ("query", "query_id"):
            return query.text if first == "query" else query.query_id
        if first == "session":
            return query.inputs.get(SESSION, _ABSENT)
        if first == "messages":
            return [*self._history(query), {"role": "user", "content": query.text}]
        if name == "history" and not optional and "history" not in query.inputs:
            return []
        value: Any = {key: each for key, each in query.inputs.items() if key != SESSION}
        for key in [*(["history"] if first == "history" else []), *(rest.split(".") if rest else [])]:
            value = value.get(key, _ABSENT) if isinstance(value, Mapping) else _ABSENT
        if value is _ABSENT and not optional:
            raise ModelCallError(self._missing(name, query))
        return value

    def _history(self, query: Query) -> list[Any]:
        history = query.inputs.get("history", [])
        if not isinstance(history, list):
            raise ModelCallError(
                f"{self._where} wants {{{{messages}}}}, and the history of {query.query_id} is not a list of messages. "
                f"Send it as it is, {{{{history}}}}, or write it as a list of messages with role and content."
            )
        return history

    def _missing(self, name: str, query: Query) -> str:
        has = ", ".join(sorted(query.inputs.keys() - {SESSION})) or "none"
        return (
            f"{self._where} wants {{{{{name}}}}}, and {query.query_id} has no such input; its inputs: {has}. "
            f"Where it may be missing: {{{{{name}?}}}}."
        )


def _check(value: Any, where: str, known: Sequence[str]) -> None:
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        _check(each, where, known)
    for slot in _ANY.findall(value) if isinstance(value, str) else ():
        _, name, _ = _parts(slot, where)
        first, dot, _ = name.partition(".")
        if first not in known or (dot and first not in ("inputs", "history")):
            hint = "A service that keeps conversations has [session]." if first == "session" else _HINT
            raise SettingsError(f"{where}: {unknown('placeholder', name, known)} {hint}")


def _parts(slot: str, where: str = "") -> tuple[str, str, str]:
    found = _SLOT.fullmatch(slot)
    if found is None:
        raise SettingsError(
            f"{where}: {{{{{slot}}}}} is not a placeholder. Write {{{{query}}}} or {{{{inputs.NAME}}}}."
        )
    return found[1], found[2], found[3]


def _as_text(value: Any) -> str:
    if value is _ABSENT or value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Environment:
    """Variables by name: of the process, else of ``.env``.

    Args:
        spec: the service that names them.
        rootdir: the folder of ``.env``.
        must_know: whether every variable must be set.
    """

    def __init__(self, spec: EndpointSpec, rootdir: Any, must_know: bool) -> None:
        self._spec, self._must_know = spec, must_know
        self._file: dict[str, str | None] | None = None
        self._rootdir = rootdir

    def filled(self, text: str, in_header: bool = False) -> str:
        """Return a text with the values of its variables.

        Raises:
            PrerequisiteError: a variable is not set, or holds what no header may have.
        """
        return VARIABLE.sub(lambda found: self._printable(found[1]) if in_header else self.value(found[1]), text)

    def _printable(self, name: str) -> str:
        value = self.value(name)
        if value and not (value.isascii() and value.isprintable()):
            raise PrerequisiteError(
                f"{name}, a header of the endpoint {self._spec.name!r} ({self._spec.where}), holds a line break or "
                f"another character that no header may have. Set it again without. Nothing was called."
            )
        return value

    def value(self, name: str) -> str:
        """Return the value of a variable; empty where it need not be set.

        Raises:
            PrerequisiteError: it is not set.
        """
        value = os.environ.get(name) or self._from_file().get(name) or ""
        if not value and self._must_know:
            raise PrerequisiteError(
                f"{name} is not set: the endpoint {self._spec.name!r} ({self._spec.where}) needs it. Set it in the "
                f"environment or in .env. Nothing was called."
            )
        return value

    def _from_file(self) -> dict[str, str | None]:
        from dotenv import dotenv_values

        if self._file is None:
            self._file = dict(dotenv_values(self._rootdir / ".env", encoding="utf-8-sig"))
        return self._file


@dataclass(frozen=True, slots=True)
class SentHistory:
    """A query with the history that is sent with it.

    Attributes:
        query: the query. Its history is the history that is sent.
        left_out: the number of older turns that are not sent.
    """

    query: Query
    left_out: int = 0


def sent_history(query: Query, limits: HistoryLimits, where: str) -> SentHistory:
    """Return ``query`` with as much of its history as ``limits`` allow: the latest turns, each of them whole.

    A turn is a message of the user with all messages up to the next one.

    Raises:
        ModelCallError: limits are set, and the history is not a list of messages.
    """
    history = query.inputs.get("history")
    if history is None:
        return SentHistory(query)
    if query.place:
        # What the harness notes beside a message is not for the service.
        history = [{"role": each["role"], "content": each["content"]} for each in history]
    if not limits:
        return SentHistory(replace(query, inputs={**query.inputs, "history": history}))
    turns = list(_turns(_messages(query, history, where)))
    kept = _latest(turns, limits)
    sent = [message for turn in kept for message in turn]
    return SentHistory(replace(query, inputs={**query.inputs, "history": sent}), len(turns) - len(kept))


def _messages(query: Query, history: Any, where: str) -> Sequence[Mapping[str, Any]]:
    are_messages = isinstance(history, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("content"), str) and "role" in each for each in history
    )
    if not are_messages:
        raise ModelCallError(
            f"{where}, [history] limits what is sent, and the history of {query.query_id} is not a list of messages "
            f"with role and content. Write it so, or leave [history] out."
        )
    found: Sequence[Mapping[str, Any]] = history
    return found


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    turn: list[Mapping[str, Any]] = []
    for message in messages:
        if message["role"] == "user" and any(each["role"] == "user" for each in turn):
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _latest(turns: list[list[Mapping[str, Any]]], limits: HistoryLimits) -> list[list[Mapping[str, Any]]]:
    first, chars = len(turns), 0
    while first and (limits.most_turns is None or len(turns) - first < limits.most_turns):
        chars += sum(len(message["content"]) for message in turns[first - 1])
        if limits.most_chars is not None and chars > limits.most_chars:
            break
        first -= 1
    return turns[first:]


SessionId: TypeAlias = "str | int"
"""The id of a session, sent back with the type that the service gave it."""
LONGEST_ID = 2_000
"""Most characters of an id. A longer text is an answer or a page."""
SESSION_SLOT = "{{session}}"
"""Where a header holds the id, and the text that replaces it in recordings."""
_FORGOTTEN = (404, 410)
"""Statuses that say "no such session" to a turn that is not the first."""


@dataclass(frozen=True)
class SessionTurn:
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

    def sent_in(self, session: SessionId | None) -> SessionTurn:
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
            SessionLostError: the service states that the session is lost.
        """
        if not self.is_first:
            self.sessions.check_not_lost(document, status, self.query)

    def after(self, document: Any, is_new: bool = False) -> SessionId | None:
        """Return the session of the next turn, by an answer. ``is_new`` says that the answer is not from a recording.

        Raises:
            ModelOutputError: the answer states no usable id, or the id of another conversation.
            SessionLostError: the answer states the id of another session.
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
            AnswerPath(text, f"{spec.name}: session.{key}") if text else None
            for key, text in (("path", spec.session.path), ("lost", spec.session.lost))
        )
        self._owners: dict[SessionId, tuple[str, int]] = {}

    def of(self, query: Query) -> SessionTurn:
        """Return a question in the session of the turns before it.

        Raises:
            SessionLostError: earlier turns were asked in an unknown session.
        """
        session: SessionId | None = query.inputs.get(SESSION)
        if session is None and any(not message.get("failed") for message in _history(query, "assistant")):
            raise SessionLostError(
                f"{self._name} keeps conversations itself, and it is not known in which session the turns before "
                f"{query.query_id} were asked. It was not asked: it would answer without a memory of them. Ask the "
                f"conversation from its first turn, with its own answers as history."
            )
        return SessionTurn(self, query, session, is_first=session is None)

    def chosen(self, query: Query) -> SessionId | None:
        """Return the id of a new session, where the client chooses it."""
        if not self._reading.id:
            return None
        conversation = query.place.get("conversation", query.query_id)
        # The id of the conversation must not be read as a placeholder.
        parts = (part.replace("{{conversation}}", conversation) for part in self._reading.id.split("{{uuid}}"))
        return checked_id(str(uuid4()).join(parts), f"{self._name}: session.id")

    def check_may_ask(self, query: Query) -> None:
        """As ``Talk.check_may_ask``."""
        if session_of_turn.get() == "earlier" and not self._reading.may_resume:
            raise SessionLostError(
                f"{query.query_id} was not asked: the turns before it were asked by an earlier run, and {self._name} "
                f"would not say that it has forgotten them. The next run begins the conversation again. To go on in "
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

    def after(self, document: Any, talk: SessionTurn) -> SessionId | None:
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
                f"again may also have begun to count again; then the next run helps."
            )

    def _forgotten(self, query: Query, how: str) -> SessionLostError:
        return SessionLostError(
            f"{self._name} has forgotten the session of {query.query_id}: {how}. The next run begins the conversation "
            f"again: an answer without a memory of the turns before it does not count."
        )


def checked_id(value: Any, where: str) -> SessionId:
    """Return the id of a session.

    Raises:
        ModelOutputError: the id is neither a text of one to ``LONGEST_ID`` characters nor a whole number.
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
    """Return the key of a turn's recordings beside its request: its conversation, and the messages before it."""
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
                    f"{name}: the session {said[:60]!r} cannot be in the header {header!r}: a header is one line of "
                    f"ASCII. It was not sent."
                )
            yield header, value.replace(SESSION_SLOT, said)


def _history(query: Query, *roles: str) -> list[Mapping[str, Any]]:
    """Return the messages before a turn, of all roles or of some."""
    history = query.inputs.get("history", ()) if query.place else ()
    return [each for each in history if not roles or each["role"] in roles]


@dataclass(frozen=True)
class Request:
    """The request for one query.

    Attributes:
        url: the address.
        body: the body's JSON; None without a body.
        headers: names and values.
        known_as: the address in recordings. It has no values of variables, which a replay need not know.
        left_out: the number of turns of the history that are too old to be sent.
        method: another method than the service's; empty for that.
        talk: its session, where the service keeps conversations itself.
        known: what recordings know it by, where that is not its body. It has no ids of sessions.
        opens: the request that opens a session for it, where one is needed.
        within: returns it as it is sent in a session.
    """

    url: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    known_as: str = ""
    left_out: int = 0
    method: str = ""
    talk: SessionTurn | None = None
    known: Any = None
    opens: Request | None = None
    within: Callable[[SessionId], Request] | None = field(default=None, repr=False, compare=False)

    @property
    def content(self) -> bytes:
        """The bytes of the body."""
        return _bytes_of(self.body)

    @property
    def known_content(self) -> bytes:
        """The bytes that recordings know it by."""
        return self.content if self.known is None else _bytes_of(self.known)

    def in_session(self, session: SessionId | None) -> Request:
        """Return the request as it is sent in a session; unchanged without a session.

        Raises:
            ModelOutputError: the session is sent in a header, and its id is not valid there.
        """
        return self if session is None or self.within is None else self.within(session)


def _bytes_of(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


# Requests to a service, made from queries. Values of the environment are looked up here, and kept nowhere else.

_ACCEPTED = {
    "json": "application/json",
    "sse": "text/event-stream, application/json",
    "openai": "text/event-stream, application/json",
    "mcp": "application/json, text/event-stream",
}


class Requests:
    """Makes the requests of one service.

    Args:
        spec: the service.
        rootdir: the folder of ``.env``.
        must_know: whether every variable must be set. A replay sends nothing and needs none.

    Raises:
        SettingsError: a template has an unknown placeholder, or a session is opened elsewhere.
        PrerequisiteError: a variable is not set; names it.
    """

    def __init__(self, spec: EndpointSpec, rootdir: Any, must_know: bool = True) -> None:
        known = Environment(spec, rootdir, must_know)
        self._spec, self._sessions = spec, Sessions(spec) if spec.session else None
        url = self._filled = known.filled(spec.url)
        if must_know:
            check_filled(spec.where, spec.url, url)
        has_sessions = bool(spec.session)
        self._url, self._known_as = (
            Template(each, f"{spec.name}: url", has_sessions) for each in (url, VARIABLE.sub(REDACTED, spec.url))
        )
        body = json.loads(spec.body) if spec.body else None
        self._body = Template(_called(spec, body), f"{spec.name}: body", has_sessions)
        own = {name.lower(): _slot(spec, known.filled(value, in_header=True)) for name, value in spec.headers}
        said = {"accept": _ACCEPTED[spec.kind], "accept-encoding": "identity", "user-agent": "rag-harness"}
        kind = {} if body is None else {"content-type": "application/json"}
        self._headers = tuple({**said, **kind, **own}.items())
        self._opens = _opening_url(spec, url) if spec.session.open and must_know else ""
        # Messages may show the address of a service, but not its query string or headers.
        hidden = [value for _, value in spec.headers] + [spec.url.partition("?")[2]]
        self.secrets = tuple({known.value(name) for text in hidden for name in VARIABLE.findall(text)} - {""})

    @property
    def url(self) -> str:
        """The address with the values of its variables; placeholders stay."""
        return self._filled

    @property
    def headers(self) -> dict[str, str]:
        """The headers with the values of their variables, without those that name a session."""
        return {name: value for name, value in self._headers if SESSION_SLOT not in value}

    def of(self, query: Query) -> Request:
        """Return the request for ``query``.

        Raises:
            ModelCallError: the query lacks an input of the template, its history cannot be cut, or it is a turn whose
                session is not known.
        """
        if self._sessions is not None:
            return self._in_a_session(query, self._sessions)
        sent = sent_history(query, self._spec.history, self._spec.where)
        return replace(self._filled_for(sent.query), left_out=sent.left_out)

    def _filled_for(self, query: Query) -> Request:
        url, known_as = (each.fill_url(query) for each in (self._url, self._known_as))
        return Request(url, self._body.fill(query), self._headers, known_as)

    def _in_a_session(self, query: Query, sessions: Sessions) -> Request:
        talk = sessions.of(query)
        alone = {name: value for name, value in query.inputs.items() if name not in ("history", SESSION)}
        # An answer depends on what was said before it, and not on the name of the session in which that was said.
        key = self._filled_for(replace(query, inputs={**alone, SESSION: SESSION_SLOT}))
        known = {"body": key.body, **recorded_beside(query)}

        def within(session: SessionId | None) -> Request:
            told = {} if session is None else {SESSION: session}
            request = self._filled_for(replace(query, inputs={**alone, **told}))
            headers = tuple(headers_in(self._headers, session, self._spec.name))
            own = talk.sent_in(session)
            return replace(request, headers=headers, known_as=key.known_as, known=known, talk=own, within=within)

        request = within(talk.session)
        return replace(request, opens=self._opening()) if talk.is_first else request

    def _opening(self) -> Request | None:
        """Return the request that opens a session, where one is needed."""
        if (opens := self._spec.session.open) is None:
            return None
        body = json.loads(opens.body) if opens.body else None
        return Request(self._opens, body, tuple(self.headers.items()), method=opens.method)


def _slot(spec: EndpointSpec, header: str) -> str:
    """Return a header's value with the session's place written in one way."""
    return SESSION_SENT.sub(SESSION_SLOT, header) if spec.session else header


def _opening_url(spec: EndpointSpec, url: str) -> str:
    """Return the address that opens a session. The headers go there too, so it must be at the service's own."""
    opens = urljoin(url, spec.session.open.url if spec.session.open else "")
    if urlsplit(opens)[:2] != urlsplit(url)[:2]:
        raise SettingsError(
            f"{spec.where}: session.open is at {opens!r}, another host than url. The headers of the service would go "
            f'there too. Write a path of the service: open = {{ url = "/sessions" }}.'
        )
    return opens


def _called(spec: EndpointSpec, body: Any) -> Any:
    """Return the body; for a tool, the JSON-RPC call with the body as arguments."""
    if spec.kind != "mcp":
        return body
    params = {"name": spec.tool, "arguments": body}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
