"""One thing changed at a time: in contexts, turns and searches of an agent."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from rag_harness.core.errors import RagHarnessError
from rag_harness.core.protocols import Experiment
from rag_harness.core.types import Case, Chunk, Evidence, Hit, Query
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.failures import REMEDIES
from rag_harness.diagnosis.gold import gold_facts
from rag_harness.diagnosis.interventions import (
    AgentFacts,
    agent_facts,
    altered,
    as_asked,
    changed_searches,
    changed_turns,
    hits_of,
    standalone_of,
    was_given,
)
from rag_harness.diagnosis.reruns import BLACK_BOX, CHANGED, NOT_KNOWN, KnownExperiment, RerunSupport, no_reruns
from rag_harness.diagnosis.rules import Diagnosis, FailureFacts, RerunResult, diagnose
from rag_harness.evaluation.measures.correctness import Rightness
from rag_harness.records.row import ExperimentResult
from tests.unit.diagnosis.made_up import CASES, OLD, Pages, Pipeline, chunks_of, experiment, halved
from tests.unit.diagnosis.made_up import PAGES as MADE_UP_PAGES
from tests.unit.diagnosis.test_gold import BESIDE, STALE, TENT, row, view
from tests.unit.diagnosis.test_gold import CHUNKS as GOLD_CHUNKS
from tests.unit.diagnosis.test_gold import GOLD as GOLD_GOLD
from tests.unit.diagnosis.test_gold import LAMP as GOLD_LAMP
from tests.unit.evaluation.measures.agents.trials import did, search, tool
from tests.unit.rows import make_chunk, make_row

# One thing changed at a time, and nothing where it would change nothing.

OTHER = "desk.md#chunk_0"


def ids(hits: list[Hit]) -> list[str]:
    return [hit.chunk.chunk_id for hit in hits]


def changed(context: list[str], case=TENT, known: CorpusView | None = None) -> dict[str, list[str]]:  # type: ignore[no-untyped-def]
    found, known = row(context), known or view()
    return {name: ids(hits) for name, hits in altered(found, gold_facts(case, found, known), known).items()}


def test_missing_gold_takes_the_place_of_the_last_chunk_that_is_none() -> None:
    assert changed([BESIDE, OTHER])["+gold_context"] == [BESIDE, GOLD_GOLD]
    assert changed([])["+gold_context"] == [GOLD_GOLD]


def test_gold_that_is_there_can_be_put_first_and_alone() -> None:
    found = changed([BESIDE, GOLD_GOLD, OTHER])
    assert found == {
        "+no_context": [],
        "+gold_at_both_ends": [GOLD_GOLD, BESIDE, OTHER, GOLD_GOLD],
        "+no_distractors": [GOLD_GOLD],
    }
    assert changed([GOLD_GOLD]) == {"+no_context": [], "+gold_at_both_ends": [GOLD_GOLD, GOLD_GOLD]}


def test_a_passage_is_given_without_the_rest_of_its_chunk_where_it_has_one() -> None:
    whole = replace(
        GOLD_CHUNKS[GOLD_GOLD], text=f"Tents are light. {GOLD_CHUNKS[GOLD_GOLD].text} Wet ones are not taken back."
    )
    found = make_row(retrieved_chunks=[make_chunk(GOLD_GOLD, text=whole.text)])
    known = CorpusView([whole], MADE_UP_PAGES)
    hits = altered(found, gold_facts(TENT, found, known), known)["+passages_alone"]
    assert [hit.chunk.text for hit in hits] == [TENT.evidence[0].quote] * 2
    assert "+passages_alone" not in changed([BESIDE])  # what the model was not given is not for the prompt to lose


def test_outdated_pages_are_taken_out() -> None:
    assert changed([STALE, "lamp.md#chunk_2"], GOLD_LAMP)["+current_versions"] == ["lamp.md#chunk_2"]


def test_a_cut_quote_is_given_as_the_paragraph_of_its_page() -> None:
    others = [chunk for chunk in GOLD_CHUNKS.values() if chunk.chunk_id != GOLD_GOLD]
    known = CorpusView([*others, *halved(GOLD_CHUNKS[GOLD_GOLD])], MADE_UP_PAGES)
    found = row([BESIDE])
    hits = altered(found, gold_facts(TENT, found, known), known)["+gold_context"]
    assert hits[-1].chunk.text == GOLD_CHUNKS[GOLD_GOLD].text


def test_without_pages_the_quote_itself_is_given() -> None:
    found = row([BESIDE])
    hits = altered(found, gold_facts(TENT, found, None), None)["+gold_context"]
    assert [hit.chunk.text for hit in hits] == [TENT.evidence[0].quote]


def test_without_quotes_all_of_the_page_is_given() -> None:
    case = replace(CASES[3], evidence=())
    assert changed([BESIDE], case)["+gold_context"] == [f"desk.md#chunk_{n}" for n in range(3)]


def test_an_outdated_page_that_the_row_says_is_in_no_index() -> None:
    assert OLD not in {chunk_id.partition("#")[0] for chunk_id in changed([STALE, GOLD_GOLD])["+no_distractors"]}


def test_what_is_put_into_a_context_says_that_it_is_gold() -> None:
    found = row([BESIDE, OTHER])
    hits = altered(found, gold_facts(TENT, found, view()), view())["+gold_context"]
    assert [(hit.rank, hit.score, hit.source) for hit in hits] == [(1, 0.5, "dense"), (2, 1.0, "gold")]
    (alone,) = altered(row([]), gold_facts(TENT, row([]), None), None)["+gold_context"]
    assert alone.chunk.doc_id == "tent.md"
    assert re.fullmatch(r"tent\.md#gold-[0-9a-f]{8}", alone.chunk.chunk_id)


def test_a_context_is_given_as_it_was() -> None:
    found = row([BESIDE, GOLD_GOLD])
    assert [hit.chunk for hit in hits_of(found, view())] == [GOLD_CHUNKS[BESIDE], GOLD_CHUNKS[GOLD_GOLD]]
    unknown = hits_of(found, None)
    assert [hit.rank for hit in unknown] == [1, 2]
    assert [(hit.chunk.chunk_id, hit.chunk.text) for hit in unknown] == [
        (chunk_id, GOLD_CHUNKS[chunk_id].text) for chunk_id in (BESIDE, GOLD_GOLD)
    ]
    assert unknown[0].chunk.section == ("Returns", "Windows")
    short = make_row(retrieved_chunks=[make_chunk(GOLD_GOLD, text="You may")])
    assert [hit.chunk.text for hit in hits_of(short, view())] == ["You may"]


def test_more_gold_than_the_context_has_places_for_is_given_all() -> None:
    both = replace(TENT, evidence=(*TENT.evidence, *CASES[3].evidence), ground_truth="33 and 34 days of delivery")
    assert changed([BESIDE], both)["+gold_context"] == [GOLD_GOLD, "desk.md#chunk_2"]
    assert changed([BESIDE, OTHER, "sofa.md#chunk_0"], both)["+gold_context"] == [BESIDE, GOLD_GOLD, "desk.md#chunk_2"]
    assert changed([OTHER, GOLD_GOLD, BESIDE], both)["+gold_context"] == [OTHER, GOLD_GOLD, "desk.md#chunk_2"]


def test_gold_that_another_page_says_too_is_taken_from_its_own() -> None:
    copy = replace(GOLD_CHUNKS[GOLD_GOLD], chunk_id="a.md#0", doc_id="a.md")
    found = row([BESIDE])
    hits = altered(found, gold_facts(TENT, found, view()), CorpusView([copy, *GOLD_CHUNKS.values()], MADE_UP_PAGES))[
        "+gold_context"
    ]
    assert ids(hits) == [GOLD_GOLD]


# What of a turn is changed: its words, by what its data or the words of its conversation say, or its history.

PAGES = ["Rent the Ridge 3 tent for €18.", "A lamp may go back within 45 days.", "Express costs €9."]
SHELF = CorpusView([Chunk(f"{n}.md#0", f"{n}.md", text) for n, text in enumerate(PAGES)])
GOLD = [{"role": "user", "content": "can i rent a tent?"}, {"role": "assistant", "content": "Yes, the Ridge 3."}]
OWN = [GOLD[0], {"role": "assistant", "content": "I do not know."}]


def turn(history: list[dict[str, str]] | None = None, standalone: str = "") -> Case:
    place: dict[str, Any] = {"conversation": "c1", "turn": 2}
    inputs = {**place, **({"history": history} if history else {})}
    return Case(Query("c1#2", "how much is that?", inputs), standalone=standalone)


def row_of(case: Case, history: list[dict[str, str]]) -> Any:
    inputs = {"conversation": "c1", "turn": 2, "history": history}
    return make_row(query_id="c1#2", query=case.query.text, inputs=inputs)


def test_a_turn_is_asked_with_its_standalone_question_and_the_same_history() -> None:
    case = turn(GOLD, "How much does renting the Ridge 3 cost?")
    changed = changed_turns(case, row_of(case, OWN), standalone_of(case, SHELF))
    alone, gold = changed["+standalone"].query, changed["+gold_history"].query
    assert (alone.text, [*alone.inputs["history"]]) == ("How much does renting the Ridge 3 cost?", OWN)
    assert (gold.text, [*gold.inputs["history"]]) == ("how much is that?", GOLD)


def test_where_nobody_wrote_it_rules_make_it_of_words_that_the_index_has() -> None:
    made = standalone_of(turn(GOLD), SHELF)
    assert made.startswith("how much is that?")
    assert {"Ridge", "tent"} <= set(made.rstrip(".").split())
    assert standalone_of(turn(GOLD), None) == standalone_of(turn(GOLD), CorpusView(None)) == ""
    assert standalone_of(turn(), SHELF) == ""  # the first turn, or no conversation


def test_with_the_reference_history_only_the_words_are_changed() -> None:
    case = turn(GOLD, "How much is the Ridge 3?")
    assert list(changed_turns(case, row_of(case, GOLD), standalone_of(case, SHELF))) == ["+standalone"]
    assert changed_turns(case, row_of(case, GOLD), "how much is that?") == {}
    assert as_asked(case, row_of(case, GOLD)) is case


def test_a_question_without_a_conversation_is_changed_in_nothing() -> None:
    case = Case(Query("q1", "How long?"))
    assert changed_turns(case, make_row(query="How long?"), standalone_of(case, SHELF)) == {}


# Causes by the searches of an agent, each on a trial where that alone is wrong, and what is changed to find them.

TEXTS = {
    "returns.md#0": "A lamp may go back within 45 days of delivery.",
    "refunds.md#0": "We refund the price within 5 working days.",
    "lamps.md#0": "Lamps are sold in pairs.",
}
AGENT_SEARCHES_SHELF = CorpusView([Chunk(name, name.partition("#")[0], text) for name, text in TEXTS.items()])
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


def diagnosed(row: ExperimentResult, *repaired: str, view: CorpusView | None = AGENT_SEARCHES_SHELF) -> Diagnosis:
    gold = gold_facts(CASE, row, view)
    agent = agent_facts(CASE, row, gold, view)
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
    view = CorpusView([Chunk("lamps.md#0", "lamps.md", TEXTS["lamps.md#0"])])
    assert diagnosed(trial(VAIN, given=("lamps.md#0",)), view=view).detail == "not in the index"


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


def changed_for_agent(row: ExperimentResult) -> dict[str, tuple[dict[int, list[str]], int | None]]:
    gold = gold_facts(CASE, row, AGENT_SEARCHES_SHELF)
    agent = agent_facts(CASE, row, gold, AGENT_SEARCHES_SHELF)
    assert agent is not None
    made = changed_searches(agent, row, gold, AGENT_SEARCHES_SHELF)
    return {
        name: ({n: [hit.chunk.chunk_id for hit in hits] for n, hits in given.hits.items()}, given.last)
        for name, given in made.items()
    }


def test_a_search_in_vain_is_replaced_by_the_evidence() -> None:
    many = [search(f"lamps {n}", "lamps.md#0") for n in range(4)]
    gold = ["returns.md#0", "refunds.md#0"]
    assert changed_for_agent(trial(*many, given=("lamps.md#0",))) == {
        f"+gold_search_{n}": ({n: gold}, None) for n in (1, 2, 3)
    }
    assert changed_for_agent(trial(LAMP, VAIN, given=("returns.md#0",))) == {"+gold_search_1": ({2: gold}, None)}
    assert changed_for_agent(trial(VAIN, LAMP, given=("returns.md#0",))) == {"+gold_search_1": ({1: gold}, None)}


def test_where_no_search_was_in_vain_the_last_one_finds_the_rest() -> None:
    assert changed_for_agent(trial(LAMP, given=("returns.md#0",))) == {
        "+gold_search_1": ({1: ["returns.md#0", "refunds.md#0"]}, None)
    }


def test_searches_stop_where_all_was_found_and_others_followed() -> None:
    assert changed_for_agent(trial(LAMP, MONEY, VAIN, given=BOTH)) == {"+stop_searching": ({}, 2)}
    assert changed_for_agent(trial(LAMP, MONEY, given=BOTH)) == {}
    assert changed_for_agent(trial(tool("price"))) == {}


def numbered(step: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a search as ``StepTrace.search`` tells it, with its number among those that it made."""
    return {**step, "detail": {"search": number}}


