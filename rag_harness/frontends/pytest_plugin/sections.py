"""The sections of the terminal summary, the announcement before a run, and the last line."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_harness.core.escaping import columns
from rag_harness.core.registry import registered, resolve
from rag_harness.core.types import GOLDEN
from rag_harness.frontends.pytest_plugin.collection import Collected, of_items
from rag_harness.frontends.pytest_plugin.session import RagSession
from rag_harness.frontends.pytest_plugin.terminal import usage_error, write_lines, write_section

if TYPE_CHECKING:
    from rag_harness.core.concurrency import Lazy
    from rag_harness.core.settings import Settings
    from rag_harness.core.types import Case
    from rag_harness.frontends.pytest_plugin.derived_runs import Attribution
    from rag_harness.frontends.pytest_plugin.gate_reports import GateKeeper
    from rag_harness.frontends.pytest_plugin.progress import WorkerCost
    from rag_harness.frontends.pytest_plugin.readiness import RecordingReport
    from rag_harness.frontends.pytest_plugin.recorder import Recorder, TableMeasures
    from rag_harness.frontends.pytest_plugin.run_record import RunFindings
    from rag_harness.frontends.pytest_plugin.session import RunCases
    from rag_harness.tables.brief import Brief
    from rag_harness.tables.brief_lines import Line
    from rag_harness.tables.requested_measures import WantedMeasures
    from rag_harness.tables.suite_table import SuiteTable


_USUAL = 80
"""Columns, where there is no terminal."""


class BriefSection:
    """Prints the section, in the process that prints.

    Args:
        session: state of the run.
        recorder: knows which results came.
        findings: has the tables of the run.
        gates: has the verdicts.
        attribution: has the causes of failures.
        recording: knows which recordings were not used.
        worker_cost: knows what the workers of xdist have cost.
    """

    def __init__(
        self,
        session: RagSession,
        recorder: Recorder,
        findings: RunFindings,
        gates: GateKeeper,
        attribution: Attribution,
        recording: RecordingReport,
        worker_cost: WorkerCost,
    ) -> None:
        self._session, self._recorder, self._findings, self._gates = session, recorder, findings, gates
        self._attribution, self._recording, self._worker_cost = attribution, recording, worker_cost
        self._is_told_in_full = False

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print the section; with -q only what a verdict is, and what it is about."""
        has_results = bool(self._recorder.arrived or self._recorder.not_run or self._recorder.skipped)
        # Where nothing could be written there is nothing to read; a failure has said so.
        quiet = terminal.config.get_verbosity() < 0 and not self._session.settings.sections
        self._is_told_in_full = terminal.config.get_verbosity() > 0 or bool(self._session.settings.sections)
        lines = self._lines(quiet) if has_results and self._findings.is_readable else []
        if lines and not quiet:
            write_section(terminal, "rag in brief")
        for text, colour in lines:
            write_lines(terminal, [text], **({colour: True} if colour else {}))
        self._gates.print_unselected(terminal)

    def print_causes(self, terminal: pytest.TerminalReporter) -> None:
        """Print why answers are wrong and what helps, when causes are known; with -q nothing more."""
        from rag_harness.tables.brief_lines import cause_lines

        if terminal.config.get_verbosity() < 0 and not self._session.settings.sections:
            return
        output, has_report = str(self._session.settings.output), bool(self._session.settings.report)
        write_section(terminal, "rag causes in brief")
        for text, colour in cause_lines(self._brief(), output, columns(unknown=_USUAL), has_report=has_report):
            write_lines(terminal, [text], **({colour: True} if colour else {}))

    def _brief(self) -> Brief:
        from rag_harness.tables.brief import brief_of
        from rag_harness.tables.gate_states import with_worst_why
        from rag_harness.tables.summary import verdict_json

        verdicts = [verdict_json(each) for each in self._gates.verdicts]
        found, causes = self._findings, self._attribution.causes
        brief = brief_of(found.tables, found.manifest, verdicts, causes, self._gates.unchecked)
        are_due = self._attribution.is_due and not self._attribution.is_explained
        return replace(brief, gates=with_worst_why(brief.gates, self._first_broken), causes_are_due=are_due)

    def _lines(self, quiet: bool) -> Sequence[Line]:
        from rag_harness.tables.brief_lines import Line, brief_lines, quiet_lines

        brief = self._brief()
        output = str(self._session.settings.output)
        width = columns(unknown=_USUAL)
        if quiet:
            origins = [Line(text, "") for text in self._gates.origins]
            return quiet_lines(brief, output, width, origins=origins, notes=[*self._verdict_notes()])
        is_open = bool(self._gates.configured.all) and not self._gates.verdicts
        has_report = bool(self._session.settings.report)
        return brief_lines(brief, output, width, has_report=has_report, is_open=is_open, notes=[*self._notes()])

    def _first_broken(self, trial: str, measure: str) -> str:
        from rag_harness.diagnosis.cause_lines import first_broken  # only where such a gate failed

        return first_broken(self._findings.output, self._findings.manifest, trial, measure)

    def _verdict_notes(self) -> Iterator[Line]:
        """Yield the notes without which a verdict is misread: answers that are missing, gates that judge less."""
        from rag_harness.frontends.pytest_plugin.notes import missing_said, verdict_remarks
        from rag_harness.tables.brief_lines import Line

        missing = missing_said(self._findings.noises, self._session.settings.output)
        yield from (Line(text, "red") for text in missing)
        remarks = [*self._gates.notes, *self._gates.not_judged_said()]
        remarks += not_looked_up(self._session.settings, self._session.cases, self._findings)
        remarks += verdict_remarks(self._findings, self._recorder, self._session.settings, self._session.cases)
        yield from (Line(text, "yellow") for text in remarks)

    def _notes(self) -> Iterator[Line]:
        """Yield what else has to be known: errors, replaced gates, drafts, rows set aside, unused recordings.

        Nothing else shows answers that did not come after a first one, and calls that were tried again.
        """
        from rag_harness.frontends.pytest_plugin.gate_reports import not_gated_lines
        from rag_harness.frontends.pytest_plugin.notes import (
            errors_said,
            first_answers_said,
            missing_said,
            remarks_said,
            retries_said,
        )
        from rag_harness.records.manifest import languages_noted
        from rag_harness.tables.brief_lines import Line

        noises, output = self._findings.noises, self._session.settings.output

        yield from (Line(text, "") for text in languages_noted(self._findings.manifest.suites.values()))
        yield from (Line(text, "red") for text in errors_said(self._findings, self._session.settings))
        yield from (Line(text, "red") for text in missing_said(noises, output))
        tables, gates = self._findings.tables, self._gates.configured.all
        # The section of the gates says it, too, where it is printed.
        is_said = self._is_told_in_full
        remarks = [*self._gates.notes, *([] if is_said else self._gates.not_judged_said())]
        remarks += [*first_answers_said(noises, gates), *retries_said(tables)]
        remarks += not_gated_lines(tables, gates)
        remarks += not_looked_up(self._session.settings, self._session.cases, self._findings)
        remarks += remarks_said(self._findings, self._recorder, self._session.settings, self._session.cases)
        remarks += [*self._recording.unused_lines(), *self._worker_cost.lines()]
        yield from (Line(text, "yellow") for text in remarks)


