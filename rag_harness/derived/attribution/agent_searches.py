"""What an agent's searches brought of what its answer needs, what of them is changed to find why it failed, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rag_harness.derived.attribution.cause_names import LOGIC_FAILURE, RETRIEVAL_MISS
from rag_harness.derived.attribution.gold import GoldFacts, QuoteFact
from rag_harness.derived.attribution.interventions import GOLD_CONTEXT, gold_chunks, hits_of
from rag_harness.derived.attribution.shelf import Shelf, says
from rag_harness.measures.agents.steps_told import ToldSearch, searches_of, untold_hits
from rag_harness.pipelines.given_searches import GivenSearches
from rag_harness.results.row import ExperimentResult
from rag_harness.types import Case, Hit

STOPPED = "+stop_searching"
"""Searches find nothing once all that is needed was found."""
GOLD_SEARCHES = ("+gold_search_1", "+gold_search_2", "+gold_search_3")
"""The first, second, third search that found nothing needed finds the evidence instead."""
NOT_GIVEN = "it searches by other means than StepTrace.search, so that nothing could be given to it"
_NO_FAULT_OF_SEARCHES = ("not in the index", "left out", "cut")
_LONGEST_QUERY = 80


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What is known of the searches of a failed trial.

    Attributes:
        steps: number of its steps.
        asked: what each search asked for, in short.
        found_by: of each needed quote of the gold, the number of the search that found it first; 0 where none did.
        numbers: of each search, its number among those of ``StepTrace.search``, by which it is replaced; 0 where it
            was made by other means. Empty where no search tells one.
    """

    steps: int
    asked: tuple[str, ...] = ()
    found_by: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def whole_after(self) -> int:
        """The number of the search after which all that is needed was found; 0 where that never was so."""
        return max(self.found_by) if self.found_by and all(self.found_by) else 0

    @property
    def in_vain(self) -> list[int]:
        """The numbers of searches that found nothing needed that is new."""
        return [n for n in range(1, len(self.asked) + 1) if n not in self.found_by]

    @property
    def replaced(self) -> list[int]:
        """The numbers of searches that are to find the evidence, one at a time; those of other means cannot."""
        # Where each search found something needed, the last one is to find the rest.
        return [n for n in self.in_vain or [len(self.asked)] if self.given_as(n)]

    def given_as(self, search: int) -> int:
        """Return the number by which a search is replaced; 0 where it cannot be."""
        return self.numbers[search - 1] if self.numbers else search


def agent_facts(case: Case, row: ExperimentResult, gold: GoldFacts, shelf: Shelf | None) -> AgentFacts | None:
    """Return what is known of the searches of a trial; None where its row does not tell what each step did."""
    if not any(stage.kind for stage in row.stages) or untold_hits(row):
        return None
    searches = searches_of(case, row)
    found_by = tuple(
        next((n for n, search in enumerate(searches, 1) if _has(search, fact, row, shelf)), 0) for fact in gold.needed
    )
    numbers = tuple(search.number for search in searches)
    asked = tuple(_short(search.asked) for search in searches)
    return AgentFacts(len(row.stages), asked, found_by, numbers if any(numbers) else ())


def changed_searches(
    agent: AgentFacts, row: ExperimentResult, gold: GoldFacts, shelf: Shelf | None
) -> dict[str, GivenSearches]:
    """Return what is given in place of searches, by the name of the change, where that changes anything."""
    found: dict[str, GivenSearches] = {}
    last = max(map(agent.given_as, range(1, agent.whole_after + 1)), default=0)
    if agent.whole_after and any(agent.given_as(n) > last for n in range(agent.whole_after + 1, len(agent.asked) + 1)):
        found[STOPPED] = GivenSearches(last=last)
    if gold.lost and agent.asked:
        chunks = gold_chunks(hits_of(row, shelf), gold, shelf)
        hits = tuple(Hit(chunk, 1.0, rank, source="gold") for rank, chunk in enumerate(chunks, 1))
        replaced = zip(GOLD_SEARCHES, agent.replaced, strict=False)
        found |= {name: GivenSearches({agent.given_as(n): hits}) for name, n in replaced if hits}
    return found


def was_given(row: ExperimentResult) -> bool:
    """Whether a search of a trial was replaced: a pipeline that searches by other means takes nothing."""
    return any(stage.detail.get("given") for stage in row.stages)


def cause_of_searches(
    agent: AgentFacts, gold: GoldFacts, first: Callable[..., str]
) -> tuple[str, str, str, str] | None:
    """Return cause, detail, evidence and what repaired it; None where the searches are not why the trial failed.

    Args:
        agent: the searches.
        gold: the gold, compared with what the model was given.
        first: returns the first of these changes that made the answer right; empty where none did.
    """
    lost, searches, whole = gold.lost, len(agent.asked), agent.whole_after
    if by := first(STOPPED):
        said = f"search {whole} of {searches} had found all that is needed; when later ones find nothing, it is right"
        return RETRIEVAL_MISS if lost else LOGIC_FAILURE, "searched on after all was found", said, by
    if not lost or any(fact.place in _NO_FAULT_OF_SEARCHES for fact in lost):
        return None
    if not searches:
        return RETRIEVAL_MISS, "never searched", f"none of its {agent.steps} steps is a search", first(GOLD_CONTEXT)
    return _lost(agent, gold, first)


def _lost(agent: AgentFacts, gold: GoldFacts, first: Callable[..., str]) -> tuple[str, str, str, str]:
    at = {id(fact): n for fact, n in zip(gold.needed, agent.found_by, strict=True)}
    never, searches = [fact for fact in gold.lost if not at[id(fact)]], len(agent.asked)
    if not never:
        used = gold.lost[0]
        said = f"search {at[id(used)]} of {searches} found {_named(used)}, and it is not in the context of the answer"
        return RETRIEVAL_MISS, "found and not used", said, first(GOLD_CONTEXT)
    by, missing = first(*GOLD_SEARCHES), _named(never[0])
    if searches in agent.found_by:
        said = f"its last search, “{agent.asked[-1]}”, still found what is needed; none looked further, for {missing}"
        return RETRIEVAL_MISS, "stopped too early", said, by
    number = agent.replaced[GOLD_SEARCHES.index(by)] if by else agent.in_vain[-1]
    said = f"search {number} of {searches} asked “{agent.asked[number - 1]}”; none found {missing}"
    return RETRIEVAL_MISS, "searched for the wrong thing", said, by


def _has(search: ToldSearch, fact: QuoteFact, row: ExperimentResult, shelf: Shelf | None) -> bool:
    """Whether a search found a quote; its page, where nobody knows which chunks hold the quote."""
    if not fact.quote:
        return fact.filename in search.documents
    knows_index = shelf is not None and shelf.knows_index
    holders = {chunk.chunk_id for chunk in shelf.holding(fact.quote)} if shelf is not None and knows_index else set()
    holders |= {chunk.chunk_id for chunk in row.retrieved_chunks if says([chunk.text], fact.quote)}
    return not holders.isdisjoint(search.chunks) or (not knows_index and fact.filename in search.documents)


def _named(fact: QuoteFact) -> str:
    return f"{fact.filename}: “{fact.quote}”" if fact.quote else fact.filename


def _short(asked: object) -> str:
    text = str(asked.get("query", asked) if isinstance(asked, dict) else asked)
    return text if len(text) <= _LONGEST_QUERY else f"{text[:_LONGEST_QUERY]}…"
