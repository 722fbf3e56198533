"""The cases of all runs, each stored once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_harness.page.run import Run
from rag_harness.results.cases import CaseFile
from rag_harness.types import Case


class Cases:
    """Numbers the cases. Runs over the same data share them; what a simulated user said is a question of its own.

    Attributes:
        said: data of each case for the script, by number.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, str], int] = {}
        self.said: list[dict[str, Any]] = []

    def number(self, run: Run, suite: str, cases: CaseFile, position: int, query: str = "") -> int:
        """Return the number of the case at ``position`` of the file; ``query`` is what a simulated user said."""
        data = run.suites[suite].data
        key = f"{data} {run.manifest.digests.get(data, run.name)}", cases.ids[position], query
        if key not in self._numbers:
            self._numbers[key] = len(self.said)
            kept = cases[position]
            self.said.append(_said(kept.case, kept.labels) | ({"query": query} if query else {}))
        return self._numbers[key]


def _said(case: Case, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": case.query.query_id,
        "query": case.query.text,
        "type": case.query_type,
        "answerable": int(case.answerable),
        "truth": case.ground_truth,
        "gold": list(case.context_reference),
        "evidence": [[quote.filename, quote.quote] for quote in case.evidence],
        "labels": {name: value for name, value in labels.items() if name != "query_type"},
    }