class SummarySection:
    """Prints the sections, in the process that prints. A section without contents is left out."""

    def __init__(
        self, session: RagSession, recorder: Recorder, findings: RunFindings, recording: RecordingReport
    ) -> None:
        self._session, self._recorder, self._findings, self._recording = session, recorder, findings, recording

    @property
    def _has_trials(self) -> bool:
        # Where nothing could be written there is nothing to read; a failure has said so.
        return bool(self._recorder.trials or self._recorder.not_run) and self._findings.is_readable

    def print_trials(self, terminal: pytest.TerminalReporter) -> None:
        """Print the figures of the trials."""
        if not self._has_trials:
            return
        from rag_harness.frontends.pytest_plugin.notes import errors_said, experiments_of, remarks_said
        from rag_harness.tables.summary import answers_by, speed_lines, stage_lines, summarise, summary_lines

        settings, cases = self._session.settings, self._session.cases
        tables = experiments_of(self._findings)
        about = f"profile {settings.profile}, mode {settings.mode}, {answers_by(tables)}"
        lines = [*summary_lines(summarise(tables)), *stage_lines(tables), *speed_lines(tables, settings.concurrency)]
        lines += [*remarks_said(self._findings, self._recorder, settings, cases), *self._recording.unused_lines()]
        write_section(terminal, "rag", [about, *lines])
        write_lines(terminal, errors_said(self._findings, settings), red=True)

    def print_scorecard(self, terminal: pytest.TerminalReporter) -> None:
        """Print the judged scores and the judge's name, if anything was judged."""
        if not self._has_trials:
            return
        suites = self._findings.manifest.suites
        if not any(record.authors for record in suites.values()):
            return
        from rag_harness.core.settings.profiles import prices_of
        from rag_harness.tables.summary import scorecard_lines

        lines = scorecard_lines(self._findings.tables, suites, prices_of(self._session.settings))
        if self._findings.panels:
            from rag_harness.tables.panels import panel_lines

            lines += panel_lines(self._findings.panels)
        write_section(terminal, "rag scorecard", lines)

    def print_pairwise(self, terminal: pytest.TerminalReporter) -> None:
        """Print how the experiments differ, where two or more were judged on the same cases."""
        if not self._has_trials or not self._findings.pairwise:
            return
        from rag_harness.tables.pairwise import pairwise_lines

        write_section(terminal, "rag pairwise", pairwise_lines(self._findings.pairwise))

    def print_slices(self, terminal: pytest.TerminalReporter) -> None:
        """Print which experiment wins on which slice, if that was asked for and two ran on the same data."""
        if not self._has_trials or not self._session.settings.slices:
            return
        from rag_harness.tables.standings import standing_lines

        if lines := standing_lines(self._findings.standings):
            write_section(terminal, "rag slices", lines)

    def print_abstention(self, terminal: pytest.TerminalReporter) -> None:
        """Print what confidence is worth, where a pipeline states one."""
        if not self._has_trials or not self._findings.abstentions:
            return
        from rag_harness.tables.abstention import abstention_lines

        write_section(terminal, "rag abstention", abstention_lines(self._findings.abstentions))

    def print_noise(self, terminal: pytest.TerminalReporter) -> None:
        """Print where the noise is, where queries were to be answered again."""
        if not self._has_trials or not self._findings.noises:
            return
        from rag_harness.tables.noise import noise_lines

        write_section(terminal, "rag noise", noise_lines(self._findings.noises))

    def print_own(self, terminal: pytest.TerminalReporter) -> None:
        """Print the sections of other packages, from the entry points ``rag_harness.sections``."""
        if not self._has_trials:
            return

        for name, lines in own_sections(self._findings.tables):
            write_section(terminal, f"rag {name}", [part for line in lines for part in line.split("\n")])


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
    left_out = f"{_skipped_lines(settings, session.cases, selected)}{_unread(settings, session.cases, selected)}"
    played_by = _played_by(settings, session.cases, selected)
    whose = f"{_other_model(settings)}{played_by}{_judged_by(settings, session.wanted, selected)}"
    return f"rag: {said}{asked}{whose}{left_out}"


