"""What reading a trial's spans costs: an app with ten spans, asked below a root span, beside the same app alone.

    python benchmarks/traces.py [--trials 500] [--repetitions 7]

The app finds four of 200 pages twice, reranks, and asks a model once. Both are instrumented and make the same spans;
what is added is the root span, collecting, reading and placing. Wall time on a busy machine is that of its other work,
so the processor's time stands beside it. The goal is 1 ms.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any, TypeAlias

from rag_harness.core.types import Document, Query
from rag_harness.pipelines.endpoint.answer import Placing
from rag_harness.pipelines.otel.in_process import new_provider
from rag_harness.pipelines.traced_app import TracedPipeline
from rag_harness.pipelines.user_pipelines import called

GOAL_MS = 1.0
STEPS = 4
Took: TypeAlias = tuple[float, float]
_WORDS = ("lamp", "express", "warranty", "delivery", "return", "repair", "workshop", "zone", "order", "parcel", "box")
PAGES = {
    f"page{n:03}.md": f"Rule {n} of the shop says: " + " ".join(_WORDS[(n * k) % len(_WORDS)] for k in range(1, 60))
    for n in range(200)
}


class App:
    """Makes ten spans of an answer."""

    def __init__(self, tracer: Any) -> None:
        self._span = tracer.start_as_current_span

    def ask(self, question: str) -> str:
        """Answer."""
        with self._span("app", attributes={"openinference.span.kind": "CHAIN"}):
            first, second = self._search(question, 0), self._search(f"{question} again", 2)
            with self._span("rerank", attributes={"openinference.span.kind": "RERANKER"}) as span:
                kept = [*first[:2], *second[:2]]
                _tell(span, "reranker.output_documents", kept)
            for name in ("prompt", "parse", "check"):
                with self._span(name, attributes={"openinference.span.kind": "CHAIN", "input.value": question}):
                    pass
            with self._span("model", attributes={"openinference.span.kind": "LLM"}) as span:
                prompt = "\n\n".join(PAGES[name] for name in kept) + question
                said = "Rule 3 of the shop says so. [Source 1]"
                told = {"llm.model_name": "m", "llm.token_count.prompt": 400, "llm.token_count.completion": 9}
                told |= {f"llm.input_messages.0.message.{key}": value for key, value in _message("user", prompt)}
                told |= {f"llm.output_messages.0.message.{key}": value for key, value in _message("assistant", said)}
                span.set_attributes(told)
        return said

    def _search(self, question: str, at: int) -> list[str]:
        found = list(PAGES)[at : at + 4]
        with self._span("search", attributes={"openinference.span.kind": "RETRIEVER", "input.value": question}) as span:
            _tell(span, "retrieval.documents", found)
            with self._span("store", attributes={"db.system": "memory"}):
                return found


def _message(role: str, text: str) -> list[tuple[str, Any]]:
    return [("role", role), ("content", text)]


def _tell(span: Any, prefix: str, found: list[str]) -> None:
    for n, name in enumerate(found):
        span.set_attribute(f"{prefix}.{n}.document.id", name)
        span.set_attribute(f"{prefix}.{n}.document.content", PAGES[name])
        span.set_attribute(f"{prefix}.{n}.document.score", 1 / (n + 1))


async def _timed(trials: int) -> tuple[Took, Took]:
    """Return what a trial takes alone and traced."""
    provider = new_provider()
    app = App(provider.get_tracer("app"))
    documents = [Document(name, text, name) for name, text in PAGES.items()]
    traced = TracedPipeline(app.ask, provider, "app", Placing(lambda: documents, "app", "search"))
    # The first looks documents up, which a run does once.
    assert len((await traced.answer(Query("q", "lamp"))).stages) == STEPS
    return (
        await _took(lambda n: called(app.ask, f"lamp {n}", "app"), trials),
        await _took(lambda n: traced.answer(Query("q", f"lamp {n}")), trials),
    )


async def _took(ask: Callable[[int], Awaitable[Any]], trials: int) -> Took:
    """Return the milliseconds of a trial: of the wall, of the processor."""
    wall, processor = perf_counter(), process_time()
    for n in range(trials):
        await ask(n)
    return (perf_counter() - wall) / trials * 1000, (process_time() - processor) / trials * 1000


def main() -> None:
    """Time both and print what reading spans adds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--repetitions", type=int, default=7)
    chosen = parser.parse_args()
    took = [asyncio.run(_timed(chosen.trials)) for _ in range(chosen.repetitions)]
    print(f"{chosen.trials} trials of 10 spans, medians of {chosen.repetitions}, ms a trial; the goal is {GOAL_MS:g}:")
    for at, clock in enumerate(("wall", "processor")):
        alone, traced = ([each[which][at] for each in took] for which in (0, 1))
        added = [after - before for before, after in zip(alone, traced, strict=True)]
        print(
            f"{clock:9}  alone {median(alone):.2f}  traced {median(traced):.2f}  "
            f"added {median(added):.2f} ({min(added):.2f} to {max(added):.2f})"
        )


if __name__ == "__main__":
    main()
