"""The table of a suite: the state of each case, its cluster, and the values of its measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.core.errors import SettingsError
from rag_harness.core.types import REVIEWED, Case, is_in, review_of
from rag_harness.evaluation.measures import Measure
from rag_harness.evaluation.measures.judged import CATEGORIES
from rag_harness.records.cases import CaseFile, question_of
from rag_harness.records.document_ranking import document_of
from rag_harness.runs.gates.evidence import (
    CONVERSATION_OF,
    PAGE_OF,
    QUESTION_OF,
    STANDS_ALONE,
    describe_clusters,
    describe_one_cluster,
    interval_of_mean,
)
from rag_harness.runs.gates.grammar import CONVERSATION
from rag_harness.stats.inputs import CaseValues
from rag_harness.stats.means import mean_of
from rag_harness.tables.blocks import Totals
from rag_harness.tables.wording import many_errors_said

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
    # A text for each page, and not for each case.
    clusters = {page: f"{PAGE_OF}{document_of(page)}" if page else "" for page in dict.fromkeys(cases.pages)}
    of = [_talk(labels) or clusters[page] for labels, page in zip(cases.labels, cases.pages, strict=True)]
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


@dataclass(frozen=True, slots=True)
class PanelValues:
    """The values of the judges of a panel.

    Attributes:
        rule: how the panel decides.
        authors: judge, model and revision of each judge, in the order of the panel.
        values: shape (judges, cases); NaN where a judge has no value.
        asked: positions of the cases with something to measure, by which the silence of a judge is counted.
    """

    rule: str
    authors: Sequence[tuple[str, str, str]]
    values: npt.NDArray[np.float64]
    asked: npt.NDArray[np.intp]


# A suite as numbers: the state of each case and the values of its measures. It keeps no rows.

SliceLabels = Mapping[str, str]
StateName = Literal["ok", "error", "lost", "left out"]
_Mask = npt.NDArray[np.bool_]
_Floats = npt.NDArray[np.float64]


class CaseState(IntEnum):
    """The state of a case. ``LOST`` is a selected case without a row."""

    LEFT_OUT = 0
    LOST = 1
    ERROR = 2
    OK = 3


STATE_NAMES: Mapping[CaseState, StateName] = {
    CaseState.LEFT_OUT: "left out",
    CaseState.LOST: "lost",
    CaseState.ERROR: "error",
    CaseState.OK: "ok",
}


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a measure, in the order of the cases.

    Attributes:
        measure: the measure.
        values: shape (cases,); NaN where a case has none. No NaN leaves this package.
        absent: shape (cases,); number of the reason why a selected case has no value, 0 where it has one.
        reasons: reasons by number, as text about such a case: "no ground truth".
        unmeasured: numbers of the reasons that lie in the row: the case could have had a value.
        by_answer: numbers of the reasons that lie in the answer: nothing was to be measured in it, though the question
            allows the measure. An answer that declines claims nothing.
    """

    measure: Measure
    values: _Floats
    absent: npt.NDArray[np.uint8]
    reasons: Sequence[str]
    unmeasured: frozenset[int] = frozenset()
    by_answer: frozenset[int] = frozenset()


