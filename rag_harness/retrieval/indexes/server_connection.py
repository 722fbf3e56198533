"""Connection to a Qdrant server: options of cluster and graph, client, version, and messages for its errors."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import Field, dataclass, field, fields
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import urlsplit

from rag_harness.core.errors import CriticalError, PrerequisiteError, RagHarnessError, SettingsError, unknown
from rag_harness.core.registry import missing_package
from rag_harness.core.settings import Settings
from rag_harness.models.recording.playback import LOOPBACK

OLDEST = (1, 16)
"""The first version of the server with metadata of collections."""
_SAID = 300


def check_client(settings: Settings) -> None:
    """Check that the client is installed if the settings need it. It is not imported: that takes a second.

    Raises:
        PrerequisiteError: it is not installed; names the extra.
    """
    needs = settings.index == "memory" or (settings.qdrant_url and settings.index == "qdrant")
    if needs and find_spec("qdrant_client") is None:
        raise _missing(settings.qdrant_url, ModuleNotFoundError(name="qdrant_client"))


def connect(url: str, api_key: str, timeout: int = 30) -> Any:
    """Return a client of the server at ``url``; an empty ``url`` is the memory mode.

    Raises:
        SettingsError: the URL is invalid, or the key would be sent in clear.
        PrerequisiteError: the client is not installed; names the extra.
    """
    if url and not url.startswith(("http://", "https://")):
        raise SettingsError(
            f"rag_qdrant_url is {url!r}, which is not a URL of a server. A local path is refused: Qdrant's file mode "
            f"serves one process at a time, so workers would lock each other out. Leave it empty for an index in this "
            f"process, or give a server such as http://127.0.0.1:6333."
        )
    _refuse_open_key(url, api_key)
    try:
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise _missing(url, error) from error

    if not url:
        return QdrantClient(":memory:")
    with quiet():
        return QdrantClient(
            url=url,
            api_key=api_key or None,
            timeout=timeout,
            # The client's check runs in a thread and only warns. ``check_version`` does it before any request.
            check_compatibility=False,
            # Without TLS nothing needs verification, and reading the system's certificates takes 30 ms.
            verify=not url.startswith("http://"),
        )


def check_version(client: Any, url: str) -> None:
    """Check that the server supports the requests of the index.

    Raises:
        CriticalError: the server does not answer, or is too old.
    """
    with speaking("does not answer", url):
        found = str(client.info().version)
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers is None or tuple(map(int, numbers.groups())) < OLDEST:
        raise CriticalError(
            f"Qdrant at {url} is version {found}; {OLDEST[0]}.{OLDEST[1]} or newer is needed: older ones keep "
            f"no metadata that say what a collection holds. Upgrade the server, one minor version at a time."
        )


@contextmanager
def speaking(what: str, url: str) -> Iterator[None]:
    """Raise the client's errors with a clear message: ``The Qdrant index does not answer: …``."""
    try:
        yield
    except RagHarnessError:
        raise
    except Exception as error:
        raise CriticalError(f"The Qdrant index {what}: {explained(error, url)}") from error


def explained(error: Exception, url: str) -> str:
    """Return the meaning of a client's error, and what to do. It never contains the key."""
    source = getattr(error, "source", None) or error
    kind, status, where = type(source).__name__, status_of(error), url or "memory"
    if status is not None:
        return f"{where} {_of_status(status, error)}"
    if "Timeout" in kind:
        return f"{where} took too long ({kind}). Raise qdrant_cluster timeout=, or look at the server's load."
    if kind in ("ConnectError", "RemoteProtocolError", "ReadError", "WriteError", "ConnectionError"):
        return f"{where} cannot be reached ({kind}: {source}). Is it running, and is rag_qdrant_url right?"
    if kind == "JSONDecodeError" or (kind == "ValidationError" and source is not error):
        return f"{where} answers, and not as Qdrant does ({kind}). Is rag_qdrant_url right?"
    return f"{kind}: {source}"


def _of_status(status: int, error: Exception) -> str:
    said = _said(error)
    if is_full(error):
        return f"has no room left ({status}): {said}. Enlarge its volumes; the next run sends the points again."
    known = {
        401: f"refuses the key (401): {said}. Set QDRANT_API_KEY to one that may read and write.",
        403: f"refuses the key (403): {said}. Set QDRANT_API_KEY to one that may do this.",
        413: f"takes no request as large ({said}). Lower qdrant_cluster batch=.",
    }
    return known.get(status, f"answers {status}: {said}.")


def status_of(error: Exception) -> int | None:
    """Return the HTTP status of an error, or None without a response."""
    status = getattr(error, "status_code", None)
    return 429 if hasattr(error, "retry_after_s") else status


def is_full(error: Exception) -> bool:
    """Return whether the server has no space left."""
    return status_of(error) == 507 or (
        status_of(error) == 500
        and bool(re.search(r"no space left|disk.{0,200}(full|space)", _said(error), re.IGNORECASE))
    )


def _said(error: Exception) -> str:
    """Return the server's own words."""
    content = getattr(error, "content", None)
    if not isinstance(content, bytes):
        return str(error)[:_SAID]
    text = content.decode("utf-8", "replace")
    with suppress(ValueError, LookupError, TypeError):
        text = str(json.loads(text)["status"]["error"])
    return text[:_SAID].rstrip(". \n")


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress known warnings of the client."""
    with warnings.catch_warnings():
        # The memory mode warns above 20,000 points; the docs say when to use a server. The client also warns about
        # batches that are sent again.
        warnings.filterwarnings("ignore", message="Local mode is not recommended|Batch upload failed")
        # The memory mode has no payload indexes.
        warnings.filterwarnings("ignore", message="Payload indexes have no effect")
        # A key in clear is sent only to this machine, see _refuse_open_key.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        yield


def _missing(url: str, error: ImportError) -> PrerequisiteError:
    return PrerequisiteError(missing_package(f"index on the Qdrant server {url}" if url else "index 'memory'", error))


def _refuse_open_key(url: str, api_key: str) -> None:
    parts = urlsplit(url)
    if api_key and parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise SettingsError(
            f"A key for Qdrant is set, but rag_qdrant_url is {parts.scheme}://{parts.hostname}: without TLS anybody "
            f"on the way can read the key, so it is not sent. Use https://, or unset QDRANT_API_KEY if the server asks "
            f"for none."
        )


# Parser for ``qdrant_cluster`` and ``qdrant_graph``, as NAME=VALUE. It does not import Qdrant's client.

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
