"""Reads and checks the gates of a run, each once. ``gates`` does not import it, because it imports the measures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from rag_harness.errors import SettingsError
from rag_harness.gates.grammar import Gate, Reference, parse_gate, wrong
from rag_harness.gates.known_names import KnownNames, check_gate
from rag_harness.gates.over_turns import OverTurns
from rag_harness.gates.promises import Promise
from rag_harness.measures import Unit, measure_named
from rag_harness.measures.composite import CompositeMeasure
from rag_harness.measures.judged import JudgedMeasure
from rag_harness.measures.judged.carried import LateMeasure
from rag_harness.measures.metamorphic import MetamorphicMeasure
from rag_harness.measures.named import ANSWERS
from rag_harness.types import GOLDEN

_ALSO_OF_GOLDEN = ("evidence_recall", "error_rate")


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
        _check_golden(gate, text)
        found[_subject(gate)] = gate
    return list(found.values())


def _check_golden(gate: Gate, text: str) -> None:
    """Make sure that a gate of the golden suite is about what is found: the suite asks nobody for an answer.

    Raises:
        SettingsError: it is about answers; where the text names no suite, it is meant for an experiment.
    """
    measure = measure_named(gate.measure)
    is_of_answers = gate.measure in ANSWERS or isinstance(
        measure, (JudgedMeasure, CompositeMeasure, MetamorphicMeasure)
    )
    if gate.suite != GOLDEN or not is_of_answers or gate.measure in _ALSO_OF_GOLDEN:
        return
    names_it = GOLDEN in text.partition(":")[0]
    why = "" if names_it else "a gate without an experiment and a colon is about the golden suite, and "
    raise wrong(text, f"{why}golden has no answers, so no {gate.measure}; write 'EXPERIMENT: {gate.measure} …'")


def replaced_gates(texts: Iterable[str], k: int) -> list[tuple[str, str]]:
    """Return the gates that ``read_gates`` leaves out, each with the later one that is used in its place.

    One that stands there twice is not among them.

    Raises:
        SettingsError: a gate cannot be read.
    """
    gates = [replace(parse_gate(text, k), otherwise="") for text in texts]
    used = {_subject(gate): str(gate) for gate in gates}
    pairs = dict.fromkeys((str(gate), used[_subject(gate)]) for gate in gates)
    return [(left_out, later) for left_out, later in pairs if left_out != later]


def cannot_fail(gate: Gate) -> bool:
    """Whether every value that a share can have meets a gate; not of one that needs evidence, for that may lack."""
    if unit_of(gate) != "share" or gate.confidence is not None or gate.calibrated or gate.expected:
        return False
    compares = isinstance(gate.right, Reference)
    right = gate.right.offset if isinstance(gate.right, Reference) else gate.right
    return (gate.op == ">=" and right <= (-1 if compares else 0)) or (gate.op == "<=" and right >= 1)


def check_promises(gates: Iterable[Gate], repeats: int) -> None:
    """Make sure that a run with ``repeats`` answers to each question can judge the promises over repeats.

    Raises:
        SettingsError: there are too few answers, only first answers are measured, or it is not said which are right.
    """
    for gate in gates:
        if gate.over is not None and (problem := _why_no_promise(gate, gate.over, max(repeats, 1))):
            raise wrong(str(gate), problem)


def _why_no_promise(gate: Gate, over: Promise, answers: int) -> str:
    measure, what = measure_named(gate.measure), over.of(gate.turns.of(gate.measure) if gate.turns else gate.measure)
    is_share = measure.unit == "share" or bool(gate.turns and gate.turns.is_share)
    if gate.suite == GOLDEN:
        return "golden retrieves once for each entry; name an experiment for a promise over repeats"
    if isinstance(measure, (MetamorphicMeasure, LateMeasure)):
        return f"{gate.measure} is checked on first answers only, so it has no promise over repeats"
    if not is_share and over.is_share and over.limit is None:
        limited = replace(over, limit=("<=" if measure.better == "lower" else ">=", 1.0)).of(gate.measure)
        return f"no value of {gate.measure} is the best one; say which are right, for example {limited}"
    if over.k > answers:
        asked = f"{answers} answer{'s' * (answers != 1)}"
        return f"{what} needs {over.k} answers to each question, and this run asks for {asked}: --rag-repeats={over.k}"
    return ""


def check_turns(gates: Iterable[Gate], labels_of: Callable[[str], Collection[str]]) -> None:
    """Make sure that gates over whole conversations are about suites with conversations.

    ``labels_of`` returns the labels that cases of a suite have.

    Raises:
        SettingsError: a suite has no conversations, or it is not said which of its turns are right.
    """
    for gate in gates:
        if gate.turns is not None and (problem := _why_no_turns(gate, gate.turns, labels_of)):
            raise wrong(str(gate), problem)


def _why_no_turns(gate: Gate, turns: OverTurns, labels_of: Callable[[str], Collection[str]]) -> str:
    measure = measure_named(gate.measure)
    others = [gate.right.name] if isinstance(gate.right, Reference) else []
    for suite in [gate.suite, *others]:
        if suite == GOLDEN or not {"conversation", "turn"} <= set(labels_of(suite)):
            return f"{suite} has no conversations, so {turns.of(gate.measure)} has no value"
    if measure.unit != "share" and turns.is_share and turns.limit is None:
        limited = replace(turns, limit=("<=" if measure.better == "lower" else ">=", 1.0)).of(gate.measure)
        return f"no value of {gate.measure} is the best one; say which are right, for example {limited}"
    return ""


def unit_of(gate: Gate) -> Unit:
    """Return the unit of a gate's value: the measure's, or a share for a chance and for what is right or wrong.

    A drift is a change by turn, and has no range.
    """
    is_share = (gate.over is not None and gate.over.is_share) or (gate.turns is not None and gate.turns.is_share)
    if is_share:
        return "share"
    return "score" if gate.turns is not None and gate.turns.kind == "drift" else measure_named(gate.measure).unit


def gate_or_none(text: str, k: int) -> Gate | None:
    """Return the gate of a text in ``summary.json``; None where another version wrote it."""
    try:
        return parse_gate(text, k)
    except SettingsError:
        return None


def asked_of_contexts(texts: Sequence[str], k: int) -> frozenset[str]:
    """Return the suites of which a gate asks a measure of their retrieval or of the contexts.

    Raises:
        SettingsError: a gate cannot be read.
    """
    asked = measures_by_suite(texts, k)
    return frozenset(
        suite for suite, names in asked.items() if any("retrieval" in measure_named(name).needs for name in names)
    )


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


def _subject(gate: Gate) -> tuple[object, ...]:
    """Return what gates share of which the last one is used: aggregate, direction, and what it is compared with."""
    compared_with = gate.right.name if isinstance(gate.right, Reference) else ""
    return gate.suite, gate.slice, gate.what, gate.op, compared_with
