"""What a traced app calls by HTTP is recorded in its trials, and replayed where nobody answers any more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.traced_app import AT_THE_GLOBAL_PROVIDER, BY_MARK, FIXTURE, TEST
from tests.unit.models.recording.answering import Answering, answering

APP = """
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
    suite.pytester.makeconftest(APP.format(url=server.url) + more + FIXTURE)


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
        app.pytester.makeconftest(APP.format(url=server.url) + AT_THE_GLOBAL_PROVIDER)
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
