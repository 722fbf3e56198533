"""Names of what is answered again: tables look them up, and need none of what answers."""

from __future__ import annotations

from rag_harness.files.sources import json_digest


def repeat_name(experiment: str, repeat: int) -> str:
    """Return the name of the derived experiment whose rows are the answers number ``repeat``, from 2."""
    return f"{experiment}+repeat{repeat}"


def repeat_fingerprint(fingerprint: str, repeat: int) -> str:
    """Return the fingerprint of its rows, by that of the experiment."""
    return json_digest([fingerprint, f"+repeat{repeat}"])
