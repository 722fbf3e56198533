"""``--rag-otlp``: what comes to a backend of OpenTelemetry, and that its failures cost a line and no trial."""

from __future__ import annotations

import json

import pytest

from rag_harness.page.exports.otlp import OPT_IN
from tests.plugin.conftest import Suite
from tests.plugin.study import WORKERS
from tests.unit.page.exports.otlp_receiver import OtlpReceiver, backend

__all__ = ["backend"]


SCRUB = """
import pytest

@pytest.fixture(scope="session")
def rag_scrub():
    return lambda text: text.replace("lamp", "THING")
"""
IMPORTED = """
import sys

def pytest_unconfigure():
    ours = ("rag_harness.page.exports", "opentelemetry")
    print("imported:", sorted(name for name in sys.modules if name.startswith(ours)))
"""


def test_trials_are_sent_with_steps_and_scores(suite: Suite, backend: OtlpReceiver) -> None:
    result = suite.run("-m", "e3", f"--rag-otlp={backend.url}", "--rag-measures=faithfulness")
    result.assert_outcomes(passed=4)
    scores = sum(len(span.events) for span in backend.trials)
    result.stdout.fnmatch_lines([f"otlp: 4 trials with {scores} scores sent to {backend.url}"])
    assert {span.attributes["rag_harness.query_id"] for span in backend.trials} == {
        row["query_id"] for row in suite.rows()
    }
    for trial in backend.trials:
        assert "recall@5" in trial.scores or trial.attributes["rag_harness.query_type"] == "negative"
        names = [step.attributes["rag_harness.stage"] for step in backend.below(trial)]
        assert {"retrieve", "generate"} <= set(names)
    assert any("faithfulness" in trial.scores for trial in backend.trials)
    assert b"lamp" not in b"".join(backend.bodies)


def test_a_second_run_and_the_command_send_the_same(suite: Suite, backend: OtlpReceiver) -> None:
    suite.run("-m", "e3", f"--rag-otlp={backend.url}")
    before = dict(backend.spans)
    resumed = suite.run("-m", "e3", f"--rag-otlp={backend.url}", *WORKERS)
    resumed.assert_outcomes(passed=4)
    from rag_harness.__main__ import main

    assert main(["results", "export", str(suite.path / "output"), "--to", "otlp", "--url", backend.url]) == 0
    assert len(backend.bodies) == 3
    assert backend.spans == before


def test_a_backend_that_is_down_costs_a_line(suite: Suite) -> None:
    result = suite.run("-m", "e3", "--rag-otlp=http://127.0.0.1:9")
    result.assert_outcomes(passed=4)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "otlp: WARNING: 4 trials were not sent: OTLP at http://127.0.0.1:9 does not answer: * Send all of them: "
            "rag-harness results export * --to otlp --url http://127.0.0.1:9"
        ]
    )
    result.stdout.no_fnmatch_line("otlp: * sent to *")


def test_an_address_that_is_none_is_refused_before_anything_is_asked(suite: Suite) -> None:
    for url, why in (
        ("localhost:4318", "--rag-otlp: This is not an address of a backend."),
        ("https://user:planted-key@localhost:4318", "otlp holds a user or a password"),
        ("http://localhost:4318?key=planted-key", "otlp holds the value of 'key'"),
    ):
        result = suite.run("-m", "e3", f"--rag-otlp={url}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert why in str(result.stderr)
        assert "planted-key" not in str(result.stderr)
    assert suite.rows() == []


def test_words_go_through_rag_scrub_or_are_not_sent(
    suite: Suite, backend: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OPT_IN, "true")
    suite.pytester.makeconftest(SCRUB)
    suite.run("-m", "e3", f"--rag-otlp={backend.url}").assert_outcomes(passed=4)
    asked = [json.loads(span.attributes["gen_ai.input.messages"]) for span in backend.trials]
    assert "return a THING" in [said[0]["parts"][0]["content"] for said in asked]
    assert b"lamp" not in b"".join(backend.bodies)
    backend.bodies.clear()
    spread = suite.run("-m", "e3", f"--rag-otlp={backend.url}", *WORKERS)
    spread.stdout.fnmatch_lines(["otlp: 4 trials with *", "otlp: Without words: *"])
    assert len(backend.bodies) == 1
    assert b"THING" not in backend.bodies[0]
    assert b"lamp" not in backend.bodies[0]


def test_a_run_without_it_imports_nothing_of_it(suite: Suite, backend: OtlpReceiver) -> None:
    # The warm Python that it is forked from has imported more than a run needs, and none of this either.
    suite.pytester.makeconftest(IMPORTED)
    suite.run("-m", "e3").stdout.fnmatch_lines(["imported: []"])
    suite.run("-m", "e3", f"--rag-otlp={backend.url}").stdout.fnmatch_lines(
        ["imported: ['rag_harness.page.exports', *"]
    )
