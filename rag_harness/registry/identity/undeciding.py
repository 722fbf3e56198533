"""Lists of modules and libraries that decide no answer and no score, each with its reason. All other imports decide.

A test in ``tests/unit/registry/identity`` compares the lists with the code. It fails where a trial runs a module that
is neither in the identity of its experiment nor in a list.
"""

from __future__ import annotations

from collections.abc import Mapping

DECIDES_NOTHING: Mapping[str, str] = {
    "rag_harness": "passes the public names on",
    "rag_harness.errors": "what is said when something fails",
    "rag_harness.shown": "how text looks where it is shown",
    "rag_harness.types": "nouns: values and their accessors",
    "rag_harness.protocols": "declares what parts look like",
    "rag_harness.settings": "options count by their values",
    "rag_harness.registry": "finds parts by their names, and says what of them counts; the part counts",
    "rag_harness.files": "reads and writes files",
    "rag_harness.work": "when, where and how long work runs, and how far it is",
    "rag_harness.models.recording": "gives back what was kept, to the byte",
    "rag_harness.results": "writes rows and reads them",
    "rag_harness.dataset.data": "documents and questions count by what was read",
    "rag_harness.dataset.knowledge_base": "documents count by what was read",
    "rag_harness.dataset.library": "documents count by what was read",
    "rag_harness.dataset.ingest": "documents count by what was read",
    "rag_harness.models.allowed": "how many calls are in flight",
    "rag_harness.models.budget": "money",
    "rag_harness.models.call": "times of a call",
    "rag_harness.models.chat.failures": "messages, and what is tried again",
    "rag_harness.models.heard": "shows an answer while it comes",
    "rag_harness.models.api_keys": "checks that keys are there",
    "rag_harness.models.limiter": "how many calls are in flight",
    "rag_harness.models.call_rates": "how many calls are in flight",
    "rag_harness.models.meter": "money and limits",
    "rag_harness.models.metered": "money and limits",
    "rag_harness.models.model_names": "which adapter a name means; the adapter counts",
    "rag_harness.models.patience": "how often is tried again",
    "rag_harness.models.retrying": "how often is tried again",
    "rag_harness.models.wire": "carries bytes",
    "rag_harness.pipelines.history_names": "names of experiments; which history they have counts as an ingredient",
    "rag_harness.pipelines.watched": "shows an answer while it comes",
    "rag_harness.pipelines.endpoint.charged": "money",
    "rag_harness.pipelines.endpoint.refusals": "messages",
    "rag_harness.retrieval.building": "who builds when",
    "rag_harness.retrieval.cutting": "in which process a page is cut, and how much of one; the chunker counts",
    "rag_harness.retrieval.embedding_steps": "how far embedding is; its batches are the model's",
    "rag_harness.retrieval.content_digest": "names an index by what it holds",
}
"""Modules and rooms. An entry holds for all modules below it, unless they have entries of their own."""

HANDS_OUT: Mapping[str, str] = {
    "rag_harness.pipelines": "finds experiments by their names",
    "rag_harness.pipelines.parts": "hands out parts, each of which notes what it is made of",
    "rag_harness.retrieval.retrieval": "hands out retrievers and rerankers, which note what they are made of",
}
"""Modules that put parts together. Their own text counts. What they import counts only when it is handed out."""

LIBRARIES_THAT_DECIDE_NOTHING: Mapping[str, str] = {
    "numpy": "arithmetic, which its releases do not change",
    "pydantic": "checks the form of what was said",
    "openai": "carries requests",
    "httpx": "carries requests",
    "httpx2": "carries requests",
    "aiohttp": "carries requests",
    "vcr": "writes recordings",
    "yaml": "reads recordings",
    "dotenv": "reads settings",
    "filelock": "who works when",
    "safetensors": "reads and writes arrays",
    "pytest": "runs the tests",
}
"""Libraries by import name. The version of every other library that a part imports counts."""


def decides(module: str) -> bool:
    """Return whether the text of a module of this package may change an answer."""
    while module not in DECIDES_NOTHING:
        if module.count(".") < 2:
            return True
        module = module.rpartition(".")[0]
    return False