def test_a_search_is_given_by_its_number_among_those_that_can_be_replaced() -> None:
    """A pipeline that makes a step ``retrieve`` of its own has more searches in its row than StepTrace has counted."""
    gold, own = ["returns.md#0", "refunds.md#0"], VAIN
    row = trial(own, numbered(VAIN, 1), numbered(LAMP, 2), given=("returns.md#0",))
    assert changed_for_agent(row) == {"+gold_search_1": ({1: gold}, None)}
    found = diagnosed(row, "+gold_search_1")
    assert found.repaired_by == "+gold_search_1"
    wrong = trial(own, numbered(LAMP, 1), own, numbered(search("prices", "lamps.md#0"), 2), given=("returns.md#0",))
    assert changed_for_agent(wrong) == {"+gold_search_1": ({2: gold}, None)}
    assert "search 4 of 4 asked “prices”" in diagnosed(wrong, "+gold_search_1").evidence


def test_searches_stop_after_those_that_were_counted() -> None:
    row = trial(VAIN, numbered(LAMP, 1), numbered(MONEY, 2), numbered(VAIN, 3), given=BOTH)
    assert changed_for_agent(row) == {"+stop_searching": ({}, 2)}
    # What follows is a search of its own, which nothing can end.
    assert changed_for_agent(trial(numbered(LAMP, 1), numbered(MONEY, 2), VAIN, given=BOTH)) == {}


