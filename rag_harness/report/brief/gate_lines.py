"""Lines about gates: those that failed, and how many have each verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rag_harness.report.brief.gates_state import BAD, FEW_GATES, STATE_WORDS, GateLine, GatesState
from rag_harness.report.brief.writer import LABEL, TIE, Colour, Line, LineWriter
from rag_harness.report.wording import counted, listed

_COLOURS: Mapping[str, Colour] = {"FAIL": "red", "PASS": "green"}
_FEW_NEEDED = 2


def failed_gate_lines(state: GatesState, writer: LineWriter) -> Iterator[Line]:
    """Yield the failed gates, each with its worst trial, and the first that is undecided."""
    for gate in state.failed[:FEW_GATES]:
        yield from _gate(gate.state.upper(), gate, "red", writer)
        if gate.figures and gate.reason and (gate.is_good_enough or gate.state == "stale"):
            # Cases were lost, or could not be measured, or are too old, or an expected failure did not come.
            yield from writer.to_its_end("", gate.reason, "red")
        elif gate.worst:
            why = f": {gate.worst_why}" if gate.worst_why else ""
            yield Line(writer.cut(f"{'':<{LABEL}}worst: {gate.worst}{why}"), "red")
    if more := len(state.failed) - FEW_GATES:
        yield from [Line(f"{'':<{LABEL}}and {counted(more, 'failed gate')} more: -v", "red")] if more > 0 else []
    for gate in state.undecided[:1]:
        yield from _gate("UNDECIDED", gate, "yellow", writer)


def _gate(label: str, gate: GateLine, colour: Colour, writer: LineWriter) -> Iterator[Line]:
    # UNDECIDED is as wide as the column. It is one word everywhere, so it takes the space behind the column, too.
    head = f"{label} ".ljust(LABEL)
    whole = f"{gate.condition}   {gate.figures or gate.reason}".rstrip()
    if len(whole) <= writer.width - len(head):
        yield Line(f"{head}{whole}", colour)
    else:
        yield Line(f"{head}{writer.cut(gate.condition, len(head))}", colour)
        yield from writer.to_its_end("", gate.figures or gate.reason, colour)


def gate_count_lines(state: GatesState, writer: LineWriter, example: str) -> list[Line]:
    """Return how many gates have each verdict, and which passed most closely; of no gate an example of one."""
    if not state.total:
        one = example.replace(" ", TIE)
        return writer.labelled("gates", f"none: nothing stops a release. Set rag_gate, e.g. {one}", "yellow")
    counts = state.counts
    bad = sum(counts.get(name, 0) for name in BAD)
    said = [f"{counts.get('passed', 0)} passed", f"{bad} failed"]
    said += [f"{counts[name]} {word}" for name, word in STATE_WORDS.items() if counts.get(name) and name != "passed"]
    said += [state.part] if state.part else []
    needs = f" ({listed(state.needed, _FEW_NEEDED)} did not run)" if state.needed and counts.get("not judged") else ""
    why = f" ({', '.join(state.strict)})" if state.strict else ""
    colour = _COLOURS.get(state.verdict, "yellow")
    word = f"{state.verdict}{TIE}{TIE} " if state.verdict else ""
    lines = writer.labelled("gates", f"{word}{', '.join(said)}{needs}{why}", colour)
    if state.closest is not None and not state.failed:
        near = replace(state.closest, condition=f"nearest to failing: {state.closest.condition}")
        lines += _gate("", near, "", writer)
    return lines
