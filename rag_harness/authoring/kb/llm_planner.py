"""Plans by a chat model: prompts, replies, and the collected parts of the plan."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from random import Random
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_harness.authoring.drafting import LlmWriter, ParallelCalls
from rag_harness.authoring.kb.embedded_planner import Draft, arranged, kinds_of
from rag_harness.authoring.kb.plan import Plan, PlannedFact, PlannedTable, PlanPage, PlanRequest
from rag_harness.authoring.kb.plan_checks import content_faults
from rag_harness.core.errors import DataError
from rag_harness.core.protocols import ChatModel
from rag_harness.core.text.comparison import compared_words, slug, with_single_blanks
from rag_harness.models.prompts import Fault, Prompts, json_of

LEAST_FACTS, MOST_FACTS = 4, 10
PORTION = 20
"""How many titles are asked for at once. Longer lists repeat themselves."""
MOST_CATEGORIES = 16
_KNOWN = 300
"""How many of the last titles a model is shown again. Its reply is compared with all titles anyway."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The name of a knowledge base, and its categories."""

    title: str
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageTask:
    """A page that is to be planned; ``versions``: whether it replaced another page."""

    title: str
    category: str
    kind: str
    versions: bool

    def told(self, wanted: PlanRequest, outline: Outline) -> str:
        """Return the task as text."""
        needs = [f"{LEAST_FACTS} to {MOST_FACTS} facts"]
        needs += ["a table"] * (self.kind != "logical") + ["steps"] * (self.kind != "tabular")
        needs += ["older"] * self.versions
        page = {"title": self.title, "category": self.category, "needs": needs}
        return _json({**_about(wanted), "knowledge base": outline.title, "page": page})


def outline_task(wanted: PlanRequest) -> str:
    """Return the task that asks for categories."""
    count = categories_for(wanted.pages)
    form = '{"title": "what the knowledge base is called", "categories": ["…"]}'
    return f"{_json(_about(wanted))}\n\nName it, and {count} categories that its pages fall into. Form: {form}"


def titles_task(wanted: PlanRequest, outline: Outline, category: str, count: int, known: Sequence[str]) -> str:
    """Return the task that asks for titles of a category that are not among the known ones."""
    told = {**_about(wanted), "knowledge base": outline.title, "categories": outline.categories}
    return "\n\n".join(
        [
            _json(told),
            f"Write {count} titles of pages in the category {_json(category)}.",
            *([f"There are already: {_json(known[-_KNOWN:])}"] if known else []),
            'Form: {"titles": ["…"]}',
        ]
    )


def categories_for(pages: int) -> int:
    """Return how many categories are asked for, given the number of pages."""
    return max(1, min(MOST_CATEGORIES, math.isqrt(pages)))


def _about(wanted: PlanRequest) -> dict[str, object]:
    # The seed makes the request different. Otherwise a recording would give the old answer.
    return {"about": wanted.domain, **({"variant": wanted.seed} if wanted.seed else {})}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# Reads categories or titles from a model's reply, or returns the fault for asking again.

LONGEST_PLAN_REPLY = 40_000
"""How many characters of a reply are read."""
SHAPE = "it is not the JSON object that was asked for. Reply with that object, and nothing else"
_TITLE = 120
"""The most characters of a title."""
_FILENAME = 200
"""The most bytes of an id; file systems allow 255."""
_YEAR = re.compile(r"(?:19|20)\d\d\W*\Z")
_A = TypeVar("_A")
_T = TypeVar("_T", bound=BaseModel)


class ReplyPart(BaseModel):
    """A part of a reply. A number in place of a text is read as its digits."""

    model_config: ClassVar[ConfigDict] = ConfigDict(coerce_numbers_to_str=True)


class _Outline(ReplyPart):
    title: str
    categories: list[str]


class _Titles(ReplyPart):
    titles: list[str]


def outline_of(reply: str) -> Outline | Fault:
    """Return name and categories."""
    read = read_as(_Outline, reply)
    if read is None:
        return Fault(SHAPE)
    categories = tuple(dict.fromkeys(with_single_blanks(each) for each in read.categories if _is_title(each)))
    if not categories or not _is_title(read.title):
        return Fault(f"title or categories are empty, or longer than {_TITLE} characters")
    return Outline(with_single_blanks(read.title), categories[: 2 * MOST_CATEGORIES])


