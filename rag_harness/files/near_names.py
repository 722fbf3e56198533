"""The name that somebody probably meant, of those that are beside a file or folder that is not there."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

from rag_harness.errors import name_meant

_MOST = 2_000
"""How many names of a folder are looked at."""


def meant_beside(place: Path, is_one: Callable[[Path], bool] = Path.is_file) -> str:
    """Return `` Did you mean 'queries.jsonl'?`` of a place that is not there; empty where no name is near.

    Args:
        place: file or folder that was named.
        is_one: whether a place is of the kind that was meant: ``Path.is_file``, ``Path.is_dir``.
    """
    try:
        beside = [each for each in islice(place.parent.iterdir(), _MOST) if is_one(each)]
    except OSError:
        return ""
    # The ending would make any two names of a kind alike.
    by_stem = {each.stem: each.name for each in beside}
    found = name_meant(place.stem, by_stem)
    return f" Did you mean {by_stem[found]!r}?" if found else ""
