"""An app that is instrumented becomes a pipeline under test, and its calls are recorded and replayed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.traced_app import AT_THE_GLOBAL_PROVIDER, BY_MARK, FIXTURE, TEST
from tests.unit.models.recording.answering import Answering, answering

# An app that is instrumented becomes a pipeline under test: its spans are its rows.

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


# What a traced app calls by HTTP is recorded in its trials, and replayed where nobody answers any more.

TRACED_RECORDING_APP = """
import pytest
from openai import OpenAI

class Shop:
    def __init__(self, tracer):
        self.tracer = tracer
        self.client = OpenAI(api_key="sk-planted-0123456789", base_url="{url}/v1", max_retries=0)

    def ask(self, question):
        with self.tracer.start_as_current_span("model") as span:
            said = self.client.chat.completions.create(
                model="some/model", messages=[{{"role": "user", "content": question + WORDS}}], stream=True
            )
            said = "".join(each.choices[0].delta.content for each in said)
            span.set_attributes({{
                "openinference.span.kind": "LLM", "llm.model_name": "some/model", "llm.token_count.prompt": 20,
            }})
        return said

WORDS = "?"
"""
QUESTIONS = 4


@pytest.fixture
def app(suite: Suite) -> Suite:
    suite.pytester.makepyfile(TEST)
    return suite


def write(suite: Suite, server: Answering, more: str = "") -> None:
    suite.pytester.makeconftest(TRACED_RECORDING_APP.format(url=server.url) + more + FIXTURE)


def asked(suite: Suite, mode: str, *options: str) -> Any:
    return suite.run(f"--rag-mode={mode}", "--rag-overwrite", *options)


def test_calls_of_trials_are_replayed_when_the_server_is_gone(app: Suite) -> None:
    with answering("In ", "Zone 1.") as server:
        write(app, server)
        asked(app, "record").assert_outcomes(passed=QUESTIONS)
        assert len(server.calls) == QUESTIONS
    recorded: list[Any] = app.rows("mine")
    assert not any(row["timings_recorded"] or row["recorded_at"] for row in recorded)
    asked(app, "replay").assert_outcomes(passed=QUESTIONS)
    rows: list[Any] = app.rows("mine")
    assert all(row["llm_answer"] == "In Zone 1." and row["timings_recorded"] and row["recorded_at"] for row in rows)
    assert len(list((app.path / "cassettes" / "own" / "some--model").iterdir())) == QUESTIONS
    assert not any("planted" in file.read_text() for file in (app.path / "cassettes").rglob("*.yaml"))


def test_a_call_that_is_not_recorded_fails_its_trial_even_if_the_app_goes_on(app: Suite) -> None:
    goes_on = """
class Shop(Shop):
    def ask(self, question):
        try:
            return super().ask(question)
        except Exception:
            return "I do not know."

WORDS = "!"
"""
    with answering("In ", "Zone 1.") as server:
        write(app, server)
        asked(app, "record").assert_outcomes(passed=QUESTIONS)
    write(app, server, goes_on)
    result = asked(app, "replay")
    result.assert_outcomes(failed=QUESTIONS)
    said = str(result.stdout)
    assert "No recording of some/model" in said
    assert "Record it: --rag-mode=record" in said


def test_in_mode_auto_it_is_asked_whatever_is_recorded(app: Suite) -> None:
    with answering("In ", "Zone 1.") as server:
        write(app, server)
        asked(app, "record").assert_outcomes(passed=QUESTIONS)
        asked(app, "auto").assert_outcomes(passed=QUESTIONS)
        assert len(server.calls) == 2 * QUESTIONS


def test_each_repeat_has_its_own_recording_also_of_an_app_that_a_mark_traces(app: Suite) -> None:
    app.pytester.makepyfile(BY_MARK)
    with answering("In ", "Zone 1.") as server:
        app.pytester.makeconftest(TRACED_RECORDING_APP.format(url=server.url) + AT_THE_GLOBAL_PROVIDER)
        asked(app, "record", "--rag-repeats=2").assert_outcomes(passed=QUESTIONS)
        assert len(server.calls) == 2 * QUESTIONS
    asked(app, "replay", "--rag-repeats=2").assert_outcomes(passed=QUESTIONS)
    files = [file.name for file in (app.path / "cassettes").rglob("*.yaml")]
    assert (len(files), sum(name.endswith("+1.yaml") for name in files)) == (2 * QUESTIONS, QUESTIONS)


def test_calls_of_other_tests_are_left_alone(app: Suite) -> None:
    with answering("In ", "Zone 1.") as server:
        write(app, server)
        app.pytester.makepyfile(
            "import httpx" + TEST + f"\n    assert httpx.get('{server.url}/plain').json()['path'] == '/plain'\n"
        )
        asked(app, "record").assert_outcomes(passed=QUESTIONS)
        assert server.calls.count("/plain") == QUESTIONS
    assert len(list((app.path / "cassettes").rglob("*.yaml"))) == QUESTIONS
