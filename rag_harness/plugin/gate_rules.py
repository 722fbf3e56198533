"""How the gates of a run are judged: by value or by evidence, and with which clusters of cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN, REVIEWED

if TYPE_CHECKING:
    from rag_harness.gates import Gate, GateRules
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession
    from rag_harness.settings import Settings

USUAL_CONFIDENCE = 95.0
"""Confidence in per cent, for a gate that states none when all gates need evidence."""


def asked(gates: Sequence[Gate], settings: Settings) -> list[Gate]:
    """Return the gates as they are judged: under --rag-verdict=evidence each of them needs evidence."""
    if settings.verdict == "point":
        return list(gates)
    return [gate if gate.confidence is not None else replace(gate, confidence=USUAL_CONFIDENCE) for gate in gates]


def check_clusters(gates: Iterable[Gate], session: RagSession) -> None:
    """Make sure that --rag-cluster names a label that the cases have. Checked for each gate that needs evidence.

    Raises:
        SettingsError: the cases of a gate have no such label.
    """
    key = session.settings.cluster
    is_named = key not in ("", "none")
    suites = {gate.suite for gate in gates if gate.confidence is not None} if is_named else set()
    for suite in sorted(suites):
        from rag_harness.report.clusters import check_cluster

        if suite == GOLDEN:
            check_cluster(suite, ((case.case, case.slices) for case in session.golden.cases.values()), key)
        else:
            check_cluster(suite, ((case, case.labels) for case in session.cases.all_of(suite)), key)


def rules_of(session: RagSession, findings: RunFindings) -> GateRules:
    """Return how gates are judged; the clusters come from the tables."""
    from rag_harness.gates import GateRules

    settings = session.settings
    return GateRules(
        max_unmeasured=settings.max_unmeasured,
        population=settings.population,
        cluster=settings.cluster,
        clusters=_clusters(findings),
        counts_drafts=settings.gate_unreviewed,
        review=how_reviewed(session),
        skipped=lambda suite: _skipped(findings, suite),
    )


def _skipped(findings: RunFindings, suite: str) -> str:
    lines = findings.manifest.skipped_of(suite)
    return lines.said if lines else ""


def how_reviewed(session: RagSession) -> Callable[[str], str]:
    """Return a function of a suite that says how its questions are reviewed: with a command, where there is one."""

    def review(suite: str) -> str:
        from rag_harness.gates.belonging import shown_place

        settings = session.settings
        data = session.cases.data.get("" if suite == GOLDEN else session.cases.data_of(suite))
        file = data.golden_file if suite == GOLDEN else data.queries_file
        shown = shown_place(settings, file)
        if file.suffix != ".jsonl":
            return f'read them, and write "{REVIEWED}": "yes" where one is good, in {shown}'
        folder = settings.path(data.folder)
        kb = "" if file.parent == folder else f" --kb {shown_place(settings, folder)}"
        return f"rag-harness queries review {shown}{kb}"

    return review


def _clusters(findings: RunFindings) -> Callable[[str], Mapping[str, str] | None]:
    @cache
    def clusters(suite: str) -> Mapping[str, str] | None:
        return findings.tables[suite].cluster_by_case

    return clusters
