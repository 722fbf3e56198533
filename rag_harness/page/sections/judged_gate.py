"""Reads a gate from ``summary.json``: its text, and how sure its value is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.gates import Gate
from rag_harness.gates.decisive import how_sure
from rag_harness.page.content import Tone
from rag_harness.page.figures import NONE
from rag_harness.page.run import Run

TONES: Mapping[str, Tone] = {
    "passed": "good",
    "failed": "bad",
    "stale": "bad",
    "xpassed": "bad",
    "undecided": "unsure",
    "xfailed": "unsure",
}


def cutoff(run: Run) -> int:
    """Return the run's k, which ``@k`` stands for."""
    return int(run.manifest.settings.get("k") or 10)


def sureness_head(gates: Sequence[Mapping[str, Any]]) -> str:
    """Return the name of the column of ``sureness``."""
    return "95 % interval or bound" if any(gate.get("bounds") for gate in gates) else "95 % interval"


def sureness(said: Mapping[str, Any], gate: Gate | None) -> str:
    """Return the bound that decides a gate with ``@``, of any other the 95 % interval of its value or difference."""
    return how_sure(said, gate, digits=3) or NONE


def counted_cases(said: Mapping[str, Any]) -> str:
    """Return how many cases have a value, of how many, and on how many pages or in how many conversations they are."""
    of = f" of {said['of']:,}" if said.get("of", 0) > said["n"] else ""
    alike = f" {said['alike']}" if said.get("alike") else ""
    declined = f", {said['declined']:,} declined" if said.get("declined") else ""
    return f"{said['n']:,}{of}{alike}{declined}"
