"""An app that is instrumented becomes a pipeline under test: its spans are its rows. Nothing of an SDK comes unasked."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite

APP = '''
import json
import pytest

PAGES = {
    "returns.md": "You can return a lamp within 45 days.",
    "shipping.md": "Express delivery costs €9.90 in Zone 1.",
    "warranty.md": "The warranty lasts 2 years.",
}

class Shop:
    """Searches and asks a model, with spans as OpenInference has them."""

    def __init__(self, tracer):
        self.tracer = tracer

    def ask(self, question):
        with self.tracer.start_as_current_span("shop"):
            found = self.search(question)
            with self.tracer.start_as_current_span("model") as span:
                prompt = "\\n".join(PAGES[name] for name in found) + "\\n" + question
                said = PAGES[found[0]] + " [Source 1]" if found else "I do not know."
                span.set_attributes({
                    "openinference.span.kind": "LLM", "llm.model_name": "gpt-4o-mini",
                    "llm.token_count.prompt": 20, "llm.token_count.completion": 5,
                    "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": prompt,
                    "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": said,
                })
            return said

    def search(self, question):
        with self.tracer.start_as_current_span("search") as span:
            words = set(question.split())
            found = [name for name, text in PAGES.items() if words & set(text.lower().rstrip(".").split())]
            span.set_attributes({"openinference.span.kind": "RETRIEVER", "input.value": question})
            span.set_attribute("output.value", json.dumps([{"content": PAGES[name]} for name in found]))
            for n, name in enumerate(found):
                span.set_attribute(f"retrieval.documents.{n}.document.id", name)
                span.set_attribute(f"retrieval.documents.{n}.document.score", 1 / (n + 1))
            return found
'''
HANDED = (
    APP
    + """
@pytest.fixture(scope="session")
def rag_pipeline(rag_traced):
    return rag_traced(Shop(rag_traced.provider.get_tracer("shop")).ask)
"""
)
TEST = """
import pytest

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""


@pytest.fixture
def traced(suite: Suite) -> Suite:
    suite.pytester.makeconftest(HANDED)
    suite.pytester.makepyfile(TEST)
    return suite


def test_the_spans_of_a_trial_become_its_row(traced: Suite) -> None:
    traced.run().assert_outcomes(passed=4)
    row = {str(row["query_id"]): row for row in traced.rows("mine")}["q_direct_003"]
    assert [hit["chunk_id"] for hit in row["candidates"]] == ["warranty.md"]  # type: ignore[attr-defined]
    assert row["usage"]["prompt_tokens"] == 20  # type: ignore[index]
