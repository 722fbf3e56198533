"""Fast reader and writer for the usual form of a recording in vcrpy's YAML. It imports neither YAML nor vcrpy.

Importing YAML takes a third of a second, and writing a recording 4 ms. A run that is killed meanwhile would have to
pay again for answers that wait to be written. One regular expression matches the whole file. A file with a different
byte, or with rarer scalars (quoted, folded, binary), does not match; the caller then uses a real parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
        return None  # its indent would differ from that of the first line
    text = lines[indent:].replace("\n" + " " * indent, "\n")
    return text if end == "+" else text.rstrip("\n") + ("" if end == "-" else "\n")
