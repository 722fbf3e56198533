"""Cassette files in vcrpy's format: one interaction, or those of an experiment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_harness.core.concurrency import IMPORTING
from rag_harness.core.errors import DataError
from rag_harness.core.json_text import read_json
from rag_harness.models.recording.scrubbing import CleanedRequest

# Fast reader and writer for the usual form of a recording in vcrpy's YAML. It imports neither YAML nor vcrpy.
#
# Importing YAML takes a third of a second, and writing a recording 4 ms. A run that is killed meanwhile would have to
# pay again for answers that wait to be written. One regular expression matches the whole file. A file with a different
# byte, or with rarer scalars (quoted, folded, binary), does not match; the caller then uses a real parser.

_URL = r"https?://[\w.:/?&=%+~@,;-]*[\w/=]"
_KIND = r"[a-z]+/[\w.+-]*\w(?:; ?[\w-]+=[\w-]+)*"
_NUMBER = r"\d+\.\d+"
_DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?\+00:00"
_VERSION = r"[^'\n]+"
_FILE = re.compile(
    rf"""version: 1
interactions:
- request:
    method: (?P<method>POST|PUT|PATCH)
    uri: (?P<url>{_URL})
    body: \|-
(?P<request>(?:      .*\n|\n)+)    headers:
      content-type:
      - {_KIND}
  response:
    status:
      code: (?P<status>[1-5]\d\d)
      message: OK
    headers:
      content-type:
      - (?P<kind>{_KIND})
    body:
      string: \|(?P<end>[+-]?)
(?P<body>(?:        .*\n|\n)+)metadata:
  rag_harness: (?P<schema>\d+)
  total_ms: (?P<total>{_NUMBER})
  ttft_ms: (?P<ttft>{_NUMBER}|null)
(?:  recorded_at: '(?P<recorded_at>{_DATE})'
)?(?:  version: '(?P<version>{_VERSION})'
)?(?:  session: '(?P<session>{_VERSION})'
)?""",
    re.ASCII,
)
_JSON = "application/json"
_WRITTEN = """version: 1
interactions:
- request:
    method: {method}
    uri: {url}
    body: |-
{request}    headers:
      content-type:
      - {sent}
  response:
    status:
      code: {status}
      message: OK
    headers:
      content-type:
      - {kind}
    body:
      string: |{ends}
{body}metadata:
  rag_harness: {schema}
  total_ms: {total}
  ttft_ms: {ttft}
{dated}"""
_ODD = re.compile(r"[^\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""Characters that YAML reads as line ends, or writes in another way."""


@dataclass(frozen=True, slots=True)
class OwnShape:
    """The parts of a file, as text."""

    method: str
    url: str
    request: str
    status: int
    kind: str
    body: str
    schema: int
    total_ms: float
    ttft_ms: float | None
    recorded_at: str = ""
    version: str = ""
    session: str = ""

    def written(self) -> str | None:
        """Return the content of the file, or None where it does not fit this form."""
        ends = "-" if not self.body.endswith("\n") else "+" if self.body.endswith("\n\n") else ""
        dated = f"  recorded_at: '{self.recorded_at}'\n" if self.recorded_at else ""
        dated += f"  version: '{self.version}'\n" if self.version else ""
        dated += f"  session: '{self.session}'\n" if self.session else ""
        ttft = "null" if self.ttft_ms is None else self.ttft_ms
        text = _WRITTEN.format(
            method=self.method,
            url=self.url,
            request=_indented(self.request, 6),
            sent=_JSON,
            status=self.status,
            kind=self.kind,
            ends=ends,
            body=_indented(self.body.removesuffix("\n"), 8),
            schema=self.schema,
            total=self.total_ms,
            ttft=ttft,
            dated=dated,
        )
        return text if read_own_shape(text) == self else None


def read_own_shape(text: str) -> OwnShape | None:
    """Return the parts of a file, or None where any byte differs from this form."""
    found = _FILE.fullmatch(text)
    if found is None or _ODD.search(text):
        return None
    request, body = _block(found["request"], 6, "-"), _block(found["body"], 8, found["end"])
    if request is None or body is None:
        return None
    ttft = None if found["ttft"] == "null" else float(found["ttft"])
    return OwnShape(
        found["method"],
        found["url"],
        request,
        int(found["status"]),
        found["kind"],
        body,
        int(found["schema"]),
        float(found["total"]),
        ttft,
        found["recorded_at"] or "",
        found["version"] or "",
        found["session"] or "",
    )


def _indented(text: str, indent: int) -> str:
    return "".join(f"{' ' * indent}{line}\n" if line else "\n" for line in text.split("\n"))


def _block(lines: str, indent: int, end: str) -> str | None:
    """Return the text of a block of lines (YAML 1.1, 9.2). ``end`` says how its last line ends are treated."""
    if lines.startswith(("\n", " " * (indent + 1))):
        return None  # its indent would differ from the first line's
    text = lines[indent:].replace("\n" + " " * indent, "\n")
    return text if end == "+" else text.rstrip("\n") + ("" if end == "-" else "\n")


