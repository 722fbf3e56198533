"""The plan of early stopping.

Which experiments may stop, reasons against others, and the moment when all gates are settled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.core.errors import SettingsError
from rag_harness.core.types import is_in
from rag_harness.evaluation.measures import measure_named
from rag_harness.evaluation.measures.conversations import LateMeasure
from rag_harness.evaluation.measures.measure import is_of_conversation
from rag_harness.evaluation.measures.metamorphic import MetamorphicMeasure
from rag_harness.runs.gates import Gate, Reference
from rag_harness.runs.gates.early_stopping import EarlyStop, why_not
from rag_harness.runs.gates.judging import judged_part
from rag_harness.runs.gates.verdict import meets_threshold

if TYPE_CHECKING:
    import pytest

    from rag_harness.core.types import Case, TrialId
    from rag_harness.evaluation.measures import Measure, Score
    from rag_harness.runs.gates.verdict import VerdictState


_ROUNDING = 1e-9


def check_gates(gates: Iterable[Gate], save: str) -> None:
    """Make sure that a run with --rag-stop-early has gates to settle, and is not saved as a whole run.

    Raises:
        SettingsError: no gate asks for evidence, or --rag-save was given, too.
    """
    if save:
        raise SettingsError(
            f"--rag-save={save} keeps a whole run, and --rag-stop-early leaves cases out. Give one of the two."
        )
    if all(gate.confidence is None for gate in gates):
        raise SettingsError(
            "--rag-stop-early asks until the gates are settled, but no gate of this run asks for evidence. Write @95% "
            "behind a gate (e3: recall@5 >= 0.8 @95%), add --rag-verdict=evidence, or leave --rag-stop-early out."
        )


def refusal(experiment: str, gates: Iterable[Gate], cases: Sequence[Case], selected: int) -> str:
    """Return why all cases of an experiment must be asked; "" if it may stop early."""
    own = [gate for gate in gates if gate.suite == experiment]
    if not own:
        return "it has no gate"
    for gate in gates:
        if isinstance(gate.right, Reference) and gate.right.name == experiment:
            return f"gate '{gate.condition}' depends on it"
    for gate in own:
        why = _comes_late(measure_named(gate.measure)) or why_not(gate, measure_named(gate.measure).unit)
        if why or not _about(gate, cases):
            return f"gate '{gate.condition}': {why or 'it is about none of the cases'}"
    return f"{selected} of {len(cases)} cases selected" if selected < len(cases) else ""


def _comes_late(measure: Measure) -> str:
    if isinstance(measure, (MetamorphicMeasure, LateMeasure)):
        return "it is checked after the tests"
    return "it is known when a conversation has ended" if is_of_conversation(measure) else ""


def why_drafts_count(experiment: str, gates: Iterable[Gate], cases: Sequence[Case], counts_drafts: bool) -> str:
    """Return why an experiment whose gates set drafts apart must be asked in full; "" if they set none apart."""
    for gate in (gate for gate in gates if gate.suite == experiment):
        apart = _about(gate, cases) - _about(judged_part(gate, counts_drafts), cases)
        if apart:
            return f"gate '{gate.condition}': {len(apart)} of its cases are unreviewed drafts"
    return ""


def _about(gate: Gate, cases: Iterable[Case]) -> frozenset[str]:
    """Return the cases of a gate's slice to which its measure applies."""
    measure, where = measure_named(gate.measure), dict(gate.slice)
    return frozenset(case.query.query_id for case in cases if is_in(case.labels, where) and not measure.applies(case))


