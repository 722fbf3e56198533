"""Gates on an evaluation: the verdicts that a run of pytest would give, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_harness.errors import SettingsError
from rag_harness.gates import Gate, GateRules, Reference, Verdict, judge, parse_gate, verdict_lines
from rag_harness.gates.calibrated import corrections
from rag_harness.gates.gates_of_run import check_promises, check_turns, read_gates, unit_of
from rag_harness.measures import measure_named
from rag_harness.report.doubts import foreign_said
from rag_harness.report.over_conversations import over_conversations, rules_over_conversations
from rag_harness.report.suite_table import SuiteTable
from rag_harness.settings import Settings
from rag_harness.shown import terminal
from rag_harness.types import GOLDEN, REVIEWED

_PASSING = ("passed", "xfailed")
_EVIDENCE = 95.0


@dataclass(frozen=True, repr=False)
class GateCheck:
    """The verdicts of gates. ``str`` and ``repr`` are the lines that a run of pytest prints."""

    verdicts: Sequence[Verdict]

    @property
    def passed(self) -> bool:
        """Whether every gate has passed. One that could not be judged, or is undecided, has not."""
        return all(each.state in _PASSING for each in self.verdicts)

    def __repr__(self) -> str:
        return "\n".join(map(terminal.block, verdict_lines(self.verdicts)))


def check_gates(texts: Sequence[str], suite: str, table: SuiteTable, settings: Settings, not_run: int) -> GateCheck:
    """Return the verdict of each gate.

    Args:
        texts: gates; one without an experiment is about ``suite``.
        suite: the experiment that was evaluated.
        table: its cases.
        settings: of the evaluation.
        not_run: how many questions were not asked.

    Raises:
        SettingsError: a gate cannot be read, names something unknown, or a measure that was not asked for.
    """
    if not texts:
        raise SettingsError('check: there is no gate. For example: check("recall@5 >= 0.7")')
    slices = {REVIEWED: {"yes", "no"}}
    for key, values in table.slices().items():
        slices.setdefault(key, set()).update(values)
    # Each by itself: of two on the same measure, a run of pytest takes the later one.
    gates = [
        gate
        for text in texts
        for gate in read_gates([_about(text, suite, settings.k)], settings.k, [suite], lambda _: slices)
    ]
    check_promises(gates, 1)
    check_turns(gates, lambda _: slices)
    for gate in gates:
        _check_measured(gate, table)
    judged = [_asked(gate, settings) for gate in gates]
    return GateCheck([_verdict(gate, suite, table, settings, not_run) for gate in judged])


def _about(text: str, suite: str, k: int) -> str:
    gate = parse_gate(text, k)
    return f"{suite}: {text}" if gate.suite == GOLDEN and not text.lstrip().startswith(GOLDEN) else text


def _check_measured(gate: Gate, table: SuiteTable) -> None:
    if isinstance(gate.right, Reference):
        raise SettingsError(
            f"check: {gate} compares with {gate.right.name}, which is for the gates of a run of pytest."
        )
    name = measure_named(gate.measure).name
    if name not in table.columns:
        raise SettingsError(f'check: {name} was not looked at. Evaluate with measures=["{name}"], and check then.')


def _asked(gate: Gate, settings: Settings) -> Gate:
    if settings.verdict == "point" or gate.confidence is not None:
        return gate
    return replace(gate, confidence=_EVIDENCE)


def _verdict(gate: Gate, suite: str, table: SuiteTable, settings: Settings, not_run: int) -> Verdict:
    if not_run and not settings.gate_partial:
        return Verdict(gate, "failed", reason=f"cannot be judged: {not_run} questions were not asked", lacking=True)
    if why := foreign_said(gate, [table], settings):
        return Verdict(gate, "not judged", reason=why)
    if "retrieval" in measure_named(gate.measure).needs:
        # Who asks about contexts says that there should be some.
        table = table.retrieving()
    tables, rules = {suite: table}, _rules(table, settings)
    correct = corrections(settings.folder("judges"), settings.path(settings.output))
    if gate.turns is None:
        return judge(gate, tables, settings.gate_partial, None, unit_of(gate), correct, rules)
    whole = over_conversations(gate, tables)
    rules = rules_over_conversations(rules, whole)
    return judge(gate, whole, settings.gate_partial, None, unit_of(gate), correct, rules)


def _rules(table: SuiteTable, settings: Settings) -> GateRules:
    return GateRules(
        max_unmeasured=settings.max_unmeasured,
        population=settings.population,
        cluster=settings.cluster,
        clusters=lambda _: table.cluster_by_case,
        counts_drafts=settings.gate_unreviewed,
    )
