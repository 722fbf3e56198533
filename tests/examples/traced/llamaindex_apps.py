"""Apps of LlamaIndex, instrumented by openinference-instrumentation-llama-index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core import QueryBundle, get_response_synthesizer
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

from tests.examples.traced.did import PAGES, QUESTION, Did

# Ids of nodes are drawn, as the framework draws them; the name of the file stands in the metadata.
NODES = {name: TextNode(text=text, metadata={"file_name": name}) for name, text in PAGES.items()}


class Shelf(BaseRetriever):
    """Finds the pages that it is told to."""

    def __init__(self, did: Did, *found: str, fails: bool = False) -> None:
        self._did, self._found, self._fails = did, found, fails
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._fails:
            self._did.searched(query_bundle.query_str, [], [])
            raise ConnectionError("no index")
        scores = [1 / (n + 2) for n in range(len(self._found))]
        self._did.searched(query_bundle.query_str, self._found, scores)
        return [NodeWithScore(node=NODES[name], score=score) for name, score in zip(self._found, scores, strict=True)]


class Last(BaseNodePostprocessor):
    """A reranker: the last comes first, and two are kept."""

    did: Any

    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        kept = list(reversed(nodes))[:2]
        self.did.kept.append([each.node.metadata["file_name"] for each in kept])
        return kept


class Model(MockLLM):
    """Says its prompt, and is counted."""

    did: Any = None

    def __init__(self, did: Did) -> None:
        super().__init__()
        self.did = did

    def complete(self, *given: Any, **options: Any) -> Any:
        self.did.calls += 1
        return super().complete(*given, **options)


def asked(did: Did, retriever: Any, *after: Any) -> str:
    """Ask a query engine."""
    made = get_response_synthesizer(llm=Model(did))
    engine = RetrieverQueryEngine(retriever, made, node_postprocessors=list(after))
    said = engine.query(QUESTION)
    did.given = [each.node.metadata["file_name"] for each in said.source_nodes]
    return str(said)


def plain(did: Did) -> str:
    return asked(did, Shelf(did, "warranty.md", "returns.md"))


def nothing(did: Did) -> str:
    return asked(did, Shelf(did))


def reranked(did: Did) -> str:
    return asked(did, Shelf(did, "repair.md", "returns.md", "shipping.md", "warranty.md"), Last(did=did))


def two_rerankers(did: Did) -> str:
    return asked(did, Shelf(did, "repair.md", "returns.md", "warranty.md"), Last(did=did), Last(did=did))


def two_searches(did: Did) -> str:
    Shelf(did, "repair.md").retrieve("a lamp that flickers")
    return asked(did, Shelf(did, "warranty.md"))


def same_search_twice(did: Did) -> str:
    shelf = Shelf(did, "warranty.md")
    shelf.retrieve(QUESTION)
    return asked(did, shelf)


def joined(did: Did) -> str:
    shelves = [Shelf(did, "repair.md", "warranty.md"), Shelf(did, "returns.md", "warranty.md")]
    fused = QueryFusionRetriever(
        shelves, llm=Model(did), num_queries=1, use_async=False, mode="reciprocal_rerank", similarity_top_k=3
    )
    return asked(did, fused)


def failing(did: Did) -> str:
    try:
        Shelf(did, fails=True).retrieve(QUESTION)
    except ConnectionError:
        return asked(did, Shelf(did, "warranty.md"))
    raise AssertionError


def tool(did: Did) -> str:
    def look_up(query: str) -> str:
        """Search the help pages."""
        did.tools.append(["look_up", {"query": query}])
        return "\n".join(each.text for each in Shelf(did, "warranty.md").retrieve(query))

    found = str(FunctionTool.from_defaults(look_up)(query="warranty"))
    did.given = ["warranty.md"]
    return str(Model(did).complete(f"Answer by the sources.\n{found}\n\n{QUESTION}"))


def two_calls(did: Did) -> str:
    Model(did).complete("Say it shorter.")
    return asked(did, Shelf(did, "returns.md", "warranty.md"))


SHAPES: Mapping[str, Callable[[Did], str]] = {
    each.__name__: each
    for each in (
        *(plain, nothing, reranked, two_rerankers, two_searches, same_search_twice, joined, failing, tool, two_calls),
    )
}


def instrument(provider: Any) -> Any:
    """Instrument the framework at a provider, and return what takes that back."""
    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    return LlamaIndexInstrumentor().uninstrument