def in_order(items: Sequence[pytest.Item], ranks: Mapping[pytest.Item, tuple[TrialId, int]]) -> list[pytest.Item]:
    """Return the tests; within a test function and an experiment, those in ``ranks`` are in its order.

    Any other test keeps its place, and tests of different modules are not mixed.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, item in enumerate(items):
        if item in ranks:
            function = item.nodeid.partition("[")[0]
            groups.setdefault((function, ranks[item][0].experiment), []).append(place)
    ordered = list(items)
    for places in groups.values():
        chosen = sorted((items[place] for place in places), key=lambda item: ranks[item][1])
        for place, item in zip(places, chosen, strict=True):
            ordered[place] = item
    return ordered


def kept_together(cases: Iterable[Case]) -> dict[str, list[str]]:
    """Return the ids of cases that stay together, in order: turns of a conversation, and each other case alone.

    The turns are in the order of the file, which is the order of the conversation.
    """
    found: dict[str, list[str]] = {}
    for case in cases:
        found.setdefault(case.query.place.get("conversation", case.query.query_id), []).append(case.query.query_id)
    return found


class Watched:
    """A gate whose cases come one after the other, whole conversations where they are turns."""

    def __init__(self, gate: Gate, cases: Iterable[Case], max_unmeasured: float) -> None:
        self.gate, self.measure = gate, measure_named(gate.measure)
        about = _about(gate, cases)
        rows = [[each for each in row if each in about] for row in kept_together(cases).values()]
        self._row_of = {each: row for row in rows for each in row}
        longest = max(map(len, rows), default=0)
        self._in_rows = longest > 1
        population = sum(bool(row) for row in rows)
        self._stop = EarlyStop(gate, population, self.measure.unit, longest if self._in_rows else 0)
        self._values: list[float] = []
        self._max_unmeasured, self._measured, self._unmeasured = max_unmeasured, 0, 0

    def take(self, query_id: str, score: Score) -> None:
        """Take the score of the next case."""
        row = self._row_of.get(query_id)
        if row is None:
            return
        self._measured += score.value is not None
        self._unmeasured += score.value is None and not score.undefined
        if self._in_rows:
            self._values += [] if score.value is None else [_share(score.value)]
            if query_id == row[-1]:
                self._stop.add_row(self._values)
                self._values = []
        elif score.value is None:
            self._stop.leave_out()
        else:
            self._stop.add(_share(score.value))

    @property
    def verdict(self) -> tuple[VerdictState, str] | None:
        """The verdict and its reason, if it is settled. If too many cases were not measured, more are asked."""
        could = self._measured + self._unmeasured
        if self._stop.state is None or (
            could and not meets_threshold(self._unmeasured / could, "<=", self._max_unmeasured)
        ):
            return None
        return self._stop.state, self._stop.said


def _share(value: float) -> float:
    """Return a share without the small excess that rounding may cause."""
    return min(max(value, 0.0), 1.0) if -_ROUNDING <= value <= 1 + _ROUNDING else value


class Watch:
    """Watches the gates of an experiment.

    Scores come in any order, but they are evaluated only in the random order: which case is evaluated first must not
    depend on its score. A case that never comes blocks all cases after it. Then no gate is settled, and every case is
    asked.

    Args:
        order: ids of all cases.
        gates: of the experiment.
    """

    def __init__(self, order: Iterable[str], gates: Sequence[Watched]) -> None:
        self._order, self._gates = deque(order), gates
        self._waiting: dict[str, Mapping[str, Score]] = {}
        self._broken = False

    @property
    def measures(self) -> Collection[Measure]:
        """The measures that each row needs."""
        return {watched.measure.name: watched.measure for watched in self._gates}.values()

    @property
    def verdicts(self) -> dict[Gate, tuple[VerdictState, str]]:
        """The gates that are settled."""
        return {watched.gate: verdict for watched in self._gates if (verdict := watched.verdict) is not None}

    def take(self, query_id: str, scores: Mapping[str, Score]) -> bool:
        """Take the scores of a case by measure, and return whether every gate is settled."""
        self._waiting[query_id] = scores
        while not self._broken and self._order and self._order[0] in self._waiting:
            self._next(self._order.popleft())
            if len(self.verdicts) == len(self._gates):
                return not self._broken
        return False

    def _next(self, query_id: str) -> None:
        scores = self._waiting.pop(query_id)
        try:
            for watched in self._gates:
                watched.take(query_id, scores[watched.measure.name])
        except ValueError:
            self._broken = True  # a user's measure that is not a share after all: no stop rule is valid
