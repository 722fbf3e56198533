"""The folder of the written pages: which files are ours, which are already right, which a person has edited."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_harness.authoring.kb.plan import PLAN_FILE, Plan
from rag_harness.authoring.kb.writing.label import PageLabel, label_of
from rag_harness.errors import DataError
from rag_harness.files.alone import HeldError, alone

_LOCK = ".kb-generate.lock"
_NAMED = 3
"""How many files a refusal names."""
_RANDOM = len(".abcdefgh")
"""How many characters are added to the name of a file while it is written."""


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make ``folder`` and keep other writers out: two would overwrite each other's pages, which are paid for.

    Raises:
        DataError: it is a file, or another process is writing into it.
    """
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file. Name a folder for the pages: -o DIR")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with alone(folder / _LOCK):
            yield
    except HeldError as error:
        raise DataError(
            f"`kb generate` is writing {folder} already: {error.by}. Wait until it is done, or name another folder: "
            "-o DIR"
        ) from None


def labels_in(folder: Path, plan_text: bytes, force: bool) -> dict[str, PageLabel | None]:
    """Return the label of every Markdown page in ``folder``, by its path; None for a page without a label.

    Raises:
        DataError: the folder has files that ``kb generate`` did not write, and ``force`` is not set.
    """
    labels = {name: label_of(text) for name, text in _pages(folder)}
    strange = sorted(name for name, label in labels.items() if label is None)
    if not any(labels.values()):
        strange = sorted({*strange, *_others(folder, plan_text)})
    if strange and not force:
        more = f" and {len(strange) - _NAMED} more" if len(strange) > _NAMED else ""
        raise DataError(
            f"{folder} holds {', '.join(strange[:_NAMED])}{more}, which `kb generate` did not write. Name an empty "
            "folder with -o, or say --force: planned pages are then written over, and all else stays."
        )
    return labels


def _pages(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.rglob("*.md")):
        name = file.relative_to(folder)
        if file.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix(), file.read_text(encoding="utf-8", errors="replace")


def _others(folder: Path, plan_text: bytes) -> Iterator[str]:
    """Yield foreign files of a folder that has no generated page yet. The plan itself is not foreign."""
    for file in folder.iterdir() if folder.is_dir() else ():
        is_plan = file.name == PLAN_FILE and file.read_bytes() == plan_text
        if not is_plan and not file.name.startswith("."):
            yield file.name


def sweep(folder: Path, plan: Plan) -> None:
    """Remove incomplete files that a killed process left: ``.name.`` and eight letters."""
    ours = {folder / name for name in (PLAN_FILE, *(page.filename for page in plan.pages))}
    for folder_of in {file.parent for file in ours}:
        for half in folder_of.glob(".*.????????"):
            if half.with_name(half.name[1:-_RANDOM]) in ours:
                half.unlink(missing_ok=True)
