"""How the gates of a run are judged: by value or by evidence, and what makes its cases alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.gates import Gate, Rules
    from rag_harness.plugin.run_record import RunRecord
    from rag_harness.plugin.session import RagSession
    from rag_harness.settings import Settings

CONFIDENCE = 95.0
"""Per cent, of a gate that does not say, where all of them need evidence."""


def asked(gates: Sequence[Gate], settings: Settings) -> list[Gate]:
    """Return the gates as they are judged: under --rag-verdict=evidence each of them asks for evidence."""
    if settings.verdict == "point":
        return list(gates)
    return [gate if gate.confidence is not None else replace(gate, confidence=CONFIDENCE) for gate in gates]


def check_clusters(gates: Iterable[Gate], session: RagSession) -> None:
    """Make sure that --rag-cluster names something that the cases of each gate that asks for evidence have.

    Raises:
        SettingsError: it does not.
    """
    key = session.settings.cluster
    suites = {gate.suite for gate in gates if gate.confidence is not None} if key else set()
    for suite in sorted(suites):
        from rag_harness.report.clusters import check_cluster

        if suite == GOLDEN:
            check_cluster(suite, ((case.case, case.slices) for case in session.golden.cases.values()), key)
        else:
            check_cluster(suite, ((case, case.labels) for case in session.all_cases_of(suite)), key)


def rules_of(settings: Settings, record: RunRecord) -> Rules:
    """Return how gates are judged; the clusters are read from the cases beside the rows, when they are asked for."""
    from rag_harness.gates import Rules

    clusters = _clusters(settings.cluster, record) if settings.cluster else None
    return Rules(settings.max_unmeasured, settings.population, settings.cluster, clusters)


def _clusters(key: str, record: RunRecord) -> Callable[[str], Mapping[str, str]]:
    @cache
    def clusters(suite: str) -> Mapping[str, str]:
        from rag_harness.report.clusters import clusters_of

        return clusters_of(record.output, record.manifest.suites[suite].data, key)

    return clusters
