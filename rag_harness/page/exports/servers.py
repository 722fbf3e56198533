"""Servers that take results: JSON requests with the standard library alone."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple

from rag_harness.core.errors import PrerequisiteError, SettingsError
from rag_harness.core.settings.roles import check_address, shown_value

_SECONDS = 60.0
_SHOWN = 300


class Reply(NamedTuple):
    """The status of a reply, the JSON that it says, None where it says none, its bytes, its type, when to try again."""

    status: int
    content: Any
    raw: bytes
    kind: str = ""
    retry_after: str = ""


class Posting:
    """A server.

    Args:
        tool: its name, for messages.
        url: its address.
        headers: sent with each request, keys among them.
        seconds: how long an answer may take.

    Raises:
        SettingsError: the address is missing, is not an http address, or contains a key.
    """

    def __init__(self, tool: str, url: str, headers: Mapping[str, str], seconds: float = _SECONDS) -> None:
        if not url.startswith(("http://", "https://")):
            said = f"{shown_value(url)} is not an address" if url else "the address of its server is not known"
            raise SettingsError(f"{tool}: {said}. Name it: --url https://…")
        check_address(f"{tool}: its address", url, "Name it without: the key comes from the variables of the tool.")
        self._tool, self._url, self._headers = tool, url.rstrip("/"), headers
        self._seconds = seconds

    def send(self, path: str, body: Any = None, known: tuple[int, ...] = (), method: str | None = None) -> Reply:
        """Return the reply to a POST of ``body``, or to a GET where there is none.

        Args:
            path: behind the address.
            body: plain JSON, or bytes of protobuf.
            known: error statuses that the caller understands; others are raised.
            method: another than these two.

        Raises:
            PrerequisiteError: no server answers, or it refuses; says what it said, and no key.
        """
        kind = f"application/{'x-protobuf' if isinstance(body, bytes) else 'json'}"
        data = body if body is None or isinstance(body, bytes) else json.dumps(body, allow_nan=False).encode()
        headers = {"Content-Type": kind, "Accept": kind, **self._headers}
        request = urllib.request.Request(f"{self._url}{path}", data, headers, method=method)
        try:
            with _OPENER.open(request, timeout=self._seconds) as answer:
                return _reply(answer.status, answer)
        except urllib.error.HTTPError as error:
            with error:
                reply = _reply(error.code, error)
            if error.code in known:
                return reply
            raise self.refusal(path, reply) from None
        except (OSError, ValueError) as error:
            raise PrerequisiteError(f"{self._tool} at {self._url} does not answer: {error}") from None

    def refusal(self, path: str, reply: Reply) -> PrerequisiteError:
        """Return the error of an unsuccessful reply."""
        text = reply.raw.decode("utf-8", "replace")[:_SHOWN]
        return PrerequisiteError(f"{self._tool} at {self._url} refused {path}: {reply.status} {text}")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would bring the keys to another host, and make a GET of a POST: it is an error like any other."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _reply(status: int, answer: Any) -> Reply:
    content = answer.read()
    kind = str(answer.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    return Reply(status, _json(content), content, kind, str(answer.headers.get("Retry-After") or ""))


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
