"""Pipelines of Haystack, instrumented by openinference-instrumentation-haystack."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.joiners import DocumentJoiner
from openinference.instrumentation.haystack import HaystackInstrumentor

from tests.examples.traced.did import PAGES, QUESTION, Did

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"


SAID = "The warranty of a lamp lasts two years."
TEMPLATE = "Answer by the sources.\n{% for page in documents %}{{ page.content }}\n{% endfor %}\n{{ question }}"


@component
class ShelfRetriever:
    """Finds the pages that it is told to."""

    def __init__(self, did: Did, *found: str, fails: bool = False) -> None:
        self._did, self._found, self._fails = did, found, fails

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        if self._fails:
            self._did.searched(query, [], [])
            raise ConnectionError("no index")
        scores = [1 / (n + 2) for n in range(len(self._found))]
        self._did.searched(query, self._found, scores)
        found = zip(self._found, scores, strict=True)
        return {"documents": [Document(id=name, content=PAGES[name], score=score) for name, score in found]}


@component
class LastRanker:
    """A reranker: the last comes first, and two are kept."""

    def __init__(self, did: Did) -> None:
        self._did = did

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
        kept = list(reversed(documents))[:2]
        self._did.kept.append([page.id for page in kept])
        return {"documents": kept}


@component
class SayingGenerator:
    """Says one thing."""

    def __init__(self, did: Did) -> None:
        self._did = did

    @component.output_types(replies=list[str], meta=list[dict[str, Any]])
    def run(self, prompt: str) -> dict[str, Any]:
        self._did.calls += 1
        usage = {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}
        return {"replies": [SAID], "meta": [{"model": "said", "usage": usage}]}


def search(shelf: Any, query: str = QUESTION) -> Any:
    """Run a pipeline that only searches."""
    searching = Pipeline()
    searching.add_component("retriever", shelf)
    return searching.run({"retriever": {"query": query}})["retriever"]["documents"]


def asked(did: Did, shelves: list[Any], *rankers: Any, given: list[Any] | None = None) -> str:
    """Run a pipeline of retrievers, rankers, a prompt and a generator."""
    whole = Pipeline()
    whole.add_component("prompt", PromptBuilder(TEMPLATE, required_variables=["question"]))
    whole.add_component("generator", SayingGenerator(did))
    whole.connect("prompt.prompt", "generator.prompt")
    inputs: dict[str, Any] = {"prompt": {"question": QUESTION}}
    last = "" if given is not None else _searching(whole, shelves, inputs)
    for n, ranker in enumerate(rankers):
        whole.add_component(f"ranker{n}", ranker)
        whole.connect(f"{last}.documents", f"ranker{n}.documents")
        inputs[f"ranker{n}"] = {"query": QUESTION}
        last = f"ranker{n}"
    if last:
        whole.connect(f"{last}.documents", "prompt.documents")
    else:
        inputs["prompt"]["documents"] = given
    done = whole.run(inputs, include_outputs_from={last or "prompt"})
    pages = given if given is not None else done[last]["documents"]
    did.given = [page.id for page in pages]
    said: str = done["generator"]["replies"][0]
    return said


def _searching(whole: Any, shelves: list[Any], inputs: dict[str, Any]) -> str:
    for n, shelf in enumerate(shelves):
        whole.add_component(f"retriever{n}", shelf)
        inputs[f"retriever{n}"] = {"query": QUESTION}
    if len(shelves) == 1:
        return "retriever0"
    whole.add_component("joiner", DocumentJoiner("reciprocal_rank_fusion"))
    for n in range(len(shelves)):
        whole.connect(f"retriever{n}.documents", "joiner.documents")
    return "joiner"


def plain(did: Did) -> str:
    return asked(did, [ShelfRetriever(did, "warranty.md", "returns.md")])


def nothing(did: Did) -> str:
    return asked(did, [ShelfRetriever(did)])


def cut(did: Did) -> str:
    found = search(ShelfRetriever(did, "repair.md", "warranty.md", "returns.md"))
    return asked(did, [], given=found[1:2])


def reranked(did: Did) -> str:
    found = ["repair.md", "returns.md", "shipping.md", "warranty.md"]
    return asked(did, [ShelfRetriever(did, *found)], LastRanker(did))


def two_rerankers(did: Did) -> str:
    return asked(did, [ShelfRetriever(did, "repair.md", "returns.md", "warranty.md")], LastRanker(did), LastRanker(did))


def two_searches(did: Did) -> str:
    first = search(ShelfRetriever(did, "repair.md"), "a lamp that flickers")
    second = search(ShelfRetriever(did, "warranty.md"), "warranty")
    return asked(did, [], given=first + second)


def same_search_twice(did: Did) -> str:
    search(ShelfRetriever(did, "warranty.md"))
    return asked(did, [ShelfRetriever(did, "warranty.md")])


def joined(did: Did) -> str:
    shelves = [ShelfRetriever(did, "repair.md", "warranty.md"), ShelfRetriever(did, "returns.md", "warranty.md")]
    return asked(did, shelves)


def failing(did: Did) -> str:
    try:
        search(ShelfRetriever(did, fails=True))
    except Exception:
        return asked(did, [ShelfRetriever(did, "warranty.md")])
    raise AssertionError


def two_calls(did: Did) -> str:
    rewriting = Pipeline()
    rewriting.add_component("generator", SayingGenerator(did))
    rewriting.run({"generator": {"prompt": "Say it shorter."}})
    return asked(did, [ShelfRetriever(did, "returns.md", "warranty.md")])


SHAPES: Mapping[str, Callable[[Did], str]] = {
    each.__name__: each
    for each in (
        *(plain, nothing, cut, reranked, two_rerankers, two_searches, same_search_twice, joined, failing, two_calls),
    )
}


def instrument(provider: Any) -> Any:
    """Instrument the framework at a provider, and return what takes that back."""
    HaystackInstrumentor().instrument(tracer_provider=provider)
    return HaystackInstrumentor().uninstrument
