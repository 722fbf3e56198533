"""The keys of a service: principals, scopes and quotas."""

from __future__ import annotations

import hmac
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from typing import Literal, cast

from rag_harness.core.files import now
from rag_harness.service.database import Database
from rag_harness.service.problems import ProblemError

# The principal of a request: the holder of a key, or the user of this machine if no key was made.

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
        collection: the only collection that the principal can see; None means any.
        rate: its own rate, e.g. ``60/minute``; empty is the server's.
        quota: total number of questions that it may ask; None means unlimited.
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


# The keys of a service: 256 random bits each, shown once, stored as SHA-256.
#
# A fast hash is enough, since nobody can try 2**256 keys. A slow hash (argon2) would be a risk: a client that sends
# wrong keys could keep the server busy.

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


def make_key(
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
        collection: the only collection that the key can see; None means any.
        rate: its own rate, e.g. ``60/minute``; empty is the server's.
        quota: total number of questions that it may ask; None means unlimited.
    """
    key = KEY_PREFIX + token_urlsafe(_BYTES)
    kept = " ".join(scope for scope in SCOPES if scope in set(scopes))
    values = (_digest(key), label, kept, collection, rate, quota, now())
    columns = "digest, label, scopes, collection, rate, quota, created"
    db.write_now(lambda rows: rows.execute(f"INSERT INTO keys ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values))
    return key


def find_key(db: Database, presented: str) -> Principal | None:
    """Return the holder of a key; None if it is unknown or revoked. Each call reads the file, in about 20 µs."""
    digest = _digest(presented)
    row = db.read(lambda rows: rows.execute(f"SELECT {_OF_PRINCIPAL} FROM keys WHERE digest = ?", (digest,)).fetchone())
    if row is None or not hmac.compare_digest(row["digest"], digest) or row["revoked"] is not None:
        return None
    return Principal(row["id"], row["label"], frozenset(_scopes(row)), row["collection"], row["rate"], row["quota"])


def has_keys(db: Database) -> bool:
    """Return whether a key was ever made. Revoked keys count: revoking the last one must not open the server."""
    return bool(db.read(lambda rows: rows.execute("SELECT EXISTS (SELECT 1 FROM keys)").fetchone()[0]))


def revoke_key(db: Database, key_id: int) -> bool:
    """Revoke a key; return whether it was valid before."""
    if not 0 < key_id < 1 << 63:
        return False  # SQLite's integers end here
    command = "UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL"
    return db.write_now(lambda rows: rows.execute(command, (now(), key_id)).rowcount) == 1


def list_keys(db: Database) -> list[KeyInfo]:
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


# The quota of a key, in questions. Each question is granted by one committed statement before it is answered.

_TAKE = "UPDATE keys SET used = used + 1 WHERE id = ? AND (quota IS NULL OR used < quota)"


async def grant(db: Database, principal: Principal) -> None:
    """Grant one question. The grant is committed, and stays even if the answer fails.

    Raises:
        ProblemError: 429 if the quota is used up.
    """
    if principal.key_id is None:
        return
    if not await db.write(lambda rows: _taken(rows, principal.key_id)):
        raise _used_up(principal)


def _taken(rows: sqlite3.Connection, key_id: int | None) -> bool:
    return rows.execute(_TAKE, (key_id,)).rowcount == 1


def _used_up(principal: Principal) -> ProblemError:
    detail = f"This key was good for {principal.quota} questions, and they were asked. Ask its maker for another."
    # Waiting does not help. So Retry-After is not sent, and clients with OpenAI's SDK are told not to try again.
    return ProblemError(429, "quota_used_up", detail, {"x-should-retry": "false"})
