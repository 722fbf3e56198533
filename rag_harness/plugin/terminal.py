"""The text for a person: one line before the run, one section after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_harness.plugin.collected import Collected, of_items
from rag_harness.plugin.screen import write_lines, write_section
from rag_harness.plugin.session import RagSession

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.settings import Settings

MOST_ERRORS = 5
CALL_TRIES = 4
"""How often a chat model is called in all: once, and three times again if the server was busy or away."""


def announcement(session: RagSession, items: list[pytest.Item]) -> str | None:
    """Return the line about what is about to run; None if no test has a trial."""
    selected = of_items(items)
    trials = selected.trials
    if not trials:
        return None
    settings = session.settings
    calls = len(trials) * max(settings.repeats, 1)
    asked = (
        f"; at most {_counted(calls, 'model call')}, each tried up to {CALL_TRIES} times"
        if not session.access.reads_recordings
        else ""
    )
    said = f"profile {settings.profile}, mode {settings.mode}, {_answers_by(selected, settings)}"
    said = f"{_counted(len(trials), 'trial')}, {said}"
    left_out = f"{_skipped_lines(session, selected)}{_unread(session, selected)}"
    whose = f"{_other_model(settings)}{_played_by(session, selected)}{_judged_by(session, selected)}"
    return f"rag: {said}{asked}{whose}{left_out}"


def _other_model(settings: Settings) -> str:
    """Say that a server is named and no model of it: recordings, which go by the model's name, may answer for it."""
    from rag_harness.settings.profiles import BASELINE_READER, EMBEDDED_URL

    if settings.chat_model != BASELINE_READER or settings.chat_base_url in ("", EMBEDDED_URL):
        return ""
    return (
        f"\nrag: a server is named ({settings.chat_base_url}) and none of its models: it is asked for "
        f"{BASELINE_READER}, and recordings of that count. Name the model: --rag-chat-model=NAME"
    )


def _skipped_lines(session: RagSession, selected: Collected) -> str:
    """Name the lines of questions that could not be used, if the run may go on without them."""
    if session.settings.bad_queries != "skip":
        return ""
    data = {session.cases.data_of(trial.experiment) for trial in selected.trials}
    return _listed("skipped", [each for name in sorted(data) for each in session.cases.data.get(name).skipped])


def _listed(what: str, lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - MOST_ERRORS} more, in the log"] if len(lines) > MOST_ERRORS else []
    return "".join(f"\nrag: {what}: {line}" for line in [*lines[:MOST_ERRORS], *more])


def _unread(session: RagSession, selected: Collected) -> str:
    """Name the documents that were not read, if the run may go on without them."""
    if session.settings.unreadable != "skip":
        return ""
    from rag_harness.errors import PrerequisiteError

    try:
        data = {session.cases.data_of(trial.experiment) for trial in selected.trials}
        lines = [each.line for name in sorted(data) for each in session.cases.data.get(name).unread]
    except PrerequisiteError:
        return ""  # the preparation of the experiment reports it
    lost = "".join(f"\nrag: {line}" for line in (_lost_gold(session, selected) if lines else ()))
    return f"{_listed('left out', lines)}{lost}"


def _lost_gold(session: RagSession, selected: Collected) -> Iterator[str]:
    asked = {(session.cases.data_of(trial.experiment), trial.query_id) for trial in selected.trials}
    lost_of = {name: session.cases.data.get(name).lost_gold for name, _ in asked}
    lost = [query_id for name, query_id in sorted(asked) if query_id in lost_of[name]]
    if lost:
        named = ", ".join(lost[:MOST_ERRORS]) + (", …" if len(lost) > MOST_ERRORS else "")
        yield f"{len(lost)} of {len(asked)} questions have gold in files that were left out: {named}"


