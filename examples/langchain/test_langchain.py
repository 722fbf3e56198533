"""The chain under test: the harness needs its answer, and what was retrieved for it."""

import re

import pytest
from chain import chain

from rag_harness import Answer, Chunk, Hit, PipelineOutput


class Chain:
    async def answer(self, query):
        said = await chain.ainvoke({"question": query.text})
        chunks = [Chunk(page.id, page.id, page.page_content) for page in said["pages"]]
        hits = tuple(Hit(chunk, score=1 / rank, rank=rank) for rank, chunk in enumerate(chunks, 1))
        cites = tuple(int(number) for number in re.findall(r"\[Source (\d+)\]", said["answer"]))
        return PipelineOutput(Answer(said["answer"], citations=cites), retrieved=hits, context=hits)


@pytest.fixture(scope="session")
def rag_pipeline():
    return Chain()


@pytest.mark.rag_experiment("langchain")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
