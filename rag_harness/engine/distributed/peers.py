"""Has texts embedded by their homes while an experiment is prepared, and by this worker where a home is lost."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from rag_harness.engine.distributed.homes import POLL, ComputedOrWaiting, Home, Homes, TextBatch, Waiting
from rag_harness.engine.distributed.remote import WorkerLostError
from rag_harness.files.log import log
from rag_harness.models.embedders.cached import CachedEmbedder, Computed, EmbedElsewhere
from rag_harness.models.meter import Meter
from rag_harness.pipelines.parts import RunParts
from rag_harness.settings import Settings

AHEAD = 2
"""Parts that each home is asked for in advance, so that it has the next one when it has finished one. Where the first
is slow, all may be in memory at once: 0.5 MB each, and 20 MB with token vectors."""
SILENCE = 60.0
"""Seconds beyond ``POLL`` that a worker may be silent; then it counts as gone."""
STANDSTILL = 600.0
"""Seconds that a home may finish nothing; then this worker embeds the part itself."""


class Peer(Protocol):
    """A worker of the run, as the others see it."""

    name: str

    async def embed(self, part: TextBatch) -> ComputedOrWaiting:
        """See ``homes.Home.embed``; raises ``WorkerLostError`` where it is gone."""
        ...


class Spread:
    """Embeds texts together with the other workers: asks them for vectors, and is asked by them.

    Args:
        name: of this worker.
        embedder: what makes one of its name.
    """

    def __init__(self, name: str, embedder: Callable[[str], CachedEmbedder]) -> None:
        self.home: Home = Home(embedder)
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._peers: Sequence[Peer] = ()
        self._gone: set[str] = set()
        self._this = threading.local()

    def meet(self, peers: Sequence[Peer]) -> None:
        """Learn the workers of the run, with this one among them. The order is the same for all workers."""
        self._peers = tuple(peers)

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Let other workers embed the texts of this thread inside the block. A trial's single text is faster here."""
        self._this.prepares = True
        try:
            yield
        finally:
            self._this.prepares = False

    def elsewhere(self, embedder: str, itself: CachedEmbedder) -> EmbedElsewhere:
        """Return what the embedder of this name asks instead of its model."""

        def computed(texts: Sequence[Sequence[str]], role: str, with_tokens: bool) -> Iterator[Computed]:
            if len(self._peers) < 2 or not getattr(self._this, "prepares", False):
                return (itself.kept(each, role, with_tokens) for each in texts)
            made_by = self.home.made_by(embedder)
            return self._computed(TextBatch(embedder, made_by, each, role, with_tokens) for each in texts)

        return computed

    def _computed(self, parts: Iterable[TextBatch]) -> Iterator[Computed]:
        homes, waiting = Homes(len(self._peers)), deque[Future[Computed]]()
        try:
            for part in parts:
                asked = self._asked(part, homes.of(part.digest))
                waiting.append(asyncio.run_coroutine_threadsafe(asked, self._loop))
                if len(waiting) >= AHEAD * len(self._peers):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()

    async def _asked(self, part: TextBatch, home: int) -> Computed:
        while (peer := self._peer(part, home)).name != self._name:
            try:
                return await _of(peer, part)
            except (WorkerLostError, TimeoutError, asyncio.TimeoutError) as error:
                log.warning("Worker %s is asked for no more vectors: %s", peer.name, error or type(error).__name__)
                self._gone.add(peer.name)
            except Exception as error:
                # The fault may be the text's or the other node's. This node's model will show which.
                log.warning("Worker %s has not embedded %d texts: %s", peer.name, len(part.texts), error)
                break
        return await self._here(part)

    def _peer(self, part: TextBatch, home: int) -> Peer:
        """Return the worker at ``home``. Where it is gone, the digest chooses another, the same for all who ask."""
        if self._peers[home].name not in self._gone:
            return self._peers[home]
        there = [peer for peer in self._peers if peer.name not in self._gone]
        return there[int.from_bytes(part.digest[:8], "big") % len(there)]

    async def _here(self, part: TextBatch) -> Computed:
        while isinstance(said := await self.home.embed(part), Waiting):
            pass
        return said


async def _of(peer: Peer, part: TextBatch) -> Computed:
    done, since = -1, monotonic()
    while isinstance(said := await asyncio.wait_for(peer.embed(part), POLL + SILENCE), Waiting):
        if said.done != done:
            done, since = said.done, monotonic()
        elif monotonic() - since > STANDSTILL:
            raise TimeoutError(f"it has finished nothing for {STANDSTILL:.0f} s")
    return said


class SpreadParts(RunParts):
    """The parts of a run in one of its workers. Several threads may ask for the same embedder at once.

    Args:
        settings: of the run.
        name: of the worker.
        meter: budget and limiters.
    """

    def __init__(self, settings: Settings, name: str, meter: Meter) -> None:
        super().__init__(settings, meter=meter)
        self._making = threading.RLock()
        self.spread: Spread = Spread(name, self.embedder)

    def embedder(self, model: str = "") -> CachedEmbedder:
        """Return the embedder of ``model``; of the options' model where none is named."""
        name = model or self.settings.embed_model
        with self._making:
            made = super().embedder(name)
            made.elsewhere = made.elsewhere or self.spread.elsewhere(name, made)
            return made
