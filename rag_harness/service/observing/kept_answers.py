"""The last answers with their words, in memory only: a page that is loaded again shows them again."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST = 1_000
"""How many answers are kept."""
MOST_KEPT_CHARACTERS = 8 << 20
"""How many characters all of them may have; at most four bytes each."""


@dataclass(frozen=True, slots=True)
class _Kept:
    collection: str
    began: float
    text: str


class KeptAnswers:
    """Answers by the id of their trace. Where there are too many, the oldest go."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._characters = 0

    def keep(self, trace_id: str, collection: str, began: float, answered: Mapping[str, Any]) -> None:
        """Keep an answer, which is plain JSON."""
        kept = _Kept(collection, began, json.dumps(answered, ensure_ascii=False, separators=(",", ":")))
        self._kept[trace_id] = kept
        self._characters += len(kept.text)
        while self._kept and (len(self._kept) > MOST or self._characters > MOST_KEPT_CHARACTERS):
            self._characters -= len(self._kept.popitem(last=False)[1].text)

    def get(self, trace_id: str, collection: str | None, oldest: float) -> dict[str, Any] | None:
        """Return an answer to a question that is not older than ``oldest``; None if ``collection`` has no such answer.

        The collection None means any.
        """
        kept = self._kept.get(trace_id)
        if kept is None or kept.began < oldest or collection not in (None, kept.collection):
            return None
        found: dict[str, Any] = json.loads(kept.text)
        return found
