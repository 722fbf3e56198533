"""Reports of the tests of trials: what they carry to the process that writes, and what pytest says of failed ones."""

from __future__ import annotations

import copy
import hashlib
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pytest

from rag_harness.core.escaping import terminal_line
from rag_harness.frontends.pytest_plugin.items import trial_id_of, trial_of
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


# Shortens what pytest says of a failed trial. With ``-vv``, and where a traceback is asked for, it stays as it is.
#
# pytest shows the test's code and each value in it, a whole result among them. A run of 200 failed trials has 2,700
# lines of that. What the person's own assertion says stays.

# pytest shortens what it shows of an object to 240 characters.
_RESULT = re.compile(r"ExperimentResult\(.{0,300}?schema_version=\d+\)")
_NO_ANSWER = re.compile(r"where False = \S+\.ok$")
_ANSWER = re.compile(r" +\+ +where .* = rag_result\.llm_answer$")
"""What the line ``found`` says, too."""
_WHOLE = 2


def is_short(config: pytest.Config) -> bool:
    """Return whether the person has not asked for more than four lines a failed trial."""
    asks_for_more = any(config.getoption(name, False) for name in ("showlocals", "fulltrace", "usepdb"))
    return config.get_verbosity() < _WHOLE and config.getoption("tbstyle", "auto") == "auto" and not asks_for_more


def shorten_failure(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Replace what pytest says of a test that failed because something that it asserts does not hold."""
    shipped, raised = item.stash.get(RESULT, None), call.excinfo
    if call.when != "call" or not report.failed or shipped is None or raised is None or not is_short(item.config):
        return
    if not isinstance(raised.value, (AssertionError, pytest.fail.Exception)):
        return  # the test itself has an error: its traceback says where
    from rag_harness.tables.wording import trial_failed

    output = item.config.stash[SESSION].settings.output
    message = trial_failed(shipped.row, _why(shipped.row, report.longrepr), str(output))
    report.longrepr = _with_message(report.longrepr, message)


def _why(row: ExperimentResult, found: Any) -> list[str]:
    """Return what the test says, without the error of a trial that has no answer: the row says it."""
    crash = getattr(found, "reprcrash", None)
    said = crash.message if crash else str(found)
    said = _RESULT.sub("rag_result", said.removeprefix("AssertionError: ").removeprefix("Failed: ")).strip()
    if not row.ok and (said.startswith(row.error_text) or _NO_ANSWER.search(said)):
        return []
    file = found.reprtraceback.reprentries[-1].reprfileloc if crash else None
    lines = f"{file.path}:{file.lineno}: {said}" if file else said
    return [line.rstrip() for line in lines.split("\n") if not _ANSWER.match(line)]


def _with_message(found: Any, message: str) -> Any:
    """Return pytest's description of the error with another text. Its last line in the summary stays."""
    try:
        from _pytest._code.code import ExceptionChainRepr, ReprEntryNative, ReprTraceback
    except ImportError:
        return message
    if isinstance(found, ExceptionChainRepr):
        own = ReprTraceback([ReprEntryNative([f"{message}\n"])], None, "native")
        return ExceptionChainRepr([(own, found.reprcrash, None)])
    return message


# Prints failures that say the same once, with their number. With ``-vv``, and for other formats, each stays.
#
# Two failures of one test say the same if what they say differs by the question alone, or by chance: an address in
# memory, an id of a request, a time.

_QUOTED = 12
"""Characters of a question from which on a message is taken to quote it. It may quote only the beginning."""


def failure_said(item: pytest.Item, report: pytest.TestReport) -> tuple[str, str] | None:
    """Return a digest of what the report of a failed trial says, and the trial; None where each is printed."""
    trial = trial_id_of(item)
    if trial is None or not is_short(item.config):
        return None
    said = _without_question(_said(item, report), str(trial), trial.query_id, _question(item))
    test = f"{report.when} {report.nodeid.partition('[')[0]}"
    return hashlib.sha256(f"{test}\n{said}".encode()).hexdigest(), str(trial)


@contextmanager
def printed_once(terminal: pytest.TerminalReporter) -> Iterator[None]:
    """Let pytest print failures that say the same once. What it counts stays."""
    names = [name for name in ("failed", "error") if name in terminal.stats]
    each: dict[str, list[Any]] = {name: terminal.stats[name] for name in names}
    terminal.stats.update((name, _first_of_each(reports)) for name, reports in each.items())
    try:
        yield
    finally:
        terminal.stats.update(each)


def _said(item: pytest.Item, report: pytest.TestReport) -> str:
    """Return why a test failed: the error of a trial without an answer, the error of a test and its place, or all."""
    shipped = item.stash.get(RESULT, None)
    if report.when == "call" and shipped is not None and not shipped.row.ok:
        return str(shipped.row.error_text)
    if report.when == "call" and RETRIEVAL in item.stash and item.stash[RETRIEVAL].error:
        return str(item.stash[RETRIEVAL].error)
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    style = getattr(getattr(report.longrepr, "reprtraceback", None), "style", "native")
    is_whole = crash is None or style == "native"  # what failed_trial has shortened
    return str(report.longrepr) if is_whole else f"{crash.path}:{crash.lineno}: {crash.message}"


def _question(item: pytest.Item) -> str:
    trial = trial_of(item)
    if trial is not None:
        return str(trial.case.query.text)
    return str(item.stash[RETRIEVAL].query) if RETRIEVAL in item.stash else ""


def _without_question(said: str, trial: str, query_id: str, question: str) -> str:
    """Return what was said without the question, its id, and what differs by chance."""
    from rag_harness.core.text.comparison import without_chance

    said, question = " ".join(said.split()), " ".join(question.split())
    found = said.find(question[:_QUOTED]) if question else -1
    while found >= 0:
        end = found + _shared(said[found:], question)
        said = f"{said[:found]}<question>{said[end:]}"
        found = said.find(question[:_QUOTED], found + len("<question>"))
    for name in (trial, query_id):
        said = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "<id>", said)
    return without_chance(said)


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _first_of_each(reports: Sequence[Any]) -> list[Any]:
    """Return the reports without those that say what an earlier one says, which has their number."""
    by_said: dict[str, list[Any]] = {}
    for number, report in enumerate(reports):
        digest, _ = carried_by(report).failure or (str(number), "")
        by_said.setdefault(digest, []).append(report)
    return [_with_number(group) if len(group) > 1 else group[0] for group in by_said.values()]


