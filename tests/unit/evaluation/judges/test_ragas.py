"""The judge of RAGAS' definitions: its calls, in their order, and what it makes of replies that cannot be used."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import ModelCallError, ModelOutputError
from rag_harness.core.registry import resolve
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.judges.ragas import RagasOpinion, create
from rag_harness.evaluation.measures.judged import AnswerRelevancy, ContextPrecision, Faithfulness
from rag_harness.evaluation.measures.opinion import (
    Claim,
    Judge,
    Material,
    Relevancy,
    Support,
    Usefulness,
    Verdict,
    Verdicts,
)
from tests.unit.evaluation.judges.rows import CP_F_AR, FAITHFULNESS, REFUNDS, RETURNS, ROW
from tests.unit.evaluation.judges.scripted import Chat, Embedder, Parts, as_parts
from tests.unit.ragas_python import needs_ragas, said_by_ragas

UNREADABLE = "the judge's reply is not the JSON that was asked for"
NOT_OFFERED = "the judge gave a verdict that it was not offered"
YES = {"reason": "because", "verdict": 1}


class Ragas(Chat):
    """Replies as RAGAS' prompts want it, where no reply of a test is left."""

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        assert response_format is not None
        properties = response_format["json_schema"]["schema"]["properties"]
        kind = {"reason": "useful", "question": "question"}.get(next(iter(properties)))
        kind = kind or ("verdicts" if "reason" in json.dumps(properties) else "statements")
        self.kinds_asked.append(kind)
        self.users.append(messages[1].content)
        usual = {"useful": YES, "question": {"question": "Why?", "noncommittal": 0}, "statements": _two()}
        usual["verdicts"] = {"statements": [{"statement": "x", **YES}, {"statement": "y", "reason": "", "verdict": 0}]}
        waiting = self.waiting.get(kind)
        reply = waiting.pop(0) if waiting else usual[kind]
        if isinstance(reply, Exception):
            raise reply
        return Completion(reply if isinstance(reply, str) else json.dumps(reply), self.model, *_NOTHING)

    def __init__(self, **waiting: list[Any]) -> None:
        super().__init__()
        self.waiting = waiting
        self.kinds_asked: list[str] = []
        self.users: list[str] = []


_NOTHING: Any = (None, 1.0)


def _two() -> dict[str, Any]:
    return {"statements": [RETURNS, "Refunds come tomorrow."]}


def opinion(chat: Chat, material: Material = ROW) -> RagasOpinion:
    return create(as_parts(Parts(chat))).opinion(material, CP_F_AR)


def test_it_is_registered() -> None:
    judge: Judge = resolve("judges", "ragas")(as_parts(Parts()))
    judge = create(as_parts(Parts()))
    assert (judge.name, judge.model) == ("ragas", "scripted/judge")


def test_ten_calls_at_five_chunks_in_the_order_of_ragas() -> None:
    chat = Ragas()
    five = replace(ROW, contexts=tuple("abcde"))

    async def judged() -> None:
        said = opinion(chat, five)
        await said.usefulness()
        await said.supported(*FAITHFULNESS)
        await said.relevancy()

    asyncio.run(judged())
    assert chat.kinds_asked == ["useful"] * 5 + ["statements", "verdicts"] + ["question"] * 3
    assert [user.split("\n")[-2] for user in chat.users[:5]] == list("abcde")
    assert "a\nb\nc\nd\ne" in chat.users[6]
    assert len(set(chat.users[7:])) == 3  # the same request would have the same recorded reply


def test_statements_that_stand_in_the_answer_are_found_there() -> None:
    verdicts = asyncio.run(opinion(Ragas()).supported(*FAITHFULNESS))
    claims = (Claim(RETURNS, 0, len(RETURNS)), Claim("Refunds come tomorrow."))
    assert verdicts == Verdicts((Verdict(claims[0], 1.0), Verdict(claims[1], 0.0)))


def test_a_row_breaks_its_answer_down_once_whatever_it_is_held_against() -> None:
    chat = Ragas()

    async def judged() -> list[Verdicts]:
        said = opinion(chat)
        return await asyncio.gather(*(said.supported("answer", source) for source in ("contexts", "ground_truth")))

    one, other = asyncio.run(judged())
    assert [each.claim for each in one.each] == [each.claim for each in other.each]
    assert sorted(chat.kinds_asked) == ["statements", "verdicts", "verdicts"]


