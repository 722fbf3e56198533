"""A service under test by its address: a few lines of TOML, and no Python that asks it."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import QUERIES, Suite
from tests.unit.page.runs import amend
from tests.unit.pipelines.endpoint.tracing_service import tracing_service
from tests.unit.server import Server, as_json, refusal, serving

TEST = """
import pytest

@pytest.mark.rag_experiment("my_service")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
LAMP = "You can return a lamp within 45 days."
SAID = {
    "answer": f"{LAMP} [Source 1]",
    "contexts": [{"text": LAMP, "id": "17"}, {"text": "x", "document": "shipping"}, {"text": "Of no page at all."}],
}
READ = '[read]\nanswer = "answer"\ncontexts = "contexts"\n'
FILE = "--rag-endpoint=my_service.toml"
# The waits for a service that was just started are seconds.
GIVES_UP_SOON = """
from rag_harness.pipelines.endpoint import pipeline

pipeline._WAITS = (0.0, 0.01)
"""


def write_spec(suite: Suite, server: Server, more: str = "", name: str = "my_service") -> None:
    (suite.path / f"{name}.toml").write_text(f'url = "{server.url}/query"\n{more}\n{READ}')


def chunks(row: dict[str, Any]) -> list[str]:
    return [chunk["chunk_id"] for chunk in row["retrieved_chunks"]]


@pytest.fixture
def service(suite: Suite) -> Suite:
    (only,) = suite.path.glob("test_*.py")
    only.write_text(TEST)
    return suite


def test_a_service_is_recorded_and_replayed_without_python(service: Suite) -> None:
    with serving(as_json(SAID)) as server:
        write_spec(service, server)
        result = service.run(FILE, "--rag-mode=record", "-n", "2")
        result.assert_outcomes(passed=4)
        result.stdout.fnmatch_lines(["rag: recording: 4 questions to my_service, 0 are recorded"])
        assert sorted(each["query"] for each in server.requests) == sorted(str(each["query"]) for each in QUERIES)
    result.stdout.fnmatch_lines(["contexts of my_service: 4 by id, 4 by text, 4 by nothing; those count as misses *"])
    first = service.rows("my_service")
    assert [name.partition("#")[0] for name in chunks(first[0])][:2] == ["returns.md", "shipping.md"]
    again = service.run(FILE, "--rag-mode=replay", "--rag-overwrite")
    again.assert_outcomes(passed=4)
    again.stdout.fnmatch_lines(["rag: 4 trials, profile mock, mode replay, answers by my_service"])
    assert {row["llm_answer"] for row in service.rows("my_service")} == {row["llm_answer"] for row in first}
    assert all(row["timings_recorded"] for row in service.rows("my_service"))


OTHERS = "Words that stand in no document of any kind."
SORRY = "Sorry about that."
SERVICES = {
    "wordless": {"answer": LAMP, "contexts": [{"text": text, "document": "returns.md"} for text in ("", OTHERS, LAMP)]},
    "finds_nothing": {"answer": LAMP, "contexts": []},
    "sorry": {"answer": SORRY, "contexts": [{"text": LAMP, "document": "returns.md"}]},
    "replies": {"reply": "45 days", "contexts": []},
}


@pytest.fixture(scope="module")
def told(shared_suite: Suite) -> tuple[Suite, pytest.RunResult]:
    """Ask four services in one run, each with something to be told of."""
    (only,) = shared_suite.path.glob("test_*.py")
    only.write_text(TEST.replace('"my_service"', ", ".join(map(repr, SERVICES))))
    with ExitStack() as served:
        for name, said in SERVICES.items():
            write_spec(shared_suite, served.enter_context(serving(as_json(said))), name=name)
        files = [f"--rag-endpoint={name}.toml" for name in SERVICES]
        return shared_suite, shared_suite.run(*files, "--rag-mode=live", "--rag-gate=finds_nothing: recall@5 >= 0.5")