def _with_number(reports: Sequence[Any]) -> Any:
    """Return a copy of the first report that says how many are like it. Others still have the report itself."""
    from rag_harness.tables.wording import others_alike

    first = copy.copy(reports[0])
    below = terminal_line(others_alike([_trial(report) for report in reports[1:]]))
    first.longrepr = _Numbered(first.longrepr, len(reports), below)
    return first


def _trial(report: Any) -> str:
    _, trial = carried_by(report).failure or ("", "")
    return trial


class _Crash:
    """What pytest's short summary reads of a failure."""

    def __init__(self, message: str) -> None:
        self.message = message


class _Numbered:
    """What pytest shows of a failure, and a line below it.

    Args:
        found: pytest's description, or a text.
        n: how many failures say this.
        below: the line.
    """

    def __init__(self, found: Any, n: int, below: str) -> None:
        self._found, self._below = found, below
        crash = getattr(found, "reprcrash", None)
        said = crash.message if crash is not None else found if isinstance(found, str) else "the same error"
        self.reprcrash = _Crash(f"{n:,} × {said}")

    def __str__(self) -> str:
        return f"{self._found}\n{self._below}"

    def toterminal(self, out: Any) -> None:
        """Write it as pytest does."""
        if hasattr(self._found, "toterminal"):
            self._found.toterminal(out)
        else:
            out.line(str(self._found))
        out.line(self._below)


# The reports of the golden suite's tests. A miss is not a failure, and says why it is a miss.


def judge_golden_report(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> tuple[bool, bool]:
    """Report a miss as skipped, with its reason. With --rag-strict it is a failure with the same text.

    Returns:
        whether this is the last report of an entry that was not found, and whether pytest calls the test a miss.
    """
    result = item.stash[RETRIEVAL]
    missed = call.when == "teardown" and not result.found
    if call.when != "call" or call.excinfo is None or not call.excinfo.errisinstance(AssertionError) or result.found:
        return missed, False
    from rag_harness.core.settings.profiles import MOCK
    from rag_harness.tables.wording import entry_failed, explain_miss, miss_line

    settings = item.config.stash[SESSION].settings
    # In a dry run the mock may have looked up: what it misses is nobody's fault.
    is_strict = settings.strict and not (settings.dry_run and settings.lookup_model.startswith(MOCK))
    if is_strict or not result.ok:
        command = f"pytest -vv {shlex.quote(item.nodeid)}"
        report.longrepr = entry_failed(result, command) if is_short(item.config) else explain_miss(result)
        return missed, False
    report.outcome = "skipped"
    path, line, _ = item.location
    report.longrepr = (path, line or 0, f"miss: {miss_line(result)}")
    # JUnit XML reads the properties from the teardown's report, other formats read them from this one.
    item.user_properties.append(("rag_outcome", "miss"))
    report.user_properties.append(("rag_outcome", "miss"))
    return missed, True
