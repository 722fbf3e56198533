"""Reads the listed rows of a run again, one at a time, each with its claims."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from rag_harness.measures.judged.rubric_measure import PREFIX as RUBRIC
from rag_harness.page.run import Run
from rag_harness.results.manifest import of_run
from rag_harness.results.row import ExperimentResult, rows_among
from rag_harness.results.score import SCORES, Author, ScoreLine, read_scores, row_digest

LineOfMeasure = dict[str, ScoreLine]


def rows_of(run: Run, suite: str, places: Iterable[int]) -> Iterator[tuple[int, ExperimentResult, LineOfMeasure]]:
    """Yield position of the case, row and scores by measure, for the rows at ``places`` that the table counts."""
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
        [each.get("source"), each.get("value"), int(bool(each.get("cited"))), *_said(each)]
        for each in sources
        if isinstance(each, Mapping)
    ]


def _said(source: Mapping[str, Any]) -> tuple[str, str]:
    return str(source.get("quote", "")), str(source.get("reason", ""))
