"""The ids of traces: 128 random bits in the form of W3C Trace Context (https://www.w3.org/TR/trace-context/)."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

_HEADER = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01


@dataclass(frozen=True, slots=True)
class TraceIds:
    """The ids of one question's trace, here and elsewhere.

    A client's own trace id is not used here. Several of its questions may share one, and a client could choose an id to
    learn whether another tenant has it. So a trace is stored under an id that is drawn here. Only the exported spans
    continue the client's trace.

    Attributes:
        trace_id: the id in answers, logs and ``GET /traces``; 32 hexadecimal digits.
        exported: the id that collectors get; the client's, if it sent a ``traceparent``.
        parent: the client's span, 16 hexadecimal digits; empty if there is none.
        sampled: whether to export; a client decides it with its ``traceparent``.
    """

    trace_id: str
    exported: str
    parent: str = ""
    sampled: bool = True


def trace_ids(traceparent: str | None = None) -> TraceIds:
    """Draw an id, and continue ``traceparent``. As the standard demands, a malformed one counts as absent."""
    drawn = secrets.token_hex(16)
    found = _HEADER.fullmatch((traceparent or "").strip())
    if found is None or (found[1] == "00" and found[5]):
        return TraceIds(drawn, drawn)
    return TraceIds(drawn, found[2], found[3], bool(int(found[4], 16) & _SAMPLED))
