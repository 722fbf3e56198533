"""What pipelines return in the forms of their frameworks is read alike; what is not understood is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from rag_harness.core.types import Answer, Chunk, Hit, PipelineOutput
from rag_harness.pipelines.user_pipelines import output_of

SAID, TEXT, PAGE = "45 days", "Lamps can be returned within 45 days.", "returns.md"


class Model(BaseModel):
    answer: str
    contexts: list[str]


@dataclass
class Held:
    response: str
    sources: list[dict[str, str]] = field(default_factory=list)


def langchain(**more: Any) -> Any:
    return SimpleNamespace(page_content=TEXT, metadata={"source": PAGE}, **more)


NODE = SimpleNamespace(text=TEXT, id_="n7", metadata={"file_name": PAGE, "page_label": "3"})
HAYSTACK = SimpleNamespace(content=TEXT, meta={"file_path": PAGE}, id="d1", score=0.5)

NAMED: dict[str, Any] = {
    "a pair of text and mappings": (SAID, [{"text": TEXT, "source": PAGE}]),
    "a mapping": {"answer": SAID, "contexts": [{"content": TEXT, "document_id": PAGE}]},
    "a mapping with metadata": {"result": SAID, "source_documents": [{"text": TEXT, "metadata": {"path": PAGE}}]},
    "a dataclass": Held(SAID, [{"text": TEXT, "source": PAGE}]),
    "LangChain": {"answer": SAID, "context": [langchain()]},
    "LangChain, a message": {"answer": SimpleNamespace(content=SAID), "context": [langchain()]},
    "LangChain, with scores": (SAID, [(langchain(), 0.5)]),
    "LlamaIndex": SimpleNamespace(response=SAID, source_nodes=[SimpleNamespace(node=NODE, score=0.5)]),
    "Haystack": {"llm": {"replies": [SAID], "documents": [HAYSTACK]}},
    "Haystack, answers": {"answer_builder": {"answer": SimpleNamespace(data=SAID), "documents": [HAYSTACK]}},
    "hits": {"answer": SAID, "hits": [Hit(Chunk("a", PAGE, TEXT), 0.5, 1)]},
    "chunks": (SAID, [Chunk("a", PAGE, TEXT)]),
}


@pytest.mark.parametrize("form", NAMED)
def test_answer_context_and_page_are_read(form: str) -> None:
    output = output_of(NAMED[form], "mine")
    assert output.answer.text == SAID
    assert [(hit.chunk.doc_id, hit.chunk.text, hit.rank) for hit in output.context] == [(PAGE, TEXT, 1)]
    assert output.retrieved == output.context


@pytest.mark.parametrize(
    "returned",
    [Model(answer=SAID, contexts=[TEXT]), {"answer": SAID, "contexts": [TEXT]}, (SAID, [TEXT]), [SAID, (TEXT,)]],
)
def test_contexts_may_be_texts_alone(returned: Any) -> None:
    output = output_of(returned, "mine")
    assert (output.answer.text, [hit.chunk.text for hit in output.context]) == (SAID, [TEXT])


@pytest.mark.parametrize("returned", [SAID, Answer(SAID), PipelineOutput(Answer(SAID)), {"text": SAID}])
def test_an_answer_may_come_alone(returned: Any) -> None:
    output = output_of(returned, "mine")
    assert (output.answer.text, output.context) == (SAID, ())


def test_scores_and_ids_are_kept() -> None:
    node = SimpleNamespace(response=SAID, source_nodes=[SimpleNamespace(node=NODE, score=0.5)])
    (hit,) = output_of(node, "mine").context
    assert (hit.chunk.chunk_id, hit.score, hit.source) == ("n7", 0.5, "pipeline")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "mine returned NoneType"),
        (45, "mine returned int"),
        ({"reply_text": SAID}, "mine returned dict with reply_text"),
        ((SAID, 3), "mine returned tuple of str, int"),
        ((SAID, [object()]), "mine returned the context object"),
        ({"answer": SAID, "contexts": [{"body": TEXT}]}, "mine returned the context dict with body"),
        (SimpleNamespace(said=SAID), "mine returned SimpleNamespace with said"),
    ],
)
def test_what_is_not_understood_is_named_with_what_is(returned: Any, said: str) -> None:
    with pytest.raises(TypeError, match="Read as one: a pair of text and contexts") as caught:
        output_of(returned, "mine")
    assert str(caught.value).startswith(said)
