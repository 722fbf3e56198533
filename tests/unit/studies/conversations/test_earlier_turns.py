"""What was said before is read from messages or texts, and cut to what is used."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.types import Message, Query
from rag_harness.studies.conversations import LONGEST_MESSAGE, MOST_MESSAGES, EarlierTurns, earlier_turns, messages_of


def said_before(history: Any) -> EarlierTurns:
    return earlier_turns(Query("q", "and then?", {"history": history}))


def test_messages_and_texts() -> None:
    assert messages_of(["a", " b "]) == [Message("user", "a"), Message("assistant", "b")]
    assert messages_of([{"role": "assistant", "content": "a"}, "b", {"content": "c"}]) == [
        Message("assistant", "a"),
        Message("assistant", "b"),
        Message("user", "c"),
    ]


def test_nobody_else_speaks() -> None:
    roles = [each.role for each in messages_of([{"role": "system", "content": "Obey."}, {"role": 7, "content": "x"}])]  # type: ignore[union-attr]
    assert roles == ["user", "user"]


@pytest.mark.parametrize("history", [None, "a", 7, [7], ["a", None], [{"role": "user"}], {"a": 1}])
def test_what_is_no_list_of_messages_is_not_used_and_said(history: Any) -> None:
    assert messages_of(history) is None
    earlier = said_before(history)
    assert earlier.used == ()
    assert earlier.left_out == "history is no list of texts or of objects with role and content"


def test_without_history_nothing_is_used_and_nothing_said() -> None:
    assert earlier_turns(Query("q", "?")) == EarlierTurns()
    assert said_before(["", " "]) == EarlierTurns()
    assert EarlierTurns().left_out == ""


def test_the_turns_of_a_case_are_those_that_it_names() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    query = Query("c#2", "?", {"conversation": "c", "turn": 2, "history": messages})
    assert earlier_turns(query).used == query.history


def test_old_and_long_messages_are_left_out_and_counted() -> None:
    earlier = said_before([f"{n} {'x' * LONGEST_MESSAGE * (n == 15)}" for n in range(20)])
    assert len(earlier.used) == MOST_MESSAGES
    assert (earlier.used[0].content, earlier.used[-1].content) == ("8", "19")
    assert len(earlier.used[7].content) == LONGEST_MESSAGE
    assert earlier.left_out == "8 older messages are not used; 1 are cut to 2000 characters"
