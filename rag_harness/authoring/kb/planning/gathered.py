"""The finished parts of a plan while a model is asked for the rest, and counts of what was dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from rag_harness.authoring.kb.planning.draft import Draft
from rag_harness.authoring.kb.planning.replied import page_id
from rag_harness.authoring.kb.planning.told_to_plan import Outline
from rag_harness.authoring.kb.planning.wanted import PlanRequest
from rag_harness.models.until_right import Fault

ROUNDS = 4
"""How many times pages are asked for to replace unusable ones."""


@dataclass
class Gathered:
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


def new_titles(work: Gathered, titles: list[str] | Fault | None) -> Iterator[str]:
    """Yield titles that are in no other category, and note them as known."""
    if isinstance(titles, Fault):
        work.dropped[f"titles: {titles.text}"] += 1
    for title in titles if isinstance(titles, list) else ():
        if page_id(title) in work.known:
            work.dropped["the title stands in another category too"] += 1
        else:
            work.known[page_id(title)] = title
            yield title


def keep(work: Gathered, number: int, draft: Draft | Fault | None) -> None:
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


def stopped(work: Gathered, why: Exception) -> Exception:
    """Return the same error with the state of the plan in its message."""
    there = len(work.drafts) - len(work.lacking)
    what = f"{there} of {len(work.drafts)} pages are planned; what was answered is recorded in mode record"
    return type(why)(f"{what}. Stopped: {why}")


def too_few(work: Gathered) -> str:
    """Return a message: how many pages there are, and why there are no more."""
    there, wanted = len(work.drafts) - len(work.lacking), len(work.drafts)
    reasons = "".join(f"\n  {count:6}  {reason}" for reason, count in work.dropped.most_common(10))
    what = f"The writer planned {there} of {wanted} pages; asked {ROUNDS} times, the others could not be used:{reasons}"
    return f"{what}\nAsk for fewer with --pages, ask anew with another --seed, or name another model."
