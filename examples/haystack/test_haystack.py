"""The pipeline under test: the harness needs its answer, and what was retrieved for it."""

import re

import pytest
from pipeline import pipeline

from rag_harness import Answer, Chunk, Hit, PipelineOutput


class Haystack:
    def answer(self, query):
        asked = {"retriever": {"query": query.text}, "prompt": {"question": query.text}}
        said = pipeline.run(asked, include_outputs_from={"retriever"})
        chunks = [Chunk(page.id, page.id, page.content) for page in said["retriever"]["documents"]]
        hits = tuple(Hit(chunk, score=1 / rank, rank=rank) for rank, chunk in enumerate(chunks, 1))
        text = said["generator"]["replies"][0]
        cites = tuple(int(number) for number in re.findall(r"\[Source (\d+)\]", text))
        return PipelineOutput(Answer(text, citations=cites), retrieved=hits, context=hits)


@pytest.fixture(scope="session")
def rag_pipeline():
    return Haystack()


@pytest.mark.rag_experiment("haystack")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
