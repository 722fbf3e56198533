"""The findings of the checks, as a table for people and as JSON for machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

CheckState = Literal["ok", "failed", "skipped", "notes"]
SHOWN_FINDINGS = 100
"""How many findings are printed for one check; ``json()`` has all of them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong (``error``) or worth knowing (``note``). ``where`` is ``file`` or ``file:line``."""

    check: str
    where: str
    message: str
    level: Literal["error", "note"] = "error"

    def line(self) -> str:
        """Return the finding as ``file:line: message``."""
        return f"{self.where}: {'note: ' if self.level == 'note' else ''}{self.message}"


@dataclass
class CheckResult:
    """One check: what it looked at (``checked``, e.g. "100 pages"), how, and what it found.

    ``skipped`` is the reason why it did not run; empty if it ran.
    """

    name: str
    checked: str = ""
    findings: list[Finding] = field(default_factory=list)
    skipped: str = ""
    how: str = ""

    @property
    def state(self) -> CheckState:
        """``failed`` when there is an error, ``notes`` when there are only notes."""
        if self.skipped:
            return "skipped"
        levels = {finding.level for finding in self.findings}
        return "failed" if "error" in levels else "notes" if levels else "ok"

    def error(self, where: str, message: str) -> None:
        """Add something that is wrong."""
        self.findings.append(Finding(self.name, where, message))

    def note(self, where: str, message: str) -> None:
        """Add something that is worth knowing."""
        self.findings.append(Finding(self.name, where, message, "note"))

    def row(self) -> tuple[str, str, str, str]:
        """Return the check as a line of the table."""
        if self.skipped:
            return self.name, self.state, "", self.skipped
        levels = Counter(finding.level for finding in self.findings)
        counted = ", ".join(f"{n} {level}{'s' * (n > 1)}" for level, n in levels.items())
        return self.name, self.state, self.checked, "; ".join(filter(None, [counted, self.how]))


@dataclass
class ValidationReport:
    """Every check of one knowledge base."""

    kb_dir: Path
    checks: list[CheckResult] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no check failed. A skipped check does not fail, and the report says that it was skipped."""
        return all(check.state != "failed" for check in self.checks)

    @property
    def findings(self) -> list[Finding]:
        """Everything that was found, in the order of the checks."""
        return [finding for check in self.checks for finding in check.findings]

    def lines(self) -> list[str]:
        """Return a table with a line for each check, then the findings, then the verdict."""
        return [*_table([check.row() for check in self.checks]), "", *self._finding_lines(), self._verdict()]

    def _finding_lines(self) -> Iterator[str]:
        for check in self.checks:
            yield from (finding.line() for finding in check.findings[:SHOWN_FINDINGS])
            if len(check.findings) > SHOWN_FINDINGS:
                yield f"… and {len(check.findings) - SHOWN_FINDINGS} more of {check.name}; --json lists all."

    def _verdict(self) -> str:
        states = Counter(check.state for check in self.checks)
        counted = ", ".join(f"{states[state]} {state}" for state in ("failed", "ok", "notes", "skipped"))
        return f"{self.kb_dir}: {'valid' if self.ok else 'not valid'} ({counted})"

    def json(self) -> str:
        """Return the report as one JSON object."""
        checks = [{**asdict(check), "state": check.state} for check in self.checks]
        return json.dumps({"kb_dir": str(self.kb_dir), "ok": self.ok, "checks": checks}, ensure_ascii=False, indent=1)


def _table(rows: list[tuple[str, str, str, str]]) -> Iterator[str]:
    rows = [("check", "result", "checked", "details"), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[3]]).rstrip()
