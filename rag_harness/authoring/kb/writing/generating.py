"""Writes the pages of a plan into a folder, many at once. Pages that are right already are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rag_harness.authoring.kb.brief import Brief, briefs
from rag_harness.authoring.kb.plan import PLAN_FILE, Plan
from rag_harness.authoring.kb.writing.folder import alone_in, labels_in, sweep
from rag_harness.authoring.kb.writing.label import PageLabel, labelled
from rag_harness.authoring.kb.writing.page_reader import WrittenPageReader
from rag_harness.authoring.kb.writing.writers import EMBEDDED, Writer
from rag_harness.errors import BudgetError, DeadlineError, ModelCallError, ModelOutputError
from rag_harness.files.atomic import write_atomically
from rag_harness.files.sources import json_digest
from rag_harness.models.until_right import Fault

PATIENCE = 4
"""After so many failed calls in a row, before any page was written, no more calls are made. Later the limit is the
number of pages that are written at one time: one short outage fails all of them."""
_FAILED = (ModelCallError, ModelOutputError, DeadlineError)


@dataclass
class Generated:
    """The results for the pages of a plan, by filename.

    Attributes:
        written: pages that were written now.
        kept: how many were right already.
        edited: pages that a person has edited; they stay. True if the plan now asks for another page.
        paid: pages that a model wrote and that the grammar would now write differently; they stay.
        unplanned: generated pages that are no longer in the plan; they stay.
        faulty: pages that could not be written, and why.
        stopped: why some were not tried.
    """

    written: list[str] = field(default_factory=list)
    kept: int = 0
    edited: dict[str, bool] = field(default_factory=dict)
    paid: list[str] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    faulty: dict[str, str] = field(default_factory=dict)
    stopped: str = ""


async def generate(plan: Plan, plan_text: bytes, folder: Path, writer: Writer, at_once: int, force: bool) -> Generated:
    """Write the pages of ``plan`` into ``folder``, and a copy of the plan beside them.

    Args:
        plan: a plan that has passed the checks.
        plan_text: the contents of its file.
        folder: made if it does not exist.
        writer: the grammar or a model.
        at_once: how many pages are written at one time.
        force: whether to overwrite files that a person edited or wrote.

    Raises:
        DataError: the folder has other files, or another process is writing into it.
        CriticalError: the writer will never answer.
    """
    with alone_in(folder):
        return await _generated(plan, plan_text, folder, writer, at_once, force)


async def _generated(
    plan: Plan, plan_text: bytes, folder: Path, writer: Writer, at_once: int, force: bool
) -> Generated:
    labels = labels_in(folder, plan_text, force)
    sweep(folder, plan)
    write_atomically(folder / PLAN_FILE, plan_text)
    found = Generated()
    planned = {page.filename for page in plan.pages}
    found.unplanned = sorted(name for name, label in labels.items() if label and name not in planned)
    work = _Work(plan, folder, writer, found, max(PATIENCE, at_once))
    todo = work.todo(labels, force)
    await asyncio.gather(*(work.write_all(todo) for _ in range(max(1, min(at_once, len(plan.pages))))))
    return found


class _Work:
    def __init__(self, plan: Plan, folder: Path, writer: Writer, found: Generated, patience: int) -> None:
        self._folder, self._writer, self._found, self._patience = folder, writer, found, patience
        self._briefs = list(briefs(plan))
        self._reader = WrittenPageReader(plan, folder)
        self._failing = 0

    def todo(self, labels: Mapping[str, PageLabel | None], force: bool) -> Iterator[tuple[Brief, str]]:
        """Yield the pages to write, with the digest of their material; ends when the writer can no longer be asked."""
        waiting = []
        for brief in self._briefs:
            name = brief.page.filename
            digest, label = self._digest(brief), labels.get(name)
            if label and not label.untouched and not force:
                self._found.edited[name] = label.planned != digest
            elif label and label.untouched and label.planned == digest:
                self._found.kept += 1
                self._reader.know(name)
            elif label and label.by != EMBEDDED and self._writer.name == EMBEDDED and not force:
                self._found.paid.append(name)
            else:
                waiting.append((brief, digest))
        yield from (each for each in waiting if not self._found.stopped)

    def _digest(self, brief: Brief) -> str:
        return json_digest([brief.told(), self._writer.name, self._writer.digest])

    async def write_all(self, todo: Iterator[tuple[Brief, str]]) -> None:
        """Write the pages that come next until none is left."""
        for brief, digest in todo:
            name = brief.page.filename
            try:
                page = await self._writer.write(brief, lambda text, brief=brief: self._reader.read(brief, text))  # type: ignore[misc]
            except BudgetError as error:
                self._found.stopped = str(error)
                return
            except _FAILED as error:
                self._fail(name, f"the writer could not be asked: {error}")
                continue
            self._failing = 0
            if isinstance(page, Fault):
                self._found.faulty[name] = page.text
                continue
            whole = labelled(page, self._writer.name, digest).encode()
            await asyncio.to_thread(write_atomically, self._folder / name, whole)
            self._found.written.append(name)

    def _fail(self, name: str, why: str) -> None:
        self._found.faulty[name] = why
        self._failing += 1
        if self._failing >= (self._patience if self._found.written else PATIENCE):
            self._found.stopped = self._found.stopped or why
