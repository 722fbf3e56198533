"""The collections of a server from its first moment on: until its documents are loaded, whoever asks is told so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.service.problems import ProblemError

if TYPE_CHECKING:
    from rag_harness.service.corpus.corpora import Corpora
    from rag_harness.service.serviced import Collection

_COME_BACK_S = 5


class Starting:
    """Collections that are being opened, and afterwards are those of ``corpora``.

    Args:
        corpora: not yet opened.
    """

    def __init__(self, corpora: Corpora) -> None:
        self._corpora, self._is_open = corpora, False

    async def open(self) -> None:
        """Open them; see :meth:`Corpora.open`."""
        await self._corpora.open()
        self._is_open = True

    def get(self, name: str) -> Collection:
        """Return a collection; KeyError where there is none.

        Raises:
            ProblemError: 503 until they are open.
        """
        self._check()
        return self._corpora.get(name)

    async def create(self, name: str) -> Collection:
        """Return a collection, made where there is none.

        Raises:
            ProblemError: 503 until they are open.
        """
        self._check()
        return await self._corpora.create(name)

    def _check(self) -> None:
        if not self._is_open:
            detail = f"This server is starting: its documents are being loaded. Ask again in {_COME_BACK_S} s."
            raise ProblemError(503, "starting", detail, {"Retry-After": str(_COME_BACK_S)})
