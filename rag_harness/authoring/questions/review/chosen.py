"""Chooses which questions of a file are shown, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.authoring.questions.review.reviewed_rows import QueryRow, state_of
from rag_harness.errors import DataError
from rag_harness.files.sources import text_digest


def chosen_rows(
    rows: Sequence[QueryRow], kind: str = "", only: str = "", sample: int | None = None, seed: int = 0
) -> list[int]:
    """Return the numbers of the rows of a kind, of a state, or of a sample.

    A sample is drawn before states are looked at, and depends only on ids and seed. So a reviewer who continues
    tomorrow gets the same sample.

    Raises:
        DataError: no row is of that kind.
    """
    numbers = [number for number, row in enumerate(rows) if kind in ("", row.get("query_type", "direct"))]
    if not numbers:
        kinds = ", ".join(sorted({row.get("query_type", "direct") for row in rows}))
        raise DataError(f"No question is of the kind {kind!r}. There are: {kinds}.")
    if sample is not None:
        drawn = sorted(numbers, key=lambda number: text_digest(f"{seed} {rows[number]['query_id']}"))[:sample]
        numbers = sorted(drawn)
    return [number for number in numbers if only in ("", state_of(rows[number]))]