# Of the headers only the content type is kept, so no key, cookie or organisation reaches the disk. The times are those
# below the recording. They are in the metadata at the end of the file; a file that was cut short lacks that end.

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
        OSError, ValueError: the file cannot be read, is not text, or is longer than any recording.
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
        raise ValueError("a body is not text")
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


# A file of vcrpy's format with the interactions of an experiment, beside the folders that have a file for each.
#
# ``<folder>/e3.yaml``. Every interaction has its own ``metadata``: the digest of its request, by which it is found, and
# what a recording has beside. vcrpy passes over them. A lookup reads neither YAML nor any interaction but its own.

_HEAD = "version: 1\ninteractions:\n"
_BEGIN = "\n- request:\n"
_METADATA = re.compile(r"^  metadata:\n    digest: (?P<digest>[0-9a-f]{24})\n(?P<rest>(?:    .*\n)+)\Z", re.MULTILINE)
_ONE = "\nmetadata:\n"


def cassette_of(interactions: Mapping[str, str]) -> str:
    """Return the content of a file, made of the contents of files with one interaction, by the digest of the request.

    Raises:
        ValueError: one of them is in no form that the harness writes.
    """
    return _HEAD + "".join(_entry(digest, text) for digest, text in interactions.items())


def _entry(digest: str, text: str) -> str:
    interaction, end, metadata = text.removeprefix(_HEAD).rpartition(_ONE)
    if not (end and text.startswith(_HEAD) and interaction.startswith("- request:\n")):
        raise ValueError(f"{digest} is in a form that cannot be packed")
    lines = "".join(f"  {line}\n" for line in metadata.splitlines())
    return f"{interaction}\n  metadata:\n    digest: {digest}\n{lines}"


class ExperimentCassette:
    """The interactions of one file.

    Args:
        file: the file.

    Raises:
        DataError: it cannot be read.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self._text = cassette_text(file)
        except (OSError, ValueError) as error:
            raise DataError(f"The recordings {file} cannot be read: {error}.") from error

    @cached_property
    def _entries(self) -> dict[str, tuple[int, int]]:
        """The place of each whole interaction in the text, by digest."""
        found = ((self._metadata(span), span) for span in self._spans)
        return {match["digest"]: span for match, span in found if match}

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """Begin and end of each interaction in the text, whole or not."""
        begins, at = [], self._text.find(_BEGIN)
        while at >= 0:
            begins.append(at + 1)
            at = self._text.find(_BEGIN, at + 1)
        return [*zip(begins, [*begins[1:], len(self._text)], strict=True)]

    @cached_property
    def fault(self) -> str:
        """The fault of the file, with its line; empty where every interaction is whole."""
        if not self._text.startswith(_HEAD) or not self._spans or self._spans[0][0] != len(_HEAD):
            return f"{self.file}, line 1: it does not begin as a recording of this tool"
        for span in self._spans:
            if not self._metadata(span):
                return f"{self.file}, line {self._line(span[0])}: the recording that begins there is not whole"
        return ""

    @property
    def digests(self) -> list[str]:
        """The digests of all requests, in the order of the file."""
        return [*self._entries]

    def __contains__(self, digest: str) -> bool:
        return digest in self._entries

    def read(self, digest: str) -> Recorded:
        """Return the interaction with this digest.

        Raises:
            DataError: it is damaged; names file and line.
        """
        begin, end = self._entries[digest]
        metadata = self._metadata((begin, end))
        assert metadata is not None
        lines = "".join(f"{line[2:]}\n" for line in metadata["rest"].splitlines())
        try:
            return read_interaction_text(f"{_HEAD}{self._text[begin : metadata.start()]}metadata:\n{lines}")
        except Exception as error:
            why = " ".join(str(error).split())[:200]
            raise DataError(
                f"The recording at {self.file}, line {self._line(begin)} cannot be read: {why}. Take the file as it "
                f"was from your repository, or remove this recording and record it again."
            ) from error

    def readable(self) -> Iterator[tuple[Path, Recorded]]:
        """Yield the interactions that can be read, each with file and line."""
        for digest, (begin, _) in self._entries.items():
            try:
                yield self.file.with_name(f"{self.file.name}:{self._line(begin)}"), self.read(digest)
            except DataError:
                continue

    def _metadata(self, span: tuple[int, int]) -> re.Match[str] | None:
        # The metadata are the last lines: a search from the beginning would read each prompt.
        at = self._text.rfind("\n  metadata:\n", *span)
        return _METADATA.match(self._text, at + 1, span[1]) if at >= 0 else None

    def _line(self, place: int) -> int:
        return self._text.count("\n", 0, place) + 1
