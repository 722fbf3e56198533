"""A query engine as you may have one: pages, a keyword table, a model. MockLLM stands in for a model behind a key.

Nothing is sent anywhere: both models are mocks, and llama-index-core has the data that its tokenizer needs with it.
"""

from pathlib import Path

from llama_index.core import PromptTemplate, SimpleKeywordTableIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

files = sorted((Path(__file__).parents[1] / "kb").glob("*.md"))
index = SimpleKeywordTableIndex([TextNode(id_=file.name, text=file.read_text()) for file in files], llm=MockLLM())
# MockLLM says its prompt: the template makes an answer of that. Yours asks for one, with {query_str}.
template = PromptTemplate("{context_str} [Source 1]")
engine = index.as_query_engine(llm=MockLLM(), text_qa_template=template, num_chunks_per_query=3)
