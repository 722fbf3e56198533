"""Plans written by a chat model of role ``writer``: categories, then titles, then the contents of each page.

Each reply must pass the checks of plans; otherwise the model is asked again with the faults. Calls are recorded like
all others: in mode ``record``, a run after a killed one finds its paid answers. The order of replies does not matter.
"""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from random import Random

from rag_harness.authoring.kb.plan import Plan
from rag_harness.authoring.kb.planning.arranging import arranged
from rag_harness.authoring.kb.planning.at_once import AtOnce
from rag_harness.authoring.kb.planning.draft import Draft
from rag_harness.authoring.kb.planning.gathered import ROUNDS, Gathered, keep, new_titles, stopped, too_few
from rag_harness.authoring.kb.planning.kinds import kinds_of
from rag_harness.authoring.kb.planning.replied import outline_of, page_id, titles_of
from rag_harness.authoring.kb.planning.replied_page import draft_of
from rag_harness.authoring.kb.planning.told_to_plan import PORTION, Outline, PageTask, outline_task, titles_task
from rag_harness.authoring.kb.planning.wanted import PlanRequest
from rag_harness.errors import DataError
from rag_harness.models.prompts import Prompts
from rag_harness.models.until_right import Fault, ask_until_right
from rag_harness.protocols import ChatModel

_AGAIN = "That cannot be used: {fault}. Write all of it again without that. Only the JSON object."


class Writer:
    """Asks a model for plans.

    Args:
        chat: the model.
        outline: the instructions for categories and titles.
        page: the instructions for a page.
        at_once: how many calls are under way at one time.
    """

    def __init__(self, chat: ChatModel, outline: Prompts, page: Prompts, at_once: int) -> None:
        self._chat, self._outline, self._page, self._at_once = chat, outline, page, at_once

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
        async def read(said: str) -> Outline | Fault:
            return outline_of(said)

        found = await ask_until_right(self._chat, self._outline.messages(outline_task(wanted)), read, _AGAIN)
        if isinstance(found, Fault):
            raise DataError(f"the writer gave no outline: {found.text}. Name another with --writer-model.")
        return found

    def _begun(self, wanted: PlanRequest, outline: Outline) -> Gathered:
        count = wanted.pages - wanted.pairs
        chance = Random(f"{wanted.seed} {wanted.domain} plan")
        kinds = kinds_of(count, wanted.shares, chance)
        versions = set(chance.sample(range(count), wanted.pairs))
        tasks = [(kind, number in versions) for number, kind in enumerate(kinds)]
        return Gathered(wanted, outline, [None] * count, tasks)

    async def _fill(self, work: Gathered) -> None:
        """Ask for the titles of missing pages, then for the pages."""
        titles = await self._titles(work)
        numbers = work.lacking[: len(titles)]
        tasks = [PageTask(*title, *work.tasks[number]) for number, title in zip(numbers, titles, strict=False)]
        calls: AtOnce[PageTask, Draft] = AtOnce(self._at_once)
        drafts = await calls.each(tasks, lambda task: self._drafted(task, work))
        for number, draft in zip(numbers, drafts, strict=True):
            keep(work, number, draft)
        if calls.stopped is not None:
            raise stopped(work, calls.stopped)

    async def _titles(self, work: Gathered) -> list[tuple[str, str]]:
        """Return titles with their categories, from each category in turn; as many as are missing, or fewer."""
        categories, count = work.outline.categories, len(work.lacking)
        shares = [(category, len(range(place, count, len(categories)))) for place, category in enumerate(categories)]
        calls: AtOnce[tuple[str, int], list[str]] = AtOnce(self._at_once)
        found = await calls.each(shares, lambda share: self._titles_of(*share, work))
        if calls.stopped is not None:
            raise stopped(work, calls.stopped)
        titles = []
        for category, each in zip(categories, found, strict=True):
            titles.append([(title, category) for title in new_titles(work, each)])
        return [title for turn in zip_longest(*titles) for title in turn if title]

    async def _titles_of(self, category: str, count: int, work: Gathered) -> list[str] | Fault:
        found: list[str] = []
        while len(found) < count:
            known = [*work.known.values(), *found]
            ids = {*work.known, *map(page_id, found)}
            portion = min(PORTION, count - len(found))

            async def read(said: str, ids: set[str] = ids, portion: int = portion) -> list[str] | Fault:
                return titles_of(said, portion, ids)

            task = titles_task(work.wanted, work.outline, category, portion, known)
            new = await ask_until_right(self._chat, self._outline.messages(task), read, _AGAIN)
            if isinstance(new, Fault):
                return found or new
            found += new
        return found

    async def _drafted(self, task: PageTask, work: Gathered) -> Draft | Fault:
        async def read(said: str) -> Draft | Fault:
            return draft_of(task, said)

        messages = self._page.messages(task.told(work.wanted, work.outline))
        return await ask_until_right(self._chat, messages, read, _AGAIN)
