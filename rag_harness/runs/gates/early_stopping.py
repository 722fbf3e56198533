"""Early stopping: whether a gate needs more cases, and whether it fails whatever they would answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import fsum
from random import Random

from rag_harness.core.errors import SettingsError
from rag_harness.runs.gates.evidence import decided
from rag_harness.runs.gates.grammar import Gate, Reference
from rag_harness.runs.gates.verdict import VerdictState, meets_threshold
from rag_harness.stats.sequential import MeanTest

# Early stopping: decides whether a gate needs more cases, where cases are asked in random order. Pure.
#
# The verdict is about the cases of the suite only. It predicts the verdict over all of them, and is wrong with a
# probability of at most 1 - confidence, however often one looks.


def random_order(rows: Mapping[str, Sequence[str]], seed: int) -> list[str]:
    """Return cases in a random order. All orders are equally likely, and the same seed gives the same order.

    Args:
        rows: cases that stay together, in their order, by name: the turns of a conversation; any other case alone.
        seed: of the order.
    """
    shuffled = sorted(rows)
    Random(seed).shuffle(shuffled)
    return [case_id for name in shuffled for case_id in rows[name]]


def why_not(gate: Gate, unit: str) -> str:
    """Return why a gate cannot be settled before all its cases are asked; "" where it can."""
    if gate.confidence is None:
        return "it compares the value alone; write @95% behind it"
    without = {
        "a promise over repeats": gate.over is not None,
        "a gate over whole conversations": gate.turns is not None,
        "a quantile": gate.quantile is not None,
        "a calibrated mean": gate.calibrated,
    }
    if what := next((each for each, is_so in without.items() if is_so), ""):
        return f"{what} has no stop rule"
    if isinstance(gate.right, Reference):
        return f"it depends on {gate.right.name}"
    return "" if unit == "share" else f"{gate.measure} has no range, and a stop rule needs one"


class EarlyStop:
    """Takes the values of a gate's cases one after another, and settles the gate as soon as they allow it.

    Cases may come in rows, whole conversations, in random order. A row then counts as one draw: how far the sum of its
    values is from that of as many values at the threshold, as a part of the longest row. The mean of these over all
    rows is on the side of zero on which the mean of the cases is of the threshold.

    Args:
        gate: the gate to be settled.
        population: number of the gate's cases: those of its slice that its measure applies to; of their rows, where
            they come in rows.
        unit: unit of the measure.
        longest: most cases of a row; 0 where each case comes by itself.

    Raises:
        SettingsError: the gate cannot be settled early; says why.
    """

    def __init__(self, gate: Gate, population: int, unit: str = "share", longest: int = 0) -> None:
        why = why_not(gate, unit)
        if why or gate.confidence is None or isinstance(gate.right, Reference):
            raise SettingsError(f"Gate '{gate.condition}' cannot be settled early: {why}.")
        self.gate: Gate = gate
        self._threshold, self._population, self._longest = gate.right, population, longest
        self._span = (-1, 1) if longest else (0, 1)
        self._test = MeanTest(0 if longest else gate.right, population, self._span, gate.confidence / 100)
        self.state: VerdictState | None = None
        self.said: str = ""
        self._has_value = False

    def add(self, value: float) -> None:
        """Take the value of the next case. A settled verdict does not change any more.

        Raises:
            ValueError: the value is NaN or no share, or all cases were taken.
        """
        self._test.add(value)
        self._has_value = True
        self._look()

    def add_row(self, values: Sequence[float]) -> None:
        """Take the values of the next row. A case without a value counts as if its value were the threshold.

        Raises:
            ValueError: a value is NaN or no share, or all rows were taken.
        """
        if not all(0 <= value <= 1 for value in values):
            raise ValueError(f"shares lie between 0 and 1; got {values}.")
        self._test.add(sum(value - self._threshold for value in values) / self._longest)
        self._has_value |= bool(values)
        self._look()

    def leave_out(self) -> None:
        """Take a case without a value. It counts as if its value were the threshold.

        That does not change the verdict: values equal to the threshold never move the mean to its other side.

        Raises:
            ValueError: all cases were taken.
        """
        self._test.add(self._threshold)
        self._look()

    def _look(self) -> None:
        if self.state is not None or not self._has_value:
            return
        certain = decided(self._test.certain, self.gate.op, 0 if self._longest else self._threshold)
        if certain != "undecided":
            self.state, how = certain, "whatever the others are"
        elif self._test.shown is not None:
            is_good = (self._test.shown == "above") == (">" in self.gate.op)
            self.state, how = "passed" if is_good else "failed", f"{self.gate.confidence:g} % sure"
        else:
            return
        what = "conversations" if self._longest else "cases"
        self.said = f"settled after {self._test.n} of {self._population} {what}, in random order, {how}"


# Whether a gate fails whatever the cases would answer that were left untested. Pure.


def fails_anyway(gate: Gate, values: Collection[float], left: int, unit: str) -> bool:
    """Return whether a gate on a mean fails even if each of ``left`` more cases has the best value there is.

    Only a share, from 0 to 1, has such a value. Of any other gate, and of one that compares, it is not known.
    """
    is_other = gate.over is not None or gate.turns is not None or gate.quantile is not None or gate.calibrated
    if isinstance(gate.right, Reference) or gate.confidence is not None or is_other or unit != "share" or not values:
        return False
    best = float(">" in gate.op)
    return not meets_threshold((fsum(values) + best * left) / (len(values) + left), gate.op, gate.right)
