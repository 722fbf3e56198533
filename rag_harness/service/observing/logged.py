"""The traces of a state folder in the form for labelling. A server may run on the folder meanwhile."""

from __future__ import annotations

import json
import sqlite3
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError
from rag_harness.service.observing.labelling import Logged
from rag_harness.service.state.database import Database
from rag_harness.service.state.folder import DATABASE

_ALL = """
SELECT id, collection, began, thumb, comment,
    json_extract(body, '$.decision') AS decision, json_extract(body, '$.confidence') AS confidence,
    json_extract(content, '$.question') AS question, json_extract(content, '$.inputs') AS inputs
FROM traces WHERE began >= ? AND (? IS NULL OR collection = ?) ORDER BY began, id
"""
_ONE = "SELECT json_remove(content, '$.prompts', '$.answered') FROM traces WHERE id = ?"


class LoggedTraces:
    """The traces that a service kept; close it at the end.

    Raises:
        DataError: no service has run on ``state``.
        StateError: its database is damaged, or of a newer release.
    """

    def __init__(self, state: Path) -> None:
        file = state / DATABASE
        if not file.is_file():
            raise DataError(
                f"No service has run on {state}: {DATABASE} is not there. Name its folder with --state DIR."
            )
        self._database = Database(file)

    def since(self, seconds: float, collection: str | None) -> list[Logged]:
        """Return the traces of a collection that are no older than ``seconds``, the oldest first.

        Raises:
            DataError: there are no traces, no trace has words, or they are of several collections and none was named.
        """
        wanted = time.time() - seconds, collection, collection
        found = self._database.read(lambda connection: connection.execute(_ALL, wanted).fetchall())
        _of_one(found)
        with_words = [_logged(row) for row in found if row["question"]]
        if not with_words:
            raise DataError(_none_has_words(len(found), collection))
        return with_words

    def content(self, trace_id: str) -> dict[str, Any]:
        """Return the words of a trace, without its prompts and what the page shows of it."""
        found = self._database.read(lambda connection: connection.execute(_ONE, (trace_id,)).fetchone())
        said: dict[str, Any] = json.loads(found[0])
        return said

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def _of_one(found: list[sqlite3.Row]) -> None:
    whose = sorted({row["collection"] for row in found})
    if len(whose) > 1:
        raise DataError(
            f"There are traces of {len(whose)} collections: {', '.join(whose[:10])}. One tenant's questions are no "
            f"other's cases: name one with --collection."
        )


def _none_has_words(traces: int, collection: str | None) -> str:
    of = f" of collection {collection!r}" if collection else ""
    if not traces:
        return f"No question{of} was traced in that time. Look further back with --since."
    return (
        f"{traces} traces{of} have no words in them: questions and answers are kept only by "
        f"`rag-harness serve --trace-content`. Start the server so, tell its users, and come back."
    )


def _logged(row: sqlite3.Row) -> Logged:
    began = datetime.fromtimestamp(row["began"], timezone.utc).isoformat(timespec="seconds")
    said = row["question"], json.loads(row["inputs"] or "{}")
    return Logged(row["id"], began, row["decision"], row["confidence"], row["thumb"], row["comment"], *said)
