"""Requests to a service, made from queries. Values of the environment are looked up here, and kept nowhere else."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

from rag_harness.errors import PrerequisiteError
from rag_harness.models.recording.scrubbing import REDACTED
from rag_harness.pipelines.endpoint.body import Template
from rag_harness.pipelines.endpoint.sent_history import sent_history
from rag_harness.settings.endpoint_checks import VARIABLE, check_filled
from rag_harness.settings.endpoint_spec import EndpointSpec
from rag_harness.types import Query

_ACCEPTED = {
    "json": "application/json",
    "sse": "text/event-stream, application/json",
    "openai": "text/event-stream, application/json",
    "mcp": "application/json, text/event-stream",
}


@dataclass(frozen=True)
class Request:
    """The request for one query.

    Attributes:
        url: the address.
        body: the body's JSON; None without a body.
        headers: names and values.
        known_as: the address in recordings. It has no values of variables, which a replay need not know.
        left_out: the number of turns of the history that are too old to be sent.
    """

    url: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    known_as: str = ""
    left_out: int = 0

    @property
    def content(self) -> bytes:
        """The bytes of the body."""
        return b"" if self.body is None else json.dumps(self.body, ensure_ascii=False).encode("utf-8", "replace")


class Requests:
    """Makes the requests of one service.

    Args:
        spec: the service.
        rootdir: the folder of ``.env``.
        must_know: whether every variable must be set. A replay sends nothing and needs none.

        Raises:
            SettingsError: a template has an unknown placeholder.
        PrerequisiteError: a variable is not set; names it.
    """

    def __init__(self, spec: EndpointSpec, rootdir: Any, must_know: bool = True) -> None:
        known = _Environment(spec, rootdir, must_know)
        self._limits, self._where = spec.history, spec.where
        url = self._filled = known.filled(spec.url)
        if must_know:
            check_filled(spec.where, spec.url, url)
        self._url, self._known_as = (
            Template(each, f"{spec.name}: url") for each in (url, VARIABLE.sub(REDACTED, spec.url))
        )
        body = json.loads(spec.body) if spec.body else None
        self._body = Template(_called(spec, body), f"{spec.name}: body")
        own = {name.lower(): known.filled(value, in_header=True) for name, value in spec.headers}
        said = {"accept": _ACCEPTED[spec.kind], "accept-encoding": "identity", "user-agent": "rag-harness"}
        kind = {} if body is None else {"content-type": "application/json"}
        self._headers = tuple({**said, **kind, **own}.items())
        # Messages may show the address of a service, but not its query string or headers.
        hidden = [value for _, value in spec.headers] + [spec.url.partition("?")[2]]
        self.secrets = tuple({known.value(name) for text in hidden for name in VARIABLE.findall(text)} - {""})

    @property
    def url(self) -> str:
        """The address with the values of its variables; placeholders stay."""
        return self._filled

    @property
    def headers(self) -> dict[str, str]:
        """The headers with the values of their variables."""
        return dict(self._headers)

    def of(self, query: Query) -> Request:
        """Return the request for ``query``.

        Raises:
            ModelCallError: the query lacks an input of the template, or its history cannot be cut.
        """
        sent = sent_history(query, self._limits, self._where)
        url, known_as = (each.fill_url(sent.query) for each in (self._url, self._known_as))
        return Request(url, self._body.fill(sent.query), self._headers, known_as, sent.left_out)


class _Environment:
    """Variables by name: of the process, else of ``.env``."""

    def __init__(self, spec: EndpointSpec, rootdir: Any, must_know: bool) -> None:
        self._spec, self._must_know = spec, must_know
        self._file: dict[str, str | None] | None = None
        self._rootdir = rootdir

    def filled(self, text: str, in_header: bool = False) -> str:
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


def _called(spec: EndpointSpec, body: Any) -> Any:
    """Return the body; for a tool, the JSON-RPC call with the body as arguments."""
    if spec.kind != "mcp":
        return body
    params = {"name": spec.tool, "arguments": body}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
