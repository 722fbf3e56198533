"""Parser for ``qdrant_cluster`` and ``qdrant_graph``, as NAME=VALUE. It does not import Qdrant's client."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from hashlib import blake2b
from typing import Any, TypeVar

from rag_harness.errors import SettingsError, unknown
from rag_harness.settings import Settings

_T = TypeVar("_T")


def _one(default: _T, allowed: str, says: str) -> _T:
    """Declare an option: its default, and its values as a pattern and in words."""
    made: _T = field(default=default, metadata={"allowed": allowed, "says": says})
    return made


@dataclass(frozen=True)
class ClusterOptions:
    """Options of sharding and writing. The results of an exact search do not depend on them.

    Attributes:
        shards: number of shards; 0 leaves it to the server.
        replicas: replicas of each shard, each on another node.
        write_consistency: replicas that must have a write before it counts.
        read_consistency: replicas that must agree on an answer; empty asks one.
        tenant: key in the chunks' metadata that names the tenant. The server stores each tenant's points together.
        on_disk: whether vectors stay on disk, with only the latest in memory.
        batch: points in a request.
        timeout: seconds that a request may take.
        wait: seconds to wait until the server is ready after the last point.
    """

    shards: int = _one(0, r"\d{1,4}", "a whole number")
    replicas: int = _one(1, r"[1-9]\d?", "a whole number from 1")
    write_consistency: int = _one(1, r"[1-9]\d?", "a whole number from 1")
    read_consistency: str = _one("", r"majority|quorum|all|[1-9]\d?", "majority, quorum, all or a number of copies")
    tenant: str = _one("", r"[\w.-]+", "a key of the chunks' metadata")
    on_disk: bool = _one(False, r"yes|no", "yes or no")
    batch: int = _one(256, r"[1-9]\d{0,4}", "a whole number from 1")
    timeout: int = _one(30, r"[1-9]\d{0,4}", "seconds")
    wait: int = _one(600, r"\d{1,6}", "seconds")


@dataclass(frozen=True)
class GraphOptions:
    """Options of a search by graph, in place of an exact search.

    Attributes:
        m: edges of a point in the graph.
        ef_construct: candidates for each point when the graph is built.
        ef: candidates of a search.
        quantize: vectors of the graph search: ``none``, ``int8`` (a quarter of the memory) or ``binary`` (a 32nd).
        rescore: whether candidates found by quantized vectors are scored with the full ones.
        oversampling: how many times as many candidates are found by quantized vectors before rescoring.
    """

    m: int = _one(16, r"[1-9]\d{0,2}", "a whole number from 1")
    ef_construct: int = _one(100, r"[1-9]\d{0,3}", "a whole number from 1")
    ef: int = _one(128, r"[1-9]\d{0,3}", "a whole number from 1")
    quantize: str = _one("none", r"none|int8|binary", "none, int8 or binary")
    rescore: bool = _one(True, r"yes|no", "yes or no")
    oversampling: float = _one(2.0, r"[1-9]\d?(\.\d+)?", "a number from 1")

    @property
    def name(self) -> str:
        """A name of the options that decide the graph. Other options give another collection."""
        return blake2b(f"{self.m} {self.ef_construct} {self.quantize}".encode(), digest_size=4).hexdigest()


def cluster_options(settings: Settings) -> ClusterOptions:
    """Return the options of ``qdrant_cluster``.

    Raises:
        SettingsError: a name or a value is invalid, or a write needs more replicas than there are.
    """
    made = ClusterOptions(**_read("qdrant_cluster", settings.qdrant_cluster, fields(ClusterOptions)))
    if made.write_consistency > made.replicas:
        raise SettingsError(
            f"qdrant_cluster has write_consistency={made.write_consistency} but replicas={made.replicas}: no write "
            f"could ever reach as many copies. Make it {made.replicas} at most."
        )
    return made


def graph_options(settings: Settings) -> GraphOptions | None:
    """Return the options of ``qdrant_graph``, or None for an exact search.

    A recording must be found on any machine, but two graphs over the same vectors differ. So recording and replay
    always search exactly, whatever the option says.

    Raises:
        SettingsError: a name or a value is invalid.
    """
    read = _read("qdrant_graph", settings.qdrant_graph, fields(GraphOptions))
    exact = not (settings.qdrant_url and settings.qdrant_graph) or settings.mode in ("record", "replay")
    return None if exact else GraphOptions(**read)


def _read(option: str, given: Iterable[str], known: Iterable[Field[Any]]) -> dict[str, Any]:
    names = {each.name: each for each in known}
    parts = [part for text in given for part in re.split(r"[,\s]+", text) if part]
    return dict(_value(option, part, names) for part in parts)


def _value(option: str, part: str, names: Mapping[str, Field[Any]]) -> tuple[str, Any]:
    name, equals, text = part.partition("=")
    if (option, name) == ("qdrant_cluster", "parallel"):
        raise SettingsError(
            "qdrant_cluster has no parallel: the workers of `rag-harness ingest --engine=ray --ray-workers=N` send "
            "at the same time."
        )
    if not equals or name not in names:
        raise SettingsError(f"{option} has {part!r}. {unknown('name', name, names)} Write NAME=VALUE.")
    about = names[name]
    if not re.fullmatch(about.metadata["allowed"], text):
        raise SettingsError(f"{option} has {part!r}, but {name} is {about.metadata['says']}.")
    default: Any = about.default
    return name, text == "yes" if isinstance(default, bool) else type(default)(text)