def test_nuggets_are_judged_as_they_are_in_one_call() -> None:
    chat = Ragas()
    verdicts = asyncio.run(opinion(chat).supported(*Support("nuggets", "answer")))
    assert [each.claim.text for each in verdicts.each] == [RETURNS, REFUNDS]
    assert chat.kinds_asked == ["verdicts"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("prose", UNREADABLE),
        ('{"reason": "half', UNREADABLE),
        ({"reason": "no verdict"}, "the judge gave no verdict for it"),
        *(({"verdict": word}, NOT_OFFERED) for word in (2, -1, "maybe", None, True, float("nan"))),
    ],
)
def test_a_verdict_on_a_chunk_that_cannot_be_used(reply: Any, reason: str) -> None:
    said = asyncio.run(opinion(Ragas(useful=[YES, reply])).usefulness())
    assert said == [Usefulness(1.0), Usefulness(None, reason), Usefulness(1.0)]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("prose", UNREADABLE),
        ({"statements": [YES]}, "the judge's numbers do not fit what it was asked"),
        ({"statements": [YES] * 3}, "the judge's numbers do not fit what it was asked"),
        ({"statements": []}, "the judge's numbers do not fit what it was asked"),
        ({"statements": [YES, "yes"]}, UNREADABLE),
        ({"statements": [YES] * 5000}, "the judge's numbers do not fit what it was asked"),
    ],
)
def test_verdicts_that_do_not_fit_are_none_for_all(reply: Any, reason: str) -> None:
    verdicts = asyncio.run(opinion(Ragas(verdicts=[reply])).supported(*FAITHFULNESS))
    assert [(each.value, each.reason) for each in verdicts.each] == [(None, reason)] * 2


@pytest.mark.parametrize("listed", ["x", None, [RETURNS, ""], [1]])
def test_statements_that_cannot_be_read_are_no_statements(listed: Any) -> None:
    with pytest.raises(ModelOutputError, match="no statements of the answer"):
        asyncio.run(opinion(Ragas(statements=[{"statements": listed}])).supported(*FAITHFULNESS))


def test_too_many_statements_are_not_believed() -> None:
    with pytest.raises(ModelOutputError, match="5,000 claims"):
        asyncio.run(opinion(Ragas(statements=[{"statements": ["x"] * 5000}])).supported(*FAITHFULNESS))


@pytest.mark.parametrize(
    "reply",
    ["prose", {"question": "Why?"}, {"question": "", "noncommittal": 0}, {"question": "Why?", "noncommittal": 2}],
)
def test_one_question_that_cannot_be_used_spoils_the_mean(reply: Any) -> None:
    relevancy = asyncio.run(opinion(Ragas(question=[reply])).relevancy())
    assert relevancy == Relevancy(None, reason=UNREADABLE)


@pytest.mark.parametrize(("flags", "noncommittal"), [((1, 1, 1), True), ((1, 0, 1), False)])
def test_only_where_all_are_noncommittal_the_answer_is(flags: tuple[int, ...], noncommittal: bool) -> None:
    replies = [{"question": "Why?", "noncommittal": flag} for flag in flags]
    relevancy = asyncio.run(opinion(Ragas(question=replies)).relevancy())
    assert relevancy.noncommittal is noncommittal
    assert relevancy.value is not None


def test_nothing_to_judge_costs_nothing() -> None:
    chat = Ragas()
    said = opinion(chat, replace(ROW, answer=" ", ground_truth="", contexts=("",)))
    assert asyncio.run(said.supported("answer", "contexts")).each[0].reason == "no text to judge by"
    assert asyncio.run(said.supported("answer", "gold_pages")) == Verdicts(())
    assert asyncio.run(said.usefulness()) == [Usefulness(None, "no text to judge by")]
    assert asyncio.run(said.relevancy()).reason == "no text in the answer"
    assert not chat.users


def test_errors_of_the_model_pass_through() -> None:
    with pytest.raises(ModelCallError, match="down"):
        asyncio.run(opinion(Ragas(useful=[ModelCallError("down")])).usefulness())


# Ours and RAGAS' own metrics, given the same replies: the same scores, wherever RAGAS is sane.

