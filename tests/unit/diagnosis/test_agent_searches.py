"""Causes by the searches of an agent, each on a trial where that alone is wrong, and what is changed to find them."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.types import Case, Chunk, Evidence, Query
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.failures import REMEDIES
from rag_harness.diagnosis.gold import gold_facts
from rag_harness.diagnosis.interventions import AgentFacts, agent_facts, changed_searches, was_given
from rag_harness.diagnosis.rules import Diagnosis, FailureFacts, RerunResult, diagnose
from rag_harness.evaluation.measures.correctness import Rightness
from rag_harness.records.row import ExperimentResult
from tests.unit.evaluation.measures.agents.trials import did, search, tool
from tests.unit.rows import make_chunk

TEXTS = {
    "returns.md#0": "A lamp may go back within 45 days of delivery.",
    "refunds.md#0": "We refund the price within 5 working days.",
    "lamps.md#0": "Lamps are sold in pairs.",
}
SHELF = CorpusView([Chunk(name, name.partition("#")[0], text) for name, text in TEXTS.items()])
CASE = Case(
    Query("q1", "How long may I return a lamp, and when is the money back?"),
    ground_truth="45 days for the return; the refund takes 5 working days.",
    qrels={"returns.md": 1, "refunds.md": 1},
    evidence=(Evidence("returns.md", "within 45 days"), Evidence("refunds.md", "within 5 working days")),
)
LAMP = search("return a lamp", "lamps.md#0", "returns.md#0")
MONEY = search("money back", "refunds.md#0")
VAIN = search("lamps in pairs", "lamps.md#0")


def trial(*steps: dict[str, Any], given: tuple[str, ...] = ()) -> ExperimentResult:
    chunks = [make_chunk(name, text=TEXTS[name]) for name in given]
    return did(*steps, {"name": "generate", "ms": 1.0}, retrieved_chunks=chunks, candidates=[], llm_answer="Soon.")


def diagnosed(row: ExperimentResult, *repaired: str, shelf: CorpusView | None = SHELF) -> Diagnosis:
    gold = gold_facts(CASE, row, shelf)
    agent = agent_facts(CASE, row, gold, shelf)
    wrong = Rightness(0.2, False)
    facts = FailureFacts(CASE.query.text, "Soon.", True, False, True, wrong, gold, agent=agent)
    return diagnose(facts, dict.fromkeys(repaired, RerunResult("45 days", Rightness(1.0, True))))


BOTH = ("returns.md#0", "refunds.md#0")


@pytest.mark.parametrize(
    ("row", "repaired", "cause", "detail", "said"),
    [
        (trial(tool("price")), "", "Retrieval Miss", "never searched", "none of its 2 steps is a search"),
        (
            trial(LAMP, VAIN, given=("returns.md#0",)),
            "+gold_search_1",
            "Retrieval Miss",
            "searched for the wrong thing",
            "search 2 of 2 asked “lamps in pairs”; none found refunds.md: “within 5 working days”",
        ),
        (
            trial(VAIN, search("lamps again", "lamps.md#0"), given=("lamps.md#0",)),
            "+gold_search_1",
            "Retrieval Miss",
            "searched for the wrong thing",
            "search 1 of 2 asked “lamps in pairs”",
        ),
        (
            trial(VAIN, LAMP, given=("returns.md#0",)),
            "",
            "Retrieval Miss",
            "stopped too early",
            "its last search, “return a lamp”, still found what is needed; none looked further, for refunds.md",
        ),
        (
            trial(LAMP, MONEY, given=("returns.md#0",)),
            "",
            "Retrieval Miss",
            "found and not used",
            "search 2 of 2 found refunds.md: “within 5 working days”, and it is not in the context",
        ),
        (
            trial(LAMP, MONEY, VAIN, given=BOTH),
            "+stop_searching",
            "Logic Failure",
            "searched on after all was found",
            "search 2 of 3 had found all that is needed",
        ),
        (
            trial(LAMP, MONEY, VAIN, given=("lamps.md#0",)),
            "+stop_searching",
            "Retrieval Miss",
            "searched on after all was found",
            "search 2 of 3",
        ),
        (trial(LAMP, MONEY, VAIN, given=BOTH), "", "Logic Failure", "misread", "all that is needed was in the context"),
        (trial(LAMP, MONEY, given=BOTH), "", "Logic Failure", "misread", ""),
    ],
)
def test_each_fault_is_told(row: ExperimentResult, repaired: str, cause: str, detail: str, said: str) -> None:
    found = diagnosed(row, *([repaired] if repaired else []))
    assert (found.cause, found.detail, found.repaired_by) == (cause, detail, repaired)
    assert said in found.evidence
    assert detail == "misread" or (cause, detail) in REMEDIES


def test_what_no_search_could_find_is_no_fault_of_the_searches() -> None:
    shelf = CorpusView([Chunk("lamps.md#0", "lamps.md", TEXTS["lamps.md#0"])])
    assert diagnosed(trial(VAIN, given=("lamps.md#0",)), shelf=shelf).detail == "not in the index"


@pytest.mark.parametrize(
    "steps",
    [
        ({"name": "retrieve", "ms": 1.0},),  # a flat trace
        (search("a"), search("b")),  # its hits are not told, and there were some
    ],
)
def test_of_a_row_that_does_not_tell_its_searches_the_cause_is_as_before(steps: Any) -> None:
    row = trial(*steps, given=("lamps.md#0",))
    assert diagnosed(row).detail == "not found"


def test_where_nobody_knows_the_index_a_page_counts_as_found() -> None:
    row = trial(LAMP, given=("returns.md#0",))
    gold = gold_facts(CASE, row, None)
    assert agent_facts(CASE, row, gold, None) == AgentFacts(2, ("return a lamp",), (1, 0))


def changed(row: ExperimentResult) -> dict[str, tuple[dict[int, list[str]], int | None]]:
    gold = gold_facts(CASE, row, SHELF)
    agent = agent_facts(CASE, row, gold, SHELF)
    assert agent is not None
    made = changed_searches(agent, row, gold, SHELF)
    return {
        name: ({n: [hit.chunk.chunk_id for hit in hits] for n, hits in given.hits.items()}, given.last)
        for name, given in made.items()
    }


def test_a_search_in_vain_is_replaced_by_the_evidence() -> None:
    many = [search(f"lamps {n}", "lamps.md#0") for n in range(4)]
    gold = ["returns.md#0", "refunds.md#0"]
    assert changed(trial(*many, given=("lamps.md#0",))) == {f"+gold_search_{n}": ({n: gold}, None) for n in (1, 2, 3)}
    assert changed(trial(LAMP, VAIN, given=("returns.md#0",))) == {"+gold_search_1": ({2: gold}, None)}
    assert changed(trial(VAIN, LAMP, given=("returns.md#0",))) == {"+gold_search_1": ({1: gold}, None)}


def test_where_no_search_was_in_vain_the_last_one_finds_the_rest() -> None:
    assert changed(trial(LAMP, given=("returns.md#0",))) == {
        "+gold_search_1": ({1: ["returns.md#0", "refunds.md#0"]}, None)
    }


def test_searches_stop_where_all_was_found_and_others_followed() -> None:
    assert changed(trial(LAMP, MONEY, VAIN, given=BOTH)) == {"+stop_searching": ({}, 2)}
    assert changed(trial(LAMP, MONEY, given=BOTH)) == {}
    assert changed(trial(tool("price"))) == {}


def numbered(step: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a search as ``StepTrace.search`` tells it, with its number among those that it made."""
    return {**step, "detail": {"search": number}}


