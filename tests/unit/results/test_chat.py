"""What was said before a turn, of rows that this package wrote and of others."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.types import Query
from rag_harness.records.cases import SaidMessage, chat_before, inputs_beside

PLACE = {"conversation": "c1", "turn": 2}
SAID = [{"role": "user", "content": "How long?"}, {"role": "assistant", "content": "Sorry.", "failed": True}]


def test_a_turn_has_what_was_said_before_it_and_which_reply_failed() -> None:
    query = Query("c1#2", "?", {**PLACE, "history": SAID, "plan": "gold"})
    assert chat_before(query) == [SaidMessage("user", "How long?"), SaidMessage("assistant", "Sorry.", failed=True)]
    assert inputs_beside(query) == {"plan": "gold"}


@pytest.mark.parametrize(
    "history", ["a text", [1], [{"role": "user"}], [{"role": 1, "content": "x"}], {"role": "user"}]
)
def test_what_is_no_list_of_messages_stays_an_input(history: Any) -> None:
    query = Query("c1#2", "?", {**PLACE, "history": history})
    assert chat_before(query) == []
    assert inputs_beside(query) == {"history": history}


@pytest.mark.parametrize("inputs", [{"history": SAID}, {"history": SAID, "conversation": "c1"}, {}])
def test_a_query_that_is_no_turn_keeps_all_its_inputs(inputs: dict[str, Any]) -> None:
    assert chat_before(Query("q1", "?", inputs)) == []
    assert inputs_beside(Query("q1", "?", inputs)) == inputs
