"""The gates of a run: read from its options, checked against the names that exist.

Selected by the data that they are about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import DataSpec
from rag_harness.core.types import GOLDEN, is_in, limit_of
from rag_harness.evaluation.measures import ANSWERS, Unit, measure_named
from rag_harness.evaluation.measures.conversations import LateMeasure
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.measure import CompositeMeasure
from rag_harness.evaluation.measures.metamorphic import MetamorphicMeasure
from rag_harness.runs.gates.grammar import BASELINE, Gate, OverTurns, Promise, Reference, number_text, parse_gate, wrong

# A sign needs a space before it, because names may contain a hyphen: gpt-4.
_FEW = 8
"""Values of a label that a message names."""
_GLUED = re.compile(r"(.*[^-+])([-+])(\d*\.?\d+)")


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that a gate may contain.

    ``slices`` maps each key to the values that cases have; an empty collection allows any value. ``check_measure``
    raises a SettingsError for a name that is not a measure. ``is_share`` says whether a measure lies in [0, 1]: a
    threshold outside of that is a mistake.
    """

    names: Collection[str]
    slices: Mapping[str, Collection[str]]
    check_measure: Callable[[str], object]
    is_share: Callable[[str], bool] = lambda _: False


def check_gate(gate: Gate, known: KnownNames) -> None:
    """Make sure that everything a gate names exists.

    Raises:
        SettingsError: an unknown measure, experiment or slice, or a threshold that a share cannot have.
    """
    _known(gate, "experiment", gate.suite, set(known.names) - {BASELINE})
    for key, value in gate.slice:
        _known(gate, "slice key", key, known.slices)
        if known.slices[key] and limit_of(value):
            if not any(is_in({key: each}, {key: value}) for each in known.slices[key]):
                raise SettingsError(f"Gate '{gate}': no case has a {key} {value}. {_having(key, known)}")
        elif known.slices[key]:
            _known(gate, f"value of {key}", value, known.slices[key])
    if isinstance(gate.right, Reference):
        _known_right(gate, gate.right, known)
    try:
        known.check_measure(gate.measure)
    except SettingsError as error:
        raise SettingsError(f"Gate '{gate}': {error}") from error
    _check_range(gate, known)


def _having(key: str, known: KnownNames) -> str:
    return f"The cases have: {', '.join(sorted(known.slices[key])[:_FEW])}."


def _check_range(gate: Gate, known: KnownNames) -> None:
    """Make sure that the threshold of a share is a possible share."""
    is_share, over, turns = known.is_share(gate.measure), gate.over, gate.turns
    for limit in (over and over.limit, turns and turns.limit):
        if limit and is_share and not 0 <= limit[1] <= 1:
            shown = number_text(limit[1])
            raise wrong(str(gate), f"{gate.measure} lies between 0 and 1; {shown} does not. Write 0.95 for 95 %")
    if not (is_share or (over and over.is_share) or (turns and turns.is_share)):
        return
    if turns and turns.kind == "drift":
        _check_drift(gate)
        return
    what = gate.what if over or turns else gate.measure
    if isinstance(gate.right, Reference):
        if abs(gate.right.offset) > 1:
            shown = number_text(abs(gate.right.offset))
            raise wrong(str(gate), f"two of {what} differ by 1 at most; {shown} is more")
    elif not 0 <= gate.right <= 1:
        shown = number_text(gate.right)
        raise wrong(str(gate), f"{what} lies between 0 and 1; {shown} does not. Write 0.95 for 95 %")


def _check_drift(gate: Gate) -> None:
    """Make sure that a share can change so much from one turn to the next."""
    right = gate.right.offset if isinstance(gate.right, Reference) else gate.right
    if abs(right) > 1:
        raise wrong(str(gate), f"a share changes by 1 a turn at most; {number_text(right)} is more")


def _known_right(gate: Gate, right: Reference, known: KnownNames) -> None:
    if right.name == BASELINE and BASELINE not in known.names:
        raise SettingsError(
            f"Gate '{gate}': there is no baseline in this run. Name a saved one with --rag-compare NAME."
        )
    if right.name == gate.suite:
        raise wrong(str(gate), f"{right.name!r} would be compared with itself")
    if right.name not in known.names and (glued := _GLUED.fullmatch(right.name)):
        raise wrong(str(gate), f"an offset needs spaces around its sign; write '{' '.join(glued.groups())}'")
    _known(gate, "experiment", right.name, known.names)


def _known(gate: Gate, kind: str, name: str, names: Collection[str]) -> None:
    if name not in names:
        raise SettingsError(f"Gate '{gate}': {unknown(kind, name, names)}")


