"""What the data of a run were, as digests: two runs are about the same where these are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from collections.abc import Collection

    from rag_harness.dataset.data import Data
    from rag_harness.plugin.session import RagSession


class RunData:
    """The data of a run by the names that ``run.json`` gives them: ``queries``, ``golden``, or that of named data."""

    def __init__(self, session: RagSession) -> None:
        self._session = session

    def name_of(self, suite: str) -> str:
        """Return the name of the data that a suite is asked about."""
        from rag_harness.results.manifest import QUERIES

        return GOLDEN if suite == GOLDEN else self._session.data_of(suite) or QUERIES

    def of(self, name: str) -> Data:
        """Return the data of that name; golden entries are about the run's own."""
        from rag_harness.results.manifest import QUERIES

        return self._session.data.get("" if name in (QUERIES, GOLDEN) else name)

    def digests(self, names: Collection[str]) -> dict[str, str]:
        """Return what two runs must share to be comparable, of the data that were used."""
        found = {name: self.digest(name) for name in names}
        if self._session.settings.save or self._session.settings.compare:
            found |= self._documents(names)
        return found

    def digest(self, name: str) -> str:
        """Return the digest of a file of questions or golden entries.

        Raises:
            RagHarnessError, OSError: it cannot be read.
        """
        from rag_harness.files.sources import file_digest

        if name != GOLDEN:
            return self.of(name).queries_digest
        settings = self._session.settings
        golden = settings.path(settings.golden)
        return settings.dataset or (file_digest(golden) if golden.is_file() else "")

    def pages(self, name: str) -> str:
        """Return the digest of the files of documents that questions are about; empty where they cannot be read."""
        from rag_harness.errors import RagHarnessError

        try:
            return self.of(name).pages_digest
        except (RagHarnessError, OSError):
            return ""

    def _documents(self, names: Collection[str]) -> dict[str, str]:
        """Return the digests of the documents; those of named data stand under its name."""
        from rag_harness.results.manifest import QUERIES

        own = {GOLDEN, QUERIES}
        return {"documents" if name in own else f"documents of {name}": self.of(name).digest for name in names}
