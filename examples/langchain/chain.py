"""A chain as you may have one: a vector store of langchain-core, a prompt, a chat model. Both models are stand-ins."""

import os
import re
from operator import itemgetter
from pathlib import Path
from zlib import crc32

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import SimpleChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

os.environ["LANGSMITH_TRACING"] = "false"  # nothing is sent to LangSmith, whatever the shell has set
DIMENSION = 512


class WordCounts(Embeddings):
    """Counts words in place of an embedding model."""

    def embed_query(self, text):
        vector = [0.0] * DIMENSION
        for word in re.findall(r"\w+", text.lower()):
            vector[crc32(word.encode()) % DIMENSION] += 1.0
        return vector

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


class FirstSource(SimpleChatModel):
    """Says what the first source says, in place of a model behind a key."""

    @property
    def _llm_type(self):
        return "first-source"

    def _call(self, messages, stop=None, run_manager=None, **options):
        first = messages[-1].content.partition("[Source 1]")[2].partition("[Source 2]")[0]
        return f"{' '.join(first.split())} [Source 1]"


def numbered(asked):
    return "\n\n".join(f"[Source {n}] {page.page_content}" for n, page in enumerate(asked["pages"], 1))


files = sorted((Path(__file__).parents[1] / "kb").glob("*.md"))
store = InMemoryVectorStore(WordCounts())
store.add_documents([Document(file.read_text(), id=file.name) for file in files])
prompt = ChatPromptTemplate.from_template("Answer {question} from the sources, and cite them.\n\n{context}")
chain = (
    RunnablePassthrough.assign(pages=itemgetter("question") | store.as_retriever(search_kwargs={"k": 3}))
    .assign(context=numbered)
    .assign(answer=prompt | FirstSource() | StrOutputParser())
)
