"""Assigns a kind to each page: the shares are met as closely as whole pages allow, in a random order."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random


def kinds_of(count: int, shares: Mapping[str, float], chance: Random) -> list[str]:
    """Return a kind for each of ``count`` pages."""
    exact = {kind: share * count / sum(shares.values()) for kind, share in shares.items() if share}
    whole = {kind: int(number) for kind, number in exact.items()}
    by_rest = sorted(exact, key=lambda kind: whole[kind] - exact[kind])
    for kind in by_rest[: count - sum(whole.values())]:
        whole[kind] += 1
    kinds = [kind for kind, number in whole.items() for _ in range(number)]
    chance.shuffle(kinds)
    return kinds
