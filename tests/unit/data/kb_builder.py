"""A small sound knowledge base; each test plants one fault in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rag_harness.authoring.kb.checks import ValidationReport
from rag_harness.authoring.kb.validation import validate

RETURNS = """# Returns policy

Send items back within 45 days. See [shipping](shipping.md) and [the old policy](returns-2024.md#return-window).

## Return window

| Group | Days |
|---|---|
| Electronics | 21 |
| Outlet | 10 |

## Return Fees

The label costs €3.50.
"""
OLD = """# Returns policy 2024

## Return window

Send items back within 30 days. A newer version: [returns](returns.md).

| Group | Days |
|---|---|
| Electronics | 14 |
"""
SHIPPING = """# Shipping

1. Order by 18:00.
2. Wait three days, then read [fees](returns.md#return-fees).

```mermaid
flowchart TD
    A["Ordered?"] -->|"yes"| B["Wait"]
```
"""


def planned(name: str, **more: Any) -> dict[str, Any]:
    """Return the plan of one page."""
    return {"id": name, "filename": f"{name}.md", "category": "returns", "status": "current", "version": "1"} | more


def query(number: int = 1, **more: Any) -> dict[str, Any]:
    """Return a direct query with its quote."""
    quote = {"filename": "returns.md", "quote": "The label costs €3.50."}
    line = {"query_id": f"q_direct_{number:03}", "query": f"label price {number}?", "context_reference": ["returns.md"]}
    return {**line, "query_type": "direct", "ground_truth": "€3.50", "evidence": [quote]} | more


class Kb:
    """Files that are sound until a test changes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.queries: str | None = None
        self.golden: str | None = None
        self.pages = {"returns.md": RETURNS, "returns-2024.md": OLD, "shipping.md": SHIPPING}
        old = planned("returns-2024", status="outdated", effective_date="2024-01-01", kind="tabular")
        new = planned("returns", version="2", effective_date="2025-01-01", supersedes="returns-2024", kind="tabular")
        other = planned("shipping", category="shipping", kind="logical", mermaid=True, links_to=["returns"])
        conflict = {
            "fact": "window",
            "outdated_statement": "Send items back within 30 days.",
            "current_statement": "Send items back within 45 days.",
        }
        self.plan: dict[str, Any] | None = {
            "num_pages": 3,
            "rot": 0.6,
            "categories": ["returns", "shipping"],
            "pages": [old, new, other],
            "version_pairs": [{"outdated": "returns-2024", "current": "returns", "conflicts": [conflict]}],
        }

    @property
    def planned(self) -> dict[str, Any]:
        assert self.plan is not None
        return self.plan

    def ask(self, *lines: dict[str, Any]) -> None:
        self.queries = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

    def expect(self, *entries: dict[str, Any]) -> None:
        filled = [{"query": "q?", "justification": "j"} | entry for entry in entries]
        self.golden = json.dumps(filled, indent=1, ensure_ascii=False)

    def write(self) -> None:
        self.folder.mkdir(exist_ok=True)
        for name, text in self.pages.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(text.encode())
        if self.plan is not None:
            (self.folder / "structure.json").write_text(json.dumps(self.plan, indent=1))

    def validate(self, queries: Path | None = None) -> ValidationReport:
        self.write()
        return validate(
            self.folder, queries or self._file("queries.jsonl", self.queries), self._file("golden.json", self.golden)
        )

    def _file(self, name: str, text: str | None) -> Path | None:
        if text is None:
            return None
        file = self.folder.parent / name
        file.write_text(text, encoding="utf-8")
        return file

    def errors(self) -> list[str]:
        """Return every error as ``check: where: message``, with the folder as KB."""
        return [self._short(finding.check, finding.line()) for finding in self._found("error")]

    def notes(self) -> list[str]:
        """Return every note in the same form."""
        return [self._short(finding.check, finding.line()) for finding in self._found("note")]

    def _found(self, level: str) -> list[Any]:
        return [finding for finding in self.validate().findings if finding.level == level]

    def _short(self, check: str, line: str) -> str:
        return f"{check}: {line}".replace(str(self.folder), "KB").replace(f"{self.folder.parent}/", "")
