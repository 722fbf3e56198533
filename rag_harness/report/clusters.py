"""Clusters of cases: turns of one conversation, questions about one page, or cases with one label.

The same rule holds for gates, tables, comparisons, tuning and power. By default turns are alike by their conversation,
other questions by the first page that their gold names. Questions without a page stand alone, but equal questions with
equal gold are one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rag_harness.errors import SettingsError
from rag_harness.files.sources import json_digest
from rag_harness.gates.alike import CONVERSATION_OF, PAGE_OF, QUESTION_OF
from rag_harness.gates.grammar import CONVERSATION
from rag_harness.results.cases import CaseFile
from rag_harness.retrieval.documents import document_of
from rag_harness.types import Case

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
    found = [(case, labels, TURN in labels and CONVERSATION in labels) for case, labels in cases]
    of = _without_copies(
        [(case, _by_label(case, labels, CONVERSATION if is_turn else SOURCE_PAGE)) for case, labels, is_turn in found]
    )
    is_alike = any(n > 1 for cluster, n in Counter(of).items() if cluster)
    key = CONVERSATION if any(is_turn for *_, is_turn in found) else SOURCE_PAGE
    return Clusters(key, of, is_named=False) if is_alike else None


def clusters_in(cases: CaseFile, named: str = "") -> Clusters | None:
    """Return the same for the cases of a file."""
    return clusters_of_cases(((cases[place].case, cases.labels[place]) for place in range(len(cases.ids))), named)


def _by_label(case: Case, labels: Mapping[str, str], key: str) -> str:
    if key == SOURCE_PAGE:
        page = labels.get(SOURCE_PAGE) or next((document_of(name) for name in case.context_reference), "")
        return f"{PAGE_OF}{page}" if page else ""
    if key == CONVERSATION:
        both = {**case.query.inputs, **labels}
        name = next((str(both[each]) for each in _CONVERSATION_KEYS if both.get(each)), "")
        return f"{CONVERSATION_OF}{name}" if name else ""
    return labels.get(key, "")


def _without_copies(found: Sequence[tuple[Case, str]]) -> list[str]:
    """Return the clusters, with one for each question without a cluster that is there several times."""
    names = ["" if cluster else _question_of(case) for case, cluster in found]
    times = Counter(names)
    return [cluster or (name if times[name] > 1 else "") for (_, cluster), name in zip(found, names, strict=True)]


def _question_of(case: Case) -> str:
    """Return a name that questions share which are equal but for capitals and white space, and have equal gold."""
    asked = " ".join(case.query.text.casefold().split())
    gold = [case.ground_truth, sorted(case.qrels.items()), repr(case.expect), dict(case.query.inputs)]
    return f"{QUESTION_OF}{json_digest(json.loads(json.dumps([asked, gold], default=str)))}"


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
