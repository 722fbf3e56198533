"""The golden suite's section of the terminal summary, and its misses for --lf."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from rag_harness.plugin.screen import write_section
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession

_FEW = 5
_TEXTS = {"document": "documents", "query": "queries"}


def not_looked_up(session: RagSession, findings: RunFindings) -> Iterator[str]:
    """Say which questions of a golden set name no page, where one was looked up: a forgotten page is not seen."""
    if GOLDEN not in findings.tables:
        return
    from rag_harness.errors import DataError
    from rag_harness.gates.belonging import shown_place
    from rag_harness.report.wording import counted, listed

    data = session.cases.data.get("")
    try:
        left = data.golden_set.without_page
    except DataError:
        return  # workers have read it; since then somebody has edited it
    if left:
        name = counted(len(left), "question")
        verb, them = ("names", "it") if len(left) == 1 else ("name", "them")
        yield (
            f"{name} of {shown_place(session.settings, data.golden_file)} {verb} no page in context_reference, so the "
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
        from rag_harness.report.drafts import draft_lines
        from rag_harness.report.golden_summary import golden_lines

        lines = [self._about_retrieval()]
        if GOLDEN in self._findings.tables:
            table = self._findings.tables[GOLDEN]
            lines += [*golden_lines(table, self._findings.retrievals), *draft_lines({GOLDEN: table})]
        lines += not_looked_up(self._session, self._findings)
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
        """Let --lf run misses again. They are no failures, and pytest's cache forgets skipped tests."""
        yield
        # The attribute is missing if the user switched the cache off.
        cache = getattr(session.config, "cache", None)
        if cache is None:
            return
        failed: dict[str, bool] = cache.get("cache/lastfailed", {})
        missed = dict.fromkeys(self._recorder.missed, True)
        if missed:
            cache.set("cache/lastfailed", {**failed, **missed})
