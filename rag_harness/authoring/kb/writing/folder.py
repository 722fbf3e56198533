"""The folder that pages are written into: what of it is ours, what is right already, what somebody has edited."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_harness.authoring.kb.plan import PLAN_FILE, Plan
from rag_harness.authoring.kb.writing.label import Label, label_of
from rag_harness.errors import DataError
from rag_harness.files.alone import HeldError, alone

_LOCK = ".kb-generate.lock"
_NAMED = 3
"""Files that a refusal names."""
_RANDOM = len(".abcdefgh")
"""Characters behind the name of a file that is being written."""


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make ``folder`` and keep other writers out: two would each write pages over that the other has just paid for.

    Raises:
        DataError: it is a file, or another process is writing it.
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


def labels_in(folder: Path, plan_text: bytes, force: bool) -> dict[str, Label | None]:
    """Return the label of every Markdown page in ``folder``, by its path there; None of one that has none.

    Raises:
        DataError: the folder holds what ``kb generate`` did not write, and ``force`` is not said.
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
    """Yield what stands in a folder that has no generated page yet; the plan itself is no stranger."""
    for file in folder.iterdir() if folder.is_dir() else ():
        is_plan = file.name == PLAN_FILE and file.read_bytes() == plan_text
        if not is_plan and not file.name.startswith("."):
            yield file.name


def sweep(folder: Path, plan: Plan) -> None:
    """Remove the halves of files that a process left when it was killed: ``.name.`` and eight letters."""
    ours = {folder / name for name in (PLAN_FILE, *(page.filename for page in plan.pages))}
    for folder_of in {file.parent for file in ours}:
        for half in folder_of.glob(".*.????????"):
            if half.with_name(half.name[1:-_RANDOM]) in ours:
                half.unlink(missing_ok=True)
