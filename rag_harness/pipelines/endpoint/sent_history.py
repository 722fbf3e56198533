"""The history that a service is sent: role and content of each message, without the oldest turns where it is long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.errors import ModelCallError
from rag_harness.settings.endpoint_spec import HistoryLimits
from rag_harness.types import Query


@dataclass(frozen=True, slots=True)
class SentHistory:
    """A query with the history that is sent with it.

    Attributes:
        query: the query. Its history is what is sent.
        left_out: the number of older turns that are not sent.
    """

    query: Query
    left_out: int = 0


def sent_history(query: Query, limits: HistoryLimits, where: str) -> SentHistory:
    """Return ``query`` with as much of its history as ``limits`` allow: the latest turns, each of them whole.

    A turn is a message of the user with all messages up to the next one.

    Raises:
        ModelCallError: there are limits, and the history is no list of messages.
    """
    history = query.inputs.get("history")
    if history is None:
        return SentHistory(query)
    if query.place:
        # What the harness notes beside a message is not for the service.
        history = [{"role": each["role"], "content": each["content"]} for each in history]
    if not limits:
        return SentHistory(replace(query, inputs={**query.inputs, "history": history}))
    turns = list(_turns(_messages(query, history, where)))
    kept = _latest(turns, limits)
    sent = [message for turn in kept for message in turn]
    return SentHistory(replace(query, inputs={**query.inputs, "history": sent}), len(turns) - len(kept))


def _messages(query: Query, history: Any, where: str) -> Sequence[Mapping[str, Any]]:
    are_messages = isinstance(history, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("content"), str) and "role" in each for each in history
    )
    if not are_messages:
        raise ModelCallError(
            f"{where}, [history] limits what is sent, and the history of {query.query_id} is no list of messages with "
            f"role and content. Write it so, or leave [history] out."
        )
    found: Sequence[Mapping[str, Any]] = history
    return found


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    turn: list[Mapping[str, Any]] = []
    for message in messages:
        if message["role"] == "user" and any(each["role"] == "user" for each in turn):
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _latest(turns: list[list[Mapping[str, Any]]], limits: HistoryLimits) -> list[list[Mapping[str, Any]]]:
    first, chars = len(turns), 0
    while first and (limits.most_turns is None or len(turns) - first < limits.most_turns):
        chars += sum(len(message["content"]) for message in turns[first - 1])
        if limits.most_chars is not None and chars > limits.most_chars:
            break
        first -= 1
    return turns[first:]
