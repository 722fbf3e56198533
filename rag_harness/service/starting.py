"""The collections of a server that is starting: requests before the documents are loaded get 503."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.service.problems import ProblemError

if TYPE_CHECKING:
    from rag_harness.service.corpus.corpora import Corpora
    from rag_harness.service.serviced import ServedCollection

_COME_BACK_S = 5


class Starting:
    """Collections that are being opened; once they are open, they are those of ``corpora``.

    Args:
        corpora: the collections, not yet opened.
    """

    def __init__(self, corpora: Corpora) -> None:
        self._corpora, self._is_open = corpora, False

    @property
    def progress(self) -> str:
        """How far the loading is; empty where that is not known yet, or all is loaded."""
        return "" if self._is_open else self._corpora.loading.text

    async def open(self) -> None:
        """Open them; see :meth:`Corpora.open`."""
        await self._corpora.open()
        self._is_open = True

    def get(self, name: str) -> ServedCollection:
        """Return a collection; KeyError if it does not exist.

        Raises:
            ProblemError: 503 until the collections are open.
        """
        self._check()
        return self._corpora.get(name)

    async def create(self, name: str) -> ServedCollection:
        """Return a collection; it is made if it does not exist.

        Raises:
            ProblemError: 503 until the collections are open.
        """
        self._check()
        return await self._corpora.create(name)

    def _check(self) -> None:
        if not self._is_open:
            far = self.progress or "its documents are being loaded"
            detail = f"This server is starting: {far}. Ask again in {_COME_BACK_S} s."
            raise ProblemError(503, "starting", detail, {"Retry-After": str(_COME_BACK_S)})
