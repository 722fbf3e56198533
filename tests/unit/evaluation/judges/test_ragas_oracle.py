"""Ours and RAGAS' own metrics, given the same replies: the same scores, wherever RAGAS is sane."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.types import Completion, Message, Usage
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.judges.ragas import create
from rag_harness.evaluation.measures.judged import AnswerRelevancy, ContextPrecision, Faithfulness
from rag_harness.evaluation.measures.opinion import Material
from tests.unit.evaluation.judges.scripted import Embedder, Parts, as_parts
from tests.unit.ragas_python import needs_ragas, said_by_ragas

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
