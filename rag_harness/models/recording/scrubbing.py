"""Removal of secrets and private text from requests and answers, and the request by which a recording is found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from rag_harness.core.json_text import read_json
from rag_harness.core.settings import Settings
from rag_harness.core.settings.roles import SECRET_HEADER, SECRET_NAME, is_secret, keys_of_judges

# A streamed answer comes in pieces, which may cut a name or a key. So the pieces are joined and cleaned. If that
# changes the text, the first piece gets all of it and the others become empty.

Scrub = Callable[[str], str]
REDACTED = "REDACTED"

_SHORTEST = 8
"""Fewest characters of a secret. A shorter value, e.g. a dummy key, may be an ordinary word in a prompt."""


def secrets_of(settings: Settings) -> list[str]:
    """Return the keys of a run."""
    keys = (getattr(settings, each.name) for each in fields(settings) if each.metadata.get("secret"))
    known = (settings.chat_key, *keys, *keys_of_judges(settings))
    return [each for each in dict.fromkeys(known) if each]


def secrets_in(headers: Mapping[str, str]) -> Iterator[str]:
    """Yield keys, cookies and organisations in the headers of a request."""
    for name, value in headers.items():
        if SECRET_HEADER.search(name):
            for part in re.split(r"[;\s]+", value):
                yield from (part, part.partition("=")[2])


class Cleaner:
    """Removes secrets and private text.

    Args:
        secrets: values to replace everywhere, if they have at least 8 characters.
        scrub: the user's function; it gets each text of a request and the whole text of an answer.
    """

    def __init__(self, secrets: Iterable[str] = (), scrub: Scrub | None = None) -> None:
        self._secrets = frozenset(each for each in secrets if len(each) >= _SHORTEST)
        self._scrub = scrub
        # The longest first, so that nothing is left of a key that begins with another key.
        written = sorted({form for each in self._secrets for form in forms_of(each)}, key=len, reverse=True)
        coded = [form.encode("utf-8", "surrogatepass") for form in written]
        self._pattern = re.compile("|".join(map(re.escape, written))) if written else None
        self._binary_pattern = re.compile(b"|".join(map(re.escape, coded))) if coded else None

    def knowing(self, secrets: Iterable[str]) -> Cleaner:
        """Return a cleaner that also removes ``secrets``."""
        new = {each for each in secrets if len(each) >= _SHORTEST} - self._secrets
        return Cleaner(self._secrets | new, self._scrub) if new else self

    def text(self, text: str) -> str:
        """Return ``text`` without secrets and private text."""
        return self.without_secrets(self._scrubbed(text))

    def without_secrets(self, text: str) -> str:
        """Return ``text`` without secrets."""
        return self._pattern.sub(REDACTED, text) if self._pattern else text

    def value(self, value: Any) -> Any:
        """Return JSON with all strings cleaned, and without the values of fields that have names of secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.without_secrets(key): self._field(key, each) for key, each in value.items()}
        return [self.value(each) for each in value] if isinstance(value, list) else value

    def body(self, content: bytes, kind: str = "") -> bytes:
        """Return a body without secrets and private text. An unchanged body keeps its bytes."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return self._binary(content)
        if "event-stream" in kind or text.startswith("data:"):
            return self._stream(text).encode()
        parsed = json_of(text)
        if parsed is None:
            return self.text(text).encode()
        cleaned = self.value(parsed)
        return content if cleaned == parsed else json.dumps(cleaned).encode()

    def _field(self, name: str, value: Any) -> Any:
        return REDACTED if isinstance(value, str) and SECRET_NAME.fullmatch(name) else self.value(value)

    def _scrubbed(self, text: str) -> str:
        if self._scrub is None:
            return text
        found = self._scrub(text)
        if not isinstance(found, str):
            raise TypeError(f"rag_scrub returned {type(found).__name__} for a text. It must return the text to keep.")
        return found

    def _binary(self, content: bytes) -> bytes:
        return self._binary_pattern.sub(REDACTED.encode(), content) if self._binary_pattern else content

    def _stream(self, text: str) -> str:
        lines = text.split("\n")
        events = {n: parsed for n, line in enumerate(lines) if (parsed := json_of(_data(line))) is not None}
        cleaned = {n: self.value(event) for n, event in events.items()}
        for pieces in _pieces(events).values():
            self._join(events, cleaned, pieces)
        for n, line in enumerate(lines):
            if n not in events:
                lines[n] = self.text(line) if line.strip() else line
            elif cleaned[n] != events[n]:
                lines[n] = f"data: {json.dumps(cleaned[n])}" + "\r" * line.endswith("\r")
        return "\n".join(lines)

    def _join(self, events: Mapping[int, Any], cleaned: Mapping[int, Any], pieces: list[tuple[int, _Path]]) -> None:
        """Clean one text that is spread over several events, in place in ``cleaned``."""
        texts = [_at(events[n], path) for n, path in pieces]
        whole = "".join(texts)
        clean = self.text(whole)
        left = list(texts) if clean == whole else [""] * len(texts)
        if clean != whole:
            left[next(n for n, each in enumerate(texts) if each)] = clean
        for (n, path), each in zip(pieces, left, strict=True):
            names = tuple(self.without_secrets(name) if isinstance(name, str) else name for name in path)
            _at(cleaned[n], names[:-1])[names[-1]] = each


_Path = tuple[str | int, ...]


def forms_of(secret: str) -> Iterator[str]:
    """Yield the written forms of a secret: plain, in JSON, in JSON inside JSON, in an address."""
    yield secret
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield from (once, json.dumps(once, ensure_ascii=ascii_only)[1:-1])
    yield quote(secret, safe="", errors="replace")


def json_of(text: str | bytes) -> Any:
    """Return the object or list of a JSON text; None for any other text."""
    try:
        found = read_json(text)
    except ValueError:
        return None
    return found if isinstance(found, (dict, list)) else None


def _data(line: str) -> str:
    return line[5:] if line.startswith("data:") else ""


def _pieces(events: Mapping[int, Any]) -> dict[Any, list[tuple[int, _Path]]]:
    """Return the places of the pieces of each streamed text, in the order of the events."""
    found: dict[Any, list[tuple[int, _Path]]] = {}
    for n, event in events.items():
        for path, key in _leaves(event):
            if "delta" in path or (path[-1] == "text" and "choices" in path):
                found.setdefault((_stream_of(event), key), []).append((n, path))
    return found


def _stream_of(event: Any) -> tuple[Any, ...]:
    """Return the number of the output that an event belongs to, in the Responses API and in Anthropic's."""
    names = ("type", "item_id", "output_index", "content_index", "index")
    return tuple(event.get(name) for name in names) if isinstance(event, dict) else ()


