"""The JSON Schema of a line of ``queries.jsonl``: a question, a turn, a whole conversation, or a scenario."""

from __future__ import annotations

from typing import Any

from rag_harness.dataset.conversations import MOST_TURNS
from rag_harness.dataset.expected_tools import MOST_TOOLS
from rag_harness.dataset.queries import QueryLine
from rag_harness.dataset.scenarios import BESIDE_SCENARIO, LONGEST_SCENARIO_TEXT, MOST_PLAYED
from rag_harness.expectations.expectation_schema import expectations_schema
from rag_harness.files.json_schema import Schema, closed, document, filled_text, list_schema, one_of, text_schema

_ABOUT: dict[str, str] = {
    "query_id": "names the question in rows and tests",
    "query": "the question",
    "query_type": "a label: direct, multi_hop, negative, or one of your own",
    "answerable": "whether the documents have the answer; without it, they do unless query_type is negative",
    "ground_truth": "the answer that is wanted",
    "context_reference": "relevant documents, by their paths in the knowledge base",
    "qrels": "documents with their relevance, a whole number; above 0 is relevant",
    "evidence": "quotes that the answer rests on",
    "metadata": "labels, for slices",
    "inputs": "what else the pipeline gets beside the question",
    "conversation": "the id of the conversation that this is a turn of",
    "turn": "its number, from 1",
    "reply": "what the assistant has said to it; later turns see it",
    "standalone": "the turn's question in words that need nothing said before it",
}
_YES_OR_NO = "^(" + "|".join("".join(f"[{a.upper()}{a}]" for a in word) for word in ("true", "false", "yes", "no", "on", "off", "t", "f", "y", "n")) + "|0|1)$"  # fmt: skip  # noqa: E501
_EXPECTED = {"$ref": "#/$defs/expectations"}
_OF_A_TURN = ("conversation", "turn", "reply", "standalone")


def query_schema() -> Schema:
    """Return the schema of one line.

    It is about the form of a line. What stands in several lines, or in the documents, only the reader sees: an id
    twice, turns out of order, a page that is not there, expectations that contradict each other.
    """
    fields = _fields()
    forms = [_question(fields), _turn(fields), _conversation(fields), _scenario(fields)]
    about = "One line of queries.jsonl of rag-harness."
    return document("Question", about, {"anyOf": forms, "$defs": {"expectations": expectations_schema(), **_defs()}})


def _defs() -> dict[str, Schema]:
    call = closed({"name": filled_text("the tool"), "args": {"type": "object"}}, ["name"])
    return {"tools": list_schema(call, "calls of tools that an agent should make, in their order", maxItems=MOST_TOOLS)}


def _fields() -> dict[str, Schema]:
    """Return the schema of each field of a question, of the reader's model where that says it all."""
    made = QueryLine.model_json_schema(mode="validation")
    patterns: dict[str, dict[str, Any]] = made["properties"]
    evidence = made["$defs"]["EvidenceLine"]["properties"]
    name = filled_text()
    quote = {"type": "object", "properties": dict.fromkeys(evidence, filled_text()), "required": [*evidence]}
    found: dict[str, Schema] = {
        **{each: text_schema() for each in ("reply", "standalone")},
        "ground_truth": one_of(text_schema(), {"type": "null"}),
        **{each: filled_text() for each in ("query", "query_type")},
        "query_id": {key: patterns["query_id"][key] for key in ("type", "pattern", "maxLength")},
        "conversation": {key: patterns["conversation"]["anyOf"][0][key] for key in ("type", "pattern", "maxLength")},
        "turn": {"type": "integer", "minimum": 1},
        "answerable": one_of({"type": ["boolean", "null"]}, text_schema(pattern=_YES_OR_NO), {"enum": [0, 1]}),
        "context_reference": one_of(list_schema(name), name, {"type": "null"}),
        "qrels": {"type": "object", "propertyNames": name, "additionalProperties": {"type": "integer"}},
        "evidence": list_schema(quote),
        "metadata": {"type": "object"},
        "inputs": {"type": "object"},
    }
    found = {each: {**schema, "description": _ABOUT[each]} for each, schema in found.items()}
    return {**found, "expect": _EXPECTED, "tools": one_of({"$ref": "#/$defs/tools"}, {"type": "null"})}


def _question(fields: dict[str, Schema]) -> Schema:
    own = {name: each for name, each in fields.items() if name not in _OF_A_TURN}
    plain = {**own["query_id"], "pattern": own["query_id"]["pattern"].replace("(#[0-9]+)?", "")}
    return closed({**own, "query_id": plain}, ["query_id", "query"], title="a question")


def _turn(fields: dict[str, Schema]) -> Schema:
    return closed(fields, ["conversation", "turn", "query"], title="a turn of a conversation")


def _conversation(fields: dict[str, Schema]) -> Schema:
    own = {name: each for name, each in fields.items() if name not in ("conversation", "turn")}
    turn = closed({**own, "metadata": {"description": _ABOUT["metadata"]}}, ["query"])
    return closed(
        {
            "conversation": fields["conversation"],
            "turns": list_schema(turn, "its turns, in their order", minItems=1, maxItems=MOST_TURNS),
            "metadata": fields["metadata"],
        },
        ["conversation", "turns"],
        title="a whole conversation",
    )


def _scenario(fields: dict[str, Schema]) -> Schema:
    beside = {name: fields[name] for name in BESIDE_SCENARIO if name != "scenario"}
    return closed({**beside, "scenario": _played()}, ["conversation", "scenario"], title="a scenario that is played")


def _played() -> Schema:
    said, filled = text_schema(maxLength=LONGEST_SCENARIO_TEXT), filled_text(maxLength=LONGEST_SCENARIO_TEXT)
    by_cue = {"type": "object", "additionalProperties": filled, "maxProperties": MOST_PLAYED}
    in_list = list_schema(filled, maxItems=MOST_PLAYED)
    ends = [
        {"required": ["max_turns"]},
        *({"required": [name], "properties": {name: {"type": "array", "minItems": 1}}} for name in ("asks", "reached")),
    ]
    return closed(
        {
            "opening": filled_text("the first thing that the user says", maxLength=LONGEST_SCENARIO_TEXT),
            "persona": {**said, "description": "how the user talks"},
            "goal": {**said, "description": "what the user wants to know"},
            "facts": one_of(in_list, by_cue, {"type": "null"}, about="what the user knows, and says when asked"),
            "asks": {**in_list, "description": "what the user asks next"},
            "reached": one_of(_EXPECTED, {"type": "null"}, about="what an answer says that reaches the goal"),
            "max_turns": {"type": "integer", "minimum": 1, "maximum": MOST_PLAYED},
        },
        ["opening"],
        anyOf=ends,
    )