class SuiteTable:
    """The cases of a suite. An empty slice means all of them.

    Args:
        ids: ids of every case in the data.
        labels: labels of each case, in the same order.
        states: ``CaseState`` of each case.
        columns: columns by the measure's name.
        totals: sums over the rows.

    Attributes:
        categories: category of each answer, in the order of the cases; "" where a case has none. None where the suite
            was not judged on the measures that define them.
        said_again: values of repeated judgements, by measure and case.
        panels: what each judge of a panel has said, by measure; empty where one judge has judged.
        correct_by_judge: what a judge decided ``correct`` by, for cases whose row alone does not tell it.
        alike: the clusters of the cases; None where each stands alone.
        ended: which cases are turns that a simulated user never came to; they count nowhere. None without such cases.
        if_retrieves: columns of an experiment that says nothing of retrieval, and none of whose answers came with a
            context: the values that they have if it retrieves all the same.
        foreign: how many contexts have a text that the page which they name does not have, and of how many; empty where
            nobody looked.
        unknown_pages: where no context names a page that is there: two of the names, and two names of pages.
        later: returns the tables of the later answers to each case, which it reads when it is first called.
    """

    def __init__(
        self,
        ids: Sequence[str],
        labels: Sequence[SliceLabels],
        states: npt.NDArray[np.uint8],
        columns: Mapping[str, Column],
        totals: Totals,
    ) -> None:
        self.ids: Sequence[str] = ids
        self.labels: Sequence[SliceLabels] = labels
        self.states: npt.NDArray[np.uint8] = states
        self.columns: Mapping[str, Column] = columns
        self.totals: Totals = totals
        self._intervals: dict[tuple[str, frozenset[tuple[str, str]]], tuple[float, float] | None] = {}
        self._masks: dict[frozenset[tuple[str, str]], _Mask] = {}
        self.categories: Sequence[str] | None = None
        self.said_again: Mapping[str, Mapping[str, Sequence[float | None]]] = {}
        self.panels: Mapping[str, PanelValues] = {}
        self.correct_by_judge: Mapping[str, str] = {}
        self.alike: Clusters | None = None
        self.ended: _Mask | None = None
        self.if_retrieves: Mapping[str, Column] = {}
        self.foreign: tuple[int, ...] = ()
        self.unknown_pages: tuple[tuple[str, ...], ...] = ()
        self.later: Callable[[], Sequence[SuiteTable]] = tuple

    def total_of(self, where: SliceLabels, /) -> int:
        """Count the cases in the data."""
        return int(self.mask(where).sum())

    def selected_of(self, where: SliceLabels, /) -> int:
        """Count the cases that this run was to look at, lost ones included."""
        return int(self._selected(where).sum())

    def lost_of(self, where: SliceLabels, /) -> int:
        """Count the selected cases without a row."""
        return int((self.mask(where) & (self.states == CaseState.LOST)).sum())

    def state_of(self, position: int) -> StateName:
        """Return the state of a case."""
        return STATE_NAMES[CaseState(self.states[position])]

    @property
    def depth(self) -> int | None:
        """The highest number of hits of a row; None where nothing was retrieved."""
        return self.totals.depth or None

    def values(self, measure: str, where: SliceLabels, /) -> Mapping[str, float]:
        """Return the value of each case that has one. An error and a lost case have the worst value.

        Raises:
            KeyError: the table was made without that measure.
        """
        column = self.columns[measure]
        chosen = np.flatnonzero(self._selected(where) & ~np.isnan(column.values))
        return CaseValues(self.ids, chosen, column.values[chosen])

    def has(self, measure: str) -> bool:
        """Whether the table has a column of a measure in which some selected case has a value."""
        column = self.columns.get(measure)
        return column is not None and bool((self._selected({}) & ~np.isnan(column.values)).any())

    def absent(self, measure: str, where: SliceLabels, /) -> Counter[str]:
        """Count the selected cases without a value, by the reason: "no ground truth"."""
        column = self.columns[measure]
        numbers = column.absent[self._selected(where)]
        return Counter({column.reasons[n]: int((numbers == n).sum()) for n in np.unique(numbers) if n})

    def unmeasured(self, measure: str, where: SliceLabels, /) -> int:
        """Count the cases without a value that have an answer, and that the measure applies to."""
        return self.failures(measure, where).total()

    def left_out(self, measure: str, where: SliceLabels, /) -> Counter[str]:
        """Count the cases whose question allows the measure, and whose answer gives no value, by the reason."""
        column = self.columns[measure]
        names = {column.reasons[number] for number in column.by_answer}
        return Counter({why: n for why, n in self.absent(measure, where).items() if why in names})

    def retrieving(self) -> SuiteTable:
        """Return the table as it is for somebody who says that the experiment retrieves.

        Without a context, measures of retrieval and context then have their worst value.
        """
        if not self.if_retrieves:
            return self
        found = copy(self)
        found.columns = {**self.columns, **self.if_retrieves}
        found.if_retrieves = {}
        return found

    def failures(self, measure: str, where: SliceLabels, /) -> Counter[str]:
        """Count the same cases by the reason."""
        column = self.columns[measure]
        names = {column.reasons[number] for number in column.unmeasured}
        return Counter({why: n for why, n in self.absent(measure, where).items() if why in names})

    def outcomes(self, where: SliceLabels, /) -> Mapping[str, int]:
        """Return a digest of the row of each selected case that has one. Equal digests give equal scores."""
        chosen = np.flatnonzero(self._selected(where) & (self.totals.outcomes != 0))
        return {self.ids[n]: int(self.totals.outcomes[n]) for n in map(int, chosen)}

    def aggregate(self, measures: Sequence[str], where: SliceLabels | None = None) -> dict[str, float | None]:
        """Return the mean of each measure; None where no case has a value."""
        chosen = self._selected(where or {})
        found = {measure: self.columns[measure].values[chosen] for measure in measures}
        return {measure: mean_of(values[~np.isnan(values)]) for measure, values in found.items()}

    def interval(self, measure: str, where: SliceLabels | None = None) -> tuple[float, float] | None:
        """Return the 95 % interval of a measure's mean, by the method of the gates. Some case must have a value.

        None where the cases allow none: one case, or times that are all equal.
        """
        key = measure, frozenset((where or {}).items())
        if key not in self._intervals:
            found, unit = self.values(measure, where or {}), self.columns[measure].measure.unit
            self._intervals[key] = interval_of_mean([*found.values()], unit, self.clusters_of(found))
        return self._intervals[key]

    @cached_property
    def cluster_by_case(self) -> Mapping[str, str] | None:
        """The cluster of each case by its id; the id itself for a case without one. None without clusters."""
        if self.alike is None:
            return None
        return {case: cluster or f"{STANDS_ALONE}{case}" for case, cluster in zip(self.ids, self.alike.of, strict=True)}

    @property
    def are_named_alike(self) -> bool:
        """Whether cases are alike because somebody has said so, or because they are turns of conversations."""
        return self.alike is not None and (self.alike.is_named or self.alike.key == CONVERSATION)

    def clusters_of(self, cases: Iterable[str]) -> list[str] | None:
        """Return the cluster of each of these cases; None where each stands alone."""
        known = self.cluster_by_case
        return None if known is None else [known[case] for case in cases]

    def describe_clusters(self, cases: Iterable[str]) -> str:
        """Say on how many pages, or in how many conversations, these cases are; empty where each stands alone."""
        found = self.clusters_of(cases)
        said = describe_clusters(found, self.alike.key) if found and self.alike is not None else ""
        return f" {said}" if said else ""

    @property
    def errors_said(self) -> str:
        """Say that too many trials ended with an error to call it better or worse than another; empty where few did."""
        return many_errors_said(self.totals.errors, self.totals.rows)

    @property
    def foreign_said(self) -> str:
        """Warn that fewer than half of the contexts are in the page that they name; empty where more are."""
        if not self.foreign or 2 * self.foreign[0] <= self.foreign[1]:
            return ""
        return (
            f"{self.foreign[0]:,} of {self.foreign[1]:,} contexts are not in the page that they name. If the "
            "pipeline rewrites or translates them: --rag-foreign-text=allow"
        )

    def no_interval_said(self, measure: str) -> str:
        """Say why the mean of a measure has no interval."""
        found = self.clusters_of(self.values(measure, {})) or ()
        return describe_one_cluster(found, self.alike.key if self.alike else "") or "too few questions have a value"

    def by(self, key: str, measures: Sequence[str]) -> dict[str, dict[str, float | None]]:
        """Return the aggregates for each value of a slice key, sorted, over the selected cases."""
        kinds, number_of = self._kinds
        found = _slices([kinds[n] for n in np.unique(number_of[self._selected({})])]).get(key, ())
        return {value: self.aggregate(measures, {key: value}) for value in sorted(found)}

    def shares(self, where: SliceLabels | None = None) -> dict[str, float]:
        """Return the share of each category among the selected answers; empty without categories."""
        kinds = self.kinds(where)
        return {kind: kinds[kind] / kinds.total() for kind in CATEGORIES} if kinds else {}

    def kinds(self, where: SliceLabels | None = None) -> Counter[str]:
        """Return how many of the selected answers are of each category; empty without categories."""
        if not self.categories:
            return Counter()
        chosen = map(int, np.flatnonzero(self._selected(where or {})))
        return Counter(self.categories[n] for n in chosen if self.categories[n])

    def slices(self) -> dict[str, set[str]]:
        """Return every slice key with the values that cases in the data have."""
        return _slices(self._kinds[0])

    def _selected(self, where: SliceLabels) -> _Mask:
        chosen: _Mask = self.mask(where) & (self.states != CaseState.LEFT_OUT)
        return chosen

    def mask(self, where: SliceLabels) -> _Mask:
        """Return a mask of the cases in a slice, shape (cases,)."""
        key = frozenset(where.items())
        if key not in self._masks:
            kinds, number_of = self._kinds
            inside = np.array([is_in(labels, where) for labels in kinds], np.bool_)[number_of]
            self._masks[key] = inside if self.ended is None else inside & ~self.ended
        return self._masks[key]

    @cached_property
    def _kinds(self) -> tuple[list[SliceLabels], npt.NDArray[np.intp]]:
        """The different sets of labels, and the number of each case's set: many cases share theirs."""
        places = np.fromiter(map(id, self.labels), np.int64, len(self.labels))
        _, first, number_of = np.unique(places, return_index=True, return_inverse=True)
        in_order = np.argsort(first)
        return [self.labels[n] for n in first[in_order]], np.argsort(in_order)[number_of]


def _slices(kinds: Sequence[SliceLabels]) -> dict[str, set[str]]:
    """Return the values of each key. Where only some cases have the label ``reviewed``, the others have its default."""
    found: dict[str, set[str]] = {}
    for labels in kinds:
        for key, value in labels.items():
            found.setdefault(key, set()).add(value)
    if REVIEWED in found and any(REVIEWED not in labels for labels in kinds):
        found[REVIEWED].add(review_of({})[REVIEWED])
    return found
