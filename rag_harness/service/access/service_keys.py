"""The keys of a service: 256 random bits each, shown once, stored as SHA-256.

A fast hash is enough, since nobody can try 2**256 keys. A slow hash (argon2) would be a risk: a client that sends wrong
keys could keep the server busy.
"""

from __future__ import annotations

import hmac
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha256
from secrets import token_urlsafe
from typing import cast

from rag_harness.service.access.principal import SCOPES, Principal, Scope
from rag_harness.service.state.database import Database

KEY_PREFIX = "rh_"
"""Lets scanners of source code recognise a key that was committed."""
_BYTES = 32
_OF_PRINCIPAL = "id, digest, label, scopes, collection, rate, quota, revoked"


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key without its secret: what lists show.

    ``name`` is the first 4 characters of its digest, in hexadecimal; ``used`` counts questions; ``revoked`` is the time
    of it, or None.
    """

    key_id: int
    name: str
    label: str
    scopes: tuple[Scope, ...]
    collection: str | None
    rate: str
    quota: int | None
    used: int
    created: str
    revoked: str | None


def make(
    db: Database,
    scopes: Iterable[Scope],
    label: str = "",
    collection: str | None = None,
    rate: str = "",
    quota: int | None = None,
) -> str:
    """Make a key and return it; it is never shown again. The key is valid once this returns.

    Args:
        db: the database of its digest.
        scopes: what the key may do.
        label: its name in lists and traces.
        collection: the only collection that the key can see; None is any.
        rate: its own rate, e.g. ``60/minute``; empty is the server's.
        quota: how many questions it may ask in all; None is no quota.
    """
    key = KEY_PREFIX + token_urlsafe(_BYTES)
    kept = " ".join(scope for scope in SCOPES if scope in set(scopes))
    values = (_digest(key), label, kept, collection, rate, quota, _now())
    columns = "digest, label, scopes, collection, rate, quota, created"
    db.write_now(lambda rows: rows.execute(f"INSERT INTO keys ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values))
    return key


def find(db: Database, presented: str) -> Principal | None:
    """Return the holder of a key; None if it is unknown or revoked. Each call reads the file, in about 20 µs."""
    digest = _digest(presented)
    row = db.read(lambda rows: rows.execute(f"SELECT {_OF_PRINCIPAL} FROM keys WHERE digest = ?", (digest,)).fetchone())
    if row is None or not hmac.compare_digest(row["digest"], digest) or row["revoked"] is not None:
        return None
    return Principal(row["id"], row["label"], frozenset(_scopes(row)), row["collection"], row["rate"], row["quota"])


def any_made(db: Database) -> bool:
    """Return whether a key was ever made. Revoked keys count: revoking the last one must not open the server."""
    return bool(db.read(lambda rows: rows.execute("SELECT EXISTS (SELECT 1 FROM keys)").fetchone()[0]))


def revoke(db: Database, key_id: int) -> bool:
    """Revoke a key; return whether it was valid before."""
    if not 0 < key_id < 1 << 63:
        return False  # SQLite's integers end here
    command = "UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL"
    return db.write_now(lambda rows: rows.execute(command, (_now(), key_id)).rowcount) == 1


def listed(db: Database) -> list[KeyInfo]:
    """Return every key's details, oldest first."""
    return [_info(row) for row in db.read(lambda rows: rows.execute("SELECT * FROM keys ORDER BY id").fetchall())]


def _info(row: sqlite3.Row) -> KeyInfo:
    return KeyInfo(
        row["id"],
        row["digest"].hex()[:4],
        row["label"],
        _scopes(row),
        row["collection"],
        row["rate"],
        row["quota"],
        row["used"],
        row["created"],
        row["revoked"],
    )


def _scopes(row: sqlite3.Row) -> tuple[Scope, ...]:
    return tuple(cast(Scope, scope) for scope in row["scopes"].split())


def _digest(key: str) -> bytes:
    # A header may have any characters. A lone surrogate must not raise.
    return sha256(key.encode(errors="surrogatepass")).digest()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
