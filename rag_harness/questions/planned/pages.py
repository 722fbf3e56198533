"""The planned facts of a folder, where they stand in its pages."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from rag_harness.kb.page import fold
from rag_harness.kb.plan import PLAN_FILE, PlannedFact, PlanPage, read_plan
from rag_harness.questions.facts import Fact
from rag_harness.questions.passages import passages
from rag_harness.questions.planned.wording import asked_of
from rag_harness.questions.wordlists import listed
from rag_harness.types import Document

KINDS = {"amount": "amount", "date": "date", "limit": "limit", "condition": "rule"}
"""What kinds of planned facts are called as kinds of facts; a condition that is read in a text is another."""
MOST_SAY = 0.6
"""Share of a page's statements that must name a thing for the page to be about it."""
_NO_EDGE = listed("a an the of in for with at to on by from and or your our after")


def planned_facts(folder: Path) -> dict[str, PlanPage]:
    """Return the pages of a folder's plan that have facts, by filename; none where there is no plan that can be read."""
    plan, _ = read_plan(folder / PLAN_FILE)
    return {page.filename: page for page in plan.pages if page.facts} if plan else {}


@dataclass(frozen=True, slots=True)
class Told:
    """A fact with what it is told of: ``frame`` is its statement without the thing and the value."""

    fact: PlannedFact
    thing: str
    frame: str

    def of(self, other: str) -> PlannedFact:
        """Return the fact as it would be told of another thing; its value is none of that thing."""
        named = re.compile(re.escape(self.thing), re.I)
        statement, subject = (named.sub(lambda _: other, text) for text in (self.fact.statement, self.fact.subject))
        return replace_fact(self.fact, statement, subject)


def replace_fact(fact: PlannedFact, statement: str, subject: str) -> PlannedFact:
    """Return a fact with other words round its value."""
    return fact.model_copy(update={"statement": statement, "subject": subject})


class PlannedPages:
    """What a plan says of pages.

    Args:
        pages: those with facts, by filename.
    """

    def __init__(self, pages: Mapping[str, PlanPage]) -> None:
        self._pages = pages

    def __contains__(self, doc_id: str) -> bool:
        return doc_id in self._pages

    def facts(self, document: Document, names: Collection[str]) -> list[Fact]:
        """Return the planned facts that stand in a document and can be asked for, in its order."""
        page = self._pages.get(document.doc_id)
        if page is None:
            return []
        names = self.names_of(document.doc_id) or names
        return list(_found(document, page.facts or (), self.things.get(document.doc_id, ""), names))

    def names_of(self, doc_id: str) -> frozenset[str]:
        """Return the words that keep their capital in a question: those of the page's thing that have one."""
        return frozenset(word for word in self.things.get(doc_id, "").split() if word[:1].isupper())

    def called(self, doc_id: str) -> str:
        """Return what a page is about as its statements call it: with an article, where they give it one."""
        thing, facts = self.things[doc_id], self._pages[doc_id].facts or ()
        has_article = any(re.search(rf"\bthe {re.escape(thing)}", fact.statement, re.I) for fact in facts)
        return f"the {thing}" if has_article else thing

    def about_thing(self, fact: Fact) -> Fact:
        """Return a cell's fact with the thing in front of its question where the row has it in brackets behind."""
        thing = self.things.get(fact.doc_id)
        mark = f" ({thing})" if thing else ""
        if not mark or mark.casefold() not in fact.parts.get("asked", "").casefold():
            return fact
        asked = re.sub(re.escape(mark), "", fact.parts["asked"], flags=re.I)
        code = fact.said.split(maxsplit=1)[0]
        if re.search(r"\d", code):
            asked = re.sub(rf"(?<!\w){re.escape(code)}(?!\w)", code, asked, flags=re.I)
        about = {"asked": f"for {self.called(fact.doc_id)}, {asked}", "about": thing or ""}
        return replace(fact, parts={**fact.parts, **about})

    @cached_property
    def things(self) -> Mapping[str, str]:
        """What each page is about, by filename; pages that are about none are left out."""
        found = ((name, thing_of(page)) for name, page in self._pages.items())
        return {name: thing for name, thing in found if thing}

    @cached_property
    def told(self) -> Mapping[str, Mapping[str, Told]]:
        """What each page tells of its thing, by filename and frame."""
        return {name: dict(_told(self._pages[name], thing)) for name, thing in self.things.items()}

    @cached_property
    def _saying(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name, frames in self.told.items():
            for frame in frames:
                found[frame].append(name)
        return found

    @cached_property
    def _of_thing(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for name, frames in self.told.items():
            found[self.things[name]].update(frames)
        return found

    def untold(self, doc_id: str) -> list[PlannedFact]:
        """Return facts that like pages tell of their things and no page of this page's thing, worded for that thing.

        Those that most like pages tell come first.
        """
        thing, own = self.things.get(doc_id, ""), self.told.get(doc_id, {})
        like = {name for frame in own for name in self._saying[frame]} - {doc_id}
        counted = Counter(frame for name in sorted(like) for frame in self.told[name])
        lacking = [frame for frame, _ in counted.most_common() if frame not in self._of_thing[thing]]
        return [self.told[self._saying[frame][0]][frame].of(thing) for frame in lacking]


def thing_of(page: PlanPage) -> str:
    """Return what a page is about: the longest words of its title that most of its statements have; "" if none."""
    words = [word.strip(".,:;") for word in (page.title or "").split()]
    said = [fact.statement for fact in page.facts or ()]
    for length in range(len(words), 0, -1):
        for start in range(len(words) - length + 1):
            run = words[start : start + length]
            text = " ".join(run)
            whole = not {run[0].casefold(), run[-1].casefold()} & _NO_EDGE
            found = [match[0] for match in (re.search(rf"(?<!\w){re.escape(text)}(?!\w)", each, re.I) for each in said) if match]
            if whole and len(found) >= max(2, MOST_SAY * len(said)):
                return min(found, key=lambda each: (found.count(each) < len(found) / 2, each))
    return ""


def _told(page: PlanPage, thing: str) -> Iterator[tuple[str, Told]]:
    for fact in page.facts or ():
        bare, named = re.subn(re.escape(thing), "{}", fact.statement, flags=re.I)
        if named == 1 and bare.count(fact.value) == 1:
            frame = bare.replace(fact.value, "[]")
            yield frame, Told(fact, thing, frame)


def _found(
    document: Document, facts: tuple[PlannedFact, ...], thing: str, names: Collection[str]
) -> Iterator[Fact]:
    wanted = [(fold(fact.statement), fact) for fact in facts]
    for passage in passages(document):
        text = fold(passage.text)
        for statement, fact in wanted:
            if statement in text and (asked := asked_of(fact, names)):
                place = (document.doc_id, passage.section, KINDS[fact.kind], passage.start, passage.end)
                quote = document.text[passage.start : passage.end]
                about = {"about": thing} if thing and thing.casefold() in asked.casefold() else {}
                parts = {"asked": asked, "subject": fact.subject, "id": fact.id, **about}
                yield Fact(*place, quote, fact.statement, fact.value, parts)
