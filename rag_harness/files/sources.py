"""Digests: of a file, of a text, and of the source of a module with what it imports from beside and below it."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def file_digest(file: Path) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of a file, as publishers of weights state it; read in pieces, for it may be gigabytes."""
    state = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def text_digest(text: str) -> str:
    """Return the digest of a text; halves of characters count too."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def json_digest(value: Any) -> str:
    """Return the digest of what JSON can hold, whatever the order of its keys; what it cannot hold counts as text."""
    return text_digest(json.dumps(value, sort_keys=True, default=str))


@lru_cache
def source_digest(module: str) -> str:
    """Return the digest of a module's source, and of what it imports from beside and below it.

    Empty for Python's own. Ends of lines do not count: a checkout may have changed them.
    """
    start = None if module.partition(".")[0] in sys.stdlib_module_names else _file_of(module)
    if start is None:
        return ""
    # What lies beside a module that was installed by itself is other people's.
    room = start if start.parent.name == "site-packages" else start.parent
    above = module.count(".") + (start.name == "__init__.py")
    top = start.parents[min(above, len(start.parents) - 1)]
    found: dict[Path, bytes] = {}
    waiting = sorted(start.parent.glob("*.py")) if start.name == "__init__.py" else [start]
    while waiting:
        file = waiting.pop()
        if file not in found and file.is_relative_to(room):
            found[file] = file.read_bytes().replace(b"\r\n", b"\n")
            waiting += _imported_files(file, found[file], top)
    return hashlib.blake2b(b"\0".join(found[file] for file in sorted(found)), digest_size=8).hexdigest()


def _file_of(module: str) -> Path | None:
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if loaded:
        return Path(loaded)
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec and spec.origin and Path(spec.origin).is_file() else None


# Read as text: parsing a hundred files costs every process of a run 0.3 s, and here a name too many does no harm.
_FROM = re.compile(r"(?:^|;)[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|(?:[^\n#;\\]|\\\r?\n)+)", re.M)
_IMPORT = re.compile(r"(?:^|;)[ \t]*import[ \t]+((?:[^\n#;\\]|\\\r?\n)+)", re.M)
_COMMENT = re.compile(r"#[^\n]*")
_NAME = re.compile(r"[\w.]+")


def _imported_files(file: Path, source: bytes, top: Path) -> Iterator[Path]:
    """Yield the files that ``file`` imports from below ``top``, found by their paths: nothing is imported for it."""
    for base, name in _imports(source.decode("utf-8", "replace"), file, top):
        target = base.joinpath(*name.split("."))
        yield from (found for found in (target.with_suffix(".py"), target / "__init__.py") if found.is_file())


def _imports(source: str, file: Path, top: Path) -> Iterator[tuple[Path, str]]:
    for match in _IMPORT.finditer(source):
        yield from ((top, name) for name in _names(match[1]))
    for dots, module, names in _FROM.findall(source):
        base = file.parents[len(dots) - 1] if dots else top
        prefix = f"{module}." if module else ""
        yield from ((base, f"{prefix}{name}") for name in _names(names))
        if module:
            yield base, module


def _names(listed: str) -> Iterator[str]:
    """Yield what is imported, by its own name: ``a as b, c`` is ``a`` and ``c``."""
    for part in _COMMENT.sub("", listed).strip("() \t\r\n").split(","):
        name = _NAME.search(part)
        if name is not None:
            yield name[0]