def test_contexts_that_have_no_words_of_their_document_are_told(
    told: tuple[Suite, pytest.RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, result = told
    found = "4 of 8 contexts with a text that is not in the page that they name"
    told_of = [f"wordless: {found}. Recall *", "wordless: of 12 contexts 4 without text. Recall *"]
    result.stdout.fnmatch_lines(["contexts of wordless: 12 by id", *told_of])
    monkeypatch.chdir(suite.path)
    assert main(["report", "output", "-o", "comment.md"]) == 0
    assert found in (suite.path / "comment.md").read_text()


def test_a_service_that_sends_no_context_has_found_nothing(told: tuple[Suite, pytest.RunResult]) -> None:
    _, result = told
    gate = "failed *finds_nothing: recall@5 >= 0.5 *0.000 *n=3*"
    result.stdout.fnmatch_lines(["finds_nothing: none of 4 answers came with a context", gate])


def test_refusals_in_other_words_are_told(told: tuple[Suite, pytest.RunResult]) -> None:
    _, result = told
    result.stdout.fnmatch_lines(["sorry: 4 of 4 answers read like refusals, and are not counted as declined*"])


def test_a_path_that_finds_nothing_is_an_error_row(told: tuple[Suite, pytest.RunResult]) -> None:
    suite, result = told
    result.assert_outcomes(passed=12, failed=5)  # of each other service all, of this one none; and the gate
    row = suite.rows("replies")[0]
    why: Any = row["error"]
    assert why["stage"] == "read"
    assert "read.answer = 'answer' finds nothing in the answer. At $ there is an object with 'reply'" in why["message"]
    assert str(row["raw_output"]).startswith('{"reply": "45 days"')
    assert row["llm_time_ms"]


def test_without_a_folder_of_documents_pages_are_found_by_name(service: Suite) -> None:
    rows = [{"query_id": n, "query": "a lamp?", "context_reference": [n]} for n in ("returns", "elsewhere")]
    (service.path / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    service.pytester.makeini("[pytest]\n")
    (only,) = service.path.glob("test_*.py")
    only.write_text(TEST.replace('"my_service"', '"my_service", "shouts"'))
    named = as_json({"answer": LAMP, "contexts": [{"text": LAMP, "document": "returns"}]})
    shouted = as_json({"answer": LAMP, "contexts": [{"text": LAMP, "document": "RETURNS"}]})
    with serving(named) as server, serving(shouted) as other:
        write_spec(service, server)
        write_spec(service, other, name="shouts")
        files = (FILE, "--rag-endpoint=shouts.toml", "--rag-queries=asked.jsonl")
        result = service.run(*files, "--rag-mode=live", "--rag-gate=my_service: recall@1 >= 0.5")
    result.assert_outcomes(passed=4)
    named_as = "note     contexts of my_service: 2 by the name they tell"
    result.stdout.fnmatch_lines(["passed *recall@1 >= 0.5 *0.500 *", named_as])
    result.stdout.fnmatch_lines(["shouts: no context names a page of context_reference; *letter by letter"])
    assert "my_service: no context names a page" not in result.stdout.str()


def test_questions_in_the_same_words_are_told(service: Suite) -> None:
    rows = [{"query_id": f"q{n}", "query": text} for n, text in enumerate(("A lamp?", "a  lamp?", "A box?"))]
    (service.path / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving(as_json({"answer": LAMP})) as server:
        (service.path / "my_service.toml").write_text(f'url = "{server.url}/query"\n')
        result = service.run(FILE, "--rag-mode=live", "--rag-queries=asked.jsonl")
    said = "1 of 3 questions asks what another asks, in the same words (the first: q1 as q0). Intervals and gates *"
    result.stdout.fnmatch_lines([said])


def test_one_in_pyproject_has_data_gates_and_a_marker(service: Suite) -> None:
    service.path.joinpath("kb2").mkdir()
    (service.path / "kb2" / "lamps.md").write_text(f"# Lamps\n\n{LAMP}\n")
    query = {"query_id": "lamp", "query": "a lamp?", "context_reference": ["lamps.md"]}
    (service.path / "kb2" / "queries.jsonl").write_text(json.dumps(query) + "\n")
    with serving(as_json(SAID)) as server:
        (service.path / "pyproject.toml").write_text(
            f'[tool.rag_harness.endpoints.my_service]\nurl = "{server.url}/q"\ndata = "lamps"\nread = {{contexts = '
            f'"contexts"}}\n[tool.rag_harness.data.lamps]\nkb = "kb2"\ngates = ["my_service: recall@5 >= 0.8"]\n'
        )
        result = service.run("-m", "my_service", "--rag-mode=live", "--strict-markers", "-W", "error")
        result.assert_outcomes(passed=1)
        assert "my_service: recall@5 >= 0.8" in result.stdout.str()
        assert service.run("-m", "not my_service", "--rag-mode=live").ret == pytest.ExitCode.NO_TESTS_COLLECTED
        result = service.run("-m", "my_servise", "--rag-mode=live")
    result.stderr.fnmatch_lines(["*Unknown marker 'my_servise'. Did you mean 'my_service'?*"])
    assert [row["query_id"] for row in service.rows("my_service")] == ["lamp"]


def test_a_mark_of_its_own_name_is_enough(service: Suite) -> None:
    (only,) = service.path.glob("test_*.py")
    only.write_text(TEST.replace('rag_experiment("my_service")', "my_service"))
    with serving(as_json(SAID)) as server:
        write_spec(service, server, "usd_per_call = 0.5")
        result = service.run(FILE, "--rag-mode=record", "--rag-budget=4")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["rag: recording: 4 questions to my_service, 0 are recorded, 2.00 USD"])
    assert {row["cost_usd"] for row in service.rows("my_service")} == {0.5}


class Asked(NamedTuple):
    """Two live runs, and what each of two services was asked: one without a version, and one that says its own."""

    suite: Suite
    requests: dict[str, int]
    versions: set[object]


@pytest.fixture(scope="module")
def asked_twice(shared_suite: Suite) -> Asked:
    (only,) = shared_suite.path.glob("test_*.py")
    only.write_text(TEST.replace('"my_service"', '"my_service", "versioned"'))
    files = (FILE, "--rag-endpoint=versioned.toml")
    with serving(as_json(SAID)) as server, serving(as_json(SAID)) as versioned:
        write_spec(shared_suite, server)
        write_spec(shared_suite, versioned, 'version.command = "cat version.txt"', "versioned")
        (shared_suite.path / "version.txt").write_text("r1\n")
        for _ in range(2):
            shared_suite.run(*files, "--rag-mode=live").assert_outcomes(passed=8)
        requests = {"my_service": len(server.requests), "versioned": len(versioned.requests)}
    shared_suite.pytester.makeconftest(GIVES_UP_SOON)
    return Asked(shared_suite, requests, {row["version"] for row in shared_suite.rows("versioned")})


def test_a_run_that_has_ended_is_not_resumed_where_the_service_has_no_version(asked_twice: Asked) -> None:
    assert asked_twice.requests["my_service"] == 8
    (only,) = asked_twice.suite.path.glob("test_*.py")
    only.write_text(TEST)
    result = asked_twice.suite.run(FILE, "--rag-mode=live")
    assert result.ret != 0
    result.stderr.fnmatch_lines(["ERROR: Nothing answers at http://*"])


def test_a_live_run_asks_a_service_that_says_its_version_too(asked_twice: Asked) -> None:
    """It may be down, or answer from another index, whatever its version says."""
    assert asked_twice.requests["versioned"] == 8
    assert asked_twice.versions == {"r1"}
    (only,) = asked_twice.suite.path.glob("test_*.py")
    only.write_text(TEST.replace("my_service", "versioned"))
    result = asked_twice.suite.run("--rag-endpoint=versioned.toml", "--rag-mode=live")
    assert result.ret != 0
    result.stderr.fnmatch_lines(["ERROR: Nothing answers at http://*'versioned'*"])


def test_two_live_runs_of_a_service_show_no_other_code(service: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    (only,) = service.path.glob("test_*.py")
    only.write_text(TEST.replace('"my_service"', '"my_service", "versioned"'))
    outputs = [str(service.path / name) for name in ("one", "two")]
    with serving(as_json(SAID)) as server:
        write_spec(service, server)
        write_spec(service, server, 'version.command = "echo 7"', "versioned")
        for output in outputs:
            files = (FILE, "--rag-endpoint=versioned.toml", f"--rag-output={output}")
            service.run(*files, "--rag-mode=live").assert_outcomes(passed=8)
    amend(service.path / "two", date="2030-01-01T00:00:00+00:00")  # two such runs of one second read as one run
    capsys.readouterr()
    assert main(["compare", *outputs]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Different between them: nothing that is known;" in said
    assert re.search(r"my_service[^.]* asked in both runs", said)
    assert re.search(r"versioned[^.]* asked in both runs", said)


DIES = """
import os
seen = []

def pytest_rag_result(result):
    seen.append(result)
    if len(seen) == 2:
        os._exit(9)
"""


def test_what_an_unfinished_run_has_left_is_taken_over(service: Suite) -> None:
    questions = 12
    service.write_queries([{"query_id": f"q{n}", "query": f"question {n}"} for n in range(questions)])
    # So slow that the run ends itself long before the last question is asked.
    with serving(replace(as_json(SAID), delay=0.2)) as server:
        write_spec(service, server)
        conftest = service.path / "conftest.py"
        conftest.write_text(DIES)
        service.pytester.runpytest_subprocess(FILE, "--rag-mode=live", "--rag-concurrency=1")
        asked = {str(each["query"]) for each in server.requests}
        assert 2 <= len(asked) < questions
        conftest.unlink()
        server.replies[:] = [as_json(SAID)]
        result = service.run(FILE, "--rag-mode=live", "--rag-concurrency=1", "--rag-resume")
        result.assert_outcomes(passed=questions)
        # What was in flight when the run was killed is asked again; what had come is not.
        assert len(server.requests) <= questions + 1


@pytest.mark.parametrize(
    ("ends", "workers"),
    [
        ("os._exit(9)", "-n2"),
        pytest.param("os._exit(9)", "-n0", marks=pytest.mark.long),
        pytest.param("raise KeyboardInterrupt", "-n0", marks=pytest.mark.long),
        pytest.param("raise KeyboardInterrupt", "-n2", marks=pytest.mark.long),
    ],
)
def test_a_live_run_is_about_the_service_as_it_is_now(service: Suite, ends: str, workers: str) -> None:
    """What a run that was cut off, or stopped at a failure, has left may be another service's."""
    conftest = service.path / "conftest.py"
    conftest.write_text(DIES.replace("os._exit(9)", ends).replace("== 2", "== 4"))
    with serving(as_json(SAID)) as server:
        write_spec(service, server)
        service.run(FILE, "--rag-mode=live", "-n0")
        assert len(server.requests) == 4
        assert len(service.rows("my_service")) == 4 or "exit" in ends
        conftest.unlink()
        # At the same address: at another one it would be another experiment.
        server.replies[:] = [as_json({**SAID, "answer": "bananas"})]
        service.run(FILE, "--rag-mode=live", workers)
        assert {row["llm_answer"] for row in service.rows("my_service")} == {"bananas"}
        assert len(server.requests) == 8


def test_recordings_of_another_version_are_not_replayed(service: Suite) -> None:
    with serving(as_json(SAID)) as server:
        write_spec(service, server, 'version.command = "cat version.txt"')
        (service.path / "version.txt").write_text("r1")
        service.run(FILE, "--rag-mode=record").assert_outcomes(passed=4)
        (service.path / "version.txt").write_text("r2")
        service.run(FILE, "--rag-mode=record").assert_outcomes(passed=4)
        assert len(server.requests) == 8
        (service.path / "version.txt").write_text("r1")
        service.run(FILE, "--rag-mode=record").assert_outcomes(passed=4)
        assert len(server.requests) == 8
    # Nobody is asked in a replay: it answers as the version that the last recording run has met.
    (service.path / "version.txt").unlink()
    service.run(FILE, "--rag-mode=replay", "--rag-overwrite").assert_outcomes(passed=4)
    assert {row["version"] for row in service.rows("my_service")} == {"r1"}
    folder = service.path / "cassettes" / "endpoints" / "my_service"
    assert sorted(each.name for each in folder.iterdir()) == ["r1", "r2", "version.json"]


def test_a_rejected_key_ends_the_run_and_stands_nowhere(service: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "planted-0123456789")
    with serving(refusal(401, "planted-0123456789 is no key")) as server:
        write_spec(service, server, 'headers = {authorization = "Bearer ${MY_KEY}"}')
        result = service.run(FILE, "--rag-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*refused with 401: the key is missing or wrong*"])
    kept = "".join(file.read_text(errors="replace") for file in service.path.rglob("*") if file.is_file())
    assert "${MY_KEY}" in kept
    assert "planted" not in kept + result.stdout.str() + result.stderr.str()


def test_an_unset_variable_stops_the_run_before_the_first_call(service: Suite) -> None:
    with serving(as_json(SAID)) as server:
        write_spec(service, server, 'headers = {authorization = "Bearer ${MY_UNSET_KEY}"}')
        result = service.run(FILE, "--rag-mode=live")
        assert not server.requests
    result.stderr.fnmatch_lines(["*MY_UNSET_KEY is not set: the endpoint 'my_service' (*my_service.toml) needs it.*"])


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("e3.toml", 'url = "http://h/"', "*e3.toml: 'e3' is the name of an experiment that there is.*"),
        # tests/unit/core/settings/test_endpoints.py has these.
        pytest.param(
            *("my_service.toml", 'ulr = "http://h/"', "*my_service.toml: Unknown key 'ulr'. Did you mean 'url'?*"),
            marks=pytest.mark.long,
        ),
        pytest.param("missing.toml", None, "*missing.toml cannot be read: No such file*", marks=pytest.mark.long),
    ],
)
def test_a_spec_that_cannot_be_used_is_an_error_of_usage(
    service: Suite, file: str, text: str | None, said: str
) -> None:
    if text is not None:
        (service.path / file).write_text(text)
    result = service.run(f"--rag-endpoint={file}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_the_golden_suite_asks_a_service_for_what_it_finds(service: Suite) -> None:
    (only,) = service.path.glob("test_*.py")
    only.write_text("def test_found(rag_retrieval):\n    assert rag_retrieval.found\n")
    entries = [{"id": "g1", "query": "return a lamp", "expected_document_id": "returns.md", "justification": "-"}]
    (service.path / "golden.json").write_text(json.dumps(entries))
    with serving(as_json(SAID)) as server:
        write_spec(service, server)
        result = service.run(FILE, "--rag-mode=live", "--rag-retriever=my_service", "--rag-k=2")
    result.assert_outcomes(passed=1)
    assert [each["query"] for each in server.requests] == ["return a lamp"]


def test_exporters_that_hang_up_are_a_count_in_the_brief_and_no_traceback(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    (only,) = suite.path.glob("test_*.py")
    only.write_text(TEST)
    with tracing_service(hangs_up=2) as service:
        top = f'url = "{service.url}"\ntraces = "otlp"\ntraces_port = {service.port}\ntraces_late = 0.1\n'
        (suite.path / "my_service.toml").write_text(f'{top}[read]\nanswer = "answer"\n')
        result = suite.run(FILE, "--rag-mode=live")
    result.assert_outcomes(passed=4)
    said = " ".join((result.stdout.str() + result.stderr.str()).split())
    assert f"8 requests with spans to http://127.0.0.1:{service.port}/v1/traces broke off" in said
    assert "Traceback" not in said
    assert "Exception" not in said
