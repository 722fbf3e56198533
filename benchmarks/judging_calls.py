"""What judging costs: calls and prompt tokens an answer, and the time of 200 answers against a server of 200 ms.

    python benchmarks/judging_calls.py [--answers 200] [--repetitions 3] [--embed-model mock/hashed-words]

Context precision, faithfulness and answer relevancy at five chunks of 720 characters of the shipped pages, 64 answers
in flight; ``fused`` and the definitions of RAGAS in turn, through the way of a run: endpoints, limiter, SDK, wire.
Needs the core install; tiktoken's o200k_base or cl100k_base from its cache (TIKTOKEN_CACHE_DIR), else 4 characters a
token are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from judging_server import judging
from mock_server import MockServer
from side_by_side import TIMES, Took, alternate, show, times

from rag_harness.core.protocols import ChatModel
from rag_harness.core.registry import resolve
from rag_harness.core.settings import Settings
from rag_harness.core.types import Completion, Message
from rag_harness.evaluation.measures.opinion import (
    CITATIONS,
    CRITERIA,
    CitedClaim,
    Judge,
    JudgeQuestion,
    Material,
    MaterialOfCase,
    Support,
)
from rag_harness.pipelines.parts import RunParts

ROOT = Path(__file__).parent.parent
DELAY, IN_FLIGHT, CHUNKS, LENGTH = 0.2, 64, 5, 720
JUDGES, _MOST = ("fused", "ragas"), "and 6 criteria"
CRITERIA_ASKED = (
    "names the exception for opened goods",
    "blames nobody",
    "says that the sender of the parcel pays",
    "names the next step",
    "promises no refund",
    "says which page it has that from",
)
FAITHFULNESS = Support("answer", "contexts")
ASKS: tuple[JudgeQuestion, ...] = (FAITHFULNESS, "usefulness", "relevancy")
MEASURES: Mapping[str, tuple[JudgeQuestion, ...]] = {
    "faithfulness": (FAITHFULNESS,),
    "context precision": ("usefulness",),
    "answer relevancy": ("relevancy",),
    "all three": ASKS,
    "citations": (CITATIONS,),
    "and citations": (*ASKS, CITATIONS),
    "and 6 criteria": (*ASKS, CITATIONS, CRITERIA),
    "and factuality": (*ASKS, Support("answer", "gold_pages")),
    "and answer correctness": (*ASKS, Support("answer", "ground_truth"), Support("ground_truth", "answer")),
    "and context recall": (*ASKS, Support("ground_truth", "contexts")),
    "and nugget recall": (*ASKS, Support("nuggets", "answer")),
}


class Counting(RunParts):
    """The parts of a run whose chat models keep what they are asked."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.asked: list[tuple[Sequence[Message], Any]] = []

    def chat(self, role: str = "answer", **sampling: Any) -> ChatModel:
        return _Kept(super().chat(role, **sampling), self.asked)


class _Kept:
    def __init__(self, inner: ChatModel, asked: list[tuple[Sequence[Message], Any]]) -> None:
        self._inner, self._asked, self.model = inner, asked, inner.model

    async def complete(self, messages: Sequence[Message], response_format: Any = None) -> Completion:
        self._asked.append((messages, response_format))
        return await self._inner.complete(messages, response_format)


def answers(count: int) -> list[Material]:
    """Return answers to questions of their own, over the text of the shipped pages."""
    pages = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "data" / "kb").rglob("*.md"))]
    text = re.sub(r"\s+", " ", " ".join(pages))
    chunks = [text[start : start + LENGTH] for start in range(0, len(text) - LENGTH, LENGTH)]
    return [_answer(number, [chunks[(number * 7 + n) % len(chunks)] for n in range(CHUNKS)]) for number in range(count)]


def _answer(number: int, contexts: Sequence[str]) -> Material:
    sentences = [f"{context[n * 60 : n * 60 + 90].replace('.', ',').strip()}." for n, context in enumerate(contexts)]
    question = f"Question {number}: {contexts[0][:60]}?"
    truth = " ".join(sentences[:2])
    given = (question, " ".join(sentences), tuple(contexts), truth, tuple(contexts[:2]), tuple(sentences[:2]))
    return MaterialOfCase(*given, criteria=CRITERIA_ASKED)


