"""The trials of a run as traces with scores, for any backend of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_harness.errors import PrerequisiteError
from rag_harness.exports.destination import Destination
from rag_harness.exports.otlp_backend import OtlpBackend
from rag_harness.exports.scored_run import ScoredRun
from rag_harness.exports.trial_as_spans import TrialAsSpans
from rag_harness.exports.words_of_trial import OPT_IN, WordsOfTrial, words_are_asked_for
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.trial_columns import READ_OFF
from rag_harness.results.dates import seconds_of
from rag_harness.results.manifest import RunManifest, of_run
from rag_harness.results.row import rows_in
from rag_harness.work.groups import grouped

_BATCH = 20
"""Trials of a request."""
NO_WORDS = f"Without words: {OPT_IN} asks for them, and nobody here knows the run's rag_scrub."
"""Why words are not sent though they are asked for."""


@dataclass
class Sent:
    """What became of the trials of a run.

    Attributes:
        trials: how many were sent.
        scores: their scores.
        unsent: how many were not sent.
        refused: spans of those sent that the backend did not take.
        why: why not, of the first that failed; empty where all were taken.
    """

    trials: int = 0
    scores: int = 0
    unsent: int = 0
    refused: int = 0
    why: str = ""

    @property
    def said(self) -> str:
        """What was sent, in words."""
        return f"{self.trials:,} trials with {self.scores:,} scores"

    @property
    def missing(self) -> str:
        """What was not sent, in words; empty where all was."""
        parts = ((self.unsent, "trials were not sent"), (self.refused, "spans were refused"))
        return ", ".join(f"{number:,} {what}" for number, what in parts if number)


def to_otlp(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Send the trials without words: who exports a run does not know what it has to hide.

    Raises:
        SettingsError: no address is named.
        PrerequisiteError: the backend did not take all; says how many are missing.
    """
    backend = OtlpBackend(destination.url)
    sent = send_trials(destination.output, run.manifest, run.trials.tables, backend, WordsOfTrial())
    if sent.missing:
        raise PrerequisiteError(f"{sent.missing}, {sent.said} were: {sent.why}")
    return [f"{sent.said} to {backend.url}", *([NO_WORDS] if words_are_asked_for() else [])]


def send_trials(
    output: Path,
    manifest: RunManifest,
    tables: Mapping[str, SuiteTable],
    backend: OtlpBackend,
    words: WordsOfTrial,
) -> Sent:
    """Send each row of a run, until the backend fails. The others are counted: it would fail again, a timeout each."""
    sent = Sent()
    trials = (each for name, table in tables.items() for each in _trials(output, manifest, name, table, words))
    for group in grouped(trials, _BATCH):
        if sent.unsent:
            sent.unsent += len(group)
            continue
        try:
            refused = backend.take([span for trial in group for span in trial.spans()])
        except PrerequisiteError as error:
            sent.unsent, sent.why = len(group), sent.why or str(error)
            continue
        sent.trials, sent.scores = sent.trials + len(group), sent.scores + sum(trial.scores for trial in group)
        sent.refused, sent.why = sent.refused + refused.spans, sent.why or (refused.why if refused.spans else "")
    return sent


def _trials(
    output: Path, manifest: RunManifest, name: str, table: SuiteTable, words: WordsOfTrial
) -> Iterator[TrialAsSpans]:
    """Yield the rows of a suite with their scores. Of two rows of a case, the first counts, as in tables."""
    # Times, tokens and costs are on the spans.
    values = {measure: table.values(measure, {}) for measure in table.columns if measure not in READ_OFF}
    record, began, seen = manifest.suites[name], seconds_of(manifest.date), set[str]()
    is_of_run = of_run(record)
    for row in rows_in(output / record.file):
        if row.query_id not in seen and is_of_run(row):
            seen.add(row.query_id)
            scores = {measure: known[row.query_id] for measure, known in values.items() if row.query_id in known}
            yield TrialAsSpans(row, scores, words, began)
