"""Every citation of the shipped answers opens at what the answer says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rag_harness.core.protocols import Experiment
from rag_harness.core.text.terms import terms
from rag_harness.core.types import PipelineOutput, Query
from rag_harness.pipelines.experiments import experiment
from rag_harness.service.citations import cited
from tests.unit.service.shipped import shipped_parts


async def _answered(built: Experiment, queries: list[Query]) -> list[PipelineOutput]:
    return [await built.pipeline.answer(query) for query in queries]


@pytest.mark.parametrize(("name", "at_least"), [("e3", 230), pytest.param("r1", 130, marks=pytest.mark.long)])
def test_quotes_of_the_200_shipped_answers_are_verbatim_and_say_it(name: str, at_least: int, tmp_path: Path) -> None:
    parts = shipped_parts(tmp_path)
    queries, documents = [case.query for case in parts.data().cases], parts.data().documents
    by_id = {document.doc_id: document for document in documents}
    built = experiment(name, parts)
    assert built.prepare is not None
    built.prepare(queries)
    outputs = asyncio.run(_answered(built, queries))
    assert len(outputs) == 200
    checked = 0
    for output in outputs:
        for one in cited(output.answer.text, output.answer.citations, output.context, by_id.__getitem__):
            chunk, claim = output.context[one.source - 1].chunk, output.answer.text[one.answer_start : one.answer_end]
            assert by_id[one.document].text[one.start : one.end] == one.quote
            assert chunk.start <= one.start < one.end <= chunk.end
            assert len(one.quote) < len(chunk.text), "the whole chunk is no quote of a claim it has the words of"
            # The reader writes a row of a table with the words of its header, which stand in another row.
            least = 0.2 if one.quote.startswith("|") else 0.5
            assert len(terms(claim) & terms(one.quote)) >= least * len(terms(claim)), claim
            checked += 1
    assert checked >= at_least
