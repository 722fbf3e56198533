"""Who asks: a key's holder, or whoever is at this machine where no key was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

COLLECTION = "[a-z0-9][a-z0-9_-]{0,62}"
"""Pattern of a collection's name."""
Scope = Literal["query", "ingest", "admin"]
SCOPES: tuple[Scope, ...] = ("query", "ingest", "admin")
"""``query`` asks, and reads and rates the traces of its collection, whoever asked; ``ingest`` adds, lists and removes
documents; ``admin`` is all of it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks.

    Attributes:
        key_id: of the key; None where there are no keys.
        label: what its maker called it.
        scopes: what it may do.
        collection: the only one that exists for it; None is any.
        rate: its own, e.g. ``60/minute``; empty is the server's.
        quota: questions it may ask for good; None is no quota.
    """

    key_id: int | None
    label: str
    scopes: frozenset[Scope]
    collection: str | None = None
    rate: str = ""
    quota: int | None = None

    def may(self, scope: Scope) -> bool:
        """Return whether it may do what ``scope`` stands for."""
        return scope in self.scopes or "admin" in self.scopes


NOBODY_ELSE = Principal(None, "this machine", frozenset(SCOPES))
"""Whoever asks a server that has no keys, and so listens to this machine alone."""
