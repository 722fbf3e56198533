"""Apps of LangChain, instrumented by openinference-instrumentation-langchain."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from openinference.instrumentation.langchain import LangChainInstrumentor

from tests.examples.traced.did import PAGES, QUESTION, Did

os.environ["LANGSMITH_TRACING"] = "false"


SAID = "The warranty of a lamp lasts two years."


class Shelf(BaseRetriever):
    """Finds the pages that it is told to."""

    did: Any
    found: tuple[str, ...] = ()
    fails: bool = False

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        if self.fails:
            self.did.searched(query, [], [])
            raise ConnectionError("no index")
        self.did.searched(query, self.found, [None] * len(self.found))
        return [Document(PAGES[name], id=name, metadata={"source": name}) for name in self.found]


class Last(BaseDocumentCompressor):
    """A reranker: the last comes first, and two are kept."""

    did: Any

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        kept = list(reversed(documents))[:2]
        self.did.kept.append([page.metadata["source"] for page in kept])
        return kept


def model(did: Did, *replies: AIMessage) -> Any:
    """Return a model that says these, one after the other."""

    def said() -> Any:
        for reply in replies or (AIMessage(SAID),):
            did.calls += 1
            yield reply

    return GenericFakeChatModel(messages=said())


def answered(did: Did, pages: list[Any]) -> str:
    """Ask a model with the pages in its prompt."""
    did.given = [page.metadata["source"] for page in pages]
    prompt = ChatPromptTemplate.from_template("Answer by the sources.\n{context}\n\n{question}")
    chain = prompt | model(did) | StrOutputParser()
    said: str = chain.invoke({"context": "\n\n".join(page.page_content for page in pages), "question": QUESTION})
    return said


def plain(did: Did) -> str:
    return answered(did, Shelf(did=did, found=("warranty.md", "returns.md")).invoke(QUESTION))


def nothing(did: Did) -> str:
    said = answered(did, Shelf(did=did).invoke(QUESTION))
    did.given = []
    return said


def cut(did: Did) -> str:
    return answered(did, Shelf(did=did, found=("repair.md", "warranty.md", "returns.md")).invoke(QUESTION)[1:2])


def reranked(did: Did) -> str:
    shelf = Shelf(did=did, found=("repair.md", "returns.md", "shipping.md", "warranty.md"))
    both = ContextualCompressionRetriever(base_compressor=Last(did=did), base_retriever=shelf)
    return answered(did, both.invoke(QUESTION))


def two_searches(did: Did) -> str:
    first = Shelf(did=did, found=("repair.md",)).invoke("a lamp that flickers")
    return answered(did, first + Shelf(did=did, found=("warranty.md",)).invoke("warranty"))


def same_search_twice(did: Did) -> str:
    shelf = Shelf(did=did, found=("warranty.md",))
    shelf.invoke(QUESTION)
    return answered(did, shelf.invoke(QUESTION))


def joined(did: Did) -> str:
    shelves = [Shelf(did=did, found=("repair.md", "warranty.md")), Shelf(did=did, found=("returns.md", "warranty.md"))]
    return answered(did, EnsembleRetriever(retrievers=shelves, weights=[0.5, 0.5]).invoke(QUESTION))


def failing(did: Did) -> str:
    try:
        Shelf(did=did, fails=True).invoke(QUESTION)
    except ConnectionError:
        return answered(did, Shelf(did=did, found=("warranty.md",)).invoke(QUESTION))
    raise AssertionError


def agent(did: Did) -> str:
    @tool
    def look_up(query: str) -> str:
        """Search the help pages."""
        did.tools.append(["look_up", {"query": query}])
        found = Shelf(did=did, found=("warranty.md",)).invoke(query)
        return "\n".join(page.page_content for page in found)

    wish = {"name": "look_up", "args": {"query": "warranty"}, "id": "c1", "type": "tool_call"}
    asked = model(did, AIMessage("", tool_calls=[wish]), AIMessage(SAID))
    call = asked.invoke(QUESTION).tool_calls[0]
    said: str = asked.invoke([("user", QUESTION), ("user", look_up.invoke(call).content)]).content
    did.given = ["warranty.md"]
    return said


def two_calls(did: Did) -> str:
    rewritten = model(did, AIMessage("warranty lamp")).invoke(QUESTION).content
    return answered(did, Shelf(did=did, found=("returns.md", "warranty.md")).invoke(rewritten))


SHAPES: Mapping[str, Callable[[Did], str]] = {
    each.__name__: each
    for each in (*(plain, nothing, cut, reranked, two_searches, same_search_twice, joined, failing, agent, two_calls),)
}


def instrument(provider: Any) -> Any:
    """Instrument the framework at a provider, and return what takes that back."""
    LangChainInstrumentor().instrument(tracer_provider=provider)
    return LangChainInstrumentor().uninstrument
