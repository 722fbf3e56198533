"""No judge gets an empty text: what a trace names by its id alone has the words of the page, or is an error."""

from __future__ import annotations

import pytest

from rag_harness.core.errors import TraceError
from rag_harness.core.types import Document, PipelineOutput
from rag_harness.pipelines.endpoint.answer import Placing
from rag_harness.pipelines.otel.steps import read_trace
from rag_harness.pipelines.traced_app import output_of_trace
from tests.unit.pipelines.otel.spans import genai, reranker, search

PAGE = "You can return a lamp within 45 days of its delivery"
KNOWN = Placing(lambda: [Document("returns.md", PAGE, "Returns")], "mine", "search")
HIDDEN = "__REDACTED__"


def output(spans: list[object], placing: Placing = KNOWN) -> PipelineOutput:
    return output_of_trace(read_trace(spans, "x"), placing, "x")  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["returns.md", "returns", "kb/returns.md", "returns.md#chunk_0"])
def test_a_document_that_is_hidden_has_the_words_of_its_page(key: str) -> None:
    told = output([search("s", {key: HIDDEN})])
    assert [(hit.chunk.doc_id, hit.chunk.text) for hit in told.context] == [("returns.md", PAGE)]
    assert told.stages[0].detail["pages_as_texts"] == 1
    # What the chunk itself says is unknown, and its quotes with it.
    assert [hit.chunk.text for hit in told.retrieved] == [""]


def test_words_that_another_span_tells_count() -> None:
    told = output([search("s", {"a": HIDDEN}, at=(0, 2)), reranker("r", {"a": "other words"}, at=(3, 4))])
    assert [hit.chunk.text for hit in told.context] == ["other words"]
    assert "pages_as_texts" not in told.stages[0].detail


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (search("s", {"gone.md": HIDDEN}), "'gone.md' .* has no words .*OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS"),
        (genai("s", "retrieval", gen_ai__retrieval__documents=[{"id": "7"}]), "'7' .*CAPTURE_MESSAGE_CONTENT=true"),
    ],
)
def test_words_that_nobody_knows_are_an_error(span: object, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        output([span])


def test_what_was_found_and_not_given_needs_no_words() -> None:
    told = output([search("s", {"gone.md": HIDDEN, "b": PAGE}, at=(0, 2)), reranker("r", {"b": PAGE}, at=(3, 4))])
    assert [hit.chunk.text for hit in told.context] == [PAGE]
    assert len(told.retrieved) == 2