def _other_model(settings: Settings) -> str:
    """Say that a server is named and no model of it: recordings, which go by the model's name, may answer for it."""
    from rag_harness.core.settings.profiles import BASELINE_READER, EMBEDDED_URL

    if settings.chat_model != BASELINE_READER or settings.chat_base_url in ("", EMBEDDED_URL):
        return ""
    return (
        f"\nrag: a server is named ({settings.chat_base_url}) and none of its models: it is asked for "
        f"{BASELINE_READER}, and recordings of that count. Name the model: --rag-chat-model=NAME"
    )


def _skipped_lines(settings: Settings, cases: RunCases, selected: Collected) -> str:
    """Name the lines of questions that could not be used, if the run may go on without them."""
    if settings.bad_queries != "skip":
        return ""
    data = {cases.data_of(trial.experiment) for trial in selected.trials}
    return _listed("skipped", [each for name in sorted(data) for each in cases.data.get(name).skipped])


def _listed(what: str, lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - MOST_ERRORS} more, in the log"] if len(lines) > MOST_ERRORS else []
    return "".join(f"\nrag: {what}: {line}" for line in [*lines[:MOST_ERRORS], *more])


def _unread(settings: Settings, cases: RunCases, selected: Collected) -> str:
    """Name the documents that were not read, if the run may go on without them."""
    if settings.unreadable != "skip":
        return ""
    from rag_harness.core.errors import PrerequisiteError

    try:
        data = {cases.data_of(trial.experiment) for trial in selected.trials}
        lines = [each.line for name in sorted(data) for each in cases.data.get(name).unread]
    except PrerequisiteError:
        return ""  # the preparation of the experiment reports it
    lost = "".join(f"\nrag: {line}" for line in (_lost_gold(cases, selected) if lines else ()))
    return f"{_listed('left out', lines)}{lost}"


