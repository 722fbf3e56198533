"""Write the pages of a plan into a folder, by a grammar or by a model, and check each before it is kept."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

from rag_harness.authoring.drafting import PATIENCE, ParallelCalls, not_asked
from rag_harness.authoring.kb.page import Page, fold, linked_files, parse_page
from rag_harness.authoring.kb.page_checks import (
    fact_faults,
    figure_faults,
    heading_faults,
    kind_faults,
    link_faults,
    shape_problem,
    step_faults,
    table_faults,
    title_faults,
)
from rag_harness.authoring.kb.page_grammar import compose
from rag_harness.authoring.kb.plan import PLAN_FILE, Brief, Plan, briefs
from rag_harness.core.errors import BudgetError, DataError, RagHarnessError
from rag_harness.core.files import json_digest, text_digest, write_atomically
from rag_harness.core.process_lock import LockHeldError, process_lock
from rag_harness.core.protocols import ChatModel
from rag_harness.core.registry import REVISIONS
from rag_harness.models.prompts import Fault, Prompts, ask_until_right

Read = Callable[[str], Awaitable[str | Fault]]
"""From a page to the page that is kept, or to its fault."""
EMBEDDED = "embedded"
REMEMBERED = 12_000
"""How many characters of its last page a model sees when it is asked again."""
_AGAIN = "That page cannot be used:\n{fault}\n\nWrite the whole page again without these faults. Only the page."
_FENCED = re.compile(r"\A(`{3,}|~{3,})(?:markdown|md)?[ \t]*\n(.*)\n\1\Z", re.DOTALL)
_THOUGHT = "</think>"
_NOTHING = (
    "- the plan has no facts, tables or steps for it, and without a model nothing else can be said. Plan some, or have "
    "it written: --writer llm"
)


class Writer(Protocol):
    """Writes one page at a time. If ``digest`` changes, pages are written again."""

    @property
    def name(self) -> str:
        """Return the writer's name for labels."""
        ...

    @property
    def digest(self) -> str:
        """Return a digest of how it writes."""
        ...

    async def write(self, brief: Brief, read: Read) -> str | Fault:
        """Return the page, or the fault that it could not mend."""
        ...


class EmbeddedWriter:
    """Composes pages by a grammar. The same plan and seed give the same pages."""

    name = EMBEDDED

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    @cached_property
    def digest(self) -> str:
        return text_digest(f"{self._seed} {REVISIONS['knowledge_base/embedded_writer']}")

    async def write(self, brief: Brief, read: Read) -> str | Fault:
        page = brief.page
        return await read(compose(brief, self._seed)) if page.facts or page.tables or page.steps else Fault(_NOTHING)


class AskedWriter:
    """Asks a chat model for pages and tells it the faults, at most three times a page."""

    def __init__(self, chat: ChatModel, prompts: Prompts) -> None:
        self.name: str = chat.model
        self._chat, self._prompts = chat, prompts

    @cached_property
    def digest(self) -> str:
        return text_digest(f"{self._prompts.system}\n{self._prompts.user}")

    async def write(self, brief: Brief, read: Read) -> str | Fault:
        asked = self._prompts.messages(json.dumps(brief.told(), ensure_ascii=False, indent=1))
        return await ask_until_right(self._chat, asked, lambda said: read(page_in(said)), _AGAIN, REMEMBERED)


def page_in(reply: str) -> str:
    """Return the page in a reply, without a fence around it and without thoughts before it."""
    text = reply.rpartition(_THOUGHT)[2].strip()
    fenced = _FENCED.match(text)
    return f"{(fenced[2] if fenced else text).strip()}\n"


# Finds what is wrong with a written page, in words that help its writer to mend it.

LONGEST_PAGE = 60_000
"""The most characters of a page: ten times a long one."""
MOST_PAGE_FAULTS = 8
"""How many faults are named at once."""


def faults(brief: Brief, plan: Plan, text: str) -> list[str]:
    """Return the first ``MOST_PAGE_FAULTS`` faults of ``text`` as the page of ``brief``; empty if it is right."""
    name = brief.page.filename
    if not text.strip():
        return [f"{name} is empty. Write the whole page."]
    if len(text) > LONGEST_PAGE:
        return [
            f"{name} has {len(text):,} characters; at most {LONGEST_PAGE:,} are taken. Write what is planned alone."
        ]
    return list(islice(_faults(brief, plan, parse_page(name, text)), MOST_PAGE_FAULTS))


def _faults(brief: Brief, plan: Plan, written: Page) -> Iterator[str]:
    page = brief.page
    if not written.text.startswith("# "):
        yield f"{page.filename} begins with {written.text.strip()[:60]!r}. Begin with '# {page.title}'."
    yield from title_faults(page, written)
    yield from heading_faults(page, written)
    yield from page_faults(brief, written)
    yield from kind_faults(page, written)
    yield from link_faults(page, plan, linked_files(written))
    yield from (problem.text for problem in (*written.problems, *written.ragged))
    for diagram in written.diagrams:
        problem = shape_problem(diagram.text)
        if problem:
            yield f"the diagram: line {problem.line}: {problem.text} Mend it."


