"""The prompts: their shape, what they weigh, and that no two judges share a revision."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rag_harness.evaluation.judges import fused, ragas
from rag_harness.evaluation.judges.client import object_schema, response_format, shape
from rag_harness.evaluation.judges.questions import most_claims, too_many
from rag_harness.evaluation.measures.opinion import Material
from tests.unit.judges.rows import CP_F_AR, FAITHFULNESS, ROW
from tests.unit.judges.scripted import Asked, Chat, Parts, as_parts

_WORDS = "The customer may return what was bought within thirty days, with the receipt and in its box. "
ANSWER = (_WORDS * 10)[:700]
FIVE = tuple(f"{n} {_WORDS * 8}"[:720] for n in range(5))
LONG = replace(ROW, answer=ANSWER, contexts=FIVE, ground_truth=_WORDS)


def asked_for(material: Material) -> list[Asked]:
    chat = Chat()
    said = fused.create(as_parts(Parts(chat))).opinion(material, CP_F_AR)

    async def judged() -> None:
        await asyncio.gather(said.supported(*FAITHFULNESS), said.usefulness(), said.relevancy())

    asyncio.run(judged())
    return sorted(chat.asked, key=lambda asked: asked.kind)


def test_the_shape_of_the_three_prompts() -> None:
    split, verdicts, useful = asked_for(ROW)
    assert [list(asked.sections) for asked in (split, verdicts, useful)] == [
        ["question", "text"],
        ["passage 1", "passage 2", "passage 3", "claim 1", "claim 2"],
        ["question", "right answer", "passage 1", "passage 2", "passage 3"],
    ]
    assert [asked.system.rpartition("\n\n")[2] for asked in (split, verdicts, useful)] == [
        'Reply as JSON: {"claims": [{"quote": "…", "claim": "…"}, …], "questions": ["…", …], '
        '"noncommittal": true or false}',
        'Reply as JSON: {"verdicts": [{"index": 1, "verdict": "supported" or "unsupported", "passage": 1}, …]}',
        'Reply as JSON: {"verdicts": [{"index": 1, "verdict": "useful" or "useless"}, …]}',
    ]
    assert all(asked.user.startswith("<<") and asked.user.endswith(">>") for asked in (split, verdicts, useful))


def test_five_chunks_of_720_characters_stay_far_below_5000_tokens() -> None:
    # 4 characters a token is what English has; benchmarks/judging_calls.py counts with tiktoken.
    characters = sum(len(asked.system) + len(asked.user) for asked in asked_for(LONG))
    again = max(len(asked.system) + len(asked.user) for asked in asked_for(LONG))
    assert (characters + again) / 4 < 5000


def test_replies_are_asked_for_with_a_strict_schema() -> None:
    reply: dict[str, Any] = {"verdict": {"type": "integer", "enum": [0, 1]}, "reason": {"type": "string"}}
    form = response_format(reply)["json_schema"]
    assert form["strict"] is True
    assert form["schema"] == {
        "type": "object",
        "properties": reply,
        "required": ["verdict", "reason"],
        "additionalProperties": False,
    }
    assert shape(object_schema(reply)) == '{"verdict": 0 or 1, "reason": "…"}'


@pytest.mark.parametrize(("judge", "verdicts"), [(fused, "verdicts"), (ragas, "statements")])
def test_no_list_of_a_reply_is_without_an_end(judge: Any, verdicts: str) -> None:
    # llama.cpp's grammar lets a small model repeat an item for as long as it may.
    chat = Chat(statements=[{"statements": ["One.", "Two."]}, "{}"]) if judge is ragas else Chat()
    said = judge.create(as_parts(Parts(chat))).opinion(ROW, CP_F_AR)

    async def judged() -> None:
        await said.supported(*FAITHFULNESS)
        if judge is fused:
            await said.usefulness()
            await said.citations()

    asyncio.run(judged())
    lists = [each for schema in chat.schemas for each in lists_of(schema)]
    assert all(0 <= each["minItems"] <= each["maxItems"] < 200 for each in lists)
    exact = [schema[verdicts] for schema in chat.schemas if verdicts in schema][-1 if judge is ragas else 0]
    assert exact["minItems"] == exact["maxItems"] == 2


def lists_of(schema: Any) -> list[Mapping[str, Any]]:
    if not isinstance(schema, Mapping):
        return []
    inner = [each for value in schema.values() for each in lists_of(value)]
    return [schema, *inner] if schema.get("type") == "array" else inner


@pytest.mark.parametrize(("text", "most"), [("Yes.", 3), ("x" * 80, 20), ("x" * 9000, 101)])
def test_a_text_has_no_more_claims_than_fit_into_it_and_too_many_are_seen(text: str, most: int) -> None:
    assert most_claims(text) == most
    assert bool(too_many(most)) is (most > 100)


@pytest.mark.parametrize("judge", [fused, ragas])
def test_the_revision_is_the_same_in_every_process_and_its_own(judge: Any) -> None:
    assert judge.create(as_parts(Parts())).revision == judge.create(as_parts(Parts())).revision
    assert fused.create(as_parts(Parts())).revision != ragas.create(as_parts(Parts())).revision