def test_what_was_given_stands_in_the_row() -> None:
    assert not was_given(trial(LAMP))
    assert was_given(trial({**LAMP, "detail": {"search": 1, "given": True}}))


# What can be done with each experiment of a run.

CHUNKS = chunks_of(MADE_UP_PAGES)


def subject(made: Experiment | None, now: str = "aaaa") -> KnownExperiment:
    return RerunSupport(lambda _: made, lambda _: now, lambda _: Pages()).subject("x1", {"aaaa", "bbbb"})


def shelf_of(made: Experiment) -> CorpusView:
    found = subject(made).view
    assert found is not None
    return found


def test_what_is_known_of_an_experiment_that_is_as_it_was() -> None:
    made = experiment(Pipeline(CHUNKS))
    found = subject(made)
    assert (found.experiment, found.why_not, found.limits) == (made, "", "")
    known = shelf_of(made)
    assert known.knows_index
    assert list(known.chunks.values()) == CHUNKS
    assert list(known.documents.values()) == MADE_UP_PAGES


def test_a_black_box_has_pages_and_an_index_that_nobody_knows() -> None:
    made = experiment(Pipeline(CHUNKS), answer_from=None, chunks=None)
    assert subject(made).limits == BLACK_BOX
    assert not shelf_of(made).knows_index
    assert list(shelf_of(made).documents.values()) == MADE_UP_PAGES


