"""Names and fingerprints of repeats. Tables import this module without the engine that answers again."""

from __future__ import annotations

from rag_harness.files.sources import json_digest


def repeat_name(experiment: str, repeat: int) -> str:
    """Return the name of the derived experiment whose rows are the repeat of this number, from 2."""
    return f"{experiment}+repeat{repeat}"


def repeat_fingerprint(fingerprint: str, repeat: int) -> str:
    """Return the fingerprint of a repeat's rows, from the fingerprint of the experiment."""
    return json_digest([fingerprint, f"+repeat{repeat}"])
