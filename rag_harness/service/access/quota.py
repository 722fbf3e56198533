"""The quota of a key, in questions. Each question is granted by one committed statement before it is answered."""

from __future__ import annotations

import sqlite3

from rag_harness.service.access.principal import Principal
from rag_harness.service.problems import ProblemError
from rag_harness.service.state.database import Database

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
    # Waiting does not help. So there is no Retry-After, and clients with OpenAI's SDK are told not to try again.
    return ProblemError(429, "quota_used_up", detail, {"x-should-retry": "false"})