def titles_of(reply: str, count: int, known: Collection[str]) -> list[str] | Fault:
    """Return new titles, at most ``count``. Half of the reply's titles must be new; ``known`` are ids of pages."""
    read = read_as(_Titles, reply)
    if read is None:
        return Fault(SHAPE)
    new: dict[str, str] = {}
    for title in map(with_single_blanks, read.titles):
        if _is_title(title) and not _YEAR.search(title) and page_id(title) not in known:
            new.setdefault(page_id(title), title)
    if 2 * len(new) < count:
        what = f"{len(new)} of {count} titles are new, of 1 to {_TITLE} characters, and end with no year"
        return Fault(f"{what}. Write {count} that are")
    return list(new.values())[:count]


def page_id(title: str) -> str:
    """Return the id of a page. It is valid as a file name, also with a year and a suffix after it."""
    return slug(title).encode()[:_FILENAME].decode(errors="ignore").strip("-")


def read_as(shape: type[_T], reply: str) -> _T | None:
    """Return the contents of a reply; None if it has another form."""
    try:
        return shape.model_validate(json_of(reply[:LONGEST_PLAN_REPLY]))
    except ValidationError:
        return None


def _is_title(text: str) -> bool:
    return 0 < len(with_single_blanks(text)) <= _TITLE and bool(page_id(with_single_blanks(text)))


ROUNDS = 4
"""How many times pages are asked for to replace unusable ones."""


@dataclass
class CollectedPlan:
    """The finished parts of a plan. ``known`` are the ids of all pages that were ever proposed."""

    wanted: PlanRequest
    outline: Outline
    drafts: list[Draft | None]
    tasks: list[tuple[str, bool]]
    known: dict[str, str] = field(default_factory=dict)
    statements: dict[str, str] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def lacking(self) -> list[int]:
        """Return the numbers of the missing pages."""
        return [number for number, draft in enumerate(self.drafts) if draft is None]


def new_titles(work: CollectedPlan, titles: list[str] | Fault | None) -> Iterator[str]:
    """Yield titles that are in no other category, and note them as known."""
    if isinstance(titles, Fault):
        work.dropped[f"titles: {titles.text}"] += 1
    for title in titles if isinstance(titles, list) else ():
        if page_id(title) in work.known:
            work.dropped["the title is in another category too"] += 1
        else:
            work.known[page_id(title)] = title
            yield title


def keep(work: CollectedPlan, number: int, draft: Draft | Fault | None) -> None:
    """Keep a page, or count why it is dropped: an earlier page may state the same."""
    if isinstance(draft, Fault):
        work.dropped[draft.text] += 1
    elif draft is not None:
        told = [fact.statement.casefold() for fact in (*draft.facts, *([draft.older] if draft.older else []))]
        if any(statement in work.statements for statement in told):
            work.dropped["it states what another page states"] += 1
            return
        work.statements.update(dict.fromkeys(told, draft.id))
        work.drafts[number] = draft


def stopped(work: CollectedPlan, why: Exception) -> Exception:
    """Return the same error with the state of the plan in its message."""
    there = len(work.drafts) - len(work.lacking)
    what = f"{there} of {len(work.drafts)} pages are planned; answers are recorded in mode record"
    return type(why)(f"{what}. Stopped: {why}")


def too_few(work: CollectedPlan) -> str:
    """Return a message: how many pages there are, and why there are no more."""
    there, wanted = len(work.drafts) - len(work.lacking), len(work.drafts)
    reasons = "".join(f"\n  {count:6}  {reason}" for reason, count in work.dropped.most_common(10))
    what = f"The writer planned {there} of {wanted} pages; asked {ROUNDS} times, the others could not be used:{reasons}"
    return f"{what}\nAsk for fewer with --pages, ask again with another --seed, or name another model."


_LETTERS_OF_TOPIC = 5
_NAMED = 5
"""How many faults of a page the model is told at once."""


class _Fact(ReplyPart):
    kind: str
    subject: str
    value: str
    statement: str


