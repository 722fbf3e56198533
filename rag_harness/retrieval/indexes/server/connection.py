"""The client of the Qdrant server, and messages for its errors: what was found, and what to do."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from rag_harness.errors import CriticalError, PrerequisiteError, RagHarnessError, SettingsError
from rag_harness.models.recording.network_guard import LOOPBACK
from rag_harness.registry import missing_package
from rag_harness.settings import Settings

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
            f"rag_qdrant_url is {url!r}, which is no URL of a server. A local path is refused: Qdrant's file mode "
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
    """Return whether the server has no room left."""
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
            f"A key for Qdrant is set, but rag_qdrant_url is {parts.scheme}://{parts.hostname}: without TLS whoever is "
            f"on the way can read the key, so it is not sent. Use https://, or unset QDRANT_API_KEY if the server asks "
            f"for none."
        )
