"""What of a turn is changed: its words, by what its data or the words of its conversation say, or its history."""

from __future__ import annotations

from typing import Any

from rag_harness.core.types import Case, Chunk, Query
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.interventions import as_asked, changed_turns, standalone_of
from tests.unit.rows import make_row

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
