"""A chat model that replies what a test tells it to, and one that judges honestly by the structure of the prompt."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from rag_harness.core.protocols import JudgeParts
from rag_harness.core.settings import Settings
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.evaluation.judges.run_judge import RunJudge
from rag_harness.evaluation.measures.opinion import Judge
from rag_harness.models.array_store import ArrayStore

_OPENING = re.compile(r"<<(.+) \| (\w+)>>")


@dataclass(frozen=True)
class Asked:
    """A request as an honest reader of its structure sees it: sections of the one key that the prompt began with."""

    system: str
    user: str
    keys: tuple[str, ...]

    @cached_property
    def sections(self) -> dict[str, str]:
        lines = self.user.split("\n")
        found: dict[str, str] = {}
        first = _OPENING.fullmatch(lines[0])
        assert first, "a prompt begins with a mark"
        key, name = first[2], ""
        for line in lines:
            mark = _OPENING.fullmatch(line)
            if mark and mark[2] == key:
                name = "" if mark[1] == "end" else mark[1]
            elif name:
                found[name] = f"{found[name]}\n{line}" if name in found else line
        return found

    def numbered(self, name: str) -> list[str]:
        return [text for each, text in self.sections.items() if re.fullmatch(rf"{name} \d+", each)]

    @property
    def kind(self) -> str:
        """What is asked: claims, questions, claims+questions, supported, useful, met; statements, … of ragas."""
        words = "useful" if "useful for" in self.system else "met" if '"met"' in self.system else "supported"
        return words if self.keys == ("verdicts",) else "+".join(key for key in self.keys if key != "noncommittal")


Replying = Callable[[Asked], str]


class Chat:
    """Gives its replies in their order, by kind where they are named so, the honest one where there is none left."""

    model = "scripted/judge"

    def __init__(self, seconds: float = 0.0, **replies: Sequence[Any]) -> None:
        self.asked: list[Asked] = []
        self.schemas: list[Mapping[str, Any]] = []
        self._seconds, self._replies = seconds, {kind: list(each) for kind, each in replies.items()}

    @property
    def kinds(self) -> list[str]:
        return [asked.kind for asked in self.asked]

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        assert response_format is not None
        keys = tuple(response_format["json_schema"]["schema"]["properties"])
        asked = Asked(messages[0].content, messages[1].content, keys)
        self.asked.append(asked)
        self.schemas.append(response_format["json_schema"]["schema"]["properties"])
        if self._seconds:
            await asyncio.sleep(self._seconds)
        waiting = self._replies.get(asked.kind.replace("+", "_and_"))
        reply = waiting.pop(0) if waiting else honest(asked)
        if isinstance(reply, Exception):
            raise reply
        return Completion(reply if isinstance(reply, str) else json.dumps(reply), self.model, Usage(calls=1), 1.0)


def honest(asked: Asked) -> dict[str, Any]:
    """Judge by shared words; claims are sentences. Only what stands between the marks is read."""
    passages = asked.numbered("passage")
    if asked.kind == "supported":
        support = _support_by_each if "needs_source" in asked.system else _support
        return {"verdicts": [support(n, claim, passages) for n, claim in enumerate(asked.numbered("claim"), 1)]}
    if asked.kind == "met":
        answer = asked.sections["answer"]
        return {"verdicts": [_met(n, each, answer) for n, each in enumerate(asked.numbered("criterion"), 1)]}
    if asked.kind == "useful":
        wanted = asked.sections["right answer"]
        return {"verdicts": [_useful(n, wanted, passage) for n, passage in enumerate(passages, 1)]}
    text = asked.sections["text"]
    found = {
        "claims": [{"quote": each, "claim": each} for each in sentences(text)],
        "questions": [f"What about {text[:20]} {n}?" for n in range(3)],
        "noncommittal": "don't know" in text,
    }
    return {key: found[key] for key in asked.keys}


def sentences(text: str) -> list[str]:
    return re.findall(r"[^\s.][^.]*\.", text)


def _support(number: int, claim: str, passages: Sequence[str]) -> dict[str, Any]:
    found = [place for place, passage in enumerate(passages, 1) if _words(claim) <= _words(passage)]
    return {"index": number, "verdict": "supported" if found else "unsupported", "passage": found[0] if found else 0}


def _support_by_each(number: int, claim: str, passages: Sequence[str]) -> dict[str, Any]:
    """Say which passages have words of the claim: all of them is full, half of them partial."""
    shared = [(place, _words(claim) & _words(passage)) for place, passage in enumerate(passages, 1)]
    by = [
        {"passage": place, "quote": passages[place - 1], "degree": "full" if found == _words(claim) else "partial"}
        for place, found in shared
        if 2 * len(found) >= len(_words(claim))
    ]
    return {**_support(number, claim, passages), "needs_source": "Hello" not in claim, "support": by}


def _met(number: int, criterion: str, answer: str) -> dict[str, Any]:
    """Quote the first sentence that shares a word of five letters with the criterion; "tone" is hard to tell."""
    wanted = {word for word in _words(criterion) if len(word) > 4}
    quote = next((each for each in sentences(answer) if wanted & _words(each)), "")
    verdict = "cannot tell" if "tone" in criterion else "met" if quote else "not met"
    return {"index": number, "quote": quote, "verdict": verdict}


def _useful(number: int, wanted: str, passage: str) -> dict[str, Any]:
    return {"index": number, "verdict": "useful" if _words(wanted) & _words(passage) else "useless"}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))


class Embedder:
    """Vectors that a test gives by text; counts of letters where it gives none."""

    model, revision = "scripted/letters", "1"

    def __init__(self, vectors: Mapping[str, Sequence[float]] | None = None) -> None:
        self._vectors = vectors or {}
        self.batches: list[list[str]] = []

    def embed_queries(self, texts: Sequence[str]) -> Any:
        self.batches.append(list(texts))
        return np.array(
            [self._vectors.get(text) or [text.count(letter) + 0.1 for letter in "etaoins"] for text in texts]
        )


@dataclass
class Parts:
    """What a judge is made of, in memory; the store of verdicts is shared where a test passes it on."""

    scripted: Chat = field(default_factory=Chat)
    settings: Settings = field(default_factory=lambda: Settings(mode="live"))
    vectors: Embedder = field(default_factory=Embedder)
    kept: ArrayStore = field(default_factory=lambda: ArrayStore([Path("nowhere")]))
    opened: list[tuple[str, str, str]] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)

    def chat(self, role: str = "answer", **sampling: Any) -> Chat:
        self.sampling = {"role": role, **sampling}
        return self.scripted

    def embedder(self, model: str = "") -> Embedder:
        return self.vectors

    @property
    def stores(self) -> Parts:
        return self

    def open(self, kind: str, model: str, revision: str) -> ArrayStore:
        self.opened.append((kind, model, revision))
        return self.kept


def run_judge(judge: Judge, parts: Parts | None = None) -> RunJudge:
    """Return a judge as a run has it."""
    return RunJudge(judge, as_parts(parts or Parts()))


def as_parts(parts: Parts) -> JudgeParts:
    return cast("JudgeParts", parts)
