"""The first section: the gates, then models and judges, and missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_harness.gates.units import told_apart
from rag_harness.gates.verdict import equal
from rag_harness.page.content import Block, Cell, Prose, Section, Table, Tone, word_cells
from rag_harness.page.drawings.gate_bar import gate_bar
from rag_harness.page.figures import NONE, counted
from rag_harness.page.run import Run
from rag_harness.page.sections.judged_gate import TONES, between, cutoff, parsed_gate
from rag_harness.page.sections.made_of import run_facts
from rag_harness.page.sections.unmeasured import became_of, errors, unmeasured
from rag_harness.report.provenance import provenance_lines, time_said

_ORDER = ("failed", "stale", "xpassed", "inconclusive", "xfailed", "passed", "not judged")
_ALWAYS = ("failed", "inconclusive", "not judged")
"""States that are always counted, even with no gate."""
_HEAD = ("gate", "state", "value", "limit", "95 % interval", "n", "against the limit", "why, and what would settle it")

Gate = Mapping[str, Any]


def verdict(runs: Sequence[Run]) -> Section:
    """Return the verdicts of the first run, and what the run was."""
    run = runs[0]
    blocks: list[Block] = [_sentence(run)]
    blocks += [Prose(f"{line[0].upper()}{line[1:]}.") for line in provenance_lines(run.selected, run.manifest.date)]
    blocks += [Prose(said, "unsure") for said in (*_of_earlier_runs(run), *_other_rows(run))]
    if run.gates:
        blocks.append(_gates(run))
    blocks += run_facts(run)
    blocks += [block for block in (became_of(run), unmeasured(run), errors(run)) if block is not None]
    return Section("verdict", "Verdict", blocks)


def _sentence(run: Run) -> Prose:
    """Say how many gates have each verdict, or why there are none."""
    if not run.selected and not run.gates:
        return Prose("No gates were judged: no trial was selected in this run.", "unsure")
    if not run.gates:
        return Prose(f"No gates were judged: {_why_none(run)}.", "unsure")
    states = Counter(gate["state"] for gate in run.gates)
    named = [state for state in _ORDER if state != "passed" and (states[state] or state in _ALWAYS)]
    said = ", ".join(f"{states[state]} {state}" for state in named)
    is_bad = states["failed"] or states["stale"] or states["xpassed"]
    tone: Tone = "bad" if is_bad else "good" if states["passed"] == len(run.gates) else "unsure"
    return Prose(f"{counted(states['passed'], 'gate')} passed, {said}.", tone)


def _why_none(run: Run) -> str:
    if not run.summary:
        return "there is no summary.json of this run beside its rows, which says how they came out"
    return "none is set (--rag-gate, or rag_gate in the ini file)"


def _of_earlier_runs(run: Run) -> Iterator[str]:
    """Yield the experiments that the last run did not look at, and whether it would give the same rows."""
    for name in run.selected:
        record = run.suites[name]
        if record.made:
            other = ", with other code or settings" if record.is_current is False else ""
            yield f"{name} is of an earlier run, of {time_said(record.made)}{other}; the last one did not look at it."


def _other_rows(run: Run) -> Iterator[str]:
    """Yield that gates were judged before rows were lost, or came back."""
    for name, table in run.selected.items() if run.gates else ():
        judged, lost = run.summary.get(name), table.lost_of({})
        then = judged.get("lost", lost) if isinstance(judged, Mapping) else lost
        if then != lost:
            yield (
                f"The gates were judged on other rows of {name}: {then} trials had none then, {lost} have none now. "
                "All but the gates is of the rows that are here. Run pytest again to have both of the same."
            )


def _gates(run: Run) -> Table:
    # sorted is stable: gates with the same state keep their order.
    ordered = sorted(run.gates, key=lambda gate: _ORDER.index(gate["state"]) if gate["state"] in _ORDER else 0)
    return Table(
        "gates",
        _HEAD,
        [_row(gate, cutoff(run), n) for n, gate in enumerate(ordered)],
        "Gates, failed ones first",
        list(_notes(run)),
    )


def _row(said: Gate, k: int, number: int) -> list[Cell]:
    tone = TONES.get(said["state"], "mute")
    state, reason = Cell(said["state"], tone), said.get("reason") or ""
    if said.get("value") is None or said.get("threshold") is None:
        return [Cell(said["gate"]), state, *word_cells(NONE, NONE, NONE, str(said.get("n", 0)), "", reason)]
    value, threshold, unit = said["value"], said["threshold"], said.get("unit", "share")
    shown = told_apart(value, threshold, unit, equal(value, threshold))
    gate = parsed_gate(said["gate"], k)
    drawing = gate_bar(said, gate, tone, f"gate-{number}") if gate else ""
    figures = word_cells(*shown, between(said, unit, gate), f"{said['n']:,}")
    return [Cell(said["gate"]), state, *figures, Cell("", drawing=drawing), Cell(reason)]


def _notes(run: Run) -> Iterator[str]:
    yield "The interval says how far the value could move with other questions of the same kind; the value decides."
    if any("confidence" in gate for gate in run.gates):
        yield "Of a gate with @ the bounds of that confidence decide: it is inconclusive where the cases are too few."