class _Table(ReplyPart):
    title: str
    columns: list[str]
    rows: list[list[str]]


class _Older(ReplyPart):
    fact: int
    value: str
    statement: str


class _Page(ReplyPart):
    facts: list[_Fact]
    table: _Table | None = None
    steps: tuple[str, ...] = ()
    older: _Older | None = None


def draft_of(task: PageTask, reply: str) -> Draft | Fault:
    """Return the draft in a reply, or everything that is wrong with it."""
    read = read_as(_Page, reply)
    if read is None:
        return Fault(SHAPE)
    try:
        draft = _drafted(task, read)
    except ValidationError as error:
        return Fault("; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:_NAMED]))
    faults = _faults(task, draft, read.older)
    return Fault("; ".join(faults[:_NAMED])) if faults else draft


def _drafted(task: PageTask, read: _Page) -> Draft:
    own = page_id(task.title)
    facts = tuple(
        PlannedFact(id=f"{own}-f{number}", **{key: with_single_blanks(text) for key, text in fact.model_dump().items()})
        for number, fact in enumerate(read.facts, 1)
    )
    tables = (PlannedTable.model_validate(read.table.model_dump()),) if read.table and task.kind != "logical" else ()
    steps = tuple(map(with_single_blanks, read.steps)) if task.kind != "tabular" else ()
    about = (*(word for word in compared_words(task.title) if len(word) >= _LETTERS_OF_TOPIC), task.category)
    older = _older(facts, read.older) if task.versions else None
    return Draft(own, task.title, task.category, task.kind, about, facts, tables, steps, older)


def _older(facts: tuple[PlannedFact, ...], older: _Older | None) -> PlannedFact | None:
    if older is None or not 1 <= older.fact <= len(facts):
        return None
    said = {"value": with_single_blanks(older.value), "statement": with_single_blanks(older.statement)}
    return PlannedFact.model_validate({**facts[older.fact - 1].model_dump(), **said})


def _faults(task: PageTask, draft: Draft, older: _Older | None) -> list[str]:
    held = PlanPage(filename="page.md", facts=draft.facts, tables=draft.tables, steps=draft.steps)
    faults = [_for_model(fault.text, draft.id) for fault in content_faults(held)]
    if not LEAST_FACTS <= len(draft.facts) <= MOST_FACTS:
        faults.append(f"there are {len(draft.facts)} facts; {LEAST_FACTS} to {MOST_FACTS} are asked for")
    if len({fact.statement for fact in draft.facts}) < len(draft.facts):
        faults.append("two facts have the same statement")
    if task.kind != "logical" and not draft.tables:
        faults.append("there is no table")
    if task.kind != "tabular" and not draft.steps:
        faults.append("there are no steps")
    return [*faults, *_faults_of_older(task, draft, older)]


def _faults_of_older(task: PageTask, draft: Draft, older: _Older | None) -> list[str]:
    if not task.versions:
        return []
    if draft.older is None:
        found = "is missing" if older is None else f"names fact {older.fact}, there are {len(draft.facts)}"
        return [f'"older" {found}']
    if draft.older.statement in {fact.statement for fact in draft.facts}:
        return ['"older" states what the page still states']
    if any(fact.id == draft.older.id and fact.value.casefold() == draft.older.value.casefold() for fact in draft.facts):
        return [f'"older" has the value that the page still has, {draft.older.value!r}; give it another']
    held = PlanPage(filename="page.md", facts=(draft.older,))
    return [f'"older": {_for_model(fault.text, draft.id)}' for fault in content_faults(held)]


def _for_model(text: str, own: str) -> str:
    """Replace ids of facts by their numbers: the model does not know the ids."""
    return text.replace(f"fact {own}-f", "fact ")


# Plans written by a chat model of role ``writer``: categories, then titles, then the contents of each page.
#
# Each reply must pass the checks of plans; otherwise the model is asked again with the faults. The order of replies
# does not matter.


class Writer(LlmWriter):
    """Asks a model for plans.

    Args:
        chat: the model.
        outline: the instructions for categories and titles.
        page: the instructions for a page.
        at_once: how many calls are under way at one time.
    """

    again = "That cannot be used: {fault}. Write all of it again without that. Only the JSON object."

    def __init__(self, chat: ChatModel, outline: Prompts, page: Prompts, at_once: int) -> None:
        super().__init__(chat, at_once)
        self._outline, self._page = outline, page

    async def plan(self, wanted: PlanRequest) -> tuple[Plan, Counter[str]]:
        """Return the plan, and how many pages were dropped, by reason.

        Raises:
            DataError: the wish cannot be planned, or the model wrote too little that can be used.
            BudgetError, ModelCallError: no more calls can be made; the answers so far are recorded.
        """
        wanted.check()
        work = self._begun(wanted, await self._asked_outline(wanted))
        for _ in range(ROUNDS):
            if not work.lacking:
                break
            await self._fill(work)
        if work.lacking:
            raise DataError(too_few(work))
        drafts = [draft for draft in work.drafts if draft is not None]
        return arranged(drafts, wanted, work.outline.title, self._chat.model), work.dropped

    async def _asked_outline(self, wanted: PlanRequest) -> Outline:
        found = await self._ask(self._outline, outline_task(wanted), outline_of)
        if isinstance(found, Fault):
            raise DataError(f"the writer gave no outline: {found.text}. Name another with --writer-model.")
        return found

    def _begun(self, wanted: PlanRequest, outline: Outline) -> CollectedPlan:
        count = wanted.pages - wanted.pairs
        chance = Random(f"{wanted.seed} {wanted.domain} plan")
        kinds = kinds_of(count, wanted.shares, chance)
        versions = set(chance.sample(range(count), wanted.pairs))
        tasks = [(kind, number in versions) for number, kind in enumerate(kinds)]
        return CollectedPlan(wanted, outline, [None] * count, tasks)

    async def _fill(self, work: CollectedPlan) -> None:
        """Ask for the titles of missing pages, then for the pages."""
        titles = await self._titles(work)
        numbers = work.lacking[: len(titles)]
        tasks = [PageTask(*title, *work.tasks[number]) for number, title in zip(numbers, titles, strict=False)]
        calls: ParallelCalls[PageTask, Draft] = ParallelCalls(self._at_once)
        drafts = await calls.each(tasks, lambda task: self._drafted(task, work))
        for number, draft in zip(numbers, drafts, strict=True):
            keep(work, number, draft)
        if calls.stopped is not None:
            raise stopped(work, calls.stopped)

    async def _titles(self, work: CollectedPlan) -> list[tuple[str, str]]:
        """Return titles with their categories, from each category in turn; as many as are missing, or fewer."""
        categories, count = work.outline.categories, len(work.lacking)
        shares = [(category, len(range(place, count, len(categories)))) for place, category in enumerate(categories)]
        calls: ParallelCalls[tuple[str, int], list[str]] = ParallelCalls(self._at_once)
        found = await calls.each(shares, lambda share: self._titles_of(*share, work))
        if calls.stopped is not None:
            raise stopped(work, calls.stopped)
        titles = []
        for category, each in zip(categories, found, strict=True):
            titles.append([(title, category) for title in new_titles(work, each)])
        return [title for turn in zip_longest(*titles) for title in turn if title]

    async def _titles_of(self, category: str, count: int, work: CollectedPlan) -> list[str] | Fault:
        found: list[str] = []
        while len(found) < count:
            known = [*work.known.values(), *found]
            ids = {*work.known, *map(page_id, found)}
            portion = min(PORTION, count - len(found))
            task = titles_task(work.wanted, work.outline, category, portion, known)
            new = await self._ask(self._outline, task, partial(titles_of, count=portion, known=ids))
            if isinstance(new, Fault):
                return found or new
            found += new
        return found

    async def _drafted(self, task: PageTask, work: CollectedPlan) -> Draft | Fault:
        return await self._ask(self._page, task.told(work.wanted, work.outline), partial(draft_of, task))

    async def _ask(self, prompts: Prompts, task: str, read: Callable[[str], _A | Fault]) -> _A | Fault:
        async def checked(said: str) -> _A | Fault:
            return read(said)

        return await self._draft(prompts.messages(task), checked)
