"""RAGAS' own scores of scripted replies: cases on stdin, scores on stdout. Run by an interpreter that has it.

    pip install "ragas==0.4.3" "langchain-community<0.4.2"

Knows nothing of the harness. A case is what ``test_ragas`` makes; a score that is no number is null.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
from typing import Any

from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import InstructorBaseRagasLLM
from ragas.metrics.collections import AnswerRelevancy, ContextPrecisionWithReference, Faithfulness


class Scripted(InstructorBaseRagasLLM):  # type: ignore[misc]
    """Gives the replies of a case, by the kind that is asked for."""

    def __init__(self, replies: dict[str, list[Any]]) -> None:
        self._replies = {kind: list(each) for kind, each in replies.items()}

    def generate(self, prompt: str, response_model: Any) -> Any:
        return response_model.model_validate(self._replies[response_model.__name__].pop(0))

    async def agenerate(self, prompt: str, response_model: Any) -> Any:
        return self.generate(prompt, response_model)


class Vectors(BaseRagasEmbedding):  # type: ignore[misc]
    """Gives the vectors of a case."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        super().__init__()
        self._vectors = vectors

    def embed_text(self, text: str, **_: Any) -> list[float]:
        return self._vectors[text]

    async def aembed_text(self, text: str, **_: Any) -> list[float]:
        return self._vectors[text]


async def scores(case: dict[str, Any]) -> list[float | None]:
    """Return context precision, faithfulness and answer relevancy."""
    llm, vectors = Scripted(case["replies"]), Vectors(case["vectors"])
    asked, answered = {"user_input": case["question"]}, {"response": case["answer"]}
    contexts, reference = {"retrieved_contexts": case["contexts"]}, {"reference": case["reference"]}
    found = [
        await ContextPrecisionWithReference(llm=llm).ascore(**asked, **reference, **contexts),
        await Faithfulness(llm=llm).ascore(**asked, **answered, **contexts),
        await AnswerRelevancy(llm=llm, embeddings=vectors).ascore(**asked, **answered),
    ]
    values = [float(each.value) for each in found]
    return [value if math.isfinite(value) else None for value in values]


async def main() -> None:
    """Score every case of stdin."""
    print(json.dumps([await scores(case) for case in json.load(sys.stdin)]))


if __name__ == "__main__":
    asyncio.run(main())