def test_a_search_is_given_by_its_number_among_those_that_can_be_replaced() -> None:
    """A pipeline that makes a step ``retrieve`` of its own has more searches in its row than StepTrace has counted."""
    gold, own = ["returns.md#0", "refunds.md#0"], VAIN
    row = trial(own, numbered(VAIN, 1), numbered(LAMP, 2), given=("returns.md#0",))
    assert changed(row) == {"+gold_search_1": ({1: gold}, None)}
    found = diagnosed(row, "+gold_search_1")
    assert found.repaired_by == "+gold_search_1"
    wrong = trial(own, numbered(LAMP, 1), own, numbered(search("prices", "lamps.md#0"), 2), given=("returns.md#0",))
    assert changed(wrong) == {"+gold_search_1": ({2: gold}, None)}
    assert "search 4 of 4 asked “prices”" in diagnosed(wrong, "+gold_search_1").evidence


def test_searches_stop_after_those_that_were_counted() -> None:
    row = trial(VAIN, numbered(LAMP, 1), numbered(MONEY, 2), numbered(VAIN, 3), given=BOTH)
    assert changed(row) == {"+stop_searching": ({}, 2)}
    # What follows is a search of its own, which nothing can end.
    assert changed(trial(numbered(LAMP, 1), numbered(MONEY, 2), VAIN, given=BOTH)) == {}


def test_what_was_given_stands_in_the_row() -> None:
    assert not was_given(trial(LAMP))
    assert was_given(trial({**LAMP, "detail": {"search": 1, "given": True}}))
