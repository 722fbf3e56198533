"""The languages found in documents, kept in the cache: finding those of a long text takes longer than reading it.

A file holds the shares of one text as JSON. Its folder is named by the digest of the package, its name is the digest of
the text. So another text or another package has another file, and nothing becomes stale. No file is forced to the disk,
which would take longer than most texts: where a power cut tears one, it is no JSON object, and the text is read again.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path

from rag_harness.files.atomic import write_atomically
from rag_harness.files.cache_folder import note_use
from rag_harness.files.regular import regular_bytes
from rag_harness.registry.package_digest import package_digest
from rag_harness.words.language import shares

_FOLDER = "languages"


def shares_kept_in(cache: Path | None, writes: bool) -> Callable[[str], dict[str, float]]:
    """Return ``shares``, which reads its results from the folder of a cache where they are there.

    Args:
        cache: the folder of the cache; None keeps nothing.
        writes: whether the cache may be written.
    """
    if cache is None or not (writes or (cache / _FOLDER).is_dir()):
        return shares
    folder = cache / _FOLDER / _found_by()
    if writes:
        note_use(folder)
    return partial(_shares, folder, writes)


def _shares(folder: Path, writes: bool, text: str) -> dict[str, float]:
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    place = folder / digest[:2] / digest[2:]
    found = _kept(place)
    if found is None:
        found = shares(text)
        if writes:
            _keep(place, found)
    return found


def _kept(place: Path) -> dict[str, float] | None:
    with suppress(OSError, ValueError):
        found = json.loads(regular_bytes(place))
        if isinstance(found, dict):
            return found
    return None


def _keep(place: Path, found: dict[str, float]) -> None:
    with suppress(OSError):  # the disk is full, or refuses: the text is read again next time
        write_atomically(place, json.dumps(found).encode())


@lru_cache
def _found_by() -> str:
    """Name everything that decides the languages: this package, and Python, whose releases bring other letters."""
    return f"{package_digest()}-{platform.python_version()}"