def page_faults(brief: Brief, written: Page) -> Iterator[str]:
    """Yield planned facts, tables and steps that a page lacks, and what it says beyond them."""
    yield from fact_faults(brief.page, written, brief.foreign)
    yield from table_faults(brief.page, written)
    yield from step_faults(brief.page, written)
    if brief.page.facts is not None:
        yield from figure_faults(brief.page, written, brief.known())


# The label of a generated page: its writer, its plan, and whether a person has edited it since.
#
# The label is front matter. Chunkers and questions leave it out, and readers of the file see it first. It is in the
# same file as the page, so a killed process cannot leave one without the other.

_BY = "generated_by: rag-harness kb generate,"
_LABEL = re.compile(
    rf"\A---\n{_BY} (?P<by>[^\n]+)\nplanned: (?P<planned>p\w{{16}})\nwritten: (?P<written>w\w{{16}})\n---\n\n"
)


class PageLabel(NamedTuple):
    """The writer of a page, the digest of its material, and whether its text is unchanged."""

    by: str
    planned: str
    untouched: bool


def labelled(body: str, by: str, planned: str) -> str:
    """Return a page with its label; ``planned`` is the digest of its material."""
    return f"---\n{_BY} {by}\nplanned: p{planned}\nwritten: w{text_digest(body)}\n---\n\n{body}"


def label_of(text: str) -> PageLabel | None:
    """Return the label of a page; None if it was not generated."""
    found = _LABEL.match(_plain(text))
    if found is None:
        return None
    return PageLabel(found["by"], found["planned"][1:], found["written"][1:] == text_digest(body_of(text)))


def body_of(text: str) -> str:
    """Return a page without its label."""
    return _LABEL.sub("", _plain(text), count=1)


def _plain(text: str) -> str:
    """Return a text without differences that a checkout may make: line ends and a byte order mark are not an edit."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


class WrittenPageReader:
    """Reads pages as they come, and remembers them in place of the folder: an accepted page is known at once."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._taken: dict[str, str] = {}

    def know(self, name: str) -> None:
        """Remember a page that is in the folder already."""
        self._taken.setdefault(_content((self._folder / name).read_text(encoding="utf-8")), name)

    async def read(self, brief: Brief, text: str) -> str | Fault:
        """Return the page, or what is wrong with it."""
        found = faults(brief, self._plan, text)
        if not found:
            first = self._taken.setdefault(_content(text), brief.page.filename)
            if first == brief.page.filename:
                return text
            found = [f"{brief.page.filename} is word for word {first}. Write what is planned for this page."]
        return Fault("\n".join(f"- {fault}" for fault in found))


def _content(text: str) -> str:
    """Return a digest of a page without its title: the same contents under another name count as the same."""
    title, _, rest = body_of(text).partition("\n")
    return text_digest(fold(rest if title.startswith("# ") else f"{title}\n{rest}"))


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
        with process_lock(folder / _LOCK):
            yield
    except LockHeldError as error:
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


# Writes the pages of a plan into a folder, many at once. Pages that are right already are kept.


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
    work = _Work(plan, folder, writer, found, at_once)
    await work.write_all(list(work.todo(labels, force)))
    return found


PageTask = tuple[Brief, str]
"""A page to write, and the digest of its material."""


class _Work:
    def __init__(self, plan: Plan, folder: Path, writer: Writer, found: Generated, at_once: int) -> None:
        self._folder, self._writer, self._found, self._at_once = folder, writer, found, at_once
        self._briefs = list(briefs(plan))
        self._reader = WrittenPageReader(plan, folder)
        self._calls: ParallelCalls[PageTask, str] = ParallelCalls(at_once, self._fail)

    def todo(self, labels: Mapping[str, PageLabel | None], force: bool) -> Iterator[PageTask]:
        """Yield the pages to write, with the digest of their material."""
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
                yield brief, digest

    def _digest(self, brief: Brief) -> str:
        return json_digest([brief.told(), self._writer.name, self._writer.digest])

    async def write_all(self, todo: Sequence[PageTask]) -> None:
        """Write pages until none is left, or the writer can no longer be asked."""
        await self._calls.each(todo, self._write)
        why = self._calls.stopped
        self._found.stopped = "" if why is None else str(why) if isinstance(why, BudgetError) else not_asked(why)

    async def _write(self, task: PageTask) -> str | Fault:
        brief, digest = task
        name = brief.page.filename
        page = await self._writer.write(brief, lambda text: self._reader.read(brief, text))
        if isinstance(page, Fault):
            self._found.faulty[name] = page.text
            return page
        whole = labelled(page, self._writer.name, digest).encode()
        await asyncio.to_thread(write_atomically, self._folder / name, whole)
        self._found.written.append(name)
        # One short outage fails all pages that are written at one time.
        self._calls.patience = max(PATIENCE, self._at_once)
        return name

    def _fail(self, task: PageTask, error: RagHarnessError) -> Fault:
        fault = Fault(not_asked(error))
        self._found.faulty[task[0].page.filename] = fault.text
        return fault
