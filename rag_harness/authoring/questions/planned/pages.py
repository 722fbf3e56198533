"""The planned facts of a folder, at their places in its pages."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from rag_harness.authoring.kb.page import fold
from rag_harness.authoring.kb.plan import PLAN_FILE, PlannedFact, PlanPage, read_plan
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.planned.things import ToldFact, called, thing_of, told_facts
from rag_harness.authoring.questions.planned.wording import asked_of
from rag_harness.authoring.questions.quotable_passages import QuotablePassage, passages
from rag_harness.authoring.questions.wordlists import word_set
from rag_harness.types import Document

FACT_KIND_OF_PLANNED = {"amount": "amount", "date": "date", "limit": "limit", "condition": "rule"}
"""From kinds of planned facts to kinds of facts. A planned condition is a rule: "condition" is a kind found in
texts."""
ALIKE = 2
"""How many facts of two pages must be the same for the pages to be similar: all things have a weight."""
_NO_NAME = word_set("small medium large max min plus standard basic light normal big other early late day first third")
"""Names of table rows that mean nothing without the table's header: "the price of the large"."""


def planned_facts(folder: Path) -> dict[str, PlanPage]:
    """Return the pages of a folder's plan that have facts, by filename; empty if no plan can be read."""
    plan, _ = read_plan(folder / PLAN_FILE)
    return {page.filename: page for page in plan.pages if page.facts} if plan else {}


class PlannedPages:
    """The planned facts of pages.

    Args:
        pages: the pages with facts, by filename.
    """

    def __init__(self, pages: Mapping[str, PlanPage]) -> None:
        self._pages = pages

    def facts(self, document: Document, found: Sequence[Fact], names: Collection[str]) -> Sequence[Fact]:
        """Return the planned facts of a document, then those ``found`` in its text outside planned statements.

        For an unplanned page, return only what was found.
        """
        page = self._pages.get(document.doc_id)
        if page is None:
            return found
        stated = list(_stated(document, page.facts or ()))
        thing, names = self.things.get(document.doc_id, ""), self.names_of(document.doc_id) or names
        planned = filter(None, (_asked(document, *each, thing, names) for each in stated))
        starts = {passage.start for passage, _ in stated}
        others = (self._of_thing(fact, thing) if thing else fact for fact in found if fact.start not in starts)
        return [*planned, *filter(None, others)]

    def names_of(self, doc_id: str) -> frozenset[str]:
        """Return the words of the page's thing that have a capital; a question keeps it."""
        return frozenset(word for word in self.things.get(doc_id, "").split() if word[:1].isupper())

    def called(self, doc_id: str) -> str:
        """Return the name of a page's thing, as the page's statements use it."""
        return called(self._pages[doc_id], self.things[doc_id])

    def _of_thing(self, fact: Fact, thing: str) -> Fact | None:
        """Return a cell's fact. If the row's name has the thing in brackets, the thing goes to the question's end."""
        mark = re.compile(re.escape(f" ({thing})"), re.I)
        if not mark.search(fact.parts.get("asked", "")):
            return fact
        row = mark.split(fact.said)[0]
        if row.casefold() in _NO_NAME:
            return None
        asked = mark.sub("", fact.parts["asked"])
        if re.match(r"\S*\d", row):
            asked = re.sub(rf"(?<!\w){re.escape(row)}(?!\w)", lambda _: row, asked, flags=re.I)
        asked = f"{asked} for {self.called(fact.doc_id)}"
        return replace(fact, parts={**fact.parts, "asked": asked, "about": thing})

    @cached_property
    def things(self) -> Mapping[str, str]:
        """The thing that each page is about, by filename; pages about no single thing are left out."""
        found = ((name, thing_of(page)) for name, page in self._pages.items())
        return {name: thing for name, thing in found if thing}

    @cached_property
    def told(self) -> Mapping[str, Mapping[str, ToldFact]]:
        """What each page states about its thing, by filename and frame."""
        return {name: told_facts(self._pages[name], thing) for name, thing in self.things.items()}

    @cached_property
    def _saying(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name, frames in self.told.items():
            for frame in frames:
                found[frame].append(name)
        return found

    @cached_property
    def _told_of_thing(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for name, frames in self.told.items():
            found[self.things[name]].update(frames)
        return found

    def untold(self, doc_id: str) -> list[PlannedFact]:
        """Return facts of similar pages that no page about this page's thing states, reworded for this thing.

        Facts that most similar pages state come first.
        """
        thing, own = self.things.get(doc_id, ""), self.told.get(doc_id, {})
        shared = Counter(name for frame in own for name in self._saying[frame] if name != doc_id)
        like = sorted(name for name, frames in shared.items() if frames >= ALIKE)
        counted = Counter(frame for name in like for frame in self.told[name])
        lacking = [frame for frame, _ in counted.most_common() if frame not in self._told_of_thing[thing]]
        return [self.told[self._saying[frame][0]][frame].of(thing) for frame in lacking]


def _stated(document: Document, facts: Sequence[PlannedFact]) -> Iterator[tuple[QuotablePassage, PlannedFact]]:
    """Yield the sentences that contain planned statements; bold and white space do not matter."""
    wanted = [(fold(fact.statement), fact) for fact in facts]
    for passage in passages(document):
        text = fold(passage.text)
        yield from ((passage, fact) for statement, fact in wanted if statement in text)


def _asked(
    document: Document, passage: QuotablePassage, planned: PlannedFact, thing: str, names: Collection[str]
) -> Fact | None:
    """Return a planned fact with its question; None if its statement gives none."""
    asked = asked_of(planned, names)
    if not asked:
        return None
    about = {"about": thing} if thing and thing.casefold() in asked.casefold() else {}
    parts = {"asked": asked, "subject": planned.subject, "id": planned.id, **about}
    place = (document.doc_id, passage.section, FACT_KIND_OF_PLANNED[planned.kind], passage.start, passage.end)
    return Fact(*place, document.text[passage.start : passage.end], planned.statement, planned.value, parts)
