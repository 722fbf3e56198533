"""The digest of this package, and the versions of libraries that decide results.

Rows, and what the cache keeps of files, languages, scores, causes and columns, are valid for one state of the package.
What ships or outlives a release is not: it has a revision (``revisions``).
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from time import time_ns

from rag_harness.files.atomic import write_atomically

DIGEST_FILE = "package.json"
"""The file in the cache. Reading the package takes ten times as long as looking at the sizes and times of its files."""
LIBRARIES = (
    "PyStemmer",
    "py3langid",
    "charset-normalizer",
    "jinja2",
    "jsonpath-rfc9535",
    "jsonschema",
    "mammoth",
    "markdown-it-py",
    "numpy",
    "onnxruntime",
    "openpyxl",
    "pypdf",
    "qdrant-client",
    "qdrant-edge-py",
    "sentence-transformers",
    "syrupy",
    "tiktoken",
    "tokenizers",
    "torch",
    "transformers",
)
"""Distributions that decide a text, a vector, an order, an answer or a score. Others carry bytes, check forms or show
results."""
_PACKAGE = Path(__file__).parents[1]
_YOUNG = 2 * 10**9
"""Nanoseconds. Clocks of file systems are coarse: a file may change twice within one tick. So times shortly before now
are not trusted."""
_INSTALLED = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.(?:dist|egg)-info")

_cache: list[Path] = []


def remember_in(folder: Path) -> None:
    """Keep the digest in ``folder`` for later processes."""
    _cache[:] = [folder]


@lru_cache(maxsize=1)
def package_digest() -> str:
    """Return the digest of all files of the package, as they are at the first call."""
    looks, last_change = _looks()
    files = [folder / DIGEST_FILE for folder in _cache]
    for file in files:
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(file.read_bytes())
            if kept["looks"] == looks:
                return str(kept["digest"])
    digest = _read()
    for file in files if time_ns() - last_change > _YOUNG else ():
        with suppress(OSError):  # the cache saves time and is never needed
            write_atomically(file, json.dumps({"looks": looks, "digest": digest}).encode())
    return digest


@lru_cache(maxsize=1)
def library_versions() -> dict[str, str]:
    """Return the version of each of ``LIBRARIES`` that is installed."""
    # importlib.metadata parses a file for each, which takes 20 times as long as reading the names of folders.
    wanted = {_normal(name): name for name in LIBRARIES}
    found: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError):  # an archive, or a missing folder
            for entry in os.listdir(folder):  # noqa: PTH208 - pathlib makes an object of each of a thousand names
                match = _INSTALLED.fullmatch(entry)
                name = wanted.get(_normal(match["name"])) if match else None
                if match and name:
                    found.setdefault(name, match["version"])
    return dict(sorted(found.items()))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _looks() -> tuple[str, int]:
    """Return a digest of names, sizes and times of all files, and the time of the last change in nanoseconds."""
    state, last = blake2b(digest_size=16), 0
    for entry in _files(str(_PACKAGE)):
        stat = entry.stat()
        state.update(f"{entry.path}\0{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}\n".encode())
        last = max(last, stat.st_mtime_ns, stat.st_ctime_ns)
    return state.hexdigest(), last


def _read() -> str:
    state = blake2b(digest_size=16)
    for entry in _files(str(_PACKAGE)):
        content = blake2b(Path(entry.path).read_bytes(), digest_size=16).hexdigest()
        state.update(f"{Path(entry.path).relative_to(_PACKAGE).as_posix()}\0{content}\n".encode())
    return state.hexdigest()


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield all files of the package in order. Byte code is made of them."""
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if not entry.is_dir():
            yield entry
        elif entry.name != "__pycache__":
            yield from _files(entry.path)
