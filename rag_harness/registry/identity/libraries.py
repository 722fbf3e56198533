"""Versions of the libraries that decide results."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_CALLED = {
    "Stemmer": "PyStemmer",
    "jsonpath_rfc9535": "jsonpath-rfc9535",
    "markdown_it": "markdown-it-py",
    "qdrant_edge": "qdrant-edge-py",
    "sklearn": "scikit-learn",
    "bs4": "beautifulsoup4",
    "PIL": "pillow",
}
"""Names on the package index, for packages that are imported under another name."""
ABSENT = "not installed"


def versions(imported: Iterable[str]) -> dict[str, str]:
    """Return the version of each package, by import name; ``ABSENT`` for a package that is not installed."""
    return {name: _version(name) for name in sorted(imported)}


@lru_cache(maxsize=256)
def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(_CALLED.get(name, name))
    except (PackageNotFoundError, ValueError):
        return ABSENT
