"""The gates of a run: a sentence that counts them, the open and failed ones as a table, the others folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_harness.gates.decisive import beside_bounds
from rag_harness.gates.gates_of_run import gate_or_none
from rag_harness.gates.units import told_apart
from rag_harness.gates.verdict import equal, limit_said
from rag_harness.page.content import Block, Cell, More, Prose, Table, Tone, word_cells
from rag_harness.page.drawings.gate_bar import gate_bar
from rag_harness.page.figures import NONE
from rag_harness.page.run import Run
from rag_harness.page.sections.judged_gate import TONES, counted_cases, cutoff, sureness, sureness_head
from rag_harness.report.brief.gates_state import BAD
from rag_harness.report.wording import counted, listed
from rag_harness.types import GOLDEN

_ORDER = ("failed", "stale", "xpassed", "undecided", "xfailed", "passed", "not judged")
_ALWAYS = ("failed", "undecided", "not judged")
"""States that are always counted, even with no gate."""
_FOLDED = ("passed", "not judged")
_WORST = "worst trial"

Gate = Mapping[str, Any]


def gates_said(run: Run) -> Iterator[Block]:
    """Yield the count of the verdicts, those that need somebody, and the others, folded."""
    yield _sentence(run)
    # sorted is stable: gates with the same state keep their order.
    ordered = sorted(run.gates, key=lambda gate: _ORDER.index(gate["state"]) if gate["state"] in _ORDER else 0)
    loud = [gate for gate in ordered if gate["state"] not in _FOLDED]
    if loud:
        yield _table(run, "gates", loud, "Gates that did not pass, failed ones first")
    for state in _FOLDED:
        quiet = [gate for gate in ordered if gate["state"] == state]
        if quiet:
            name = f"gates-{state.replace(' ', '-')}"
            yield More(_title(run, state, len(quiet)), [_table(run, name, quiet, f"Gates: {state}")])


def _title(run: Run, state: str, n: int) -> str:
    if state == "passed":
        return f"{counted(n, 'gate')} passed"
    needs = run.brief.gates.needed
    return f"{counted(n, 'gate')} not judged" + (f": {listed(needs)} did not run here" if needs else "")


def _sentence(run: Run) -> Prose:
    """Say how many gates have each verdict, or why there are none."""
    if not run.selected and not run.gates:
        return Prose("No gates were judged: no trial was selected in this run.", "unsure")
    if not run.gates:
        return Prose(f"No gates were judged: {_why_none(run)}.", "unsure")
    states = Counter(gate["state"] for gate in run.gates)
    named = [state for state in _ORDER if state != "passed" and (states[state] or state in _ALWAYS)]
    said = ", ".join(f"{states[state]} {state}" for state in named)
    is_bad = any(states[state] for state in BAD)
    tone: Tone = "bad" if is_bad else "good" if states["passed"] and not states["undecided"] else "unsure"
    return Prose(f"{counted(states['passed'], 'gate')} passed, {said}.", tone)


def _why_none(run: Run) -> str:
    if not run.summary:
        return "there is no summary.json of this run beside its rows, which says how they came out"
    return "none is set (--rag-gate, or rag_gate in the ini file)"


def _table(run: Run, name: str, gates: Sequence[Gate], caption: str) -> Table:
    worst = {line.condition: line.worst for line in run.brief.gates.failed if line.worst}
    rows = [_row(gate, cutoff(run), f"{name}-{n}") for n, gate in enumerate(gates)]
    figures = ("value", "limit", sureness_head(gates), "n", "against the limit")
    head = ("gate", "state", *figures, "why, and what would settle it")
    if name != "gates" or not worst:
        return Table(name, head, rows, caption, list(_notes(gates)))
    found = [worst.get(gate["gate"], "") for gate in gates]
    # The page lists only trials of experiments, so those of the golden suite have no link.
    linked = [trial if trial and not trial.startswith(f"{GOLDEN}-") else "" for trial in found]
    links = [Cell(trial, trial=run.address(to) if to else "") for trial, to in zip(found, linked, strict=True)]
    rows = [[*row, link] for row, link in zip(rows, links, strict=True)]
    return Table(name, (*head, _WORST), rows, caption, list(_notes(gates)))


def _row(said: Gate, k: int, ident: str) -> list[Cell]:
    tone = TONES.get(said["state"], "mute")
    gate = gate_or_none(said["gate"], k)
    state, reason = Cell(said["state"], tone), beside_bounds(said, gate)
    if said.get("value") is None or said.get("threshold") is None:
        return [Cell(said["gate"]), state, *word_cells(NONE, NONE, NONE, str(said.get("n", 0)), "", reason)]
    value, threshold, unit = said["value"], said["threshold"], said.get("unit", "share")
    shown = told_apart(value, threshold, unit, equal(value, threshold))
    drawing = gate_bar(said, gate, tone, ident) if gate else ""
    limit = limit_said(gate, threshold, shown[1], unit)
    figures = word_cells(shown[0], limit, sureness(said, gate), counted_cases(said))
    return [Cell(said["gate"]), state, *figures, Cell("", drawing=drawing), Cell(reason)]


def _notes(gates: Sequence[Gate]) -> Iterator[str]:
    judged = [gate for gate in gates if gate["state"] != "not judged"]
    if any("confidence" not in gate for gate in judged):
        yield (
            "The interval says how far the value could move with other questions of the same kind; the value decides."
        )
    if any("confidence" in gate for gate in gates):
        yield (
            "Of a gate with @ a bound decides instead: with that confidence the value is at least, or at most, so high "
            "for questions like these. With bounds on both sides of the limit the gate is undecided."
        )
