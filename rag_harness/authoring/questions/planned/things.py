"""The things of planned pages, and frames: statements without the thing and the value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rag_harness.authoring.kb.plan import PlannedFact, PlanPage
from rag_harness.authoring.questions.wordlists import word_set

MOST_SAY = 0.6
"""The share of a page's statements that must name a thing for the page to be about it."""
_NO_EDGE = word_set("a an the of in for with at to on by from and or your our after")


@dataclass(frozen=True, slots=True)
class ToldFact:
    """A fact and the thing that it is about; ``frame`` is its statement without the thing and the value."""

    fact: PlannedFact
    thing: str
    frame: str

    def of(self, other: str) -> PlannedFact:
        """Return the fact as it would be stated about another thing. Its value is not true of that thing."""
        named = re.compile(re.escape(self.thing), re.I)
        told = {name: named.sub(lambda _: other, getattr(self.fact, name)) for name in ("statement", "subject")}
        return self.fact.model_copy(update=told)


def thing_of(page: PlanPage) -> str:
    """Return the thing of a page: the longest words of its title that most statements have; "" if there is none."""
    words = [word.strip(".,:;") for word in (page.title or "").split()]
    said = [fact.statement for fact in page.facts or ()]
    for run in _runs(words):
        found = [match for text in said if (match := _written(run, text))]
        if len(found) >= max(2, MOST_SAY * len(said)):
            return min(found, key=lambda each: (each[0].isupper(), each))
    return ""


def _runs(words: list[str]) -> Iterator[str]:
    """Yield runs of words, the longest first, that neither begin nor end with a small word."""
    for length in range(len(words), 0, -1):
        for start in range(len(words) - length + 1):
            run = words[start : start + length]
            if not {run[0].casefold(), run[-1].casefold()} & _NO_EDGE:
                yield " ".join(run)


def _written(run: str, text: str) -> str:
    """Return words as a text writes them; empty if the text does not have them."""
    if run.casefold() not in text.casefold():
        return ""
    found = re.search(rf"(?<!\w){re.escape(run)}(?!\w)", text, re.I)
    return found[0] if found else ""


def told_facts(page: PlanPage, thing: str) -> dict[str, ToldFact]:
    """Return what a page states about a thing, by frame."""
    found = {}
    for fact in page.facts or ():
        bare, named = re.subn(re.escape(thing), "{}", fact.statement, flags=re.I)
        if named == 1 and bare.count(fact.value) == 1:
            frame = bare.replace(fact.value, "[]")
            found[frame] = ToldFact(fact, thing, frame)
    return found


def called(page: PlanPage, thing: str) -> str:
    """Return a thing's name as the statements of its page write it, with their article if they use one."""
    named = re.compile(rf"\bthe {re.escape(thing)}", re.I)
    return f"the {thing}" if any(named.search(fact.statement) for fact in page.facts or ()) else thing
