"""What a trace is called: 128 random bits as W3C Trace Context writes them (https://www.w3.org/TR/trace-context/)."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

_HEADER = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_ID = re.compile(r"[0-9a-f]{32}")
_SAMPLED = 0x01


@dataclass(frozen=True, slots=True)
class TraceIds:
    """What one question's trace is called here, and elsewhere.

    Two questions of a client may share a trace of its own, and a client could choose an id to learn whether another
    tenant has it. So here a trace is always found under an id that was drawn here; what is exported continues theirs.

    Attributes:
        trace_id: here: in answers, logs and ``GET /traces``; 32 hexadecimal digits.
        exported: what collectors get; the client's, where it sent a ``traceparent``.
        parent: the client's span, 16 hexadecimal digits; empty where there is none.
        sampled: whether to export; a client that sent ``traceparent`` decides.
    """

    trace_id: str
    exported: str
    parent: str = ""
    sampled: bool = True


def trace_ids(traceparent: str | None = None) -> TraceIds:
    """Draw an id, and continue what ``traceparent`` says; what is malformed counts as absent, as the standard wants."""
    drawn = secrets.token_hex(16)
    found = _HEADER.fullmatch((traceparent or "").strip())
    if found is None or (found[1] == "00" and found[5]):
        return TraceIds(drawn, drawn)
    return TraceIds(drawn, found[2], found[3], bool(int(found[4], 16) & _SAMPLED))


def is_trace_id(text: str) -> bool:
    """Return whether a text could be the id of a trace."""
    return _ID.fullmatch(text) is not None
