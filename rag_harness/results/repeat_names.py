"""Names and fingerprints of repeats, and of simulated users. Tables import this module without the engine."""

from __future__ import annotations

from rag_harness.files.sources import json_digest


def repeat_name(experiment: str, repeat: int) -> str:
    """Return the name of the derived experiment whose rows are the repeat of this number, from 2."""
    return f"{experiment}+repeat{repeat}"


def repeat_fingerprint(fingerprint: str, repeat: int) -> str:
    """Return the fingerprint of a repeat's rows, from the fingerprint of the experiment."""
    return json_digest([fingerprint, f"+repeat{repeat}"])


def user_name(experiment: str) -> str:
    """Return the name of the derived experiment whose rows are what a simulated user said in this one."""
    return f"{experiment}+user"


def user_fingerprint(fingerprint: str) -> str:
    """Return the fingerprint of what a simulated user said, from that of the experiment."""
    return json_digest([fingerprint, "+user"])
