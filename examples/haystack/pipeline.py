"""A pipeline as you may have one: BM25 over a document store, a prompt, a generator. The generator is a stand-in."""

import os
from pathlib import Path

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"  # read when haystack is imported: no usage statistics are sent
from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

TEMPLATE = """Answer {{ question }} from the sources, and cite them.
{% for page in documents %}
[Source {{ loop.index }}] {{ page.content }}
{% endfor %}"""


@component
class FirstSource:
    """Says what the first source says, in place of a generator behind a key."""

    @component.output_types(replies=list[str])
    def run(self, prompt: str):
        first = prompt.partition("[Source 1]")[2].partition("[Source 2]")[0]
        return {"replies": [f"{' '.join(first.split())} [Source 1]"]}


files = sorted((Path(__file__).parents[1] / "kb").glob("*.md"))
store = InMemoryDocumentStore()
store.write_documents([Document(id=file.name, content=file.read_text()) for file in files])
pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=3))
pipeline.add_component("prompt", PromptBuilder(TEMPLATE, required_variables="*"))
pipeline.add_component("generator", FirstSource())
pipeline.connect("retriever.documents", "prompt.documents")
pipeline.connect("prompt.prompt", "generator.prompt")
