"""Clusters of cases: turns of one conversation, questions about one page, or cases with one label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rag_harness.core.errors import SettingsError
from rag_harness.core.types import Case
from rag_harness.records.cases import CaseFile, question_of
from rag_harness.records.document_ranking import document_of
from rag_harness.runs.gates.evidence import CONVERSATION_OF, PAGE_OF, QUESTION_OF
from rag_harness.runs.gates.grammar import CONVERSATION

SOURCE_PAGE = "source_page"
"""Cluster by the first relevant document of a case."""
_CONVERSATION_KEYS = (CONVERSATION, "conversation_id")
TURN = "turn"
NO_CLUSTERS = "none"
"""Each case stands alone, turns of a conversation included."""
Labelled = tuple[Case, Mapping[str, str]]
"""A case with its labels."""


class Clusters(NamedTuple):
    """The clusters of the cases of a suite.

    Attributes:
        key: label whose values are the clusters; ``conversation`` where some cases are turns.
        of: cluster of each case, in their order; "" for a case that stands alone.
        is_named: whether somebody has named the label.
    """

    key: str
    of: Sequence[str]
    is_named: bool


def clusters_of_cases(cases: Iterable[Labelled], named: str = "") -> Clusters | None:
    """Return the clusters of cases; None where each stands alone.

    Args:
        cases: all cases of the suite.
        named: the value of ``--rag-cluster``.
    """
    if named == NO_CLUSTERS:
        return None
    if named:
        return Clusters(named, [_by_label(case, labels, named) for case, labels in cases], is_named=True)
    found = list(cases)
    of = [_talk(labels) or _by_label(case, {}, SOURCE_PAGE) for case, labels in found]
    return _by_default(of, [question_of(case) for case, _ in found])


def _talk(labels: Mapping[str, str]) -> str:
    is_turn = TURN in labels and CONVERSATION in labels
    return f"{CONVERSATION_OF}{labels[CONVERSATION]}" if is_turn else ""


def _by_default(of: Sequence[str], questions: Sequence[str]) -> Clusters | None:
    """Return clusters by conversation and page, with one for each question without any that is there several times."""
    names = ["" if cluster else question for cluster, question in zip(of, questions, strict=True)]
    times = Counter(names)
    found = [
        cluster or (f"{QUESTION_OF}{name}" if times[name] > 1 else "") for cluster, name in zip(of, names, strict=True)
    ]
    key = CONVERSATION if any(each.startswith(CONVERSATION_OF) for each in found) else SOURCE_PAGE
    is_alike = any(n > 1 for cluster, n in Counter(found).items() if cluster)
    return Clusters(key, found, is_named=False) if is_alike else None


def clusters_in(cases: CaseFile, named: str = "") -> Clusters | None:
    """Return the same for the cases of a file. By default no case is made of its line: there may be a million."""
    if named:
        return clusters_of_cases(((cases[place].case, cases.labels[place]) for place in range(len(cases.ids))), named)
    pages = [f"{PAGE_OF}{document_of(page)}" if page else "" for page in cases.pages]
    of = [_talk(labels) or page for labels, page in zip(cases.labels, pages, strict=True)]
    return _by_default(of, cases.questions)


def _by_label(case: Case, labels: Mapping[str, str], key: str) -> str:
    if key == SOURCE_PAGE:
        page = labels.get(SOURCE_PAGE) or next((document_of(name) for name in case.context_reference), "")
        return f"{PAGE_OF}{page}" if page else ""
    if key == CONVERSATION:
        both = {**case.query.inputs, **labels}
        name = next((str(both[each]) for each in _CONVERSATION_KEYS if both.get(each)), "")
        return f"{CONVERSATION_OF}{name}" if name else ""
    return labels.get(key, "")


def check_cluster(suite: str, cases: Iterable[Labelled], key: str) -> None:
    """Make sure that at least one case of a suite has a cluster.

    Raises:
        SettingsError: no case has one; says what the cases have.
    """
    known: dict[str, None] = {}
    for case, labels in cases:
        if _by_label(case, labels, key):
            return
        known.update(dict.fromkeys(labels))
    choices = ", ".join([SOURCE_PAGE, CONVERSATION, *known])
    raise SettingsError(f"--rag-cluster={key}: no case of {suite} has it. Use one of: {choices}.")
