"""The principal of a request: the holder of a key, or the user of this machine if no key was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

COLLECTION = "[a-z0-9][a-z0-9_-]{0,62}"
"""Pattern of a collection's name."""
Scope = Literal["query", "ingest", "admin"]
SCOPES: tuple[Scope, ...] = ("query", "ingest", "admin")
"""``query`` asks, and reads and rates all traces of its collection; ``ingest`` adds, lists and removes documents;
``admin`` is all of it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sends a request, and what they may do.

    Attributes:
        key_id: the key's id; None if the server has no keys.
        label: the key's name.
        scopes: what the principal may do.
        collection: the only collection that the principal can see; None is any.
        rate: its own rate, e.g. ``60/minute``; empty is the server's.
        quota: how many questions it may ask in all; None is no quota.
    """

    key_id: int | None
    label: str
    scopes: frozenset[Scope]
    collection: str | None = None
    rate: str = ""
    quota: int | None = None

    def may(self, scope: Scope) -> bool:
        """Return whether the principal has ``scope`` or a scope that includes it."""
        return scope in self.scopes or "admin" in self.scopes


NOBODY_ELSE = Principal(None, "this machine", frozenset(SCOPES))
"""The principal on a server without keys, which listens to this machine only."""
