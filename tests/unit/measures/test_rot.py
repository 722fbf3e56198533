"""Answers that say what only a superseded page says, and prompts that say both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures import Score, measure_named
from tests.unit.rows import make_chunk, make_row
from tests.unit.tables import tables_of

PLAN = Path(__file__).parents[3] / "data" / "kb" / "structure.json"
WINDOW = {
    "outdated_statement": "Most items can be returned within 30 days.",
    "current_statement": "Most items can be returned within 45 days.",
}
START = {
    "outdated_statement": "The return window starts on the day your order is dispatched from our warehouse.",
    "current_statement": "The return window starts on the day after your order is delivered to you.",
}


def scored(measure: str, answer: str = "", facts: Any = (WINDOW,), chunks: tuple[str, ...] = (), **row: Any) -> Score:
    metadata = {"superseded": list(facts) if isinstance(facts, tuple) else facts}
    texts = [make_chunk(f"page{n}.md#chunk_0", text=text) for n, text in enumerate(chunks)]
    made = make_row(llm_answer=answer, metadata=metadata, retrieved_chunks=texts, **row)
    return measure_named(measure).score(Case(Query("q1", "?")), made)  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(
    ("answer", "stale"),
    [
        ("You have 30 days [Source 2].", 1),
        ("You have 30 days [Source 45].", 1),
        ("You have 45 days [Source 30].", 0),
        ("It was 30 days until 2024, now it is 45 days.", 0),
        ("I do not know.", 0),
        ("", 0),
        ("You have 130 days.", 0),
        ("Send it by 30 May.", 0),
        ("A 30-day window.", 1),
        ("The label costs 30 €.", 0),
        ("Nothing but 30.", 0),  # of what?
        ("You have thirty days.", 0),  # what it cannot see
    ],
)
def test_figures_that_only_the_old_version_has(answer: str, stale: float) -> None:
    assert scored("stale_answer", answer).value == stale


@pytest.mark.parametrize(("answer", "stale"), [("30 days, for €5", 1), ("30 days", 0), ("for €5", 0)])
def test_an_answer_is_stale_that_has_all_of_the_old_figures(answer: str, stale: float) -> None:
    fact = {"outdated_statement": "Within 30 days, for €5.", "current_statement": "Within 45 days, for €9."}
    assert scored("stale_answer", answer, (fact,)).value == stale


@pytest.mark.parametrize(
    ("answer", "stale"),
    [
        ("It starts when the order is dispatched from the warehouse.", 1),
        ("It starts the day after it was delivered to you.", 0),
        ("It starts when it is dispatched.", 0),
        ("It starts when it leaves the warehouse, dispatched.", 1),
        ("It starts when you say so.", 0),
    ],
)
def test_words_where_no_figure_differs(answer: str, stale: float) -> None:
    assert scored("stale_answer", answer, (START,)).value == stale


@pytest.mark.parametrize(
    ("old", "said"),
    [("1,000", "1000"), ("€3.50", "€3.5"), ("€3.50", "3.50 €"), ("1000", "1,000"), ("3,50", "3.50"), ("5 %", "5%")],
)
def test_a_figure_is_its_value(old: str, said: str) -> None:
    fact = {"outdated_statement": f"It costs {old}.", "current_statement": "It costs 777."}
    assert scored("stale_answer", f"That is {said}", (fact,)).value == 1


def test_one_stale_fact_is_enough_and_is_named() -> None:
    found = scored("stale_answer", "dispatched from the warehouse; 45 days", (WINDOW, START))
    assert (found.value, found.detail["stale"]) == (1, [START["outdated_statement"]])


def test_an_answer_that_declines_carries_nothing() -> None:
    assert scored("stale_answer", "I cannot say whether it is 30 days.", abstained=True).value == 0


def test_a_conflict_is_both_statements_in_the_prompt() -> None:
    old, new = WINDOW["outdated_statement"], WINDOW["current_statement"]
    assert scored("version_conflict", chunks=(f"# A\n\n{old}", f"x\n{new.replace('45', '**45**')}")).value == 1
    assert scored("version_conflict", chunks=(old.replace(" ", "\n"), "nothing")).value == 0
    assert scored("version_conflict", chunks=(new,)).value == 0
    assert scored("version_conflict").value == 0


@pytest.mark.parametrize("measure", ["stale_answer", "version_conflict"])
@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ((), "no superseded statement"),
        (None, "no superseded statement"),
        ("30 days", "metadata.superseded that is no list"),
        (({"outdated_statement": "30 days"},), "metadata.superseded that is no list"),
        (({"outdated_statement": "30 days", "current_statement": 45},), "metadata.superseded that is no list"),
        (({"outdated_statement": " ", "current_statement": "45"},), "metadata.superseded that is no list"),
        (({"outdated_statement": "30  days", "current_statement": "30 days"},), "two versions that say the same"),
    ],
)
def test_without_two_versions_there_is_nothing_to_measure(measure: str, facts: Any, reason: str) -> None:
    found = scored(measure, "30 days", facts)
    assert found.value is None
    assert found.undefined
    assert found.reason.startswith(reason)


def test_every_conflict_of_the_shipped_pages_is_told_apart() -> None:
    facts = [fact for pair in json.loads(PLAN.read_text())["version_pairs"] for fact in pair["conflicts"]]
    assert len(facts) == 27
    wrong = [
        fact["fact"]
        for fact in facts
        if scored("stale_answer", fact["outdated_statement"], (fact,)).value != 1
        or scored("stale_answer", fact["current_statement"], (fact,)).value != 0
    ]
    assert not wrong


def test_rates_per_version_pair_are_slices() -> None:
    rows = [
        make_row(query_id=f"q{n}", llm_answer=answer, metadata={"version_pair": pair, "superseded": [WINDOW]})
        for n, (pair, answer) in enumerate([("returns", "30 days"), ("returns", "45 days"), ("rates", "45 days")])
    ]
    table = tables_of(rows, measures=["stale_answer"])["e3"]
    assert table.by("version_pair", ["stale_answer"]) == {
        "rates": {"stale_answer": 0.0},
        "returns": {"stale_answer": 0.5},
    }
