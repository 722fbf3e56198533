"""Packs the blocks of the page's data in threads, while later ones are still made: zlib releases Python's lock."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from rag_harness.page.payload.index import Payload
from rag_harness.page.payload.packed import packed, script_json

_THREADS = 2


class Packing:
    """The blocks of one page, by name.

    Args:
        is_plain: keep them as plain JSON, for browsers that cannot unpack gzip: about three times the size.

    Attributes:
        how: name of the packing for the script.
    """

    def __init__(self, is_plain: bool = False) -> None:
        self.how, self._pack = ("json", script_json) if is_plain else ("gzip", packed)
        self._threads = ThreadPoolExecutor(_THREADS, "rag-packing")
        self._begun: dict[str, Future[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)

    def begin(self, name: str, value: Any) -> None:
        """Begin to pack a finished block; ``value`` is plain JSON."""
        self._begun[name] = self._threads.submit(self._pack, value)

    def of(self, payload: Payload) -> Iterator[tuple[str, str]]:
        """Yield name and text of each block of a payload, in their order."""
        for name, value in payload.blocks():
            if name not in self._begun:
                self.begin(name, value)
        for name, _ in payload.blocks():
            yield name, self._begun[name].result()
