"""Reads a reliability pipeline's signals from its rows, and decides by gold whether each answer is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError
from rag_harness.measures.answers import normalised
from rag_harness.results.cases import CaseFile
from rag_harness.results.manifest import read_manifest
from rag_harness.results.row import ExperimentResult, rows_in
from rag_harness.types import REVIEWED, Case, review_said

SIGNAL = "signal: "
"""Prefix of the name of a decision that is a signal."""
FROM_RETRIEVAL = ("relevance", "margin", "coverage", "dispersion")
FROM_ANSWER = ("groundedness", "contradiction", "self_consistency")
SIGNALS = (*FROM_RETRIEVAL, *FROM_ANSWER)
ENOUGH = 0.8
"""Least share of the words of an evidence quote that an answer must have: few sources are quoted word for word."""


@dataclass(frozen=True, slots=True)
class ToldAnswer:
    """One answer: its signals, whether it was declined, whether that is right, and the page of its question.

    ``confidence`` is the one that the pipeline stated. ``made_of`` has the digests of models and documents behind it.
    ``question`` is its text, for comparison with the questions of another run.
    """

    query_id: str
    signals: Mapping[str, float | None]
    declined: bool
    right: bool
    cluster: str
    confidence: float | None = None
    quality: float | None = None
    made_of: Mapping[str, Any] = field(default_factory=dict)
    question: str = ""


def read_told(output: Path, experiment: str) -> list[ToldAnswer]:
    """Return the answers of an experiment, in the order of their rows, without errors; see ``read_labels``."""
    return read_labels([output], experiment)


def read_labels(outputs: Sequence[Path], experiment: str) -> list[ToldAnswer]:
    """Return the answers of an experiment in several runs, over questions of a file and over those of users, say.

    A question that an earlier one of the runs asked does not count again. A question of users that nobody has reviewed
    has no gold, and does not count.

    Raises:
        DataError: a run has no such experiment, no case has evidence, or the rows have no signals.
    """
    pairs, asked = list[tuple[Case, ExperimentResult]](), set[str]()
    for output in outputs:
        new = [(case, row) for case, row in _pairs(output, experiment) if _same(case) not in asked]
        asked |= {_same(case) for case, _ in new}
        pairs += new
    _check(experiment, pairs)
    return [told(case, row) for case, row in pairs]


def _pairs(output: Path, experiment: str) -> list[tuple[Case, ExperimentResult]]:
    suites = read_manifest(output).suites
    if experiment not in suites:
        known = ", ".join(sorted(suites)) or "none"
        raise DataError(f"{output} has no rows of {experiment}, only of: {known}. Run pytest -m {experiment} first.")
    suite = suites[experiment]
    cases = CaseFile(output, suite.cases)
    try:
        found = [(cases[cases.position[row.query_id]], row) for row in _rows(output / suite.file, suite.fingerprints)]
        return [(kept.case, row) for kept, row in found if not _is_unlabelled(kept.labels)]
    finally:
        cases.close()


def _same(case: Case) -> str:
    """Return the question in a form that does not depend on capitals and blanks."""
    return " ".join(case.query.text.casefold().split())


def _is_unlabelled(labels: Mapping[str, str]) -> bool:
    """Whether a case comes from traces of a service, and nobody has reviewed it."""
    return "sampled_as" in labels and review_said(labels.get(REVIEWED, "yes")) != "yes"


def told(case: Case, row: ExperimentResult) -> ToldAnswer:
    """Return the answer of one row."""
    values = {decision.name: decision.value for decision in row.decisions}
    return ToldAnswer(
        row.query_id,
        {name: values.get(f"{SIGNAL}{name}") for name in SIGNALS},
        is_declined(row),
        is_right(case, row),
        cluster(case, row),
        row.confidence,
        values.get("retrieval quality"),
        detail(row, "confidence").get("made_of", {}),
        _same(case),
    )


def is_declined(row: ExperimentResult) -> bool:
    """Whether the question was declined: no model was asked, it does not know, or its answer was withheld."""
    return row.abstained and not detail(row, "decide").get("withheld")


def is_right(case: Case, row: ExperimentResult) -> bool:
    """Whether the answer is right and supported by gold, or declining is right.

    An answer is right where it has an evidence quote and cites a page of the gold. Declining is right where the
    documents do not have the answer. No judge is asked: a signal must not be the label.
    """
    if is_declined(row):
        return not case.answerable
    kept = detail(row, "decide")
    text, citations = kept.get("withheld", row.llm_answer), kept.get("withheld_citations", row.citations)
    places = [n for n in citations if 1 <= n <= len(row.retrieved_chunks)]
    cited = {row.retrieved_chunks[n - 1].metadata.filename for n in places}
    is_supported = bool(cited & set(case.context_reference))
    return case.answerable and is_supported and any(has_quote(text, each.quote) for each in case.evidence)


def has_quote(answer: str, quote: str) -> bool:
    """Whether an answer has most of the words of a quote."""
    wanted, said = Counter(normalised(quote)), Counter(normalised(answer))
    shared = (wanted & said).total()
    return bool(wanted) and shared >= ENOUGH * wanted.total()


def cluster(case: Case, row: ExperimentResult) -> str:
    """Return the page of a question; for an unanswerable one the page nearest to it, or the question itself."""
    return next(iter(case.context_reference), "") or str(row.metadata.get("nearest_page") or row.query_id)


def detail(row: ExperimentResult, stage: str) -> Mapping[str, Any]:
    """Return the detail of a row's stage."""
    return next((each.detail for each in row.stages if each.name == stage), {})


def _rows(file: Path, fingerprints: Iterable[str]) -> list[ExperimentResult]:
    current = set(fingerprints)
    return [row for row in rows_in(file) if row.ok and (not current or row.fingerprint in current)]


def _check(experiment: str, pairs: list[tuple[Case, ExperimentResult]]) -> None:
    if not any(case.evidence for case, _ in pairs):
        raise DataError(
            f"No case of {experiment} has evidence quotes, so nothing but a judge could call an answer right. Add "
            '"evidence": [{"filename": …, "quote": …}] to the queries.'
        )
    if not any(decision.name.startswith(SIGNAL) for _, row in pairs for decision in row.decisions):
        raise DataError(f"The rows of {experiment} state no signals: calibrate r1, or one that is made as it is.")