def _judged_by(session: RagSession, selected: Collected) -> str:
    from rag_harness.errors import PrerequisiteError

    try:
        if not any(session.wanted.judged_names(name) for name in {trial.experiment for trial in selected.trials}):
            return ""
    except PrerequisiteError:
        return ""  # the reader of the gates reports it
    from rag_harness.judges.traits import traits_of
    from rag_harness.models.judge_panel import settings_of_judges
    from rag_harness.report.scorecard import one_family
    from rag_harness.report.summary import judge_said
    from rag_harness.results.panel_names import panel_label

    settings = session.settings
    each = settings_of_judges(settings)
    judges = [_judge_and_model(judge) for judge in each]
    alone = "" if settings.panel else judge_said(*judges[0], traits_of(each[0]).asks_model)
    said = alone or panel_label(settings.panel, judges)
    kin = [line for _, model in judges for line in one_family(model, [settings.chat_model])]
    return "".join(f"\nrag: {line}" for line in (f"judged by {said}", *kin))


def _played_by(session: RagSession, selected: Collected) -> str:
    """Say who plays the users of scenarios, and who looks whether a model keeps to them; empty without scenarios."""
    if not any(session.cases.is_played(name) for name in {trial.experiment for trial in selected.trials}):
        return ""
    from rag_harness.judges.traits import asks_a_model
    from rag_harness.models.judge_panel import settings_of_judges
    from rag_harness.users.simulated_user import played_by

    settings, looked_at = session.settings, ""
    if settings.user_model:
        judges = [" ".join(_judge_and_model(each)) for each in settings_of_judges(settings)]
        looked_at = f", kept to their scenarios by rules{' and ' + ', '.join(judges) if asks_a_model(settings) else ''}"
    return f"\nrag: users played by {played_by(settings)}{looked_at}"


def _judge_and_model(settings: Settings) -> tuple[str, str]:
    from rag_harness.judges.traits import model_of_judge
    from rag_harness.models.model_names import judge_name

    return judge_name(settings), model_of_judge(settings)


def _answers_by(selected: Collected, settings: Settings) -> str:
    """Say which model will answer. For a user's pipeline this is known only after it has answered."""
    from rag_harness.pipelines import answering, built_in
    from rag_harness.report.summary import author

    trials, services = selected.trials, {spec.name for spec in settings.endpoints}
    known = services | built_in().keys()
    by = {trial: answering(trial.experiment, settings) for trial in trials}
    own = {name for trial, name in by.items() if trial in selected.own or name not in known}
    asked = {*by.values()} & services - own
    ours = {*by.values()} - own - asked
    if not ours and not asked:
        return "answers by a pipeline of your own"
    said = [f"answers by {author(settings.chat_model)}"] if ours else [f"answers by {', '.join(sorted(asked))}"]
    said += [f"of {name} by itself" for name in sorted(asked if ours else ())]
    return "; ".join([*said, *([f"of {', '.join(sorted(own))} by a pipeline of your own"] if own else [])])


def write_summary(
    terminal: pytest.TerminalReporter,
    recorder: Recorder,
    findings: RunFindings,
    session: RagSession,
    more: Sequence[str],
) -> None:
    """Write the section of the terminal summary; ``more`` are lines of other parts."""
    from rag_harness.plugin.remarks import errors_said, experiments_of, remarks_said
    from rag_harness.report.speed import speed_lines, stage_lines
    from rag_harness.report.summary import answers_by, summarise, summary_lines

    settings = session.settings
    tables = experiments_of(findings)
    about = f"profile {settings.profile}, mode {settings.mode}, {answers_by(tables)}"
    lines = [*summary_lines(summarise(tables)), *stage_lines(tables), *speed_lines(tables, settings.concurrency)]
    write_section(terminal, "rag", [about, *lines, *remarks_said(findings, recorder, session), *more])
    write_lines(terminal, errors_said(findings, session), red=True)


def _counted(n: int, one: str) -> str:
    return f"{n} {one}" if n == 1 else f"{n} {one}s"
