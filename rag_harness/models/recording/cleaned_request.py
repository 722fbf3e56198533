"""A request for recordings: the parts that decide the answer, without secrets and private text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from rag_harness.models.recording.abridged import abridged
from rag_harness.models.recording.scrubbing import Cleaner, json_of, secrets_in
from rag_harness.settings.secret_names import is_secret

_BOUNDARY = re.compile(r'(?i)boundary="?([^";,]+)"?')
_FORM = re.compile("form-(data|urlencoded)")
STORES = frozenset({"vectors", "pairs", "tokens", "chunks", "judged", "own"})
"""Folders of a profile that belong to no model."""
_LONGEST = 100
"""Most bytes of a folder's name. File systems allow 255, and a path has more parts."""


@dataclass(frozen=True)
class CleanedRequest:
    """A cleaned request.

    Attributes:
        body: the JSON body, or ``{}`` without one.
        raw: a body that is not JSON.
        abridges: whether the stored body has its long paragraphs cut short.
        cleaner: removes from the answer the secrets of this request.
    """

    method: str
    url: str
    body: Any = field(default_factory=dict)
    raw: bytes = b""
    kind: str = "application/json"
    cleaner: Cleaner = field(default_factory=Cleaner, compare=False, repr=False)
    abridges: bool = field(default=False, compare=False, repr=False)

    @cached_property
    def digest(self) -> str:
        """The name of the request."""
        parts = urlsplit(self.url)
        query = sorted(parse_qsl(parts.query, keep_blank_values=True))
        raw = {"raw": blake2b(self.raw, digest_size=16).hexdigest()} if self.raw else None
        return request_digest(self.method, parts.path, raw or self.body, query)

    @property
    def model(self) -> str | None:
        """The model that the body names."""
        model = self.body.get("model") if isinstance(self.body, Mapping) else None
        return None if model is None else str(model)

    @property
    def owner(self) -> str:
        """The receiver: the model, or the host where the body names no model."""
        return urlsplit(self.url).hostname or "none" if self.model is None else self.model

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return folder_name(self.owner)

    @cached_property
    def content(self) -> bytes:
        """The body as it is stored: JSON on several lines, so that it can be reviewed."""
        if self.raw or not self.body:
            return self.raw
        body = abridged(self.body) if self.abridges else self.body
        # A lone surrogate is stored as a JSON escape, so that the digest can be checked from the file.
        return json.dumps(body, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace")

    def __str__(self) -> str:
        return f"{self.model} for {_first_words(self.body)!r}" if self.model else f"{self.method} {self.url}"


def read_request(method: str, url: str, content: bytes, headers: Mapping[str, str], cleaner: Cleaner) -> CleanedRequest:
    """Return a request without user, password, keys and private text."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    shown = [value for name, value in query if is_secret(name)]
    cleaner = cleaner.knowing([*secrets_in(headers), *shown, parts.username or "", parts.password or ""])
    path, host = cleaner.without_secrets(parts.path), parts.netloc.rpartition("@")[2]
    kept = f"{parts.scheme}://{host}{path}" if host else path
    kept += f"?{_clean_pairs(query, cleaner)}" if query and not all(is_secret(name) for name, _ in query) else ""
    kind = headers.get("content-type", "")
    body = None if _FORM.search(kind) else json_of(content)
    if body is not None or not content:
        return CleanedRequest(method.upper(), kept, cleaner.value(body or {}), kind="application/json", cleaner=cleaner)
    return CleanedRequest(method.upper(), kept, {}, *_raw(content, kind, cleaner), cleaner=cleaner)


def request_digest(method: str, path: str, body: Any, query: Any = ()) -> str:
    """Return the name of a request. The order of keys and the spelling of numbers do not count."""
    asked = json.dumps([method.upper(), path, normal(body), *([query] if query else [])], sort_keys=True)
    return blake2b(asked.encode(), digest_size=12).hexdigest()


def normal(value: Any) -> Any:
    """Return JSON whose whole numbers are ints."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: normal(each) for key, each in value.items()}
    return [normal(each) for each in value] if isinstance(value, list) else value


def folder_name(name: str) -> str:
    """Return one path component for a model: its name if that is safe, else a safe form with a digest."""
    safe = re.sub(r"[^\w.@-]+", "--", name)
    if safe and not safe.startswith(".") and safe not in STORES and len(safe.encode()) <= _LONGEST:
        return safe
    short = safe.lstrip(".").encode()[: _LONGEST - 20].decode(errors="ignore")
    return f"{short or 'model'}-{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def _raw(content: bytes, kind: str, cleaner: Cleaner) -> tuple[bytes, str]:
    """Return a body that is not JSON, and its content type, without a form's boundary, which is random."""
    if "urlencoded" in kind:
        return _clean_pairs(parse_qsl(content.decode(errors="replace"), keep_blank_values=True), cleaner).encode(), kind
    boundary = _BOUNDARY.search(kind)
    if boundary:
        content = content.replace(boundary[1].encode(), b"boundary")
        kind = kind.replace(boundary[1], "boundary")
    return cleaner.body(content), kind


def _clean_pairs(pairs: list[tuple[str, str]], cleaner: Cleaner) -> str:
    return urlencode([(name, cleaner.text(value)) for name, value in pairs if not is_secret(name)])


def _first_words(body: Mapping[str, Any]) -> str:
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    asked = last.get("content") if isinstance(last, Mapping) else last
    said = asked or body.get("input") or body.get("prompt") or ""
    return str(said).rpartition("Question: ")[2][:60]