def _lost_gold(cases: RunCases, selected: Collected) -> Iterator[str]:
    asked = {(cases.data_of(trial.experiment), trial.query_id) for trial in selected.trials}
    lost_of = {name: cases.data.get(name).lost_gold for name, _ in asked}
    lost = [query_id for name, query_id in sorted(asked) if query_id in lost_of[name]]
    if lost:
        named = ", ".join(lost[:MOST_ERRORS]) + (", …" if len(lost) > MOST_ERRORS else "")
        yield f"{len(lost)} of {len(asked)} questions have gold in files that were left out: {named}"


def _judged_by(settings: Settings, wanted: WantedMeasures, selected: Collected) -> str:
    from rag_harness.core.errors import PrerequisiteError

    try:
        if not any(wanted.judged_names(name) for name in {trial.experiment for trial in selected.trials}):
            return ""
    except PrerequisiteError:
        return ""  # the reader of the gates reports it
    from rag_harness.evaluation.judges.traits import traits_of
    from rag_harness.models.endpoints import settings_of_judges
    from rag_harness.records.manifest import panel_label
    from rag_harness.tables.summary import judge_said, one_family

    each = settings_of_judges(settings)
    judges = [_judge_and_model(judge) for judge in each]
    alone = "" if settings.panel else judge_said(*judges[0], traits_of(each[0]).asks_model)
    said = alone or panel_label(settings.panel, judges)
    kin = [line for _, model in judges for line in one_family(model, [settings.chat_model])]
    return "".join(f"\nrag: {line}" for line in (f"judged by {said}", *kin))


def _played_by(settings: Settings, cases: RunCases, selected: Collected) -> str:
    """Say who plays the users of scenarios, and who looks whether a model keeps to them; empty without scenarios."""
    if not any(cases.is_played(name) for name in {trial.experiment for trial in selected.trials}):
        return ""
    from rag_harness.evaluation.judges.traits import asks_a_model
    from rag_harness.models.endpoints import settings_of_judges
    from rag_harness.pipelines.simulated_user import played_by

    looked_at = ""
    if settings.user_model:
        judges = [" ".join(_judge_and_model(each)) for each in settings_of_judges(settings)]
        looked_at = f", kept to their scenarios by rules{' and ' + ', '.join(judges) if asks_a_model(settings) else ''}"
    return f"\nrag: users played by {played_by(settings)}{looked_at}"


def _judge_and_model(settings: Settings) -> tuple[str, str]:
    from rag_harness.evaluation.judges.traits import model_of_judge
    from rag_harness.models.endpoints import judge_name

    return judge_name(settings), model_of_judge(settings)


def _answers_by(selected: Collected, settings: Settings) -> str:
    """Say which model will answer. For a user's pipeline this is known only after it has answered."""
    from rag_harness.pipelines.experiments import answering, built_in
    from rag_harness.tables.summary import author

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


def _counted(n: int, one: str) -> str:
    return f"{n} {one}" if n == 1 else f"{n} {one}s"