async def judge_one(judge: Judge, row: Material, asks: Sequence[JudgeQuestion]) -> None:
    opinion = judge.opinion(row, asks)
    work = [opinion.supported(*ask) if isinstance(ask, Support) else getattr(opinion, ask)() for ask in asks]
    for said in await asyncio.gather(*work):
        found = getattr(said, "each", said if isinstance(said, list) else [said])
        assert found
        by_source = [source for each in found if isinstance(each, CitedClaim) for source in each.sources]
        values = [each.value for each in by_source or found]
        assert all(value is not None for value in values), f"not judged: {said}"


async def judge_all(parts: RunParts, name: str, rows: Sequence[Material], asks: Sequence[JudgeQuestion]) -> None:
    judge, turn = resolve("judges", name)(parts), asyncio.Semaphore(IN_FLIGHT)

    async def one(row: Material) -> None:
        async with turn:
            await judge_one(judge, row, asks)

    await asyncio.gather(*(one(row) for row in rows))
    await parts.endpoints.aclose()


def settings_of(server: MockServer, folder: Path, embed_model: str) -> Settings:
    return Settings(
        profile="judged",
        mode="live",
        chat_model="a/judge",
        chat_base_url=server.url,
        embed_model=embed_model,
        concurrency=IN_FLIGHT,
        cache_dir=str(folder),
        rootdir=str(ROOT),
    )


def counter() -> tuple[str, Callable[[str], int]]:
    """Return what counts tokens, and its name."""
    import tiktoken

    for name in ("o200k_base", "cl100k_base"):
        with contextlib.suppress(OSError):
            return name, partial(_tokens, tiktoken.get_encoding(name))
    return "4 characters a token", lambda text: len(text) // 4


def _tokens(encoding: Any, text: str) -> int:
    return len(encoding.encode_ordinary(text))


class Costs:
    """What one answer costs, with a server that replies at once."""

    header = ("measures", "judge", "calls", "prompt tokens", "schema tokens")

    def __init__(self, server: MockServer, embed_model: str, count: Callable[[str], int]) -> None:
        self._server, self._embed_model, self._count = server, embed_model, count

    def row(self, measures: str, judge: str) -> list[str]:
        """Return a line of the table; the tokens of the schemas are those that go beside the messages."""
        with tempfile.TemporaryDirectory() as folder:
            parts = Counting(settings_of(self._server, Path(folder), self._embed_model))
            asyncio.run(judge_all(parts, judge, answers(1), MEASURES[measures]))
        prompt = sum(self._count(message.content) for messages, _ in parts.asked for message in messages)
        schemas = sum(self._count(json.dumps(form["json_schema"]["schema"])) for _, form in parts.asked)
        return [measures, judge, str(len(parts.asked)), f"{prompt:,}", f"{schemas:,}"]


def _can(judge: str, measures: str) -> bool:
    """RAGAS defines no measure of citations, and knows no criteria."""
    return judge != "ragas" or not {CITATIONS, CRITERIA} & {*MEASURES[measures]}


def timed(
    server: MockServer, embed_model: str, judge: str, rows: Sequence[Material], asks: Sequence[JudgeQuestion] = ASKS
) -> Took:
    """Judge all answers with nothing known of them."""
    with tempfile.TemporaryDirectory() as folder:
        parts = RunParts(settings_of(server, Path(folder), embed_model))
        parts.embedder().embed_queries(["The model is loaded before the clock starts."])
        started, cpu = perf_counter(), process_time()
        asyncio.run(judge_all(parts, judge, rows, asks))
        return Took(perf_counter() - started, process_time() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--embed-model", default="mock/hashed-words")
    options = parser.parse_args()
    name, count = counter()
    with judging(0.0) as server:
        costs = Costs(server, options.embed_model, count)
        rows = [costs.row(measures, judge) for measures in MEASURES for judge in JUDGES if _can(judge, measures)]
    show(f"One answer, {CHUNKS} chunks of {LENGTH} characters ({name})", costs.header, rows)
    with judging(DELAY) as server:
        material = answers(options.answers)
        runs = {judge: partial(timed, server, options.embed_model, judge, material) for judge in JUDGES}
        everything = MEASURES[_MOST]
        runs |= {_MOST: partial(timed, server, options.embed_model, "fused", material, everything)}
        took = alternate(runs, options.repetitions)
    title = f"{options.answers} answers x CP, F, AR, {DELAY * 1000:.0f} ms a call, {IN_FLIGHT} in flight"
    show(f"{title}, {options.embed_model}", ["judge", *TIMES], [[name, *times(took[name])] for name in took])


if __name__ == "__main__":
    main()