KINDS = {
    ("reason", "verdict"): "ContextPrecisionOutput",
    ("question", "noncommittal"): "AnswerRelevanceOutput",
}
Case = dict[str, Any]


class Replies:
    """Gives the replies of a case in their order, by the kind that is asked for."""

    model = "scripted/judge"

    def __init__(self, replies: dict[str, list[Any]]) -> None:
        self._replies = {kind: list(each) for kind, each in replies.items()}

    async def complete(self, messages: Sequence[Message], response_format: Any = None) -> Completion:
        schema = response_format["json_schema"]["schema"]["properties"]
        judges = "reason" in json.dumps(schema)
        statements = "NLIStatementOutput" if judges else "StatementGeneratorOutput"
        reply = self._replies[KINDS.get(tuple(schema), statements)].pop(0)
        return Completion(json.dumps(reply), self.model, Usage(calls=1), 1.0)


def a_case(chance: random.Random, strange: str = "") -> Case:
    """Return a case with random verdicts; ``strange`` names what is wrong in it."""
    contexts = [f"chunk {n}" for n in range(chance.randint(1, 6))]
    statements = [f"statement {n}" for n in range(chance.randint(1, 8))]
    questions = [f"question {n}" for n in range(3)]
    bits = [chance.randint(0, 1) for _ in range(20)]
    nli = [{"statement": each, "reason": "r", "verdict": bits.pop()} for each in statements]
    useful = [{"reason": "r", "verdict": chance.randint(0, 1)} for _ in contexts]
    asked = [{"question": each, "noncommittal": chance.randint(0, 1)} for each in questions]
    vectors = {text: [chance.gauss(0, 1) for _ in range(8)] for text in ["the question", *questions]}
    if strange == "no statements":
        statements = []
    if strange == "fewer verdicts":
        nli.pop()
    if strange == "another verdict":
        useful[-1]["verdict"] = chance.choice([2, -1])
    if strange == "no question":
        asked[chance.randrange(3)]["question"] = ""
    if strange == "no length":
        vectors["question 1"] = [0.0] * 8
        asked[0]["noncommittal"] = 0  # where all are, the cosine does not matter to ours
    replies = {
        "ContextPrecisionOutput": useful,
        "StatementGeneratorOutput": [{"statements": statements}],
        "NLIStatementOutput": [{"statements": nli}],
        "AnswerRelevanceOutput": asked,
    }
    given = {"question": "the question", "answer": "the answer", "reference": "the reference", "contexts": contexts}
    return {**given, "replies": replies, "vectors": vectors}


MEASURES = (ContextPrecision(), Faithfulness(), AnswerRelevancy())


def ours(case: Case) -> list[float | None]:
    """Return context precision, faithfulness and answer relevancy."""
    parts: Any = Parts(Replies(case["replies"]), vectors=Embedder(case["vectors"]))  # type: ignore[arg-type]
    material = Material(case["question"], case["answer"], tuple(case["contexts"]), case["reference"])
    scores = asyncio.run(judged(material, MEASURES, create(as_parts(parts))))
    return [scores[measure.name].value for measure in MEASURES]


STRANGE = {"no statements": 1, "fewer verdicts": 1, "another verdict": 0, "no question": 2, "no length": 2}
"""What may be wrong, and the place of the score that it spoils."""


@pytest.mark.parametrize("strange", STRANGE)
def test_where_ragas_is_not_sane_ours_is_none(strange: str) -> None:
    for seed in range(20):
        found = ours(a_case(random.Random(seed), strange))
        assert [value is None for value in found] == [place == STRANGE[strange] for place in range(3)]


@needs_ragas
def test_cp_f_and_ar_are_those_of_ragas() -> None:
    kinds = ["", "", "", *STRANGE]
    cases = [(a_case(random.Random(seed), kind), kind) for seed, kind in product(range(60), kinds)]
    theirs = said_by_ragas(Path(__file__).with_name("ragas_oracle.py"), [case for case, _ in cases])
    compared = 0
    for (case, strange), expected in zip(cases, theirs, strict=True):
        for place, (mine, score) in enumerate(zip(ours(case), expected, strict=True)):
            if strange and STRANGE[strange] == place:
                assert mine is None
            else:
                assert mine == pytest.approx(score, abs=1e-9, rel=0)
                compared += 1
    print(f"{compared} scores of {len(cases)} answers are those of ragas to 1e-9")
