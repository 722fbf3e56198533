"""Faults of ids, filenames and titles: each page needs its own, and its file must be writable and linkable."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from rag_harness.authoring.kb.plan import Plan, PlanPage
from rag_harness.authoring.kb.validation.material import leaves

_Faults = Iterator[tuple[str, str]]
_STRANGE = re.compile(r'[\x00-\x1f\x7f\\?#%<>:"|*]')
"""Characters that would end the path of a link, or that some file systems do not allow."""
_LONGEST = 240
"""The most bytes of a name. File systems allow 255, and the temporary name while writing is longer."""


def name_faults(plan: Plan) -> _Faults:
    """Yield the id of a page and what is wrong with its names."""
    # A file system may ignore case. Then one page would overwrite the other.
    yield from _twice(plan, "id", lambda page: page.id)
    yield from _twice(plan, "filename", lambda page: page.filename.casefold())
    yield from _twice(plan, "title", lambda page: page.title)
    files = {page.filename for page in plan.pages}
    for page in plan.pages:
        yield from ((page.id, f"the filename {page.filename!r} {fault}") for fault in _filename(page.filename, files))
        if page.title is not None and (page.title != page.title.strip() or len(page.title.splitlines()) != 1):
            yield page.id, f"the title {page.title!r} is no single line of text. Mend it."


def _twice(plan: Plan, key: str, value_of: Callable[[PlanPage], str | None]) -> _Faults:
    for value, pages in repeated(plan, value_of):
        yield pages[0].id, f"{len(pages)} pages have the {key} {value!r}. Give each its own."


def repeated(plan: Plan, value_of: Callable[[PlanPage], str | None]) -> Iterator[tuple[str, list[PlanPage]]]:
    """Return values that several pages share although each needs its own, with these pages in the plan's order."""
    pages: dict[str, list[PlanPage]] = {}
    for page in plan.pages:
        value = value_of(page)
        if value is not None:
            pages.setdefault(value, []).append(page)
    return ((value, those) for value, those in pages.items() if len(those) > 1)


def _filename(name: str, files: set[str]) -> Iterator[str]:
    folders = files.intersection(map(str, PurePosixPath(name).parents))
    if leaves(name):
        yield "leads out of the folder. Name a file inside it."
    elif not name.endswith(".md") or PurePosixPath(name).name == ".md":
        yield "is no Markdown file. Let it end with .md"
    elif strange := _STRANGE.search(name):
        yield f"has {strange[0]!r}, which files and links cannot have everywhere. Leave it out."
    elif name != posixpath.normpath(name):
        yield f"is another way to write {posixpath.normpath(name)!r}. Write that."
    elif any(part.startswith(".") for part in PurePosixPath(name).parts):
        yield "is hidden, and nobody would read the page. Let no part of it begin with a dot."
    elif any(len(part.encode()) > _LONGEST for part in PurePosixPath(name).parts):
        yield f"is too long: {_LONGEST} bytes are the most. Shorten it."
    elif folders:
        yield f"stands below {min(folders)!r}, which is a page. Name another folder."
