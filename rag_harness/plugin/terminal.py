"""What a person sees: one line before the run, one section after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_harness.plugin.items import trial_of
from rag_harness.plugin.session import RagSession

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.recorder import Recorder
    from rag_harness.results.row import ExperimentResult
    from rag_harness.settings import Settings

_MOST_ERRORS = 5


def announcement(session: RagSession, items: list[pytest.Item]) -> str | None:
    """Return what is about to run; None where no test is a trial."""
    trials = {trial.trial_id for item in items if (trial := trial_of(item)) is not None}
    if not trials:
        return None
    calls = f"; at most {len(trials)} model calls" if session.settings.mode == "live" else ""
    return f"rag: {len(trials)} trials, {about(session.settings)}{calls}"


def about(settings: Settings) -> str:
    """Name profile, mode and models; what is no LLM is not presented as one."""
    reader = f"{settings.chat_model} (a baseline reader, not an LLM)" if _is_baseline(settings) else settings.chat_model
    return f"profile {settings.profile}, mode {settings.mode}, answers by {reader}"


def about_retrieval(session: RagSession) -> str:
    """Name the retriever under test, its model and cutoff."""
    settings = session.settings
    embedder = session.parts.embedder()
    cut = embedder.cut
    cuts = f", {cut} documents cut at the model's {embedder.max_tokens} tokens" if cut else ""
    return (
        f"profile {settings.profile}, retriever {settings.retriever} ({settings.embed_model}), k = {settings.k}{cuts}"
    )


def _is_baseline(settings: Settings) -> bool:
    return settings.chat_model.startswith(("embedded/", "mock/"))


def write_summary(
    terminal: pytest.TerminalReporter, recorder: Recorder, settings: Settings, more: Sequence[str]
) -> None:
    """Write the section of the terminal summary; ``more`` is what others have to say in it."""
    from rag_harness.report.speed import speed_lines, stage_lines
    from rag_harness.report.summary import summarise, summary_lines

    rows = list(recorder.rows.values())
    terminal.section("rag", sep="=")
    terminal.line(about(settings))
    lines = [*summary_lines(summarise(rows, recorder.resumed)), *stage_lines(rows)]
    lines += [
        *speed_lines(rows, recorder.resumed, settings.concurrency),
        *_where_rows_are_from(recorder, settings),
        *more,
    ]
    for line in lines:
        terminal.line(line)
    for line in _errors(rows, settings):
        terminal.line(line, red=True)


def _where_rows_are_from(recorder: Recorder, settings: Settings) -> Iterator[str]:
    replayed = sum(row.timings_recorded for row in recorder.rows.values())
    if settings.mode in ("auto", "record") and replayed:
        yield f"{replayed} answers are replayed from {settings.cassettes}/, {len(recorder.rows) - replayed} are new."
    if recorder.resumed:
        taken = f"{len(recorder.resumed)} trials were taken from {settings.output}/ as they are"
        yield f"{taken}; --rag-overwrite starts anew."
    if recorder.set_aside:
        yield f"{recorder.set_aside} rows of other settings or data were moved to {settings.output}/previous/."
    if recorder.repaired:
        yield (
            f"{recorder.repaired} damaged or duplicate lines were taken out of the result files; they are in "
            f"{settings.output}/previous/."
        )
    if recorder.adopted and recorder.adopted.rows:
        yield f"{recorder.adopted.rows} trials that a cut-off run had finished were taken over from its journal."
    if recorder.not_run:
        yield (
            f"not run: budget: {len(recorder.not_run)} trials. What is done is kept: raise --rag-budget and run again."
        )


def _errors(rows: Sequence[ExperimentResult], settings: Settings) -> Iterator[str]:
    errors = [row for row in rows if not row.ok]
    for row in errors[:_MOST_ERRORS]:
        yield f"error {row.trial_id}: {row.why[:200]}"
    if len(errors) > _MOST_ERRORS:
        yield f"… and {len(errors) - _MOST_ERRORS} more errors, in {settings.output}/ and {settings.logs}/"
