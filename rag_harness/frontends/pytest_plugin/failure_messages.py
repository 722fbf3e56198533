"""Messages of failed tests: shortened, and printed once for all that failed alike."""

from __future__ import annotations

import copy
import hashlib
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.core.escaping import terminal_line
from rag_harness.frontends.pytest_plugin.items import trial_id_of, trial_of
from rag_harness.frontends.pytest_plugin.stash import (
    RESULT,
    RETRIEVAL,
    SESSION,
)

if TYPE_CHECKING:
    from rag_harness.records.row import ExperimentResult

FailureOf = Callable[[Any], tuple[str, str] | None]
"""Returns the digest of the message of a failed test, and its trial; None for another report."""

# The message of a failed trial. With ``-vv``, and where a traceback is asked for, it stays as it is.
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
def printed_once(terminal: pytest.TerminalReporter, failure_of: FailureOf) -> Iterator[None]:
    """Let pytest print failures that say the same once. What it counts stays.

    ``failure_of`` returns what a report carries of a failure: the digest of its message, and its trial.
    """
    names = [name for name in ("failed", "error") if name in terminal.stats]
    each: dict[str, list[Any]] = {name: terminal.stats[name] for name in names}
    terminal.stats.update((name, _first_of_each(reports, failure_of)) for name, reports in each.items())
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


def _first_of_each(reports: Sequence[Any], failure_of: FailureOf) -> list[Any]:
    """Return the reports without those that say what an earlier one says, which has their number."""
    by_said: dict[str, list[Any]] = {}
    for number, report in enumerate(reports):
        digest, _ = failure_of(report) or (str(number), "")
        by_said.setdefault(digest, []).append(report)
    return [_with_number(group, failure_of) if len(group) > 1 else group[0] for group in by_said.values()]


def _with_number(reports: Sequence[Any], failure_of: FailureOf) -> Any:
    """Return a copy of the first report that says how many are like it. Others still have the report itself."""
    from rag_harness.tables.wording import others_alike

    first = copy.copy(reports[0])
    below = terminal_line(others_alike([_trial(report, failure_of) for report in reports[1:]]))
    first.longrepr = _Numbered(first.longrepr, len(reports), below)
    return first


def _trial(report: Any, failure_of: FailureOf) -> str:
    _, trial = failure_of(report) or ("", "")
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
