"""A query -> what is sent to a service. Values of the environment are looked up here, and stand nowhere else."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

from rag_harness.errors import PrerequisiteError
from rag_harness.pipelines.endpoint.body import Template
from rag_harness.settings.endpoint_checks import VARIABLE
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
    """What is sent for one query. ``body`` is its JSON, None where nothing is sent."""

    url: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def content(self) -> bytes:
        """The body as it is sent."""
        return b"" if self.body is None else json.dumps(self.body, ensure_ascii=False).encode("utf-8", "replace")


class Requests:
    """Makes the requests of one service.

    Args:
        spec: the service.
        rootdir: where ``.env`` is.
        must_know: whether every variable has to be set: nothing is asked where all is replayed.

    Raises:
        SettingsError: a template has a placeholder that nobody fills.
        PrerequisiteError: a variable is not set; names it.
    """

    def __init__(self, spec: EndpointSpec, rootdir: Any, must_know: bool = True) -> None:
        known = _Environment(spec, rootdir, must_know)
        self._url = Template(known.filled(spec.url), f"{spec.name}: url")
        body = json.loads(spec.body) if spec.body else None
        self._body = Template(_called(spec, body), f"{spec.name}: body")
        own = {name.lower(): known.filled(value) for name, value in spec.headers}
        said = {"accept": _ACCEPTED[spec.kind], "accept-encoding": "identity", "user-agent": "rag-harness"}
        kind = {} if body is None else {"content-type": "application/json"}
        self._headers = tuple({**said, **kind, **own}.items())
        # Where a service is may be told; what stands behind its "?" and in its headers may not.
        hidden = [value for _, value in spec.headers] + [spec.url.partition("?")[2]]
        self.secrets = tuple({known.value(name) for text in hidden for name in VARIABLE.findall(text)} - {""})

    def of(self, query: Query) -> Request:
        """Return what is sent for ``query``.

        Raises:
            ModelCallError: the query lacks an input that the template wants.
        """
        return Request(self._url.fill_url(query), self._body.fill(query), self._headers)


class _Environment:
    """Variables by their names: of the process, else of ``.env``."""

    def __init__(self, spec: EndpointSpec, rootdir: Any, must_know: bool) -> None:
        self._spec, self._must_know = spec, must_know
        self._file: dict[str, str | None] | None = None
        self._rootdir = rootdir

    def filled(self, text: str) -> str:
        return VARIABLE.sub(lambda found: self.value(found[1]), text)

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
    """Return the body, for a tool the call of it."""
    if spec.kind != "mcp":
        return body
    params = {"name": spec.tool, "arguments": body}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
