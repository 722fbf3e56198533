"""The two ways without rewriting: the turn alone, and everything, cut to what an embedder reads."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Query
from rag_harness.pipelines.trace import Trace
from rag_harness.studies.conversations import BYTES_A_TOKEN, JoinedTurns, LastTurn
from tests.hostile import CORPUS

HISTORY = ["Do you rent tents?", "Yes, two of them."]


def searched(turn_search: Any, text: str = "and?", history: Any = HISTORY) -> tuple[str, Trace]:
    trace = Trace()
    query = Query("c#2", text, {"conversation": "c", "turn": 2, "history": history})
    found = asyncio.run(turn_search.searched(query, trace))
    assert turn_search.ahead(query) == found
    assert trace.details["rewrite"]["searched"] == found
    assert trace.details["rewrite"]["asked"] == text
    assert "rewrite" in trace.milliseconds
    return found, trace


def test_the_last_turn_alone() -> None:
    text, trace = searched(LastTurn())
    assert text == "and?"
    assert [(one.outcome, one.value, one.reason) for one in trace.decisions] == [("the turn alone", 0.0, "")]


def test_all_turns_the_oldest_first() -> None:
    text, trace = searched(JoinedTurns(512))
    assert text == "Do you rent tents? Yes, two of them. and?"
    assert [(one.outcome, one.value, one.reason) for one in trace.decisions] == [("all turns", 2.0, "")]


def test_the_end_of_a_long_conversation_is_searched_from_the_beginning_of_a_word() -> None:
    text, trace = searched(JoinedTurns(10))
    assert text == "two of them. and?"
    assert trace.decisions[0].reason == "the first 24 of 41 characters are left out"


def test_old_messages_are_left_out_too() -> None:
    text, trace = searched(JoinedTurns(512), history=[f"{n}" for n in range(20)])
    assert text == " ".join([*(f"{n}" for n in range(8, 20)), "and?"])
    assert trace.decisions[0].reason == "8 older messages are not used"


@given(
    text=st.text(max_size=200) | st.sampled_from(CORPUS), most=st.integers(1, 60), said=st.lists(st.text(), max_size=4)
)
def test_no_text_has_more_bytes_than_its_bound(text: str, most: int, said: list[str]) -> None:
    found = JoinedTurns(most).ahead(Query("q", text, {"history": said}))
    assert len(found.encode(errors="replace")) <= BYTES_A_TOKEN * most
