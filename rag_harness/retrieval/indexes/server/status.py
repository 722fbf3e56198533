"""What a server has of this package's collections, and in which state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.retrieval.indexes.server.collection import PREFIX, Content, told_of
from rag_harness.retrieval.indexes.server.health import READS, shard_states
from rag_harness.retrieval.indexes.server.lease import Clock
from rag_harness.retrieval.indexes.server.ledger import LEDGER, Entry, Ledger
from rag_harness.retrieval.indexes.server.taking import Wanted, acquire

_BYTES = {"none": 4.0, "int8": 5.0, "binary": 4.125}
"""Bytes a number of a vector takes: the whole one, and the smaller one beside it."""


@dataclass(frozen=True)
class State:
    """One collection.

    Attributes:
        name: of the collection.
        told: what it says that it holds; None where it is none of ours, or older.
        points: how many there are.
        shards: its shards, each with the state of its copies.
        replicas: copies of each shard that there should be.
        status: the server's word: green, yellow, grey or red.
        quantize: none, int8 or binary.
        entry: who changed it last; None where nobody knows.
    """

    name: str
    told: Content | None
    points: int
    shards: dict[int, list[tuple[str, str]]]
    replicas: int
    status: str
    quantize: str
    entry: Entry | None

    @property
    def vector_bytes(self) -> int:
        """Bytes of all copies' vectors, worked out: the server does not tell; graph and text come on top."""
        dimension = self.told.dimension if self.told else 0
        return int(self.points * dimension * _BYTES[self.quantize] * self.replicas)

    @property
    def faults(self) -> list[str]:
        """What keeps a run from using it."""
        down = [shard for shard, copies in self.shards.items() if not any(state in READS for _, state in copies)]
        missing = self.told.chunks - self.points if self.told else 0
        said = {
            "no digest of this package's": self.told is None,
            f"shards without a living copy: {', '.join(map(str, down))}": bool(down),
            "status red": self.status == "red",
            f"{missing:,} chunks missing": missing > 0,
            f"{-missing:,} points too many": missing < 0,
            f"being changed by {self.entry.who if self.entry else ''}": bool(self.entry and self.entry.changing),
        }
        return [fault for fault, is_so in said.items() if is_so]


def states(client: Any, names: Sequence[str] = ()) -> Iterator[State]:
    """Yield the state of this package's collections by name, or of those that are named.

    Raises:
        SettingsError: there is none of that name.
    """
    there = sorted(each.name for each in client.get_collections().collections)
    ours = [name for name in there if name.startswith(PREFIX) and name != LEDGER]
    strange = sorted({*names} - {*ours})
    if strange:
        raise SettingsError(f"There is no collection {', '.join(strange)}. There are: {', '.join(ours) or 'none'}.")
    ledger = Ledger(client)
    for name in names or ours:
        yield _state(client, name, ledger.read(name))


def drop(client: Any, name: str, wait: float, clock: Clock | None = None) -> None:
    """Remove a collection, unless a run is changing it.

    Raises:
        SettingsError: there is none of that name, or it is none of this package's.
        CriticalError: a run is changing it, and still is after ``wait`` seconds.
    """
    list(states(client, [name]))
    ledger = Ledger(client)
    lease = acquire(ledger, Wanted(name, 0, wait), lambda: False, clock)
    assert lease is not None  # there is something to do
    client.delete_collection(name)
    lease.give_back()
    ledger.forget(name)


def _state(client: Any, name: str, entry: Entry | None) -> State:
    info = client.get_collection(name)
    config = info.config
    kind = type(config.quantization_config).__name__
    return State(
        name,
        told_of(info),
        int(client.count(name, exact=True).count),
        shard_states(client, name),
        int(config.params.replication_factor or 1),
        str(info.status),
        {"ScalarQuantization": "int8", "BinaryQuantization": "binary"}.get(kind, "none"),
        entry,
    )
