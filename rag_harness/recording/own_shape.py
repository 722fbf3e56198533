"""Reads a recording of the shape that ``cassette_file`` writes, in a third of YAML's time and without its import.

One regular expression holds the whole file: where a byte is not as written, and for the rarer scalars (quoted, folded,
binary), there is no match and the caller asks a real parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_URL = r"https?://[\w.:/?&=%+~@,;-]*[\w/=]"
_KIND = r"[a-z]+/[\w.+-]*\w(?:; ?[\w-]+=[\w-]+)*"
_NUMBER = r"\d+\.\d+"
_FILE = re.compile(
    rf"""version: 1
interactions:
- request:
    method: (?:POST|PUT|PATCH)
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
""",
    re.ASCII,
)
_ODD = re.compile(r"[^\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What YAML takes for an end of line, or writes in another way."""


@dataclass(frozen=True, slots=True)
class OwnShape:
    """The parts of a file, as text."""

    url: str
    request: str
    status: int
    kind: str
    body: str
    schema: int
    total_ms: float
    ttft_ms: float | None


def read_own_shape(text: str) -> OwnShape | None:
    """Return the parts of a file, None where it is not of our own shape to the last byte."""
    found = _FILE.fullmatch(text)
    if found is None or _ODD.search(text):
        return None
    request, body = _block(found["request"], 6, "-"), _block(found["body"], 8, found["end"])
    if request is None or body is None:
        return None
    ttft = None if found["ttft"] == "null" else float(found["ttft"])
    numbers = int(found["status"]), int(found["schema"]), float(found["total"])
    return OwnShape(found["url"], request, numbers[0], found["kind"], body, numbers[1], numbers[2], ttft)


def _block(lines: str, indent: int, end: str) -> str | None:
    """Return the text of a block of lines (YAML 1.1, 9.2); ``end`` says what becomes of its last line ends."""
    if lines.startswith(("\n", " " * (indent + 1))):
        return None  # its indent would not be that of the first line
    text = lines[indent:].replace("\n" + " " * indent, "\n")
    return text if end == "+" else text.rstrip("\n") + ("" if end == "-" else "\n")
