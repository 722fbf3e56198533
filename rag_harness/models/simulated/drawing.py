"""Draws by digest: the same words give the same number, on every machine and in every version of Python."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

_T = TypeVar("_T")
_NAME = "known-faults"


def drawn(*words: object) -> float:
    """Return a number of at least 0 and less than 1, evenly spread over different ``words``."""
    said = "\0".join([_NAME, *map(str, words)])
    digest = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def one_of(items: Sequence[_T], *words: object) -> _T:
    """Return one of ``items``, which must not be empty."""
    return items[int(drawn(*words) * len(items))]
