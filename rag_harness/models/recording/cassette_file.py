"""One interaction as a file in vcrpy's format.

Of the headers only the content type is kept, so no key, cookie or organisation reaches the disk. The times are those
below the recording. They are in the metadata at the end of the file; a file that was cut short lacks that end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError
from rag_harness.files.json_text import read_json
from rag_harness.models.recording.cleaned_request import CleanedRequest
from rag_harness.models.recording.own_shape import OwnShape, read_own_shape
from rag_harness.work.once import IMPORTING

SCHEMA_VERSION = 1
MOST_CASSETTE_BYTES = 2**27
"""Most bytes of a file: the longest request and the longest reply that are accepted, each byte escaped."""
_DEEPEST = 20
"""Most levels of lists and mappings, the document included. A recording has seven."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An interaction: the response's status, content type and body, the recorded times, and the ``sent`` request.

    ``recorded_at`` is UTC, ISO 8601; empty in files of releases that stored no date. ``version`` is the version of the
    model, empty where unknown. ``session`` is the session of
    a service in which it was asked, as JSON; empty where none was sent.
    """

    status: int
    content_type: str
    body: bytes
    total_ms: float
    ttft_ms: float | None
    sent: str | bytes = ""
    url: str = ""
    recorded_at: str = ""
    version: str = ""
    session: str = ""

    @property
    def request(self) -> Any:
        """The JSON that was sent, or ``{}`` without JSON."""
        try:
            return read_json(self.sent or "{}")
        except ValueError:
            return {}


def write_interaction(asked: CleanedRequest, response: Recorded) -> bytes:
    """Return the file's content."""
    content, body = asked.content, asked.cleaner.body(response.body, response.content_type)
    ours = _own_shape(asked, content, body, response)
    return ours.encode() if ours is not None else _yaml(asked, content, body, response)


def _own_shape(asked: CleanedRequest, content: bytes, body: Any, response: Recorded) -> str | None:
    try:
        sent, said = content.decode(), body.decode() if isinstance(body, bytes) else str(body)
    except UnicodeDecodeError:
        return None
    if asked.kind != "application/json":
        return None
    times = round(response.total_ms, 3), None if response.ttft_ms is None else round(response.ttft_ms, 3)
    dated = response.recorded_at, response.version, response.session
    where, kind = (asked.method, asked.url, sent), response.content_type
    return OwnShape(*where, response.status, kind, said, SCHEMA_VERSION, *times, *dated).written()


def _yaml(asked: CleanedRequest, content: bytes, body: Any, response: Recorded) -> bytes:
    with IMPORTING:
        from vcr.request import Request
        from vcr.serialize import serialize

    request = Request(asked.method, asked.url, content or None, {"content-type": asked.kind} if content else {})
    said = {
        "status": {"code": response.status, "message": "OK"},
        "headers": {"content-type": [response.content_type]} if response.content_type else {},
        "body": {"string": body},
    }
    metadata = {
        "rag_harness": SCHEMA_VERSION,
        "total_ms": round(response.total_ms, 3),
        "ttft_ms": None if response.ttft_ms is None else round(response.ttft_ms, 3),
        **({"recorded_at": response.recorded_at} if response.recorded_at else {}),
        **({"version": response.version} if response.version else {}),
        **({"session": response.session} if response.session else {}),
    }
    return serialize({"requests": [request], "responses": [said]}, _Readable(metadata)).encode()  # type: ignore[no-any-return]


class _Readable:
    """A dumper of vcrpy's YAML with bodies as blocks of lines, for reviewers.

    Args:
        metadata: is written after the interactions. vcrpy writes it from 9.0 on, which Python 3.10 has not.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata

    def serialize(self, cassette: Mapping[str, Any]) -> str:
        import yaml

        dumper: Any = type("Dumper", (yaml.SafeDumper,), {})
        dumper.add_representer(str, lambda at, text: at.represent_scalar("tag:yaml.org,2002:str", text, _style(text)))
        return str(
            yaml.dump(
                {**cassette, "metadata": self._metadata}, Dumper=dumper, allow_unicode=True, width=4096, sort_keys=False
            )
        )


def _style(text: str) -> str | None:
    # YAML also reads these three as line ends, and would return them as others.
    if any(each in text for each in "\x85\u2028\u2029"):
        return '"'
    return "|" if "\n" in text else None


def read_interaction(file: Path) -> Recorded:
    """Read a file.

    Raises:
        DataError: the file is cut short, damaged or of a newer release; names it.
    """
    try:
        return read_interaction_text(cassette_text(file))
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"The recording {file} cannot be read: {reason}. Delete it and record it again.") from error


def read_interaction_text(text: str) -> Recorded:
    """Read the content of a file. Whatever is wrong with it raises an error of some kind."""
    found = read_own_shape(text)
    return _as_yaml(text) if found is None else _as_written(found)


def cassette_text(file: Path) -> str:
    """Return the text of a file of recordings.

    Raises:
        OSError, ValueError: it cannot be read, is no text, or is longer than any recording.
    """
    size = file.stat().st_size
    if size > MOST_CASSETTE_BYTES:
        raise ValueError(f"it has {size / 2**20:.0f} MB, and no recording has more than {MOST_CASSETTE_BYTES // 2**20}")
    return file.read_text(encoding="utf-8")


def _as_written(found: OwnShape) -> Recorded:
    _check_schema(found.schema)
    body = found.body.encode()
    sent = found.request, found.url, found.recorded_at, found.version
    return Recorded(found.status, found.kind, body, found.total_ms, found.ttft_ms, *sent, session=found.session)


def _as_yaml(text: str) -> Recorded:
    """Parse any file of vcrpy's format with the metadata of the harness."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    _check_depth(yaml.parse(text, loader))
    cassette = yaml.load(text, loader)
    metadata = cassette.get("metadata") or {}
    _check_schema(metadata.get("rag_harness", 0))
    if not text.endswith("\n") or not {"rag_harness", "total_ms", "ttft_ms"} <= metadata.keys():
        raise ValueError("its end is missing")
    interaction = cassette["interactions"][0]
    request, response = interaction["request"], interaction["response"]
    body, sent = response["body"]["string"] or "", request["body"] or ""
    if not isinstance(body, (str, bytes)) or not isinstance(sent, (str, bytes)):
        raise ValueError("a body is no text")
    return Recorded(
        status=int(response["status"]["code"]),
        content_type=response["headers"].get("content-type", [""])[0],
        body=body if isinstance(body, bytes) else body.encode(),
        total_ms=float(metadata["total_ms"]),
        ttft_ms=metadata["ttft_ms"],
        sent=sent,
        url=request["uri"],
        recorded_at=str(metadata.get("recorded_at") or ""),
        version=str(metadata.get("version") or ""),
        session=str(metadata.get("session") or ""),
    )


def _check_depth(events: Iterable[Any]) -> None:
    """Refuse deep nesting before loading. PyYAML's C code is recursive, and would crash the process."""
    import yaml

    depth, too_deep = 0, f"it is nested deeper than {_DEEPEST} levels"
    try:
        for event in events:
            name = type(event).__name__
            depth += name.endswith("StartEvent") - name.endswith("EndEvent")
            if depth > _DEEPEST:
                raise ValueError(too_deep)
    except yaml.YAMLError as error:
        # Since 6.0.4 PyYAML has a limit of its own, and reads far enough ahead to meet it first.
        if "nesting depth" in str(error):
            raise ValueError(too_deep) from None
        raise


def _check_schema(schema: int) -> None:
    if schema > SCHEMA_VERSION:
        raise ValueError(f"it was made by a newer release (schema {schema})")
