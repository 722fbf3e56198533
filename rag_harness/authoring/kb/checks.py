"""The material and the report of checks of a knowledge base."""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from rag_harness.authoring.kb.page import Page, TextAtLine, parse_page
from rag_harness.authoring.kb.plan import Plan, PlanPage, read_plan
from rag_harness.core.errors import DataError
from rag_harness.core.text.comparison import composed
from rag_harness.data.documents import page_files

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


# Everything that the checks read: pages, other files and the plan. Names in them are compared, never opened.

_HINTS = 50
"""How many names get a hint in one run. Each hint compares with every name, so all hints would be quadratic."""


@dataclass
class Material:
    """A knowledge base that was read. ``files`` are all its files, as paths below the folder."""

    folder: Path
    pages: dict[str, Page]
    files: frozenset[str]
    unreadable: list[TextAtLine]
    plan: Plan | None
    plan_problems: list[TextAtLine]
    hints_left: int = _HINTS
    by_case: dict[str, str] = field(default_factory=dict)
    planned: dict[str, PlanPage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_case = {name.casefold(): name for name in self.files}
        self.planned = {page.filename: page for page in self.plan.pages} if self.plan else {}

    def at(self, name: str, line: int | None = None) -> str:
        """Return the place of a line of a file, in the form that editors and terminals open."""
        return f"{self.folder / name}:{line}" if line else str(self.folder / name)

    def no_file(self, name: str) -> str:
        """Say why ``name`` cannot be used, and what to do. The name is compared, never opened."""
        if leaves(name):
            return f"refused: the name leads out of {self.folder}. Name a file inside it"
        twin = self.by_case.get(name.casefold())
        if twin:
            return f"the file is called {twin!r}, and case counts. Write it so"
        return f"no such file in {self.folder}.{self.nearest(name, self.files)}"

    def nearest(self, name: str, known: frozenset[str]) -> str:
        """Return a hint that names the nearest known name; empty if there is none."""
        self.hints_left -= 1
        close = get_close_matches(name, sorted(known), n=1) if self.hints_left >= 0 else []
        return f" The nearest is {close[0]!r}." if close else ""

    def status(self, filename: str) -> str:
        """Return ``current`` or ``outdated``; empty if the plan does not say."""
        page = self.planned.get(filename)
        return (page.status or "") if page else ""


def leaves(name: str) -> bool:
    """Whether a file name leads out of its folder; Windows paths are recognised, too."""
    plain = name.replace("\\", "/")
    return plain.startswith("/") or plain[1:2] == ":" or posixpath.normpath(plain).split("/")[0] == ".."


def read_material(folder: Path) -> Material:
    """Read and parse all pages below ``folder``.

    Raises:
        DataError: the folder is missing, or has no page.
    """
    if not folder.is_dir():
        raise DataError(f"No folder {folder}: name the one that holds your Markdown pages, or set KB_DIR.")
    pages, unreadable = _read_pages(folder)
    if not pages and not unreadable:
        raise DataError(f"No Markdown page in {folder}: a knowledge base is one or more .md files.")
    files = frozenset(composed(file.relative_to(folder).as_posix()) for file in folder.rglob("*") if file.is_file())
    plan, problems = read_plan(folder / "structure.json")
    return Material(folder, pages, files, unreadable, plan, problems)


def _read_pages(folder: Path) -> tuple[dict[str, Page], list[TextAtLine]]:
    pages, unreadable = {}, []
    for file in (file for file in page_files(folder) if file.suffix == ".md"):
        name = composed(file.relative_to(folder).as_posix())
        try:
            pages[name] = parse_page(name, file.read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError as error:
            unreadable.append(TextAtLine(error.start, name))
    return pages, unreadable
