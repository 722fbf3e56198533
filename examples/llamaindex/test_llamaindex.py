"""The query engine under test: the harness needs its answer, and what was retrieved for it."""

import re

import pytest
from engine import engine

from rag_harness import Answer, Chunk, Hit, PipelineOutput


class Engine:
    async def answer(self, query):
        said = await engine.aquery(query.text)
        chunks = [Chunk(found.node_id, found.node_id, found.text) for found in said.source_nodes]
        hits = tuple(Hit(chunk, score=1 / rank, rank=rank) for rank, chunk in enumerate(chunks, 1))
        cites = tuple(int(number) for number in re.findall(r"\[Source (\d+)\]", str(said)))
        return PipelineOutput(Answer(str(said), citations=cites), retrieved=hits, context=hits)


@pytest.fixture(scope="session")
def rag_pipeline():
    return Engine()


@pytest.mark.rag_experiment("llamaindex")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
