"""What ``rag_qdrant_cluster`` and ``rag_qdrant_graph`` say, as NAME=VALUE; read without Qdrant's client."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from hashlib import blake2b
from typing import Any, TypeVar

from rag_harness.errors import SettingsError, unknown
from rag_harness.settings import Settings

T = TypeVar("T")


def _one(default: T, allowed: str, says: str) -> T:
    """Declare an option: its default, the pattern of its values and those in words."""
    made: T = field(default=default, metadata={"allowed": allowed, "says": says})
    return made


@dataclass(frozen=True)
class ClusterOptions:
    """How a collection is spread and written; the answers of an exact search do not depend on it.

    Attributes:
        shards: pieces that the points are spread over; 0 leaves it to the server.
        replicas: copies of each shard, on as many nodes.
        write_consistency: copies that must have a write before it counts.
        read_consistency: copies that must agree on an answer; empty asks one.
        tenant: key of the chunks' metadata that parts tenants, which the server then stores side by side.
        on_disk: whether vectors stay on disk, and memory holds what was read last.
        batch: points a request.
        parallel: requests in flight.
        timeout: seconds a request may take.
        wait: seconds to wait for another run that is changing the collection, and for the server to be ready.
    """

    shards: int = _one(0, r"\d{1,4}", "a whole number")
    replicas: int = _one(1, r"[1-9]\d?", "a whole number from 1")
    write_consistency: int = _one(1, r"[1-9]\d?", "a whole number from 1")
    read_consistency: str = _one("", r"majority|quorum|all|[1-9]\d?", "majority, quorum, all or a number of copies")
    tenant: str = _one("", r"[\w.-]+", "a key of the chunks' metadata")
    on_disk: bool = _one(False, r"yes|no", "yes or no")
    batch: int = _one(256, r"[1-9]\d{0,4}", "a whole number from 1")
    parallel: int = _one(4, r"[1-9]\d?", "a whole number from 1 to 99")
    timeout: int = _one(30, r"[1-9]\d{0,4}", "seconds")
    wait: int = _one(600, r"\d{1,6}", "seconds")


@dataclass(frozen=True)
class GraphOptions:
    """How a collection is searched by its graph, instead of by comparing with every vector.

    Attributes:
        m: edges a point has in the graph.
        ef_construct: candidates that are looked at for each point when the graph is made.
        ef: candidates that a search looks at.
        quantize: what the graph is walked on: ``none``, ``int8`` (a quarter of the memory) or ``binary`` (a 32nd).
        rescore: whether what was found by smaller vectors is scored by the whole ones.
        oversampling: how many times as many are found by smaller vectors, to be scored by the whole ones.
    """

    m: int = _one(16, r"[1-9]\d{0,2}", "a whole number from 1")
    ef_construct: int = _one(100, r"[1-9]\d{0,3}", "a whole number from 1")
    ef: int = _one(128, r"[1-9]\d{0,3}", "a whole number from 1")
    quantize: str = _one("none", r"none|int8|binary", "none, int8 or binary")
    rescore: bool = _one(True, r"yes|no", "yes or no")
    oversampling: float = _one(2.0, r"[1-9]\d?(\.\d+)?", "a number from 1")

    @property
    def name(self) -> str:
        """Name what decides the graph: collections whose graphs differ are different collections."""
        return blake2b(f"{self.m} {self.ef_construct} {self.quantize}".encode(), digest_size=4).hexdigest()


def cluster_options(settings: Settings) -> ClusterOptions:
    """Return what ``rag_qdrant_cluster`` says.

    Raises:
        SettingsError: a name or a value is none, or more copies must have a write than there are.
    """
    made = ClusterOptions(**_read("rag_qdrant_cluster", settings.qdrant_cluster, fields(ClusterOptions)))
    if made.write_consistency > made.replicas:
        raise SettingsError(
            f"rag_qdrant_cluster has write_consistency={made.write_consistency} but replicas={made.replicas}: no write "
            f"could ever reach as many copies. Make it {made.replicas} at most."
        )
    return made


def graph_options(settings: Settings) -> GraphOptions | None:
    """Return what ``rag_qdrant_graph`` says; None where every vector is compared.

    What is recorded must be found again on any machine, and two graphs over the same vectors differ: a recording run
    and its replay compare with every vector, whatever the option says.

    Raises:
        SettingsError: a name or a value is none.
    """
    read = _read("rag_qdrant_graph", settings.qdrant_graph, fields(GraphOptions))
    exact = not (settings.qdrant_url and settings.qdrant_graph) or settings.mode in ("record", "replay")
    return None if exact else GraphOptions(**read)


def _read(option: str, given: Iterable[str], known: Iterable[Field[Any]]) -> dict[str, Any]:
    names = {each.name: each for each in known}
    parts = [part for text in given for part in re.split(r"[,\s]+", text) if part]
    return dict(_value(option, part, names) for part in parts)


def _value(option: str, part: str, names: Mapping[str, Field[Any]]) -> tuple[str, Any]:
    name, equals, text = part.partition("=")
    if not equals or name not in names:
        raise SettingsError(f"{option} has {part!r}. {unknown('name', name, names)} Write NAME=VALUE.")
    about = names[name]
    if not re.fullmatch(about.metadata["allowed"], text):
        raise SettingsError(f"{option} has {part!r}, but {name} is {about.metadata['says']}.")
    default: Any = about.default
    return name, text == "yes" if isinstance(default, bool) else type(default)(text)
