"""HTTP recordings in vcrpy's file format: one file an interaction, named by what was asked.

``<folder>/<model>/<digest>.yaml``: the digest is of method, path and the normalised JSON body. So look-up takes no
search, experiments that ask the same share a file, and workers that record at once lose nothing. Headers are not kept
but for the content type: no key, cookie or organisation reaches the disk; the keys of this run are taken out of bodies
too. Times are those below the recording, and stand in the file's metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_harness.atomic_file import write_atomically
from rag_harness.errors import DataError

SCHEMA_VERSION = 1
TOTAL, TTFT = "x-rag-recorded-total-ms", "x-rag-recorded-ttft-ms"
"""Headers of a replayed response: the times of the recorded call."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An interaction read back: the response's status, content type and body, and the recorded times."""

    status: int
    content_type: str
    body: bytes
    total_ms: float
    ttft_ms: float | None
    request: Mapping[str, Any]


def digest_of(method: str, path: str, body: Mapping[str, Any]) -> str:
    """Return the name of a request: the same for any order of keys and any spelling of a number."""
    asked = json.dumps([method.upper(), path, _normal(body)], sort_keys=True, ensure_ascii=True)
    return blake2b(asked.encode(), digest_size=12).hexdigest()


def _normal(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _normal(each) for key, each in value.items()}
    return [_normal(each) for each in value] if isinstance(value, list) else value


class Cassettes:
    """The recordings of one profile.

    Args:
        folder: where they are.
        secrets: values that must not reach the disk.
    """

    def __init__(self, folder: Path, secrets: Sequence[str] = ()) -> None:
        # Imported here, on one thread: two that import vcr at once meet it half made.
        import vcr.serialize
        import vcr.serializers.yamlserializer  # noqa: F401

        self._folder = folder
        self._secrets = [each for each in secrets if each]

    def load(self, method: str, path: str, body: Mapping[str, Any]) -> Recorded | None:
        """Return the recording of a request, None where there is none.

        Raises:
            DataError: the file is cut short, damaged or of a newer release; names it.
        """
        file = self._file(method, path, body)
        if not file.is_file():
            return None
        return _read(file)

    def save(self, method: str, url: str, body: Mapping[str, Any], response: Recorded) -> None:
        """Write a recording, whole or not at all.

        Raises:
            DataError: the folder cannot be written.
        """
        from vcr.request import Request
        from vcr.serialize import serialize

        path = re.sub(r"^\w+://[^/]+", "", url)
        said = {
            "status": {"code": response.status, "message": "OK"},
            "headers": {"content-type": [response.content_type]},
            "body": {"string": self._clean(response.body.decode(errors="replace")).encode()},
        }
        asked = self._clean(json.dumps(body, indent=1, ensure_ascii=False))
        request = Request(method, _without_query(url), _encodable(asked), {"content-type": "application/json"})
        metadata = {
            "rag_harness": SCHEMA_VERSION,
            "total_ms": round(response.total_ms, 3),
            "ttft_ms": None if response.ttft_ms is None else round(response.ttft_ms, 3),
        }
        content = serialize({"requests": [request], "responses": [said], "metadata": metadata}, _Readable)
        file = self._file(method, path, body)
        try:
            write_atomically(file, content.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise DataError(
                f"The recording {file} cannot be written: {error}. Choose a folder: --rag-cassettes"
            ) from error

    def nearest(self, body: Mapping[str, Any]) -> str:
        """Say which recording is most like a request that has none, and what differs."""
        candidates = [(_likeness(body, each.request), file.name, each) for file, each in self._all_of(body).items()]
        if not candidates:
            return f"Nothing of {body.get('model')} is recorded in {self._folder}."
        _, name, best = max(candidates, key=lambda each: each[0])
        differing = ", ".join(_differences(body, best.request)) or "nothing that can be named"
        return f"The nearest recording, {name}, differs in {differing}."

    def _file(self, method: str, path: str, body: Mapping[str, Any]) -> Path:
        return self._model_folder(body) / f"{digest_of(method, path, body)}.yaml"

    def _model_folder(self, body: Mapping[str, Any]) -> Path:
        return self._folder / re.sub(r"[^\w.@-]+", "--", str(body.get("model", "none")))

    def _all_of(self, body: Mapping[str, Any]) -> dict[Path, Recorded]:
        folder = self._model_folder(body)
        if folder not in self._read_folders:
            self._read_folders[folder] = {file: _read(file) for file in sorted(folder.glob("*.yaml"))}
        return self._read_folders[folder]

    @cached_property
    def _read_folders(self) -> dict[Path, dict[Path, Recorded]]:
        return {}

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "REDACTED")
        return text


class _Readable:
    """vcrpy's YAML, with bodies as blocks of lines: what a reviewer reads."""

    @staticmethod
    def serialize(cassette: Mapping[str, Any]) -> str:
        import yaml

        def represent(dumper: Any, text: str) -> Any:
            return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

        dumper: Any = type("Dumper", (yaml.SafeDumper,), {})
        dumper.add_representer(str, represent)
        return str(yaml.dump(cassette, Dumper=dumper, allow_unicode=True, width=4096, sort_keys=False))


def _read(file: Path) -> Recorded:
    from vcr.serialize import deserialize
    from vcr.serializers import yamlserializer

    try:
        requests, responses, *more = deserialize(file.read_text(encoding="utf-8"), yamlserializer)
        metadata, response = (more[0] if more else {}), responses[0]
        if metadata.get("rag_harness", 1) > SCHEMA_VERSION:
            raise ValueError(f"it was made by a newer release (schema {metadata['rag_harness']})")
        return Recorded(
            status=int(response["status"]["code"]),
            content_type=response["headers"]["content-type"][0],
            body=response["body"]["string"],
            total_ms=float(metadata.get("total_ms") or 0.0),
            ttft_ms=metadata.get("ttft_ms"),
            request=json.loads(requests[0].body),
        )
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"The recording {file} cannot be read: {reason}. Delete it and record it again.") from error


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _without_query(url: str) -> str:
    return url.partition("?")[0]


def _lines(body: Mapping[str, Any]) -> set[str]:
    return {line for each in body.get("messages", ()) for line in str(each.get("content", "")).splitlines()}


def _likeness(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    mine, theirs = _lines(one), _lines(other)
    return len(mine & theirs) / max(1, len(mine | theirs))


_SHORT = ("model", "temperature", "seed", "max_tokens")


def _differences(asked: Mapping[str, Any], recorded: Mapping[str, Any]) -> list[str]:
    """Name what differs: fields of the request, and of the prompt the system text, the sources or the question."""
    keys = [key for key in {*asked, *recorded} - {"messages"} if _normal(asked.get(key)) != _normal(recorded.get(key))]
    found = [f"{key} ({recorded.get(key)!r} recorded)" if key in _SHORT else key for key in sorted(keys)]
    mine, theirs = _parts(asked), _parts(recorded)
    return [*found, *(name for name in dict.fromkeys([*mine, *theirs]) if mine.get(name) != theirs.get(name))]


def _parts(body: Mapping[str, Any]) -> dict[str, str]:
    parts: dict[str, str] = {}
    for message in body.get("messages", ()):
        content = str(message.get("content", ""))
        if message.get("role") == "system":
            parts["the system prompt"] = content
            continue
        context, _, question = content.rpartition("Question: ")
        parts["the question"] = question
        for label, text in re.findall(r"^\[(Source \d+): [^\]]*\](.*?)(?=^\[Source \d+: |\Z)", context, re.M | re.S):
            parts[f"the text of [{label}]"] = text.strip()
    return parts
