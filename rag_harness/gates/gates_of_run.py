"""Reads and checks the gates of a run, each once. ``gates`` does not import it, because it imports the measures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from rag_harness.errors import SettingsError
from rag_harness.gates.grammar import Gate, KnownNames, Reference, check_gate, parse_gate
from rag_harness.measures import measure_named


def read_gates(
    texts: Sequence[str],
    k: int,
    names: Collection[str],
    slices_of: Callable[[str], Mapping[str, Collection[str]]],
) -> list[Gate]:
    """Return the gates of a run. Of two gates on the same aggregate and direction, the later one is used.

    ``slices_of`` returns the labels that a suite's gates can slice by.

    Raises:
        SettingsError: a gate cannot be read, or contains an unknown name.
    """
    found: dict[tuple[object, ...], Gate] = {}
    for text in texts:
        gate = parse_gate(text, k)
        check_gate(gate, KnownNames(names, slices_of(gate.suite) if gate.slice else {}, measure_named, is_share))
        found[gate.suite, gate.slice, gate.what, gate.op, _kind(gate)] = gate
    return list(found.values())


def gate_or_none(text: str, k: int) -> Gate | None:
    """Return the gate of a text in ``summary.json``; None where another version wrote it."""
    try:
        return parse_gate(text, k)
    except SettingsError:
        return None


def measures_by_suite(texts: Sequence[str], k: int) -> dict[str, list[str]]:
    """Return the measures that gates ask for, by suite. The measure of a comparison belongs to both suites.

    Raises:
        SettingsError: a gate cannot be read.
    """
    found: dict[str, list[str]] = {}
    for gate in (parse_gate(text, k) for text in texts):
        other = [gate.right.name] if isinstance(gate.right, Reference) else []
        for suite in (gate.suite, *other):
            found.setdefault(suite, []).append(gate.measure)
    return found


def is_share(name: str) -> bool:
    """Whether a measure lies in [0, 1]."""
    return measure_named(name).unit == "share"


def _kind(gate: Gate) -> str:
    """Return what the right side is compared with: "" for a number, else the experiment's name or the baseline."""
    return gate.right.name if isinstance(gate.right, Reference) else ""
