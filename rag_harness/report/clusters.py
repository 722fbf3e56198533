"""Clusters of cases: cases of one page, of one conversation, or with one value of their metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rag_harness.errors import SettingsError
from rag_harness.gates.grammar import CONVERSATION
from rag_harness.results.cases import CaseFile
from rag_harness.types import Case

SOURCE_PAGE = "source_page"
"""Cluster by the first relevant document of a case."""
_CONVERSATION_KEYS = (CONVERSATION, "conversation_id")
TURN = "turn"
NO_CLUSTERS = "none"
"""Turns of a conversation count as cases of their own."""


def cluster_key(named: str, labels: Iterable[Mapping[str, str]]) -> str:
    """Return what makes cases alike: what is ``named``, else the conversation, where cases are turns of one.

    Args:
        named: the value of ``--rag-cluster``.
        labels: labels of the cases.
    """
    if named:
        return "" if named == NO_CLUSTERS else named
    return CONVERSATION if any(TURN in each and CONVERSATION in each for each in labels) else ""


def cluster_of(case: Case, labels: Mapping[str, str], key: str) -> str:
    """Return the cluster of a case; "" where it has none, and is independent of all others."""
    if key in labels:
        return labels[key]
    if key == SOURCE_PAGE:
        return next(iter(case.context_reference), "")
    if key == CONVERSATION:
        both = {**case.query.inputs, **labels}
        return next((str(both[name]) for name in _CONVERSATION_KEYS if both.get(name)), "")
    return ""


def clusters_in(cases: CaseFile, key: str) -> list[str]:
    """Return the cluster of every case of a file, in their order."""
    return [cluster_of(cases[place].case, cases.labels[place], key) for place in range(len(cases.ids))]


def check_cluster(suite: str, cases: Iterable[tuple[Case, Mapping[str, str]]], key: str) -> None:
    """Make sure that at least one case of a suite has a cluster.

    Raises:
        SettingsError: no case has one; says what the cases have.
    """
    known: dict[str, None] = {}
    for case, labels in cases:
        if cluster_of(case, labels, key):
            return
        known.update(dict.fromkeys(labels))
    choices = ", ".join([SOURCE_PAGE, CONVERSATION, *known])
    raise SettingsError(f"--rag-cluster={key}: no case of {suite} has it. Use one of: {choices}.")
