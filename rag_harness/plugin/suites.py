"""Rows and golden results -> the tables that gates, summary and baselines read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.errors import PrerequisiteError
from rag_harness.gates import BASELINE, GOLDEN, Gate, Known, Reference, check_gate, parse_gate
from rag_harness.gates.slices import slices_of
from rag_harness.pipelines import known_experiments
from rag_harness.report.scores import ScoredCase, SuiteTable, check_measure, known_measure
from rag_harness.report.summary import ranking

if TYPE_CHECKING:
    from rag_harness.golden.run import RetrievalCase, RetrievalResult
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.session import RagSession
    from rag_harness.results.row import ExperimentResult
    from rag_harness.types import Case

_PREFIX = f"{GOLDEN}-"


def suite_tables(session: RagSession, recorder: Recorder, selected: Sequence[str]) -> Mapping[str, SuiteTable]:
    """Return a table for every experiment and for the golden suite, empty where nothing of it was selected."""
    tables = _experiment_tables(session, recorder.rows, selected)
    ids = [each.removeprefix(_PREFIX) for each in selected if each.startswith(_PREFIX)]
    if ids or recorder.retrievals:
        tables[GOLDEN] = _golden_table(session, recorder.retrievals, ids)
    return tables


def _experiment_tables(
    session: RagSession, rows: Mapping[str, ExperimentResult], selected: Sequence[str]
) -> dict[str, SuiteTable]:
    chosen = {*selected, *rows}
    names = {row.experiment for row in rows.values()} | set(known_experiments()) | session.own_experiments
    if not any(each.startswith(f"{name}-") for each in chosen for name in names):
        return {}
    cases = {case.query.query_id: case for case in session.all_cases}
    everything = {query_id: case_slices(case) for query_id, case in cases.items()}
    return {
        name: SuiteTable(
            [
                _scored(case, everything[each], rows.get(f"{name}-{each}"))
                for each, case in cases.items()
                if f"{name}-{each}" in chosen
            ],
            everything,
        )
        for name in sorted(names)
    }


def case_slices(case: Case) -> dict[str, str]:
    """Return what an experiment's gates can slice by."""
    return {**slices_of(case.metadata), "query_type": case.query_type}


def _scored(case: Case, slices: Mapping[str, str], row: ExperimentResult | None) -> ScoredCase:
    return ScoredCase(
        case.query.query_id,
        slices,
        ranked=ranking(row) if row else (),
        relevant=dict.fromkeys(case.context_reference, 1),
        row=row,
        evidence=tuple(each.quote for each in case.evidence),
        state="lost" if row is None else "ok" if row.ok else "error",
    )


def _golden_table(session: RagSession, results: Mapping[str, RetrievalResult], ids: Sequence[str]) -> SuiteTable:
    from rag_harness.golden.run import RetrievalCase

    try:
        cases = session.golden.cases
    except PrerequisiteError:
        # The first test has said why; all of them are lost.
        cases = {each: RetrievalCase(each, "", {each: 1}) for each in ids}
    chosen = dict.fromkeys([*ids, *results])
    scored = [_retrieved(cases[each], results.get(each)) for each in chosen]
    return SuiteTable(scored, {case_id: case.slices for case_id, case in cases.items()})


def _retrieved(case: RetrievalCase, result: RetrievalResult | None) -> ScoredCase:
    return ScoredCase(
        case.case_id,
        case.slices,
        ranked=result.ranked if result else (),
        relevant=case.relevant,
        state="lost" if result is None else "ok" if result.ok else "error",
    )


def read_gates(session: RagSession) -> list[Gate]:
    """Return the gates of this run; where two speak of the same aggregate and direction, the later one holds.

    Raises:
        SettingsError: a gate cannot be read, or names what does not exist.
    """
    settings = session.settings
    gates = [parse_gate(text, settings.k) for text in settings.gate]
    names = [*known_experiments(), GOLDEN, *session.own_experiments, *([BASELINE] if settings.compare else [])]
    for gate in gates:
        slices = _slices_of_suite(session, gate.suite) if gate.slice else {}
        check_gate(gate, Known(names, slices, check_measure, known_measure))
    return list({(gate.suite, gate.slice, gate.measure, gate.op, _kind(gate)): gate for gate in gates}.values())


def _kind(gate: Gate) -> str:
    """A number, the baseline and each other experiment are questions of their own."""
    return gate.right.name if isinstance(gate.right, Reference) else ""


def _slices_of_suite(session: RagSession, suite: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for slices in session.golden.slices if suite == GOLDEN else map(case_slices, session.all_cases):
        for key, value in slices.items():
            found.setdefault(key, set()).add(value)
    return found
