"""Scenarios in ``queries.jsonl``: a conversation that a simulated user plays, in a line of its own.

    {"conversation": "sim_001", "scenario": {"opening": "can i rent a tent?", "goal": "knows what three days cost",
     "facts": ["two adults and a child"], "asks": ["and the deposit?"], "reached": [{"contains": "€36"}],
     "max_turns": 6}}

Its turns become cases of their own, ``sim_001#1`` to ``sim_001#6``. What the user says in them is known when it is
said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_harness.errors import unknown
from rag_harness.expectations import expectations_of, needs_model
from rag_harness.types import Expectation, Scenario

MOST_PLAYED = 20
"""The most turns of a conversation that a simulated user plays."""
USUAL_TURNS = 10
"""The most turns where a scenario states no ``max_turns``."""
LONGEST_SCENARIO_TEXT = 2_000
"""The most characters of a text of a scenario."""
_TEXTS = ("opening", "persona", "goal")
_KEYS = (*_TEXTS, "facts", "asks", "reached", "max_turns")
BESIDE_SCENARIO = ("conversation", "scenario", "query_type", "answerable", "ground_truth", "context_reference", "qrels",
           "evidence", "expect", "inputs", "metadata")  # fmt: skip


def said_later(conversation: str, turn: int) -> str:
    """Return what stands in place of a question that a simulated user has yet to ask."""
    return f"(what the simulated user says in turn {turn} of {conversation})"


def turns_of_scenario(raw: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the turns that a line with a scenario may come to, as lines of single turns, and what is wrong with it.

    What stands beside the scenario is gold of each turn, but for the ground truth, which is that of the conversation.
    """
    strange = [key for key in raw if key not in BESIDE_SCENARIO]
    if strange:
        return [], [unknown("key beside a scenario", strange[0], BESIDE_SCENARIO)]
    scenario, problems = scenario_of(raw["scenario"], raw.get("ground_truth", ""))
    if scenario is None:
        return [], problems
    conversation = raw.get("conversation")
    shared = {key: value for key, value in raw.items() if key not in ("conversation", "scenario", "ground_truth")}
    return [
        {
            **shared,
            "conversation": conversation,
            "turn": turn,
            "query": scenario.opening if turn == 1 else said_later(str(conversation), turn),
            "scenario": scenario,
        }
        for turn in range(1, scenario.max_turns + 1)
    ], []


def scenario_of(raw: object, ground_truth: object = "") -> tuple[Scenario | None, list[str]]:
    """Return the scenario of a JSON object, or None and what is wrong with it, a sentence each."""
    if not isinstance(raw, dict):
        return None, ['scenario: an object was expected, e.g. {"opening": "can i rent a tent?", "max_turns": 6}']
    problems = [f"scenario: {unknown('key', key, _KEYS)}" for key in raw if key not in _KEYS]
    texts = {name: raw.get(name, "") for name in _TEXTS}
    problems += [each for name, text in texts.items() if (each := _text_problem(name, text))]
    if not problems and not texts["opening"].strip():
        problems.append("scenario: opening is missing: the first thing that the user says")
    facts, wrong = _facts(raw.get("facts", []))
    asks, no_list = _list_of_texts("asks", raw.get("asks", []))
    reached, unread = _reached(raw.get("reached"))
    problems += [*wrong, *no_list, *unread, *_ending_problems(raw)]
    if not isinstance(ground_truth, str):
        problems.append("ground_truth: a text was expected")
    if problems:
        return None, problems
    turns = raw.get("max_turns", USUAL_TURNS)
    said = {name: text.strip() for name, text in texts.items()} | {"ground_truth": ground_truth}
    return Scenario(**said, facts=facts, asks=asks, reached=reached, max_turns=turns), []


def _ending_problems(raw: Mapping[str, Any]) -> list[str]:
    turns = raw.get("max_turns", USUAL_TURNS)
    if isinstance(turns, bool) or not isinstance(turns, int) or not 1 <= turns <= MOST_PLAYED:
        return [f"scenario: max_turns is {turns!r}. Write a number from 1 to {MOST_PLAYED}"]
    if not any(raw.get(name) for name in ("reached", "asks", "max_turns")):
        return ['scenario: nothing says when it is over. Add reached, [{"contains": "€36"}] say, or asks, or max_turns']
    return []


def _text_problem(name: str, value: object) -> str:
    if not isinstance(value, str):
        return f"scenario: {name}: a text was expected"
    return (
        f"scenario: {name} has {len(value):,} characters; at most {LONGEST_SCENARIO_TEXT:,}"
        if len(value) > LONGEST_SCENARIO_TEXT
        else ""
    )


def _list_of_texts(name: str, raw: object) -> tuple[tuple[str, ...], list[str]]:
    if not isinstance(raw, list) or not all(isinstance(each, str) and each.strip() for each in raw):
        return (), [f"scenario: {name}: a list of texts was expected"]
    if len(raw) > MOST_PLAYED or any(len(each) > LONGEST_SCENARIO_TEXT for each in raw):
        return (), [f"scenario: {name}: at most {MOST_PLAYED} texts of {LONGEST_SCENARIO_TEXT:,} characters each"]
    return tuple(each.strip() for each in raw), []


def _facts(raw: object) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """Return facts, each with the words that ask for it: an object has them as keys, a list has none."""
    by_cue = raw if isinstance(raw, dict) else {}
    texts, problems = _list_of_texts("facts", list(by_cue.values()) or raw or [])
    if problems:
        expected = 'an object of words that ask for a fact, {"how many people": "two adults"}, or a list of facts'
        return (), [f"scenario: facts: {expected}, was expected: texts of at most {LONGEST_SCENARIO_TEXT:,} characters"]
    return tuple(zip(map(str, by_cue), texts, strict=True)) if by_cue else tuple(("", each) for each in texts), []


def _reached(raw: object) -> tuple[tuple[Expectation, ...], list[str]]:
    if raw is None:
        return (), []
    found, problems = expectations_of(raw)
    for each in found if not problems else ():
        if each.negated:
            problems.append(f"{each}: what an answer does not say reaches no goal. Put it into expect")
        elif needs_model(each):
            problems.append(f"{each}: it needs a judge, and this is asked while the conversation goes on. Put it into "
                            "expect, and say here what an answer contains that reaches the goal")  # fmt: skip
    return found, [f"scenario: reached: {each}" for each in problems]


def scenario_as_json(scenario: Scenario, demand: Any) -> dict[str, Any]:
    """Return a scenario in the form of a line, without its ground truth. ``demand`` writes an expectation."""
    facts: Any = dict(scenario.facts)
    if not all(asked for asked, _ in scenario.facts):
        facts = [fact for _, fact in scenario.facts]
    said = {
        "opening": scenario.opening,
        "persona": scenario.persona,
        "goal": scenario.goal,
        "facts": facts,
        "asks": list(scenario.asks),
        "reached": [demand(each) for each in scenario.reached],
    }
    return {**{name: value for name, value in said.items() if value}, "max_turns": scenario.max_turns}