# Reads and checks the gates of a run, each once. ``gates`` does not import it, because it imports the measures.

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

    A gate that is set twice is not among them.

    Raises:
        SettingsError: a gate cannot be read.
    """
    gates = [replace(parse_gate(text, k), otherwise="") for text in texts]
    used = {_subject(gate): str(gate) for gate in gates}
    pairs = dict.fromkeys((str(gate), used[_subject(gate)]) for gate in gates)
    return [(left_out, later) for left_out, later in pairs if left_out != later]


def cannot_fail(gate: Gate) -> bool:
    """Whether every possible share meets a gate; false for a gate that needs evidence, which may be missing."""
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


# Selects the gates that are about the data of this run. The gates of an ini file belong to the data that it names.

GatesOfOtherData = tuple[tuple[str, str], ...]
"""Texts of gates that were set for other data, each with the reason why it is not judged."""


def gates_by_data(settings: Settings, ini: Mapping[str, Any]) -> tuple[tuple[str, ...], GatesOfOtherData]:
    """Divide the gates of ``settings`` into those for this run's data, and those that the ini file set for other data.

    Where an ini file names no data, its gates are judged on the data of any run. The gates of the environment and of
    the command line are judged on any data, too.

    Raises:
        SettingsError: a gate cannot be read.
    """
    if list(settings.gate) != list(ini.get("gate", [])):
        return settings.gate, ()
    why = {True: _other(_golden_data(settings, ini)), False: _other(_query_data(settings, ini))}
    reasons = [(text, why[parse_gate(text, settings.k).suite == GOLDEN]) for text in settings.gate]
    return tuple(text for text, reason in reasons if not reason), tuple(pair for pair in reasons if pair[1])


def gates_set(settings: Settings) -> list[str]:
    """Return the texts of a run's gates: those for its named data, and its own."""
    return [*(text for spec in settings.data if not spec.instead for text in spec.gates), *settings.gate]


def check_data(specs: Sequence[DataSpec], k: int, data_of: Callable[[str], str]) -> None:
    """Make sure that the gates of named data are about experiments on that data.

    Raises:
        SettingsError: a gate is about an experiment on other data, or cannot be read.
    """
    for spec in specs:
        for text in spec.gates:
            suite = parse_gate(text, k).suite
            if data_of(suite) != spec.name:
                used = data_of(suite) or "the run's own data"
                raise SettingsError(
                    f"Gate '{text}' is in [tool.rag_harness.data.{spec.name}], but {suite} is asked about {used}. "
                    f'Add it to that table: experiments = ["{suite}"].'
                )


def gates_of_others(settings: Settings) -> GatesOfOtherData:
    """Return the gates of named data that a knowledge base of the command line replaces."""
    return tuple(
        (text, f"set for {spec.name}, this run is on {shown_place(settings, settings.path(spec.instead))}")
        for spec in settings.data
        if spec.instead
        for text in spec.gates
    )


def _other(data: list[tuple[str, str]]) -> str:
    """Return how the data of the run differ from those of the ini file; empty where they do not."""
    differing = [(set_for, used) for set_for, used in data if set_for != used]
    return "; ".join(f"set for {set_for}, this run is on {used}" for set_for, used in differing[:1])


def _query_data(settings: Settings, ini: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the files that gates on experiments depend on: as the ini file names them, and as the run uses them.

    A public collection brings its own questions.
    """
    if settings.dataset or "dataset" in ini:
        claimed = ini.get("dataset") or ini.get("queries") or ini.get("kb_dir")
        return _collection(settings, claimed, settings.dataset or settings.kb_dir)
    found = [_folder(settings, ini)] if "kb_dir" in ini else []
    if "queries" in ini:
        found.append(_pair(settings, ini["queries"], settings.queries_path))
    elif "kb_dir" in ini and settings.queries:
        found.append(_pair(settings, str(Path(ini["kb_dir"]) / "queries.jsonl"), settings.queries_path))
    return found


def _golden_data(settings: Settings, ini: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the same for gates on the retrieval suite. A public collection has its own documents."""
    if settings.dataset or "dataset" in ini:
        claimed = ini.get("dataset") or ini.get("golden") or ini.get("kb_dir")
        return _collection(settings, claimed, settings.dataset or settings.golden)
    found = [_folder(settings, ini)] if "kb_dir" in ini else []
    return [*found, *([_pair(settings, ini["golden"], settings.path(settings.golden))] if "golden" in ini else [])]


def _collection(settings: Settings, claimed: str | None, used: str) -> list[tuple[str, str]]:
    same = claimed and _place(settings, claimed) == _place(settings, used)
    return [(claimed, claimed if same else used)] if claimed else []


def _place(settings: Settings, dataset: str) -> tuple[str, Path]:
    scheme, _, path = dataset.rpartition(":")
    return scheme, settings.path(path).resolve()


def _folder(settings: Settings, ini: Mapping[str, Any]) -> tuple[str, str]:
    return _pair(settings, ini["kb_dir"], settings.path(settings.kb_dir))


def _pair(settings: Settings, set_for: str, used: Path) -> tuple[str, str]:
    """Return both places as text; the same text where they are the same place."""
    return set_for, set_for if settings.path(set_for).resolve() == used.resolve() else shown_place(settings, used)


def shown_place(settings: Settings, place: Path) -> str:
    """Return a place as text, relative to rootdir where it is below that."""
    base = Path(settings.rootdir).resolve()
    inside = place.resolve().is_relative_to(base)
    return place.resolve().relative_to(base).as_posix() if inside else str(place)
