"""Digests of the data of a run: two runs with the same digests are about the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rag_harness.dataset.data import Data
    from rag_harness.plugin.session import RagSession
    from rag_harness.results.manifest import SkippedLines
    from rag_harness.types import Case

_FIRST_SKIPPED = 20
"""Number of skipped lines that ``run.json`` has as text."""


class RunData:
    """The data of a run by the names that ``run.json`` gives them: ``queries``, ``golden``, or that of named data."""

    def __init__(self, session: RagSession) -> None:
        self._session = session

    def name_of(self, suite: str) -> str:
        """Return the name of the data that a suite is asked about."""
        from rag_harness.results.manifest import PLAYED, QUERIES

        if suite == GOLDEN:
            return GOLDEN
        return (self._session.cases.data_of(suite) or QUERIES) + PLAYED * self._session.cases.is_played(suite)

    def own_cases_of(self, suite: str) -> str:
        """Return the name of a suite's own file of cases; empty if its answers owe what all to the same data owe."""
        is_own = suite != GOLDEN and not self._session.cases.is_like_its_data(suite)
        return f"{self.name_of(suite)}+{suite}" if is_own else ""

    def of(self, name: str) -> Data:
        """Return the data of that name; golden entries use the run's own data."""
        from rag_harness.results.manifest import PLAYED, QUERIES

        plain = name.removesuffix(PLAYED)
        return self._session.cases.data.get("" if plain in (QUERIES, GOLDEN) else plain)

    def cases(self, name: str) -> list[Case]:
        """Return the cases of the data of that name."""
        from rag_harness.results.manifest import PLAYED

        return self.of(name).scenarios if name.endswith(PLAYED) else self.of(name).cases

    def digests(self, names: Collection[str]) -> dict[str, str]:
        """Return the digests of the data that were used. Two runs are comparable if they share them."""
        found = {name: self.digest(name) for name in names}
        if self._session.settings.save or self._session.settings.compare:
            found |= self._documents(names)
        return found

    def digest(self, name: str) -> str:
        """Return the digest of a file of questions or golden entries.

        Raises:
            RagHarnessError, OSError: the file cannot be read.
        """
        from rag_harness.files.sources import file_digest

        if name != GOLDEN:
            return self.of(name).queries_digest
        settings = self._session.settings
        golden = settings.path(settings.golden)
        return settings.dataset or (file_digest(golden) if golden.is_file() else "")

    def skipped(self, names: Iterable[str]) -> dict[str, SkippedLines]:
        """Return the lines that were left out of each file of questions, where there are any."""
        from rag_harness.results.manifest import SkippedLines

        found = {name: self.of(name) for name in sorted(names) if name != GOLDEN}
        return {
            name: SkippedLines(
                file=data.queries_file.name, count=len(data.skipped), first=list(data.skipped[:_FIRST_SKIPPED])
            )
            for name, data in found.items()
            if data.skipped
        }

    def pages(self, name: str) -> str:
        """Return the digest of the documents that questions are about; empty if they cannot be read."""
        from rag_harness.errors import RagHarnessError

        try:
            return self.of(name).pages_digest
        except (RagHarnessError, OSError):
            return ""

    def languages(self, name: str) -> list[str]:
        """Return what to know about the languages of the documents; nothing if they cannot be read."""
        from rag_harness.errors import RagHarnessError

        try:
            return self.of(name).languages
        except (RagHarnessError, OSError):
            return []

    def _documents(self, names: Collection[str]) -> dict[str, str]:
        """Return the digests of the documents. Those of named data have its name as key."""
        from rag_harness.results.manifest import QUERIES

        own = {GOLDEN, QUERIES}
        return {"documents" if name in own else f"documents of {name}": self.of(name).digest for name in names}
