"""Conversations in ``queries.jsonl``, whose turns become cases of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#     {"conversation": "conv_007", "turns": [{"query": "How long can I return a lamp?", "ground_truth": "45 days"}, …]}
#     {"conversation": "conv_008", "turn": 1, "query": "Do you ship to Norway?", "ground_truth": "No."}
#
# The case of turn 3 is called ``conv_007#3``. The earlier messages are in its query's inputs as ``history``: the user's
# questions, each with the reference reply.

MOST_TURNS = 100
"""The most turns of a conversation."""
DECLINES = "I don't know."
"""The reference reply to a question that the documents do not answer, where the turn states none."""
_OF_CONVERSATION = ("conversation", "turns", "metadata")


def turn_id(conversation: str, turn: int) -> str:
    """Return the id of the case of a turn, from 1."""
    return f"{conversation}#{turn}"


def turns_of_line(raw: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the turns of a line that has a whole conversation, as lines of single turns, and the faults of the line.

    The metadata of the conversation are those of each turn that does not state its own.
    """
    unknown = [key for key in raw if key not in _OF_CONVERSATION]
    if unknown:
        return [], [f"{unknown[0]}: a conversation has {', '.join(_OF_CONVERSATION)}; put the rest into its turns"]
    turns, shared = raw["turns"], raw.get("metadata", {})
    if not isinstance(turns, list) or not turns or not all(isinstance(each, dict) for each in turns):
        return [], ['turns: a list of objects was expected, e.g. [{"query": "How long?"}]']
    if not isinstance(shared, dict):
        return [], ["metadata: an object was expected"]
    said = next((key for each in turns for key in ("conversation", "turn", "turns") if key in each), "")
    if said:
        return [], [f"turns: {said!r} stands in a turn. Its place in the list says which one it is"]
    if len(turns) > MOST_TURNS:
        return [], [f"turns: {len(turns):,}; a conversation has {MOST_TURNS} at most"]
    conversation = raw.get("conversation")
    return [
        {**each, "conversation": conversation, "turn": n, "metadata": {**shared, **_metadata(each)}}
        for n, each in enumerate(turns, 1)
    ], []


def rows_of_line(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the questions of a line as rows with ids: the turns of a whole conversation, or the row itself.

    A scenario is the row of its first turn. Its later questions are known when it is simulated.

    The line can be read: ``turns_of_line`` finds nothing wrong with it.
    """
    if "turns" in raw:
        turns, _ = turns_of_line(raw)
        return [{"query_id": turn_id(str(raw.get("conversation")), turn["turn"]), **turn} for turn in turns]
    if "conversation" in raw:
        return [{"query_id": turn_id(str(raw["conversation"]), raw.get("turn", 1)), **raw}]
    return [dict(raw)]


def with_turns(raw: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a line that holds a whole conversation, with the turns of these rows: the reverse of ``rows_of_line``.

    What all of them still share of its metadata stays the conversation's.
    """
    whole = raw.get("metadata", {})
    shared = {key: value for key, value in whole.items() if all(key in row.get("metadata", {}) for row in rows)}
    turns = []
    for row in rows:
        own = {key: value for key, value in row.get("metadata", {}).items() if shared.get(key, _NONE) != value}
        kept = {key: value for key, value in row.items() if key not in (*_OF_TURN, "metadata")}
        turns.append({**kept, **({"metadata": own} if own else {})})
    return {**raw, "turns": turns, **({"metadata": shared} if "metadata" in raw else {})}


_OF_TURN, _NONE = ("query_id", "conversation", "turn"), object()


def _metadata(turn: Mapping[str, Any]) -> Mapping[str, Any]:
    found = turn.get("metadata", {})
    return found if isinstance(found, dict) else {"metadata": found}


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """A turn in its file: line, conversation, number, question, and reference reply."""

    line: int
    conversation: str
    turn: int
    query: str
    reply: str


def order_problems(turns: Sequence[SaidTurn]) -> list[tuple[int, str]]:
    """Return the faults in the order of the turns of all conversations: line and sentence."""
    problems: list[tuple[int, str]] = []
    last: dict[str, SaidTurn] = {}
    begun: dict[str, int] = {}
    previous = ""
    for each in turns:
        before = last.get(each.conversation)
        if each.turn == MOST_TURNS + 1:
            problems.append((each.line, f"turn {each.turn} of {each.conversation!r}: {_MOST}"))
        wanted = before.turn + 1 if before else 1
        # Of a line that holds a whole conversation, all turns stand on it.
        is_again = before is not None and each.turn == 1 < before.turn and begun[each.conversation] == before.line
        if before and (previous != each.conversation or is_again):
            problems.append(
                (each.line, f"conversation {each.conversation!r} stands already on line {before.line}: {_TOGETHER}")
            )
        elif each.turn != wanted:
            problems.append((each.line, _out_of_order(each, wanted, before)))
        last[each.conversation] = each
        begun.setdefault(each.conversation, each.line)
        previous = each.conversation
    return problems


_MOST = f"a conversation has {MOST_TURNS} turns at most. Cut it in two."
_TOGETHER = "its turns stand together, and no two conversations have one id."


def _out_of_order(each: SaidTurn, wanted: int, before: SaidTurn | None) -> str:
    name = f"turn {each.turn} of {each.conversation!r}"
    if before and each.turn == before.turn:
        return f"{name} stands there twice: already on line {before.line}."
    if each.turn > wanted:
        return f"{name} comes without turn {wanted}. Turns are numbered from 1, and stand in their order."
    return f"{name} comes after turn {wanted - 1}. Turns are numbered from 1, and stand in their order."


def histories(turns: Sequence[SaidTurn]) -> list[list[dict[str, str]]]:
    """Return for each turn the earlier messages, with ``role`` and ``content``, the oldest first."""
    said: dict[str, list[dict[str, str]]] = {}
    found = []
    for each in turns:
        before = said.setdefault(each.conversation, [])
        found.append([*before])
        before += [{"role": "user", "content": each.query}, {"role": "assistant", "content": each.reply}]
    return found