def _leaves(value: Any, path: _Path = (), key: _Path = ()) -> Iterator[tuple[_Path, _Path]]:
    """Yield the path of each string, and the same path with list items named by their own ``index``."""
    if isinstance(value, str):
        yield path, key
    for name, each in value.items() if isinstance(value, dict) else ():
        yield from _leaves(each, (*path, name), (*key, name))
    for n, each in enumerate(value) if isinstance(value, list) else ():
        index = each.get("index", n) if isinstance(each, dict) else n
        yield from _leaves(each, (*path, n), (*key, index))


def _at(value: Any, path: _Path) -> Any:
    for each in path:
        value = value[each]
    return value


# Abridged requests: recordings may keep long paragraphs cut short, because the documents of a prompt are elsewhere.
#
# Different requests stay different: each cut has the digest of its whole paragraph, and the name of a recording is the
# digest of the whole request.

_LONGEST, _KEPT = 200, 100
"""Most characters of a paragraph that stays whole, and the characters left of a longer one."""


def abridged(value: Any) -> Any:
    """Return JSON in which each paragraph of more than 200 characters is cut to its first 100.

    An abridged paragraph stays as it is.
    """
    if isinstance(value, str):
        return "\n\n".join(map(_paragraph, value.split("\n\n")))
    if isinstance(value, Mapping):
        return {key: abridged(each) for key, each in value.items()}
    return [abridged(each) for each in value] if isinstance(value, list) else value


def _paragraph(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{text[:_KEPT]} … [{len(text)} characters, {digest}]"


_BOUNDARY = re.compile(r'(?i)boundary="?([^";,]+)"?')
_FORM = re.compile("form-(data|urlencoded)")
STORES = frozenset({"vectors", "pairs", "tokens", "chunks", "judged", "own"})
"""Folders of a profile that belong to no model."""
_LONGEST_KEY = 100
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
    if safe and not safe.startswith(".") and safe not in STORES and len(safe.encode()) <= _LONGEST_KEY:
        return safe
    short = safe.lstrip(".").encode()[: _LONGEST_KEY - 20].decode(errors="ignore")
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
