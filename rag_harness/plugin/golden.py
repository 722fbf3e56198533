"""The reports of the golden suite's tests. A miss is not a failure, and says why it is a miss."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rag_harness.plugin.stash_keys import RETRIEVAL, SESSION

if TYPE_CHECKING:
    import pytest


def judge_report(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Report a miss as skipped, with its reason. With --rag-strict it is a failure with the same text."""
    result = item.stash.get(RETRIEVAL, None)
    if result is None:
        return
    if call.when == "teardown" and not result.found:
        vars(report).update(rag_missed=True)
    if call.when != "call" or call.excinfo is None or not call.excinfo.errisinstance(AssertionError) or result.found:
        return
    from rag_harness.plugin.failed_trial import is_short
    from rag_harness.report.failed_message import entry_failed
    from rag_harness.report.misses import explain_miss, miss_line
    from rag_harness.settings.profiles import MOCK

    settings = item.config.stash[SESSION].settings
    # In a dry run the mock may have looked up: what it misses is nobody's fault.
    is_strict = settings.strict and not (settings.dry_run and settings.lookup_model.startswith(MOCK))
    if is_strict or not result.ok:
        command = f"pytest -vv {shlex.quote(item.nodeid)}"
        report.longrepr = entry_failed(result, command) if is_short(item.config) else explain_miss(result)
        return
    report.outcome = "skipped"
    path, line, _ = item.location
    report.longrepr = (path, line or 0, f"miss: {miss_line(result)}")
    # JUnit XML reads the properties from the teardown's report, other formats read them from this one.
    item.user_properties.append(("rag_outcome", "miss"))
    report.user_properties.append(("rag_outcome", "miss"))
    vars(report).update(rag_outcome="miss")
