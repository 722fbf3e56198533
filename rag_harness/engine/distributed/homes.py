"""Each text is embedded by one worker of a run, its home: how the home is chosen, and how it answers the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from socket import gethostname
from typing import TypeAlias

from rag_harness.errors import PrerequisiteError
from rag_harness.models.embedders.cached import CachedEmbedder, Computed
from rag_harness.models.recording.store import key_of

POLL = 10.0
"""Seconds after which a home answers that it has not finished, so that a waiting worker knows that it lives."""


@dataclass(frozen=True)
class TextBatch:
    """Texts that go to a model together.

    Args:
        embedder: as options name it.
        made_by: model and revision on the worker that asks.
        texts: texts to embed.
        role: ``query`` or ``document``.
        with_tokens: whether token vectors are wanted too.
    """

    embedder: str
    made_by: tuple[str, str]
    texts: Sequence[str]
    role: str
    with_tokens: bool

    @cached_property
    def digest(self) -> bytes:
        """Digest of all fields."""
        return key_of(self.embedder, *self.made_by, self.role, str(self.with_tokens), *self.texts)


@dataclass(frozen=True)
class Waiting:
    """The answer of a home whose part is not done yet. ``done`` is the number of parts that it has finished."""

    done: int


ComputedOrWaiting: TypeAlias = "Computed | Waiting"


def copied(made: Computed) -> Computed:
    """Return a copy of the vectors that shares no memory with ``made``."""
    vectors, tokens = made
    return vectors.copy(), None if tokens is None else [each.copy() for each in tokens]


class Homes:
    """Assigns parts to workers. The same parts in the same order always get the same homes.

    The digest of a part names its first worker. Where that worker has had its share so far, the next one takes the
    part. The digest alone would give the busiest of 24 workers 16 % more than its share of 3,906 parts. The position
    alone would change nearly every home for a worker that asks for fewer parts, as it does where a dead worker has left
    some on its disk. With this rule two parts of five keep their home where a third of the parts is left out.

    Args:
        workers: how many there are.
    """

    def __init__(self, workers: int) -> None:
        self._dealt = [0] * workers

    def of(self, digest: bytes) -> int:
        """Return the number of a part's home."""
        first, count = int.from_bytes(digest, "big"), len(self._dealt)
        most = sum(self._dealt) // count + 1
        ring = ((first + step) % count for step in range(count))
        home = next(each for each in ring if self._dealt[each] < most)
        self._dealt[home] += 1
        return home


class Home:
    """Embeds parts, each once, and keeps them. It runs on the event loop of its process.

    The model runs in a thread of its own. Any other thread may belong to an experiment that waits for another home.

    Args:
        embedder: what makes one of its name.
    """

    def __init__(self, embedder: Callable[[str], CachedEmbedder]) -> None:
        self._embedder = embedder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rag-home")
        self._under_way: dict[bytes, asyncio.Future[Computed]] = {}
        self._made_by: dict[str, tuple[str, str]] = {}
        self._done = 0

    def made_by(self, embedder: str) -> tuple[str, str]:
        """Return model and revision of an embedder, found once: a revision may be the digest of the weights."""
        if embedder not in self._made_by:
            found = self._embedder(embedder)
            self._made_by[embedder] = found.model, found.revision
        return self._made_by[embedder]

    async def embed(self, part: TextBatch) -> ComputedOrWaiting:
        """Return vectors (n, d), and token vectors where they are wanted; or ``Waiting``, and the caller asks again.

        Raises:
            PrerequisiteError: this node has another model. Any other error is the model's own.
        """
        made = self._under_way.get(part.digest)
        if made is None:
            made = asyncio.get_running_loop().run_in_executor(self._thread, self._made, part)
            self._under_way[part.digest] = made
            made.add_done_callback(lambda ended: self._ended(part.digest, ended))
        await asyncio.wait([made], timeout=POLL)
        return made.result() if made.done() else Waiting(self._done)

    def close(self) -> None:
        """Begin nothing more; waiting callers get ``CancelledError``."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _made(self, part: TextBatch) -> Computed:
        if self.made_by(part.embedder) != part.made_by:
            raise PrerequisiteError(
                f"Node {gethostname()} was asked for vectors of {' '.join(part.made_by)} and has "
                f"{' '.join(self.made_by(part.embedder))}: give every node the same models."
            )
        return self._embedder(part.embedder).kept(part.texts, part.role, part.with_tokens)

    def _ended(self, digest: bytes, made: asyncio.Future[Computed]) -> None:
        self._done += 1
        del self._under_way[digest]
        if not made.cancelled():
            made.exception()  # read, for the caller may have left and asyncio would complain
