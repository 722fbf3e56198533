"""One interaction as a file in vcrpy's format.

Headers are not kept but for the content type: no key, cookie or organisation reaches the disk. The times are those
below the recording, and stand in the file's metadata, which ends it: a file that was cut short anywhere lacks that end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError
from rag_harness.recording.asked import Asked

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Recorded:
    """An interaction read back: the response's status, content type and body, and the recorded times."""

    status: int
    content_type: str
    body: bytes
    total_ms: float
    ttft_ms: float | None
    request: Any = None
    url: str = ""


def write_interaction(asked: Asked, response: Recorded) -> bytes:
    """Return the file's content."""
    from vcr.request import Request
    from vcr.serialize import serialize

    content = asked.content
    request = Request(asked.method, asked.url, content or None, {"content-type": asked.kind} if content else {})
    said = {
        "status": {"code": response.status, "message": "OK"},
        "headers": {"content-type": [response.content_type]} if response.content_type else {},
        "body": {"string": asked.cleaner.body(response.body, response.content_type)},
    }
    metadata = {
        "rag_harness": SCHEMA_VERSION,
        "total_ms": round(response.total_ms, 3),
        "ttft_ms": None if response.ttft_ms is None else round(response.ttft_ms, 3),
    }
    return serialize({"requests": [request], "responses": [said], "metadata": metadata}, _Readable).encode()  # type: ignore[no-any-return]


class _Readable:
    """vcrpy's YAML, with bodies as blocks of lines: what a reviewer reads."""

    @staticmethod
    def serialize(cassette: Mapping[str, Any]) -> str:
        import yaml

        dumper: Any = type("Dumper", (yaml.SafeDumper,), {})
        dumper.add_representer(str, lambda at, text: at.represent_scalar("tag:yaml.org,2002:str", text, _style(text)))
        return str(yaml.dump(cassette, Dumper=dumper, allow_unicode=True, width=4096, sort_keys=False))


def _style(text: str) -> str | None:
    # YAML takes these three for ends of lines too, and would give them back as others.
    if any(each in text for each in "\x85\u2028\u2029"):
        return '"'
    return "|" if "\n" in text else None


def read_interaction(file: Path) -> Recorded:
    """Read a file.

    Raises:
        DataError: it is cut short, damaged or of a newer release; names it.
    """
    from vcr.serialize import deserialize
    from vcr.serializers import yamlserializer

    try:
        text = file.read_text(encoding="utf-8")
        requests, responses, *more = deserialize(text, yamlserializer)
        return _recorded(requests[0], responses[0], _whole(text, more[0] if more else {}))
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"The recording {file} cannot be read: {reason}. Delete it and record it again.") from error


def _whole(text: str, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    if metadata.get("rag_harness", 0) > SCHEMA_VERSION:
        raise ValueError(f"it was made by a newer release (schema {metadata['rag_harness']})")
    if not text.endswith("\n") or not {"rag_harness", "total_ms", "ttft_ms"} <= metadata.keys():
        raise ValueError("its end is missing")
    return metadata


def _recorded(request: Any, response: Mapping[str, Any], metadata: Mapping[str, Any]) -> Recorded:
    return Recorded(
        status=int(response["status"]["code"]),
        content_type=response["headers"].get("content-type", [""])[0],
        body=response["body"]["string"],
        total_ms=float(metadata["total_ms"]),
        ttft_ms=metadata["ttft_ms"],
        request=_json(request.body),
        url=request.uri,
    )


def _json(body: bytes | None) -> Any:
    try:
        return json.loads(body or b"{}")
    except ValueError:
        return {}
