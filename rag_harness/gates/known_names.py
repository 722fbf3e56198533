"""Checks that everything exists that a gate names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from rag_harness.errors import SettingsError, unknown
from rag_harness.gates.grammar import BASELINE, Gate, Reference, wrong
from rag_harness.gates.promises import number_text
from rag_harness.types import is_in, limit_of

# A sign needs a space before it, because names may contain a hyphen: gpt-4.
_FEW = 8
"""Values of a label that a message names."""
_GLUED = re.compile(r"(.*[^-+])([-+])(\d*\.?\d+)")


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that a gate may contain.

    ``slices`` maps each key to the values that cases have; an empty collection allows any value. ``check_measure``
    raises a SettingsError for a name that is no measure. ``is_share`` says whether a measure lies in [0, 1]: a
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
    """Make sure that a share is held against what a share can be."""
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
