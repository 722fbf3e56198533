"""Divides questions: those that the race sees, and those that it never sees. Questions of one page stay together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from rag_harness.errors import DataError
from rag_harness.gates.grammar import CONVERSATION
from rag_harness.report.clusters import NO_CLUSTERS, SOURCE_PAGE, check_cluster, clusters_of_cases
from rag_harness.types import Case

FEWEST_GROUPS = 4
"""The fewest groups on either side: below that neither a race nor an interval says anything."""


@dataclass(frozen=True)
class Split:
    """Questions, divided.

    Attributes:
        by: what stays together: ``source_page``, ``conversation``, another label; empty where each is by itself.
        race: groups of questions in the order in which they are asked.
        held_out: groups that the race never sees.
    """

    by: str
    race: tuple[tuple[Case, ...], ...]
    held_out: tuple[tuple[Case, ...], ...]

    @property
    def asked(self) -> list[Case]:
        """All questions of the race."""
        return [case for group in self.race for case in group]

    @property
    def kept(self) -> list[Case]:
        """All questions that are held out."""
        return [case for group in self.held_out for case in group]


def split(cases: Sequence[Case], share: float, seed: int, named: str = "") -> Split:
    """Return the cases divided at random: the same cases and seed give the same division and order.

    Args:
        cases: those that the objective is about.
        share: part of the questions that is held out.
        seed: of division and order.
        named: the value of ``--rag-cluster``; by default turns of a conversation stay together, else questions whose
            first relevant page is the same.

    Raises:
        DataError: there are too few groups.
        SettingsError: no question has what is ``named``.
    """
    labelled = [(case, case.labels) for case in cases]
    if named not in ("", NO_CLUSTERS):
        check_cluster("the race", labelled, named)
    alike = clusters_of_cases(labelled, named)
    key = alike.key if alike else ""
    groups: dict[str, list[Case]] = {}
    for case, name in zip(cases, alike.of if alike else [""] * len(cases), strict=True):
        groups.setdefault(name or f"\0{case.query.query_id}", []).append(case)
    shuffled = sorted(groups)
    Random(f"split {seed}").shuffle(shuffled)
    wanted, held, kept = share * len(cases), 0, 0
    while held < wanted and kept < len(shuffled):
        held += len(groups[shuffled[kept]])
        kept += 1
    parts = [tuple(tuple(groups[name]) for name in part) for part in (shuffled[kept:], shuffled[:kept])]
    if min(map(len, parts)) < FEWEST_GROUPS:
        what = {SOURCE_PAGE: "page", CONVERSATION: "conversation"}.get(key, key or "question")
        raise DataError(
            f"{len(cases)} questions of {len(groups)} {what}s are too few to divide: {len(parts[0])} for the race and "
            f"{len(parts[1])} held out, and each needs {FEWEST_GROUPS}. Write more: rag-harness kb queries."
        )
    return Split(key, parts[0], parts[1])
