"""The text for a person: one line before the run, one section after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.plugin.collected import Collected, of_items
from rag_harness.plugin.not_run import not_run_lines
from rag_harness.plugin.screen import write_lines, write_section
from rag_harness.plugin.session import RagSession
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.report.suite_table import SuiteTable
    from rag_harness.settings import Settings

MOST_ERRORS = 5
_FOUND = "recall@5"
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
    return f"rag: {said}{asked}{_played_by(session, selected)}{_judged_by(session, selected)}{left_out}"


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
    from rag_harness.models.judge_panel import settings_of_judges
    from rag_harness.report.scorecard import one_family
    from rag_harness.report.summary import judge_said
    from rag_harness.results.panel_names import panel_label

    settings = session.settings
    judges = [_judge_and_model(each) for each in settings_of_judges(settings)]
    said = panel_label(settings.panel, judges) if settings.panel else judge_said(*judges[0])
    kin = [line for _, model in judges for line in one_family(model, [settings.chat_model])]
    return "".join(f"\nrag: {line}" for line in (f"judged by {said}", *kin))


def _played_by(session: RagSession, selected: Collected) -> str:
    """Say who plays the users of scenarios, and who looks whether a model keeps to them; empty without scenarios."""
    from rag_harness.models.api_keys import asks_a_model
    from rag_harness.models.judge_panel import settings_of_judges
    from rag_harness.users.simulated_user import played_by

    if not any(session.cases.is_played(name) for name in {trial.experiment for trial in selected.trials}):
        return ""
    settings, looked_at = session.settings, ""
    if settings.user_model:
        judges = [" ".join(_judge_and_model(each)) for each in settings_of_judges(settings)]
        looked_at = f", kept to their scenarios by rules{' and ' + ', '.join(judges) if asks_a_model(settings) else ''}"
    return f"\nrag: users played by {played_by(settings)}{looked_at}"


def _judge_and_model(settings: Settings) -> tuple[str, str]:
    from rag_harness.models.endpoints import endpoint_of
    from rag_harness.models.model_names import judge_name
    from rag_harness.settings.profiles import BUILT_IN_PROFILES

    judge = judge_name(settings)
    # A judge that runs in this process has its profile's name. It does not ask the model that the settings name.
    in_process = BUILT_IN_PROFILES.get(judge)
    return judge, in_process.judge_model if in_process else endpoint_of(settings, "judge").model


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
    from rag_harness.report.speed import speed_lines, stage_lines
    from rag_harness.report.summary import answers_by, summarise, summary_lines

    settings = session.settings
    tables = _experiments(findings)
    about = f"profile {settings.profile}, mode {settings.mode}, {answers_by(tables)}"
    lines = [*summary_lines(summarise(tables)), *stage_lines(tables), *speed_lines(tables, settings.concurrency)]
    write_section(terminal, "rag", [about, *lines, *remarks_said(findings, recorder, session), *more])
    write_lines(terminal, errors_said(findings, session), red=True)


def remarks_said(findings: RunFindings, recorder: Recorder, session: RagSession) -> Iterator[str]:
    """Yield what is to be known of the rows: drafts, contexts without a document, trials not run, rows set aside."""
    from rag_harness.report.doubts import doubts

    tables = _experiments(findings)
    yield from (*_unchecked(tables, session), *_twice(tables, session), *_skipped(findings))
    yield from (*_drafts(findings, session), *_placed(tables), *doubts(tables), *_settled(findings))
    yield from (said for name, each in findings.played.items() for said in each.lines(name))
    yield from _became_of_rows(recorder, tables, session)
    yield from _stopped(findings, recorder)


def _experiments(findings: RunFindings) -> Mapping[str, SuiteTable]:
    return {name: table for name, table in findings.tables.items() if name != GOLDEN}


def _unchecked(tables: Mapping[str, SuiteTable], session: RagSession) -> Iterator[str]:
    """Say that pages which questions name may be misspelt, where no folder of documents says which there are."""
    cases = session.cases
    data = [cases.data.get(name) for name in sorted({cases.data_of(name) for name in tables})]
    for folder in {each.folder for each in data if each.takes_pages_as_named}:
        said = "pages in context_reference are taken as written, and a context has to name its page to be found"
        yield f"no folder {folder}: {said}. --rag-kb=DIR checks the names, and finds contexts without one by their text"
    for name, table in tables.items():
        found = table.values(_FOUND, {}) if table.has(_FOUND) and table.totals.depth else {}
        if found and not any(found.values()) and cases.data.get(cases.data_of(name)).takes_pages_as_named:
            yield f"{name}: no context names a page of context_reference; a name has to be the same letter by letter"


def _twice(tables: Mapping[str, SuiteTable], session: RagSession) -> Iterator[str]:
    """Say how many questions of each data ask what another asks, in the same words and with the same inputs."""
    for name in sorted({session.cases.data_of(name) for name in tables}):
        first, again, read = dict[str, str](), list[str](), session.cases.data.get(name).cases
        for query in (case.query for case in read):
            asked = f"{' '.join(query.text.casefold().split())} {query.inputs!r}"
            if asked in first:
                again.append(f"{query.query_id} as {first[asked]}")
            first.setdefault(asked, query.query_id)
        if again:
            yield (
                f"{len(again):,} of {_counted(len(read), 'question')} {'asks' if len(again) == 1 else 'ask'} what "
                f"another asks, in the same words (the first: {again[0]}). Intervals and gates count each as one more "
                "question"
            )


def _drafts(findings: RunFindings, session: RagSession) -> Iterator[str]:
    """Say how many questions nobody has reviewed, and how that is done."""
    from rag_harness.plugin.gate_rules import how_reviewed
    from rag_harness.report.drafts import draft_lines

    review = how_reviewed(session)
    no_gate = "" if session.settings.gate_unreviewed else ", and gates leave them out"
    for name, table in sorted(findings.tables.items()):
        yield from (f"{line}{no_gate}: {review(name)}" for line in draft_lines({name: table}))


def _skipped(findings: RunFindings) -> Iterator[str]:
    """Say which questions could not be read and were left out."""
    for lines in findings.manifest.skipped.values():
        yield f"{lines.said}: no figure and no gate is about these questions. The log says why of each."


def _placed(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Say how the documents behind a service's contexts were found."""
    found = {name: table.totals.placed for name, table in sorted(tables.items()) if table.totals.placed}
    if not found:
        return
    from rag_harness.pipelines.endpoint.placing import BY_ID, BY_NAME, BY_NOTHING, BY_TEXT, NO_TEXT, OTHER_TEXT

    ways = {BY_ID: "id", BY_TEXT: "text", BY_NAME: "the name they tell", BY_NOTHING: "nothing"}
    for name, placed in found.items():
        # Whether an id's document has the words of the context is told by itself.
        counts = {**placed, BY_ID: sum(placed[how] for how in (BY_ID, NO_TEXT, OTHER_TEXT))}
        said = ", ".join(f"{counts[how]:,} by {way}" for how, way in ways.items() if counts.get(how))
        hint = "; those count as misses unless they have a quote of the gold" if placed[BY_NOTHING] else ""
        yield f"contexts of {name}: {said}{hint}"


