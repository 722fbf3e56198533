"""Chooses the trials of a page that cannot list all of them: the worst, and a random sample of the others.

The sample is drawn by ``hashlib.blake2b`` over the ids of the cases. So it is the same for the same run, and has the
same cases of every experiment, whose answers can then be compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_harness.derived.attribution.failing import worst_first
from rag_harness.measures.judged.categories import FAILED_CATEGORIES
from rag_harness.page.content import Section
from rag_harness.page.run import Run
from rag_harness.report.suite_table import CaseState, SuiteTable

MOST_TRIALS_LISTED = 20_000
"""Trials of a page of 11 MB, which a browser loads in a second."""
_Places: TypeAlias = npt.NDArray[np.intp]
_Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sample:
    """The listed trials.

    Attributes:
        places: positions of the cases for each run and experiment, by their names.
        said: how they were chosen, for people; empty where all are listed.
    """

    places: Mapping[tuple[str, str], _Places]
    said: str = ""


def sample_of(runs: Sequence[Run], sections: Sequence[Section] = ()) -> Sample:
    """Return the listed trials of a page of ``runs``: all, where there are at most ``MOST_TRIALS_LISTED``, else a
    sample.

    Args:
        runs: runs of the report.
        sections: content of the page above the list; trials that it links to are always listed.
    """
    tables = {(run.name, name): table for run in runs for name, table in run.experiments.items()}
    if not is_sampled(runs):
        return Sample({key: np.flatnonzero(table.states != CaseState.LEFT_OUT) for key, table in tables.items()})
    linked, quota, ranks = _linked(sections), MOST_TRIALS_LISTED // len(tables), dict[int, npt.NDArray[np.uint64]]()
    found = {}
    for run in runs:
        for name, table in run.experiments.items():
            # Experiments on the same data share one list of ids.
            if id(table.ids) not in ranks:
                ranks[id(table.ids)] = _ranks(table.ids)
            named = _named(linked, run.address(f"{name}-"), table)
            found[run.name, name] = _chosen(table, ranks[id(table.ids)], quota, named)
    return Sample(found, sample_said(runs))


def is_sampled(runs: Sequence[Run]) -> bool:
    """Whether a page of ``runs`` cannot list every trial."""
    return _trials(runs) > MOST_TRIALS_LISTED


def sample_said(runs: Sequence[Run]) -> str:
    """Say which trials a page of ``runs`` lists; empty where it lists all."""
    if not is_sampled(runs):
        return ""
    quota = MOST_TRIALS_LISTED // sum(len(run.experiments) for run in runs)
    worst = quota // 2
    return (
        f"Of {_trials(runs):,} trials the page lists a sample. Of each experiment: the {worst:,} worst, which are "
        "those without an answer, those of a failed kind, wrong answers, then those that nothing checks, by HRI or, "
        f"where nothing was judged, by how far the words are from the ground truth; {quota - worst:,} of the others, "
        "drawn in proportion to their query types by the digest of their ids, so the same cases of every experiment as "
        "far as they go; and what the page links to. All figures, intervals and gates are of all trials."
    )


def _trials(runs: Sequence[Run]) -> int:
    return sum(table.selected_of({}) for run in runs for table in run.experiments.values())


def _named(linked: Collection[str], begin: str, table: SuiteTable) -> list[int]:
    wanted = {address.removeprefix(begin) for address in linked if address.startswith(begin)}
    return [
        place for place, case in enumerate(table.ids) if case in wanted and table.states[place] != CaseState.LEFT_OUT
    ]


def _chosen(table: SuiteTable, rank: npt.NDArray[np.uint64], quota: int, named: Sequence[int]) -> _Places:
    chosen = np.zeros(len(table.ids), np.bool_)
    chosen[_worst(table)[: quota // 2]] = True
    left = (table.states != CaseState.LEFT_OUT) & ~chosen
    chosen[_drawn(table, rank, left, quota - int(chosen.sum()))] = True
    chosen[list(named)] = True
    return np.flatnonzero(chosen)


def _worst(table: SuiteTable) -> _Places:
    """Return all trials, the worst first. Equal ones are in the order of their cases."""
    kinds = table.categories or ()
    failed = (
        np.fromiter((kind in FAILED_CATEGORIES for kind in kinds), np.bool_, len(kinds)) if kinds else np.bool_(False)
    )
    order = np.where(table.states == CaseState.OK, np.where(failed, 1, 0), 2)
    every = worst_first(table)
    every = every[np.argsort(-order[every], kind="stable")]
    found: _Places = every[table.states[every] != CaseState.LEFT_OUT]
    return found


def _drawn(table: SuiteTable, rank: npt.NDArray[np.uint64], left: _Mask, count: int) -> _Places:
    """Return ``count`` of the trials that are left, in proportion to the query types, by the largest remainder."""
    types = sorted(table.slices().get("query_type", ()))
    strata = [left & table.mask({"query_type": each}) for each in types]
    strata.append(left & ~np.logical_or.reduce(strata)) if strata else strata.append(left)
    sizes = np.array([int(each.sum()) for each in strata])
    shares = sizes * min(count, int(sizes.sum())) / max(int(sizes.sum()), 1)
    takes = np.floor(shares).astype(int)
    takes[np.argsort(takes - shares, kind="stable")[: round(shares.sum()) - int(takes.sum())]] += 1
    return np.concatenate([_least(rank, stratum, take) for stratum, take in zip(strata, takes, strict=True)])


def _least(rank: npt.NDArray[np.uint64], stratum: _Mask, count: int) -> _Places:
    places = np.flatnonzero(stratum)
    return places[np.argsort(rank[places], kind="stable")[:count]]


def _ranks(ids: Sequence[str]) -> npt.NDArray[np.uint64]:
    raw = b"".join(blake2b(each.encode("utf-8", "surrogatepass"), digest_size=8).digest() for each in ids)
    return np.frombuffer(raw, dtype=np.uint64)


def _linked(said: Any) -> Collection[str]:
    """Return the ids of the trials that the content links to."""
    if isinstance(said, (list, tuple)):
        return {each for part in said for each in _linked(part)}
    if not is_dataclass(said):
        return set()
    below = {each for field in fields(said) for each in _linked(getattr(said, field.name))}
    return below | {trial for name in ("trial", "beside") if (trial := getattr(said, name, ""))}
