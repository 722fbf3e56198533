"""Causes of failures, and the worst trials of each experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rag_harness.core.types import TrialId
from rag_harness.diagnosis.cause_lines import explained, gold_alone
from rag_harness.diagnosis.failures import TOP_LEVEL, FailedCase, possible_failures, suspect_at
from rag_harness.page.content import Block, Cell, FailedTrial, Failures, Prose, Section, Table, word_cells
from rag_harness.page.run import Run
from rag_harness.records.scores import CauseLine
from rag_harness.runs.gates.verdict import value_said
from rag_harness.tables.wording import counted, cut

SHOWN_FAILURES = 10
_QUERY = 200
_UNKNOWN = (
    "Why trials failed was not looked into in this run. Run it with --rag-attribute, or rag-harness explain: each "
    "failed trial is then run again with one thing changed. Until then wrong answers are shown, then those that "
    "nothing checks, by their HRI or, where nothing was judged, by how far their words are from the ground truth."
)


def failures(runs: Sequence[Run]) -> Section | None:
    """Return causes and the worst trials of the first run; None where nothing was run.

    Raises:
        DataError: a line of ``causes.jsonl`` is not a cause, or the cases are missing.
    """
    run = runs[0]
    if not run.experiments:
        return None
    causes = _by_experiment(run)
    if not causes:
        n = run.brief.answered.errors
        ended = f"No answer was found to fail. {counted(n, 'trial')} ended in an error: see what could not be measured."
        none = [Prose(ended, "bad") if n else Prose("No trial failed: there is nothing to explain.", "good")]
        return Section(
            "failures", "Failures", none if _was_explained(run) else [Prose(_UNKNOWN, "unsure"), *_worst(run)]
        )
    shown = [_explained(run, name, lines) for name, lines in causes.items()]
    return Section("failures", "Failures", [_counts(causes, run), *_limits(causes), *shown])


def _was_explained(run: Run) -> bool:
    return bool(run.manifest.settings.get("attribute")) and run.has_causes


def _by_experiment(run: Run) -> dict[str, list[CauseLine]]:
    """Return the causes of each experiment with any, the worst first."""
    found: dict[str, list[CauseLine]] = {name: [] for name in run.experiments}
    for trial, line in run.causes.items():
        if trial.experiment in found:
            found[trial.experiment].append(line)
    return {name: lines for name, lines in found.items() if lines}


def _counts(causes: Mapping[str, Sequence[CauseLine]], run: Run) -> Table:
    counted = {name: Counter(line.cause for line in lines) for name, lines in causes.items()}
    known = dict.fromkeys([*TOP_LEVEL, *(cause for count in counted.values() for cause in count)])
    kinds = [cause for cause in known if any(count[cause] for count in counted.values())]
    rows = [[Cell(cause), *word_cells(*(_share(count, cause) for count in counted.values()))] for cause in kinds]
    said = (explained(count.total(), run.experiments[name].totals.answered) for name, count in counted.items())
    rows.append([Cell("explained"), *word_cells(*said)])
    notes = ["In brackets the share of the trials that were explained: failed ones, and the worst of the others."]
    return Table("causes", ("cause", *counted), rows, "Why trials failed", notes)


def _share(count: Counter[str], cause: str) -> str:
    return f"{count[cause]:,} ({count[cause] / count.total():.0%})"


def _limits(causes: Mapping[str, Sequence[CauseLine]]) -> Iterator[Prose]:
    for name, some, why in gold_alone(causes):
        yield Prose(f"{name}: {some} causes rest on rows and gold alone (observational): {why}.", "unsure")


def _explained(run: Run, name: str, lines: Sequence[CauseLine]) -> Failures:
    shown = [
        FailedTrial(
            run.address(line.trial),
            cut(line.query, _QUERY),
            _cause(line),
            line.evidence,
            line.remedy,
            _risk(line.hri),
        )
        for line in lines[:SHOWN_FAILURES]
    ]
    return Failures(name, shown, len(lines))


def _risk(hri: float | None) -> str:
    return f"hallucination risk {hri:.2f}" if hri is not None else ""


def _cause(line: CauseLine) -> str:
    """Return cause and detail, what repaired it, and a person's review."""
    repaired = f"; repaired by {line.repaired_by}" if line.repaired_by else ""
    alone = " (observational)" if line.observational else ""
    reviewed = f"; {line.reviewed_by or 'a person'} says: {line.reviewed_cause}" if line.reviewed_cause else ""
    return f"{line.cause}: {line.detail}{repaired}{alone}{reviewed}"


def _worst(run: Run) -> Iterator[Block]:
    """Yield the worst trials of each experiment without causes."""
    for name, table in run.experiments.items():
        found = possible_failures(table)
        shown = [_unexplained(run, name, suspect_at(table, place)) for place in found[:SHOWN_FAILURES]]
        if shown:
            yield Failures(name, shown, len(found))


def _unexplained(run: Run, name: str, suspect: FailedCase) -> FailedTrial:
    values = {m: run.tables[name].values(m, {}).get(suspect.query_id) for m in ("token_f1", "evidence_recall")}
    evidence = ", ".join(f"{measure} {value_said(value)}" for measure, value in values.items() if value is not None)
    query = cut(run.query_of(name, suspect.query_id), _QUERY)
    trial = run.address(TrialId(name, suspect.query_id))
    return FailedTrial(trial, query, "cause not known", evidence, "--rag-attribute says why", _risk(suspect.hri))
