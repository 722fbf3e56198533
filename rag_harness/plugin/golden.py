"""The golden suite: entries of a file or a public collection, the retriever under test, misses that are no failures."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from rag_harness.plugin.stash import RETRIEVAL, SESSION

if TYPE_CHECKING:
    from rag_harness.golden.run import RetrievalCase, RetrievalResult
    from rag_harness.plugin.session import RagSession
    from rag_harness.protocols import Retriever


class GoldenSuite:
    """The golden suite of a run, in one process."""

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self.broken = ""

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the entries, in their order. Reading them builds nothing."""
        from rag_harness.golden.cases import golden_ids

        return golden_ids(self._session.parts.data())

    @property
    def slices(self) -> list[dict[str, str]]:
        """What gates can slice by, of each entry; builds nothing."""
        from rag_harness.golden.cases import golden_slices

        return golden_slices(self._session.parts.data())

    @cached_property
    def cases(self) -> dict[str, RetrievalCase]:
        """The entries, with what counts as found resolved to documents and chunks of this run."""
        from rag_harness.golden.cases import golden_cases

        return {
            case.case_id: case for case in golden_cases(self._session.parts.data(), self._session.parts.retrieval())
        }

    @cached_property
    def _retriever(self) -> Retriever:
        from rag_harness.golden.cases import check_cutoff
        from rag_harness.golden.retrievers import retriever_named
        from rag_harness.pipelines import known_experiments
        from rag_harness.retrieval.compatibility import check_compatible

        session, cases = self._session, self.cases
        retrieval = session.parts.retrieval()
        check_cutoff(retrieval)
        name = session.settings.retriever
        retriever = retriever_named(name, retrieval, session.experiment, known_experiments())
        if name != "bm25":
            queries = [case.query for case in cases.values()]
            retrieval.prepare(queries)
            check_compatible(retrieval, queries[0])
        return retriever

    def run(self, entry_id: str) -> RetrievalResult:
        """Retrieve for one entry.

        Raises:
            PrerequisiteError, CriticalError: golden set, index or model cannot be used.
        """
        from rag_harness.golden.run import run_retrieval

        settings = self._session.settings
        return run_retrieval(self.cases[entry_id], self._retriever, settings.retriever, settings.k)


def parametrize(metafunc: pytest.Metafunc, session: RagSession) -> None:
    """Make a test that uses ``rag_retrieval`` into one test a golden entry."""
    from rag_harness.errors import PrerequisiteError

    try:
        ids = session.golden.ids
    except PrerequisiteError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    metafunc.parametrize("rag_golden_id", ids, ids=[f"golden-{each}" for each in ids])


def judge_report(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Let a miss be skipped with the reason, and tolerated; with --rag-strict, a failure that explains itself."""
    result = item.stash.get(RETRIEVAL, None)
    if result is None:
        return
    if call.when == "teardown":
        vars(report).update(rag_retrieval=result.model_dump_json())
    if call.when != "call" or call.excinfo is None or not call.excinfo.errisinstance(AssertionError) or result.found:
        return
    from rag_harness.report.misses import explain_miss, miss_line

    if item.config.stash[SESSION].settings.strict or not result.ok:
        report.longrepr = explain_miss(result)
        return
    report.outcome = "skipped"
    path, line, _ = item.location
    report.longrepr = (path, line or 0, f"miss: {miss_line(result)}")
    # JUnit XML reads the properties off the teardown's report, others off this one.
    item.user_properties.append(("rag_outcome", "miss"))
    report.user_properties.append(("rag_outcome", "miss"))
    vars(report).update(rag_outcome="miss")