_FEW = 5
_TEXTS = {"document": "documents", "query": "queries"}


def not_looked_up(settings: Settings, cases: RunCases, findings: RunFindings) -> Iterator[str]:
    """Say which questions of a golden set name no page, where one was looked up: a forgotten page is not seen."""
    if GOLDEN not in findings.tables:
        return
    from rag_harness.core.errors import DataError
    from rag_harness.runs.gates.configuration import shown_place
    from rag_harness.tables.wording import counted, listed

    data = cases.data.get("")
    try:
        left = data.golden_set.without_page
    except DataError:
        return  # workers have read it; since then somebody has edited it
    if left:
        name = counted(len(left), "question")
        verb, them = ("names", "it") if len(left) == 1 else ("name", "them")
        yield (
            f"{name} of {shown_place(settings, data.golden_file)} {verb} no page in context_reference, so the "
            f"golden suite does not ask {them}: {listed(left, _FEW)}"
        )


class GoldenSection:
    """Prints the section and marks the misses, in the process that prints."""

    def __init__(self, session: RagSession, recorder: Recorder, findings: RunFindings) -> None:
        self._session, self._recorder, self._findings = session, recorder, findings

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print the section below everything but the gates, where an entry was looked for."""
        # Where nothing could be written there is nothing to read; a failure has said so.
        if GOLDEN in self._recorder.arrived and self._findings.is_readable:
            self._write(terminal)

    def _write(self, terminal: pytest.TerminalReporter) -> None:
        from rag_harness.tables.answer_warnings import draft_lines
        from rag_harness.tables.golden_suite import golden_lines

        lines = [self._about_retrieval()]
        if GOLDEN in self._findings.tables:
            table = self._findings.tables[GOLDEN]
            lines += [*golden_lines(table, self._findings.retrievals), *draft_lines({GOLDEN: table})]
        lines += not_looked_up(self._session.settings, self._session.cases, self._findings)
        write_section(terminal, "rag golden", lines)

    def _about_retrieval(self) -> str:
        """Name the retriever under test, its model and cutoff."""
        settings = self._session.settings
        cut, longest = self._session.parts.cut()
        each = " and ".join(f"{n:,} {_TEXTS[role]}" for role, n in cut.items() if n)
        cuts = f", {each} cut at the model's {longest} tokens" if each else ""
        model = f" ({settings.lookup_model})" if settings.lookup_model else ""
        retriever = f"retriever {settings.retriever}{model}"
        return f"profile {settings.profile}, {retriever}, k = {settings.k}{cuts}"

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Let --lf run misses again. They are not failures, and pytest's cache forgets skipped tests."""
        yield
        # The attribute is missing if the user switched the cache off.
        cache = getattr(session.config, "cache", None)
        if cache is None:
            return
        failed: dict[str, bool] = cache.get("cache/lastfailed", {})
        missed = dict.fromkeys(self._recorder.missed, True)
        if missed:
            cache.set("cache/lastfailed", {**failed, **missed})


ALL = "all"


class SectionsShown:
    """Reads the option. Without it the verbosity decides: -v prints all sections, -q only the run in brief.

    Args:
        config: of the run.
        settings: of the run.
        usual: the sections that can be chosen, and whether each is printed where nothing chooses.
        brief: the section that is left with -q.
    """

    def __init__(self, config: pytest.Config, settings: Lazy[Settings], usual: Mapping[str, bool], brief: str) -> None:
        self._config, self._settings, self._usual, self._brief = config, settings, usual, brief

    def collection_done(self, _: Collected) -> None:
        """Check the names before anything runs.

        Raises:
            pytest.UsageError: the option names a section that does not exist.
        """
        from rag_harness.core.errors import unknown

        for name in self._named():
            if name not in self._usual and name != ALL:
                raise usage_error(unknown("section", name, [ALL, *self._usual]))

    def is_shown(self, name: str) -> bool:
        """Whether a section is printed."""
        return name in self._chosen(self._named())

    def _chosen(self, named: Sequence[str]) -> Collection[str]:
        verbosity = self._config.get_verbosity()
        if ALL in named or (not named and verbosity > 0):
            return self._usual
        if named:
            return named
        return [self._brief] if verbosity < 0 else [name for name, is_usual in self._usual.items() if is_usual]

    def _named(self) -> list[str]:
        return [name.strip() for text in self._settings.get().sections for name in text.split(",") if name.strip()]