def test_of_an_experiment_that_has_changed_nothing_is_known() -> None:
    assert subject(experiment(Pipeline(CHUNKS)), now="cccc") == KnownExperiment(why_not=CHANGED)
    assert subject(experiment(Pipeline(CHUNKS)), now="cccc").limits == CHANGED


def test_of_one_without_a_version_nobody_knows_whether_it_has_changed() -> None:
    made = experiment(Pipeline(CHUNKS), is_reusable=False)
    assert subject(made, now="cccc").limits == NOT_KNOWN
    assert subject(made).limits == ""


def test_an_experiment_that_is_not_registered_and_one_that_cannot_be_built() -> None:
    assert subject(None) == KnownExperiment(why_not="x1 is not a registered experiment, so nothing of it is run again")
    assert no_reruns().subject("x1", ["aaaa"]).limits == "x1 cannot be built: nothing was asked for but rows and gold"

    def broken(_: str) -> Experiment | None:
        raise OSError("no such folder")

    support = RerunSupport(broken, lambda _: "aaaa", lambda _: Pages())
    assert support.subject("x1", ["aaaa"]) == KnownExperiment(why_not="x1 cannot be built: no such folder")


@pytest.mark.parametrize("error", [RagHarnessError("no pages"), ValueError("somebody else's")])
def test_an_index_that_cannot_be_read_is_not_known_and_the_rest_is(error: Exception) -> None:
    def broken() -> Any:
        raise error

    made = experiment(Pipeline(CHUNKS), chunks=broken)
    assert subject(made) == KnownExperiment(made)
