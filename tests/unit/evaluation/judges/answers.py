"""Lines of answers, and a judge that does to each what its answer says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_harness.core.errors import CriticalError, ModelOutputError
from rag_harness.evaluation.measures.opinion import (
    Claim,
    ClaimedText,
    JudgeQuestion,
    Material,
    Relevancy,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
)


def line(name: str | int = "a", **changed: Any) -> dict[str, Any]:
    return {"id": name, "question": "What?", "contexts": ["It is so."], "answer": "supported", **changed}


def written(folder: Path, *lines: Mapping[str, Any]) -> Path:
    file = folder / "answers.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return file


class Obeying:
    """Supports an answer that says so; fails, waits or stops where it says that. Counts who is judged at once."""

    name, model, revision = "obeying", "mock/obeying", "1"
    asks_model, deterministic, reads_conversation = False, False, True

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.now = self.most = 0

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> _Obedience:
        if material.answer == "no opinion":
            raise OSError("the disk is gone")
        return _Obedience(self, material.answer)


class _Obedience:
    def __init__(self, judge: Obeying, answer: str) -> None:
        self._judge, self._answer = judge, answer

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        judge = self._judge
        judge.asked.append(self._answer)
        judge.now += 1
        judge.most = max(judge.most, judge.now)
        try:
            await asyncio.sleep(30 if self._answer == "never" else 0.05 if self._answer == "slow" else 0)
            return self._verdicts()
        finally:
            judge.now -= 1

    def _verdicts(self) -> Verdicts:
        if self._answer == "unreadable":
            raise ModelOutputError("half a JSON")
        if self._answer == "rejected":
            raise CriticalError("the key was rejected")
        value = float(self._answer in ("supported", "slow"))
        return Verdicts((Verdict(Claim(self._answer, 0, 1), value),), detail={"hallucinated": not value})

    async def usefulness(self) -> Sequence[Usefulness]:
        return [Usefulness(1.0)]

    async def relevancy(self) -> Relevancy:
        return Relevancy(0.5)