def _settled(findings: RunFindings) -> Iterator[str]:
    left = {name: len(suite.settled) for name, suite in findings.manifest.suites.items() if suite.settled}
    for name, n in sorted(left.items()):
        yield (
            f"not run: {_counted(n, 'trial')} of {name}, whose gates had their verdicts. "
            "A run without --rag-stop-early asks all."
        )


def _without_version(recorder: Recorder, session: RagSession) -> Iterator[str]:
    """Say why finished rows were made again, for experiments whose code cannot be seen."""
    from rag_harness.pipelines import answering

    for name in recorder.begun_anew if not session.settings.rerecord else ():
        experiment = session.experiments.known(name)
        if experiment is None or not session.identities.takes_over_nothing(experiment):
            continue
        is_service = answering(name, session.settings) in session.experiments.endpoints
        where = "[version] in its table" if is_service else "a module in a file"
        # In mode live that needs no reason: what is there now is asked.
        if not is_service or session.access.mode != "live":
            yield f"{name} has no version, so it was asked again; {where} would give it one."


def _became_of_rows(recorder: Recorder, tables: Mapping[str, SuiteTable], session: RagSession) -> Iterator[str]:
    settings = session.settings
    lost = sum(table.lost_of({}) for table in tables.values())
    if lost:
        trials = "1 trial was selected and has" if lost == 1 else f"{lost} trials were selected and have"
        yield f"{trials} no row, lost to a crash, say; every measure counts the worst."
    yield from _without_version(recorder, session)
    if recorder.set_aside:
        rows = f"{_counted(recorder.set_aside, 'row')} of an earlier run {_were(recorder.set_aside)}"
        yield f"{rows} moved to {settings.output}/previous/."
    if recorder.repaired:
        lines = f"{_counted(recorder.repaired, 'damaged or duplicate line')} {_were(recorder.repaired)}"
        yield f"{lines} taken out of the result files, into {settings.output}/previous/."
    if recorder.adopted and recorder.adopted.rows:
        rows = f"{_counted(recorder.adopted.rows, 'trial')} that a cut-off run had finished"
        yield f"{rows} {_were(recorder.adopted.rows)} taken over from its journal."
    yield from not_run_lines(recorder.not_run.values())


def _stopped(findings: RunFindings, recorder: Recorder) -> Iterator[str]:
    """Say how many trials were left untested because pytest was stopped."""
    left = sum(len(suite.not_run) for suite in findings.manifest.suites.values()) - len(recorder.not_run)
    if findings.manifest.stopped and left > 0:
        yield f"untested: {_counted(left, 'trial')}; {findings.manifest.stopped}."


def errors_said(findings: RunFindings, session: RagSession) -> Iterator[str]:
    """Yield the first errors that differ, each once with its number, and how many more there are."""
    from rag_harness.report.error_lines import error_lines

    settings = session.settings
    lines, more = error_lines(_experiments(findings).values())
    yield from lines
    if more > 0:
        yield f"… and {more} more error{'s' * (more != 1)}, in {settings.output}/ and {settings.logs}/"


def _counted(n: int, one: str) -> str:
    return f"{n} {one}" if n == 1 else f"{n} {one}s"


def _were(n: int) -> str:
    return "was" if n == 1 else "were"
