"""Reports of the tests of trials, and what each carries to the process that writes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pytest

from rag_harness.frontends.pytest_plugin.failure_messages import (
    failure_said,
    judge_golden_report,
    shorten_failure,
)
from rag_harness.frontends.pytest_plugin.items import trial_id_of
from rag_harness.frontends.pytest_plugin.stash import (
    CARRIED,
    FAILED,
    NOT_RUN,
    OWED,
    REFUSED,
    RESULT,
    RETRIEVAL,
    RUN_AGAIN,
    SESSION,
    TRIALS,
)
from rag_harness.frontends.pytest_plugin.terminal import make_inert, stop_tests

if TYPE_CHECKING:
    from rag_harness.core.types import TrialId
    from rag_harness.records.manifest import SuiteRecord
    from rag_harness.records.row import ExperimentResult
    from rag_harness.runs.trial import ConversationEnd


RunAgainOn: TypeAlias = Literal["new", "same"]
"""Which answer a test that is run again looks at."""
EndedTurn: TypeAlias = tuple[str, str, str, bool]
"""A turn that its user never came to: experiment, query, reason, whether the user left its role."""


@dataclass(frozen=True)
class TrialResult:
    """A result on its way from a trial to its test.

    ``error`` is the exception that a debugger should see. ``critical``: no later trial can succeed either.
    """

    row: ExperimentResult
    resumed: bool = False
    error: Exception | None = None
    critical: bool = False


@dataclass(frozen=True)
class NotRun:
    """A trial that was not run, with the reason: or one whose conversation had ended before."""

    reason: str
    ended: ConversationEnd | None = None

    @property
    def said(self) -> str:
        """Why its test is skipped."""
        return f"ended {self.ended}" if self.ended else f"not run: {self.reason}"


@dataclass(frozen=True)
class TrialReport:
    """What one report of a test, or of a gate, carries. All of it is of types that xdist can send, but for ``row``.

    Attributes:
        row: the row of the trial, at the teardown. A worker sends its text: one numpy float would end the session.
        resumed: whether an earlier run made the row.
        run_again: which answer a test looked at that was run again.
        judged: authors, lines and costs of the judgement.
        again: lines of rows and scores of the trial's repeats.
        owed: a worker's first report of an experiment says what that owes itself: its name, and the demands as JSON.
        not_run: a trial that was not asked, with the reason: experiment, query, reason.
        ended: the turn, if its user never came to it.
        ended_again: such turns among the trial's repeats.
        refused: a suite that can answer nothing more, and why.
        unrecorded: an experiment, and its calls that cannot be recorded, by kind.
        broken_exports: requests with spans that broke off, by the address that they were sent to.
        missed: whether a golden entry was not found, at the teardown.
        is_miss: whether the test is reported as a miss.
        failure: a digest of what the failure says, and its trial: equal ones are printed once.
        gate: the state of a gate, if this is its report; empty for what failed without a state.
    """

    row: ExperimentResult | str | None = None
    resumed: bool = False
    run_again: RunAgainOn | None = None
    judged: Mapping[str, Any] | None = None
    again: tuple[str, ...] = ()
    owed: tuple[str, Mapping[str, Any]] | None = None
    not_run: tuple[str, str, str] | None = None
    ended: EndedTurn | None = None
    ended_again: tuple[EndedTurn, ...] = ()
    refused: tuple[str, str] | None = None
    unrecorded: tuple[str, Mapping[str, int]] | None = None
    broken_exports: Mapping[str, int] | None = None
    missed: bool = False
    is_miss: bool = False
    failure: tuple[str, str] | None = None
    gate: str | None = None

    @property
    def result(self) -> ExperimentResult | None:
        """The row, read if it came as text."""
        from rag_harness.records.row import parse_row

        return parse_row(self.row) if isinstance(self.row, str) else self.row

    @property
    def line(self) -> str:
        """The line of the row for its file; empty without a row."""
        if self.row is None:
            return ""
        return f"{self.row}\n" if isinstance(self.row, str) else self.row.line()


_EMPTY = TrialReport()
_FIELDS = fields(TrialReport)


def put_on(report: pytest.TestReport, carried: TrialReport) -> None:
    """Let a report carry this, and nothing else. It is put on as a dict: xdist sends plain types only."""
    vars(report).pop(CARRIED, None)
    filled = {each.name: value for each in _FIELDS if (value := getattr(carried, each.name)) != each.default}
    if filled:
        vars(report)[CARRIED] = filled


def carried_by(report: Any) -> TrialReport:
    """Return what a report carries, and leave it there."""
    found: Mapping[str, Any] | None = getattr(report, CARRIED, None)
    return TrialReport(**found) if found else _EMPTY


def failure_of(report: Any) -> tuple[str, str] | None:
    """Return the digest of the message of a failed test, and its trial; None for another."""
    return carried_by(report).failure


def take_off(report: pytest.TestReport) -> TrialReport:
    """Return what a report carries, and leave what is asked for when pytest prints it.

    pytest keeps its reports to the end of a run, and a row is large.
    """
    carried = carried_by(report)
    if carried is not _EMPTY:
        put_on(report, TrialReport(is_miss=carried.is_miss, failure=carried.failure, gate=carried.gate))
    return carried


def brought(item: pytest.Item, call: pytest.CallInfo[None]) -> TrialReport:
    """Return what a phase of a trial's test has brought.

    The result comes with the teardown: a test whose fixture raised has no call phase.
    """
    if call.when == "teardown" and RESULT in item.stash:
        result = item.stash[RESULT]
        found = _of_result(item, result)
        del item.stash[RESULT]
        return found
    if call.when not in ("setup", "teardown") or NOT_RUN not in item.stash:
        return _EMPTY
    trial, not_run = item.stash[NOT_RUN]
    if call.when == "teardown":
        # Another repeat of its conversation may have come to this turn.
        return _with_repeats(_EMPTY, item, trial)
    if not_run.ended is not None:
        return TrialReport(ended=ended_turn(trial, not_run.ended))
    return TrialReport(not_run=(trial.experiment, trial.query_id, not_run.reason))


def ended_turn(trial: TrialId, ended: ConversationEnd) -> EndedTurn:
    """Return what a report carries of a turn that its user never came to."""
    return trial.experiment, trial.query_id, str(ended), ended.out_of_role


def _of_result(item: pytest.Item, result: TrialResult) -> TrialReport:
    from rag_harness.frontends.pytest_plugin.workers import is_worker

    config, experiment = item.config, result.row.experiment
    row = result.row.text if is_worker(config) else result.row
    owed = config.stash[OWED].unsent(experiment)
    run_again = item.stash.get(RUN_AGAIN, None)
    found = TrialReport(row, result.resumed, run_again, owed=owed)
    found = _with_scores(found, item, result.row.trial)
    return replace(found, unrecorded=_unrecorded(config, experiment), broken_exports=_broken_exports(config))


def _with_scores(found: TrialReport, item: pytest.Item, trial: TrialId) -> TrialReport:
    """Add the judge's scores, and the trial's repeats. If nothing can be kept any more, no test follows."""
    from rag_harness.core.errors import CriticalError

    try:
        judged = item.config.stash[TRIALS].judged(trial, item.nodeid)
    except CriticalError as error:
        stop_tests(item.config, error)
        return found
    except CancelledError:
        return found  # the run was stopped; the scores that came back are in the journal
    return _with_repeats(replace(found, judged=judged.plain() if judged else None), item, trial)


def _with_repeats(found: TrialReport, item: pytest.Item, trial: TrialId) -> TrialReport:
    from rag_harness.core.errors import CriticalError

    try:
        again, ended = item.config.stash[TRIALS].answered_again(trial)
    except CriticalError as error:
        stop_tests(item.config, error)
    except CancelledError:
        pass  # the run was stopped; what came back is in the journal
    else:
        found = replace(found, again=again, ended_again=ended)
    return found


def _unrecorded(config: pytest.Config, experiment: str) -> tuple[str, Mapping[str, int]] | None:
    """Return the calls of pipelines that were made since the last report and cannot be recorded."""
    if not config.stash[SESSION].access.covers_own_calls:
        return None
    from rag_harness.models.recording.patches import unrecorded_calls

    counts = unrecorded_calls.taken()
    return (experiment, counts) if counts else None


def _broken_exports(config: pytest.Config) -> Mapping[str, int] | None:
    """Return how many requests with spans of a service have broken off since the last report."""
    if not any(spec.traces for spec in config.stash[SESSION].settings.endpoints):
        return None
    from rag_harness.pipelines.endpoint.spans import broken_exports

    return broken_exports.taken() or None


_NEVER_RUN = "[NOTRUN]"
"""Is in what pytest says of a test with ``xfail(run=False)``."""
_BUDGET = "budget: "


def skipped_why(report: pytest.TestReport, carried: TrialReport) -> str:
    """Return why somebody skipped a test; empty where nobody did, or where it was us: its report then says why."""
    is_ours = carried.not_run or carried.ended or carried.refused or carried.gate is not None
    if not report.skipped or is_ours:
        return ""
    if (expected := getattr(report, "wasxfail", None)) is not None:
        _, mark, why = expected.partition(_NEVER_RUN)
        return (why.strip() or "xfail(run=False)") if mark else ""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(said.removeprefix("Skipped").removeprefix(": ").split()) or "no reason given"


def not_run_said(reasons: Collection[str]) -> str:
    """Return how many trials were not asked, and why."""
    others = [why for why in reasons if not why.startswith(_BUDGET)]
    spent = len(reasons) - len(others)
    said = [f"not run for lack of budget: {_trials(spent)}"] if spent else []
    said += [f"not run: {_trials(len(others))}, the first because {others[0]}"] if others else []
    return "; ".join(said)


def not_run_lines(reasons: Collection[str]) -> list[str]:
    """Return the same for the terminal, with what to do."""
    others = [why for why in reasons if not why.startswith(_BUDGET)]
    spent = len(reasons) - len(others)
    lines = []
    if spent:
        lines += [f"not run: budget: {_trials(spent)}. What is done is kept: raise --rag-budget and run again."]
    if others:
        lines += [f"not run: {_trials(len(others))} behind turns without an answer; the first because {others[0]}"]
    return lines


def skipped_said(whys: Mapping[str, str]) -> str:
    """Return by whom cases were skipped, and why; the first reason where there are several."""
    reasons = [*dict.fromkeys(whys.values())]
    more = f" (and {len(reasons) - 1} more reason{'s' * (len(reasons) > 2)})" if len(reasons) > 1 else ""
    return f"skipped by {'its test' if len(whys) == 1 else 'their tests'}: {reasons[0]}{more}"


def skipped_lines(suites: Mapping[str, SuiteRecord]) -> Iterator[str]:
    """Yield how many trials of this run were skipped, and why, for each experiment that has some."""
    for name, record in sorted(suites.items()):
        if record.skipped and not record.made:
            n = len(record.skipped)
            yield f"{_trials(n)} of {name} {'was' if n == 1 else 'were'} {skipped_said(record.skipped)}"


def _trials(n: int) -> str:
    return f"{n} trial" if n == 1 else f"{n} trials"


def fill(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Let the report of a trial's test carry what that phase has brought, and pytest say briefly why it failed."""
    if report.failed and RESULT in item.stash:
        item.stash[FAILED] = True
    carried = brought(item, call)
    if REFUSED in item.stash and (trial := trial_id_of(item)) is not None:
        carried = replace(carried, refused=(trial.experiment, item.stash[REFUSED]))
    if RETRIEVAL in item.stash:
        missed, is_miss = judge_golden_report(item, call, report)
        carried = replace(carried, missed=missed, is_miss=is_miss)
    elif report.failed:
        shorten_failure(item, call, report)
    make_inert(report)
    if report.failed:
        carried = replace(carried, failure=failure_said(item, report))
    put_on(report, carried)
