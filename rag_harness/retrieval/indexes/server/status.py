"""The state of this package's collections on a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.retrieval.indexes.server.health import READS, shard_states
from rag_harness.retrieval.indexes.server.server_collection import (
    COLLECTION_PREFIX,
    POINTS,
    CollectionContent,
    content_told,
)

_BYTES = {"none": 4.0, "int8": 5.0, "binary": 4.125}
"""Bytes of each number of a vector: of the full vector, and of the quantized one besides it."""


@dataclass(frozen=True)
class CollectionState:
    """The state of one collection.

    Attributes:
        name: its alias.
        told: the content in its metadata; None for a collection of other origin, or an old one.
        points: number of points.
        shards: its shards, each with the states of its replicas.
        replicas: intended number of replicas of each shard.
        status: the server's status: green, yellow, grey or red.
        quantize: none, int8 or binary.
        published: whether the alias names it: all points were there.
    """

    name: str
    told: CollectionContent | None
    points: int
    shards: dict[int, list[tuple[str, str]]]
    replicas: int
    status: str
    quantize: str
    published: bool

    @property
    def vector_bytes(self) -> int:
        """Computed bytes of the vectors of all replicas, without graph and text. The server does not state them."""
        dimension = self.told.dimension if self.told else 0
        return int(self.points * dimension * _BYTES[self.quantize] * self.replicas)

    @property
    def faults(self) -> list[str]:
        """The reasons why a run cannot use it."""
        down = [shard for shard, copies in self.shards.items() if not any(state in READS for _, state in copies)]
        missing = self.told.chunks - self.points if self.told else 0
        said = {
            "no digest of this package's": self.told is None,
            f"shards without a living copy: {', '.join(map(str, down))}": bool(down),
            "status red": self.status == "red",
            f"{missing:,} chunks missing": missing > 0,
            f"{-missing:,} points too many": missing < 0,
            "not searched yet: its alias is switched when all points are there": not self.published,
        }
        return [fault for fault, is_so in said.items() if is_so]


def states(client: Any, names: Sequence[str] = ()) -> Iterator[CollectionState]:
    """Yield the state of this package's collections, sorted by name, or of the named ones.

    Raises:
        SettingsError: there is no collection of that name.
    """
    there = [each.name for each in client.get_collections().collections]
    ours = sorted(name.removesuffix(POINTS) for name in there if _is_ours(name))
    strange = sorted({*names} - {*ours})
    if strange:
        raise SettingsError(f"There is no collection {', '.join(strange)}. There are: {', '.join(ours) or 'none'}.")
    aliases = {each.alias_name for each in client.get_aliases().aliases}
    for name in names or ours:
        yield _state(client, name, name in aliases)


def drop(client: Any, name: str) -> None:
    """Remove a collection with its alias. A run that searches or fills it ends with an error.

    Raises:
        SettingsError: there is no collection of that name, or it does not belong to this package.
    """
    list(states(client, [name]))
    client.delete_collection(f"{name}{POINTS}")


def _is_ours(name: str) -> bool:
    return name.startswith(COLLECTION_PREFIX) and name.endswith(POINTS)


def _state(client: Any, name: str, published: bool) -> CollectionState:
    collection = f"{name}{POINTS}"
    info = client.get_collection(collection)
    config = info.config
    kind = type(config.quantization_config).__name__
    return CollectionState(
        name,
        content_told(info),
        int(client.count(collection, exact=True).count),
        shard_states(client, collection),
        int(config.params.replication_factor or 1),
        str(info.status),
        {"ScalarQuantization": "int8", "BinaryQuantization": "binary"}.get(kind, "none"),
        published,
    )
