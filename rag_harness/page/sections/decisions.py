"""The section of decisions: assumptions, measured values and agreed actions of the gates with an ``else``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.gates import Gate, Reference
from rag_harness.gates.decisive import beside_bounds
from rag_harness.gates.gates_of_run import gate_or_none
from rag_harness.gates.units import told_apart
from rag_harness.gates.verdict import equal, limit_said
from rag_harness.page.content import Cell, Section, Table, word_cells
from rag_harness.page.figures import NONE
from rag_harness.page.run import Run
from rag_harness.page.sections.judged_gate import TONES, counted_cases, cutoff, sureness, sureness_head

_NOTE = "What to do is what stands behind the gate, after else. A gate that failed for want of values decides nothing."


def decisions(runs: Sequence[Run]) -> Section | None:
    """Return the first run's gates that say what to do, in their order; None where there are none."""
    run = runs[0]
    gates = [gate for gate in run.gates if gate.get("otherwise")]
    if not gates:
        return None
    rows = [_row(gate, cutoff(run)) for gate in gates]
    head = ("assumption", "measured", sureness_head(gates), "n", "verdict", "what to do")
    caption = "Assumptions, and what was agreed to do where one does not hold"
    return Section("decisions", "Decisions", [Table("decisions", head, rows, caption, [_NOTE])])


def _row(said: Mapping[str, Any], k: int) -> list[Cell]:
    gate, state = gate_or_none(said["gate"], k), said["state"]
    verdict, to_do = Cell(state, TONES.get(state, "mute")), Cell(_to_do(said, gate))
    if said.get("value") is None or said.get("threshold") is None:
        return [*word_cells(said["gate"], NONE, NONE, str(said.get("n", 0))), verdict, to_do]
    unit = said.get("unit", "share")
    figures = word_cells(said["gate"], _measured(said, unit, gate), sureness(said, gate), counted_cases(said))
    return [*figures, verdict, to_do]


def _measured(said: Mapping[str, Any], unit: str, gate: Gate | None) -> str:
    """Return the measured value. For two suites it has both values, for the gate's text has neither."""
    value, threshold = said["value"], said["threshold"]
    shown = told_apart(value, threshold, unit, equal(value, threshold))
    if gate is None or not isinstance(gate.right, Reference):
        return shown[0]
    return f"{shown[0]} against {limit_said(gate, threshold, shown[1], unit)}"


def _to_do(said: Mapping[str, Any], gate: Gate | None) -> str:
    state, reason, text = said["state"], beside_bounds(said, gate), str(said["otherwise"])
    if state == "passed":
        return "keep"
    if state not in ("failed", "undecided"):
        return reason
    return text if said.get("due") else f"undecided{f': {reason}' if reason else ''}; if it does not hold: {text}"
