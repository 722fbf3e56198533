"""An app that is instrumented becomes a pipeline under test: its spans are its rows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.traced_app import AT_THE_GLOBAL_PROVIDER, BY_MARK, FIXTURE, TEST

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
HANDED = APP + FIXTURE


@pytest.fixture
def traced(suite: Suite) -> Suite:
    suite.pytester.makeconftest(HANDED)
    suite.pytester.makepyfile(TEST)
    return suite


def test_the_spans_of_a_trial_become_its_row_with_steps_prompt_and_cost(traced: Suite) -> None:
    traced.run().assert_outcomes(passed=4)
    rows: dict[Any, Any] = {row["query_id"]: row for row in traced.rows("mine")}
    row = rows["q_direct_003"]
    search, model = row["stages"]
    assert (search["kind"], search["name"], search["input"]) == ("retrieve", "search", "how long is the warranty")
    assert [hit["filename"] for hit in search["hits"]] == ["warranty.md"]
    assert (model["kind"], model["output"]) == ("generate", "The warranty lasts 2 years. [Source 1]")
    assert [hit["chunk_id"] for hit in row["candidates"]] == ["warranty.md#warranty.md"]
    assert [chunk["chunk_id"] for chunk in row["retrieved_chunks"]] == ["warranty.md#warranty.md"]
    assert row["usage"]["prompt_tokens"] == 20
    assert (row["model"], row["citations"]) == ("gpt-4o-mini", [1])
    assert row["cost_usd"] > 0
    assert len({each["trace_id"] for each in rows.values()}) == 4
    # Nothing found is a search that found nothing, and no row without retrieval.
    assert [stage["kind"] for stage in rows["q_negative_001"]["stages"]] == ["retrieve", "generate"]
    assert rows["q_negative_001"]["candidates"] == []


def test_a_mark_is_enough_for_an_app_that_is_instrumented_at_the_global_provider(suite: Suite) -> None:
    suite.pytester.makeconftest(APP + AT_THE_GLOBAL_PROVIDER)
    suite.pytester.makepyfile(BY_MARK)
    suite.run().assert_outcomes(passed=4)
    assert all(row["stages"] for row in suite.rows("mine"))
    again = suite.run()
    again.assert_outcomes(passed=4)
    again.stdout.fnmatch_lines(["mine *4 * 0 * 0 *"])


def test_trials_that_run_ahead_and_in_workers_are_traced_too(traced: Suite) -> None:
    traced.run("-n", "2").assert_outcomes(passed=4)
    assert [len(list(row["stages"])) for row in traced.rows("mine")] == [2, 2, 2, 2]  # type: ignore[call-overload]


def test_a_trial_whose_search_is_lost_fails_and_says_how_to_keep_it(suite: Suite) -> None:
    lost = HANDED.replace(
        "found = self.search(question)",
        "found = ThreadPoolExecutor(1).submit(self.search, question).result()",
    )
    suite.pytester.makeconftest("from concurrent.futures import ThreadPoolExecutor\n" + lost)
    suite.pytester.makepyfile(TEST)
    result = suite.run()
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(["*TraceError: Span 'search' belongs to no trial*copy_context*"])
    rows: list[Any] = suite.rows("mine")
    assert {row["status"] for row in rows} == {"error"}


@pytest.mark.parametrize(
    ("mark", "options", "said"),
    [
        ('"mine", tracd=True', [], "*rag_experiment: *tracd*traced*"),
        ('"mine", traced=True', ["--rag-engine=ray"], "*'mine' is traced*"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_asked(
    traced: Suite, mark: str, options: list[str], said: str
) -> None:
    traced.pytester.makepyfile(TEST.replace('"mine"', mark))
    result = traced.run(*options)
    assert result.ret != 0
    result.stdout.fnmatch_lines([said])
    assert traced.rows("mine") == []


def test_without_a_provider_the_first_trial_says_what_to_do(suite: Suite) -> None:
    suite.pytester.makeconftest(
        APP
        + """
from opentelemetry import trace

@pytest.fixture(scope="session")
def rag_pipeline(rag_traced):
    return rag_traced(Shop(trace.get_tracer("shop")).ask)
"""
    )
    suite.pytester.makepyfile(TEST)
    suite.run().stdout.fnmatch_lines(["*There is no tracer provider that spans can be read from*"])


@pytest.mark.usefixtures("cold_python")
def test_a_suite_that_traces_nothing_imports_nothing_of_it(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_b=TEST.replace('"mine"', '"e3"').replace(
            "rag_result.why",
            "rag_result.why\n    import sys\n    assert not [name for name in sys.modules if 'opentelemetry' in name]\n"
            "    assert 'rag_harness.pipelines.otel' not in sys.modules",
        )
    )
    suite.run("test_b.py").assert_outcomes(passed=4)
