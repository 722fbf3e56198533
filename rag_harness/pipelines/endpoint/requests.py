"""Requests to a service, made from queries. Values of the environment are looked up here, and kept nowhere else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin, urlsplit

from rag_harness.errors import SettingsError
from rag_harness.models.recording.scrubbing import REDACTED
from rag_harness.pipelines.endpoint.body import Template
from rag_harness.pipelines.endpoint.environment import Environment
from rag_harness.pipelines.endpoint.request import Request
from rag_harness.pipelines.endpoint.sent_history import sent_history
from rag_harness.pipelines.endpoint.sessions import SESSION_SLOT, SessionId, Sessions, headers_in, recorded_beside
from rag_harness.settings.endpoint_checks import check_filled
from rag_harness.settings.endpoint_session import SESSION_SENT
from rag_harness.settings.endpoint_spec import EndpointSpec
from rag_harness.settings.literal_keys import VARIABLE
from rag_harness.types import SESSION, Query

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
