"""Shortens what pytest says of a failed trial. With ``-vv``, and where a traceback is asked for, it stays as it is.

pytest shows the test's code and each value in it, a whole result among them. A run of 200 failed trials has 2,700 lines
of that. What the person's own assertion says stays.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.plugin.stash_keys import SESSION, SHIPPED

if TYPE_CHECKING:
    from rag_harness.results.row import ExperimentResult

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


def shorten(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Replace what pytest says of a test that failed because something that it asserts does not hold."""
    shipped, raised = item.stash.get(SHIPPED, None), call.excinfo
    if call.when != "call" or not report.failed or shipped is None or raised is None or not is_short(item.config):
        return
    if not isinstance(raised.value, (AssertionError, pytest.fail.Exception)):
        return  # the test itself has an error: its traceback says where
    from rag_harness.report.failed_message import trial_failed

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
