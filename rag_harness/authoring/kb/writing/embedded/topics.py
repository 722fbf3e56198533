"""Names what facts are about, on their own page: just "the sales area" if the page is about one outlet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from rag_harness.authoring.kb.plan import PlannedFact, PlanPage
from rag_harness.authoring.kb.writing.embedded.english import capital, joined_with_and

_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
_SMALL = frozenset(
    [
        "of",
        "in",
        "at",
        "for",
        "from",
        "to",
        "by",
        "with",
        "on",
        "about",
        "after",
        "before",
        "during",
        "and",
        "or",
        "the",
        "a",
        "an",
        "your",
    ]
)
_BEFORE = r"\s+(?:of|in|at|for|from|to|by|with|on|about|after|before|during)(?:\s+(?:the|a|an|your))?\s+"
_ARTICLE = re.compile(r"((?:the|an?|every|each)\s+(?:[a-z-]+\s+){0,2})\Z", re.I)
_DENIES = re.compile(r"\b(?:not|no|never|without|cannot)\b", re.I)
_LONGEST = 60
"""The most characters of a heading that is made of topics."""


@lru_cache(maxsize=1024)
def thing_of(page: PlanPage) -> str:
    """Return the longest run of words of the title that most facts contain; empty if there is none."""
    words = _WORD.findall(page.title or "")
    subjects = [fact.subject.casefold() for fact in page.facts or ()]
    for length in range(len(words), 1, -1):
        for start in range(len(words) - length + 1):
            run = " ".join(words[start : start + length])
            if not {words[start].casefold(), words[start + length - 1].casefold()}.isdisjoint(_SMALL):
                continue
            if 2 * sum(run.casefold() in subject for subject in subjects) > len(subjects):
                return run
    return ""


def topic(fact: PlannedFact, page: PlanPage) -> str:
    """Return what a fact is about, without the thing of the whole page, in the form for the middle of a sentence."""
    subject, thing = _within_sentence(fact, page), thing_of(page)
    short = re.sub(_BEFORE + re.escape(thing) + r"\b", "", subject, flags=re.I) if thing else subject
    return " ".join(short.split())


def _within_sentence(fact: PlannedFact, page: PlanPage) -> str:
    """Return the subject with the capitals that it has within a sentence. Names keep theirs."""
    start = fact.statement.casefold().find(fact.subject.casefold())
    if start > 0:
        return fact.statement[start : start + len(fact.subject)]
    first = fact.subject.split()[0]
    said = " ".join([page.title or "", *(each.statement for each in page.facts or ())])
    is_name = not first[1:].islower() or re.search(rf"[a-z,] {re.escape(first)}\b", said)
    return fact.subject if is_name else fact.subject[:1].lower() + fact.subject[1:]


def topic_with_article(fact: PlannedFact, page: PlanPage) -> str:
    """Return the topic with its article, for the middle of a sentence: "the sales area", "a locker", "parking"."""
    start = fact.statement.casefold().find(fact.subject.casefold())
    article = _ARTICLE.search(fact.statement[: max(0, start)])
    return f"{article[1].lower()}{topic(fact, page)}" if article else topic(fact, page)


def tellable(page: PlanPage) -> list[PlannedFact]:
    """Return the facts whose topics other sentences may name. A negated fact's topic would read as a denial there."""
    return [fact for fact in page.facts or () if not _DENIES.search(fact.subject)]


def heading_of(facts: Sequence[PlannedFact], page: PlanPage) -> str:
    """Return the topics of some facts as a heading; empty if it would be too long."""
    heading = capital(joined_with_and(list(dict.fromkeys(topic(fact, page) for fact in facts))))
    return heading if len(heading) <= _LONGEST else ""
