"""Everything that the checks read: pages, other files and the plan. Names in them are compared, never opened."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from rag_harness.authoring.kb.page import At, Page
from rag_harness.authoring.kb.page_markdown import parse_page
from rag_harness.authoring.kb.plan import Plan, PlanPage, read_plan
from rag_harness.dataset.ingest import page_files
from rag_harness.errors import DataError
from rag_harness.words.comparison import composed

_HINTS = 50
"""How many names get a hint in one run. Each hint compares with every name, so all hints would be quadratic."""


@dataclass
class Material:
    """A knowledge base that was read. ``files`` are all its files, as paths below the folder."""

    folder: Path
    pages: dict[str, Page]
    files: frozenset[str]
    unreadable: list[At]
    plan: Plan | None
    plan_problems: list[At]
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
        DataError: there is no such folder, or no page in it.
    """
    if not folder.is_dir():
        raise DataError(f"No folder {folder}: name the one that holds your Markdown pages, or set KB_DIR.")
    pages, unreadable = _read_pages(folder)
    if not pages and not unreadable:
        raise DataError(f"No Markdown page in {folder}: a knowledge base is one or more .md files.")
    files = frozenset(composed(file.relative_to(folder).as_posix()) for file in folder.rglob("*") if file.is_file())
    plan, problems = read_plan(folder / "structure.json")
    return Material(folder, pages, files, unreadable, plan, problems)


def _read_pages(folder: Path) -> tuple[dict[str, Page], list[At]]:
    pages, unreadable = {}, []
    for file in (file for file in page_files(folder) if file.suffix == ".md"):
        name = composed(file.relative_to(folder).as_posix())
        try:
            pages[name] = parse_page(name, file.read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError as error:
            unreadable.append(At(error.start, name))
    return pages, unreadable
