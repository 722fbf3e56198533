"""What a person sees: one line before the run, one section after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.plugin.session import RagSession, trial_of

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.recorder import Recorder
    from rag_harness.settings import Settings


def announcement(session: RagSession, items: list[pytest.Item]) -> str | None:
    """Return what is about to run; None where no test is a trial."""
    trials = {trial.trial_id for item in items if (trial := trial_of(item)) is not None}
    if not trials:
        return None
    calls = f"; at most {len(trials)} model calls" if session.settings.mode in ("record", "live") else ""
    return f"rag: {len(trials)} trials, {about(session.settings)}{calls}"


def about(settings: Settings) -> str:
    """Name profile, mode and models; what is no LLM is not presented as one."""
    reader = f"{settings.chat_model} (a baseline reader, not an LLM)" if _is_baseline(settings) else settings.chat_model
    return f"profile {settings.profile}, mode {settings.mode}, answers by {reader}"


def about_retrieval(session: RagSession) -> str:
    """Name the retriever under test, its model and cutoff."""
    settings = session.settings
    cut = session.parts.embedder.cut if "embedder" in vars(session.parts) else 0
    cuts = f", {cut} documents cut at the model's {session.parts.embedder.max_tokens} tokens" if cut else ""
    return (
        f"profile {settings.profile}, retriever {settings.retriever} ({settings.embed_model}), k = {settings.k}{cuts}"
    )


def _is_baseline(settings: Settings) -> bool:
    return settings.chat_model.startswith(("embedded/", "mock/"))


def write_summary(terminal: pytest.TerminalReporter, recorder: Recorder, settings: Settings) -> None:
    """Write the section of the terminal summary."""
    from rag_harness.report.summary import HEADER, summarise, table

    terminal.section("rag", sep="=")
    terminal.line(about(settings))
    lines = table([HEADER, *(each.cells() for each in summarise(recorder.rows.values(), recorder.resumed))])
    for line in lines:
        terminal.line(line)
    replayed = sum(row.timings_recorded for row in recorder.rows.values())
    if settings.mode in ("auto", "record") and replayed:
        terminal.line(
            f"{replayed} answers are replayed from {settings.cassettes}/, {len(recorder.rows) - replayed} are new."
        )
    if recorder.resumed:
        terminal.line(
            f"{len(recorder.resumed)} trials were taken from {settings.output}/ as they are; "
            f"--rag-overwrite starts anew."
        )
    if recorder.set_aside:
        terminal.line(f"{recorder.set_aside} rows of other settings or data were moved to {settings.output}/previous/.")
    errors = [row for row in recorder.rows.values() if not row.ok]
    for row in errors[:5]:
        terminal.line(f"error {row.trial_id}: {row.why[:200]}", red=True)
    if len(errors) > 5:
        terminal.line(f"… and {len(errors) - 5} more errors, in {settings.output}/ and {settings.logs}/")