class Slices:
    """Reads the option, and adds its measures to the tables.

    Args:
        settings: of the run.
        cases: of the run.
        measures: of the run's tables.
    """

    def __init__(self, settings: Lazy[Settings], cases: RunCases, measures: TableMeasures) -> None:
        self._settings, self._cases, self._measures = settings, cases, measures

    def collection_done(self, selected: Collected) -> None:
        """Check the keys against the cases of the experiments that were selected.

        Raises:
            pytest.UsageError: the option cannot be read, or a key is in no case.
        """
        experiments = sorted({trial.experiment for trial in selected.trials})
        if not experiments or not self._settings.get().slices:
            return
        from rag_harness.core.errors import PrerequisiteError

        try:
            measures = self._read(experiments)
        except PrerequisiteError as error:
            raise usage_error(error) from None
        for measure in measures:
            for experiment in experiments:
                self._measures.want(experiment, measure)

    def _read(self, experiments: Collection[str]) -> list[str]:
        from rag_harness.tables.requested_measures import check_slice_keys, measures_of, read_slices

        settings = self._settings.get()
        asked = read_slices(settings.slices, settings.k)
        keys = _keys(case for name in experiments for case in self._cases.all_of(name))
        # The ini file is for all data that it names. A single run need not use all of them.
        check_slice_keys(asked, keys if all(each.key in keys for each in asked) else keys | self._keys_elsewhere())
        return measures_of(settings.slices, settings.k)

    def _keys_elsewhere(self) -> set[str]:
        """Return the keys of all data that can be read. Errors in the others are reported by the runs that use them."""
        from rag_harness.core.errors import PrerequisiteError

        found: set[str] = set()
        for name in self._cases.data.names:
            with suppress(PrerequisiteError):
                data = self._cases.data.get(name)
                found |= _keys([*data.cases, *data.scenarios])
        return found


def _keys(cases: Iterable[Case]) -> set[str]:
    return {key for case in cases for key in case.labels}


# The plugin's last line: how many questions were answered, and how many of the answers are wrong.
#
# pytest's own last line counts tests. A test passes where an answer came, unless it asks for a right one.


def print_last(recorder: Recorder, findings: RunFindings, terminal: pytest.TerminalReporter) -> None:
    """Print the line, where an experiment of this run answered. With -q the run in brief is as short, and says it."""
    from rag_harness.core.types import GOLDEN
    from rag_harness.tables.answer_warnings import all_with_wrong, count_wrong

    if terminal.config.get_verbosity() < 0 or not recorder.arrived or not findings.is_readable:
        return
    asked = {name: table for name, table in findings.tables.items() if name != GOLDEN and table.totals.answered}
    mine = all_with_wrong({name: table for name, table in asked.items() if not findings.manifest.suites[name].made})
    if mine:
        answered = sum(table.totals.answered for table in mine.values())
        said = count_wrong(mine)
        write_lines(terminal, [f"rag: {answered:,} answered, {said or 'none checked'}"])


# Users' own sections of the terminal report: the entry points ``rag_harness.sections``.
#
# A section is a function of the tables, ``{suite: SuiteTable}``, that returns lines. They are printed under its name,
# below the harness's own lines. It reads the files of a run, as all sections do.

SECTIONS_GROUP = "sections"


def own_sections(tables: Mapping[str, SuiteTable]) -> Iterator[tuple[str, list[str]]]:
    """Yield title and lines of each registered section that has lines. A section that fails says why."""
    for name in sorted(registered(SECTIONS_GROUP)):
        try:
            lines = [str(line) for line in resolve(SECTIONS_GROUP, name)(tables)]
        except Exception as error:  # users' code may raise anything, and the run was paid for
            lines = [f"it failed: {type(error).__name__}: {error}"]
        if lines:
            yield name, lines
