"""The trials that a page lists: the worst and a sample of the others, with their cases and rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_harness.core.types import Case
from rag_harness.diagnosis.failures import worst_first
from rag_harness.evaluation.measures.expectations import RUBRIC_PREFIX as RUBRIC
from rag_harness.page.content import Section
from rag_harness.page.run import Run
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import of_run
from rag_harness.records.row import ExperimentResult, rows_among
from rag_harness.records.scores import SCORES, Author, ScoreLine, read_scores, row_digest
from rag_harness.tables.suite_table import CaseState, SuiteTable

# Chooses the trials of a page that cannot list all of them: the worst, and a random sample of the others.
#
# The sample is drawn by ``hashlib.blake2b`` over the ids of the cases. So it is the same for the same run, and has the
# same cases of every experiment, whose answers can then be compared.

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
        "those without an answer, wrong answers, then those that nothing checks, by HRI or, "
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
    """Return all trials: those without an answer, then the others, the worst first."""
    every = worst_first(table)
    every = every[np.argsort(table.states[every] == CaseState.OK, kind="stable")]
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


class Cases:
    """Numbers the cases. Runs over the same data share them; what a simulated user said is a question of its own.

    Attributes:
        said: data of each case for the script, by number.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, str], int] = {}
        self.said: list[dict[str, Any]] = []

    def number(self, run: Run, suite: str, cases: CaseFile, position: int, query: str = "") -> int:
        """Return the number of the case at ``position`` of the file; ``query`` is what a simulated user said."""
        data = run.suites[suite].data
        key = f"{data} {run.manifest.digests.get(data, run.name)}", cases.ids[position], query
        if key not in self._numbers:
            self._numbers[key] = len(self.said)
            kept = cases[position]
            self.said.append(_said(kept.case, kept.labels) | ({"query": query} if query else {}))
        return self._numbers[key]


def _said(case: Case, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": case.query.query_id,
        "query": case.query.text,
        "type": case.query_type,
        "answerable": int(case.answerable),
        "truth": case.ground_truth,
        "gold": list(case.context_reference),
        "evidence": [[quote.filename, quote.quote] for quote in case.evidence],
        "labels": {name: value for name, value in labels.items() if name != "query_type"},
    }


# Reads the listed rows of a run again, one at a time, each with its claims.

LineOfMeasure = dict[str, ScoreLine]


def rows_of(run: Run, suite: str, places: Iterable[int]) -> Iterator[tuple[int, ExperimentResult, LineOfMeasure]]:
    """Yield position of the case, row and scores by measure of each row at ``places`` that the table counts."""
    table, record = run.tables[suite], run.suites[suite]
    position = {table.ids[place]: place for place in places}
    order = {Author(*author): place for place, author in enumerate(record.authors)}
    authors, scores = order.keys(), _scores(run, suite, position)
    is_of_run, seen = of_run(record), set[int]()
    for row in rows_among(run.output / record.file, position):
        place = position.get(row.query_id)
        if place is None or place in seen or not is_of_run(row):
            continue
        seen.add(place)
        digest = row_digest(row) if row.query_id in scores else ""
        # Of a panel the claims of its first judge are shown.
        judged = {
            score.measure: score
            for score in sorted(scores.get(row.query_id, ()), key=lambda score: -order.get(score.author, 0))
            if score.row == digest and score.author in authors and not score.repeat
            if not score.measure.startswith(RUBRIC) or record.rubrics.get(score.measure) == score.version
        }
        yield place, row, judged


def _scores(run: Run, suite: str, wanted: Collection[str]) -> Mapping[str, list[ScoreLine]]:
    found: dict[str, list[ScoreLine]] = {}
    file = run.output / SCORES / run.suites[suite].file
    for score in read_scores(file) if run.suites[suite].authors else ():
        if score.query_id in wanted:
            found.setdefault(score.query_id, []).append(score)
    return found


def claims_of(judged: LineOfMeasure) -> dict[str, Any]:
    """Return the verdicts on claims, by measure: value, position, passage, text, reason, citations, sources."""
    return {name: said for name, score in judged.items() if (said := _claims(score))}


def _claims(score: ScoreLine) -> list[list[Any]]:
    claims = score.detail.get("claims")
    if not isinstance(claims, list):
        return []
    # A claim that was compared with two sources has a verdict for each, by its name, and no single one for its mark.
    return [_claim(claim) for claim in claims if isinstance(claim, Mapping) and "value" in claim]


def _claim(claim: Mapping[str, Any]) -> list[Any]:
    value = claim.get("value")
    placed = [claim.get("start", -1), claim.get("end", -1)]
    # Text that is part of the answer is not repeated.
    text = "" if isinstance(placed[0], int) and placed[0] >= 0 else str(claim.get("text", ""))
    number = round(float(value), 3) if isinstance(value, (int, float)) else None
    cites = claim.get("citations") or None
    found = [number, *placed, claim.get("passage"), text, str(claim.get("reason", "")), cites, _sources(claim)]
    while found and found[-1] in ("", None) and len(found) > 3:
        found.pop()
    return found


def _sources(claim: Mapping[str, Any]) -> list[list[Any]] | None:
    """Return what supports a claim whose citations were judged: number, support, whether it is cited, words, reason."""
    sources = claim.get("sources")
    if not isinstance(sources, list):
        return None
    return [
        [each.get("source"), each.get("value"), int(bool(each.get("cited"))), *_quote_and_reason(each)]
        for each in sources
        if isinstance(each, Mapping)
    ]


def _quote_and_reason(source: Mapping[str, Any]) -> tuple[str, str]:
    return str(source.get("quote", "")), str(source.get("reason", ""))
