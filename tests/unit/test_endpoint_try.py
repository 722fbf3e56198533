from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from rag_harness.pipelines.otel.spans import SpanRecord
from tests.talking_server import talking_server
from tests.unit.pipelines.endpoint.tracing_service import TracingService, spans_of, tracing_service
from tests.unit.server import Reply, as_json, serving

SAID = {
    "reply": "45 days",
    "echo": "planted-0123456789",
    "contexts": [{"text": "within 45 days", "id": "7"}],
    "cited": [1],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", "planted-0123456789")
    return tmp_path


def spec(folder: Path, url: str, read: str) -> None:
    headers = '[headers]\nauthorization = "Bearer ${MY_KEY}"\n'
    body = 'body = { query = "{{query}}", more = "{{inputs.more?}}" }\n'
    (folder / "a.toml").write_text(f'url = "{url}/q?api_key=${{MY_KEY}}"\n{body}{headers}[read]\n{read}')


def test_what_was_sent_what_came_and_what_was_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(as_json(SAID)) as server:
        spec(folder, server.url, 'answer = "reply"\ncontexts = "contexts"\ncitations = "cited"\nconfidence = "sure?"\n')
        assert main(["endpoint", "try", "a.toml", "How long?", "--inputs", '{"more": 1}']) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"sent  POST {server.url}/q?api_key=…\n      authorization: Bearer …\n      {{\n")
    assert '       "more": 1\n' in said
    assert "\ncame  200 application/json, " in said
    assert "\nread  answer           reply                   '45 days'\n" in said
    assert "contexts         contexts                1; first: no document, id '7', text 'within 45 days'" in said
    assert "confidence       sure?                   nothing, and it may be missing" in said
    assert "planted" not in said


def test_a_version_is_shown_and_one_that_nobody_says_ends_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(as_json(SAID)) as server:
        spec(folder, server.url, 'answer = "reply"\n[version]\ncommand = "echo r7"\n')
        assert main(["endpoint", "try", "a.toml", "How long?"]) == 0
        assert capsys.readouterr().out.startswith("who   a, version r7\nsent  POST ")
        spec(folder, server.url, 'answer = "reply"\n[version]\ncommand = "no-such-program"\n')
        assert main(["endpoint", "try", "a.toml", "How long?"]) != 0
    assert "The version of 'a' is not known: version.command 'no-such-program' cannot be run" in capsys.readouterr().err
    assert len(server.requests) == 1


def test_a_path_that_finds_nothing_is_shown_with_the_keys_that_there_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(as_json(SAID)) as server:
        spec(folder, server.url, 'answer = "answer"\n')
        assert main(["endpoint", "try", "a.toml", "How long?"]) == 1
    assert (
        "nothing: a: read.answer = 'answer' finds nothing in the answer. At $ there is an object with 'reply', '"
        in (capsys.readouterr().out)
    )


def test_what_is_no_answer_is_shown_as_it_came(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(Reply(body=b"<html>Sign in, planted-0123456789</html>", kind="text/html")) as server:
        spec(folder, server.url, "")
        assert main(["endpoint", "try", "a.toml", "How long?"]) == 2
    said = capsys.readouterr()
    assert "came  <html>Sign in, …</html>" in said.out
    assert "planted" not in said.out + said.err
    assert "not JSON but a page" in said.err


def test_a_long_path_stands_apart_from_what_it_finds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(as_json({"choices": [{"message": {"content": "45 days"}}]})) as server:
        spec(folder, server.url, 'answer = "choices[0].message.content"\n')
        assert main(["endpoint", "try", "a.toml", "How long?"]) == 0
    assert "answer           choices[0].message.content '45 days'\n" in capsys.readouterr().out


def test_who_reads_may_leave(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with serving(as_json(SAID)) as server, os.fdopen(write_end, "w") as left:
        spec(folder, server.url, "")
        monkeypatch.setattr(sys, "stdout", left)
        assert main(["endpoint", "try", "a.toml", "How long?"]) == 2
    assert capfd.readouterr().err == ""


def test_one_of_pyproject_is_named_by_its_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(as_json({"answer": "45 days"})) as server:
        (folder / "pyproject.toml").write_text(f'[tool.rag_harness.endpoints.mine]\nurl = "{server.url}"\n')
        assert main(["endpoint", "try", "mine", "How long?"]) == 0
        assert main(["endpoint", "try", "mime", "How long?"]) == 2
    assert "Unknown endpoint 'mime'. Did you mean 'mine'?" in capsys.readouterr().err


@pytest.mark.parametrize("inputs", ["{", "[1]"])
def test_inputs_that_are_no_object(folder: Path, capsys: pytest.CaptureFixture[str], inputs: str) -> None:
    spec(folder, "http://127.0.0.1:9", "")
    assert main(["endpoint", "try", "a.toml", "How long?", "--inputs", inputs]) == 2
    assert f"--inputs '{inputs}' is no" in capsys.readouterr().err


def test_nobody_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec(folder, "http://127.0.0.1:9", "")
    assert main(["endpoint", "try", "a.toml", "How long?"]) == 2
    said = capsys.readouterr().err
    assert "Cannot connect to host 127.0.0.1:9" in said
    assert "planted" not in said


def test_several_questions_are_turns_of_a_conversation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(as_json({"reply": "45 days"}), as_json({"reply": "Yes."})) as server:
        (folder / "a.toml").write_text(
            f'url = "{server.url}/q"\nbody = {{ messages = "{{{{messages}}}}" }}\nread.answer = "reply"\n'
        )
        assert main(["endpoint", "try", "a.toml", "How long?", "Really?"]) == 0
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("turn")] == ["turn  1: How long?", "turn  2: Really?"]
    assert [[each["content"] for each in request["messages"]] for request in server.requests] == [
        ["How long?"],
        ["How long?", "45 days", "Really?"],
    ]


def test_turns_of_a_service_with_a_memory_have_one_session(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with talking_server() as server:
        (folder / "a.toml").write_text(
            f'url = "{server.url}/chat"\nbody = {{ message = "{{{{query}}}}", session = "{{{{session}}}}" }}\n'
            'session.path = "session"\n'
        )
        assert main(["endpoint", "try", "a.toml", "How long?", "Really?", "Why?"]) == 0
        said = capsys.readouterr().out
        assert "'3. Why? after How long?, Really?'" in said
        (session,) = {session for session, _ in server.heard}
        assert said.count(f"session          session                 {session!r}") == 3
        server.unknown, server.state = "404", lambda _session: "another"
        assert main(["endpoint", "try", "a.toml", "How long?", "Really?"]) != 0
        assert "a has forgotten the session of try#2: it answered with status 404" in capsys.readouterr().err


def test_a_conversation_ends_where_an_answer_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(as_json({"reply": "45 days"})) as server:
        (folder / "a.toml").write_text(f'url = "{server.url}/q"\nread.answer = "answer"\n')
        assert main(["endpoint", "try", "a.toml", "How long?", "Really?"]) == 1
    assert len(server.requests) == 1
    assert "turn  2" not in capsys.readouterr().out


def traced(folder: Path, service: TracingService, more: str = "") -> None:
    top = f'url = "{service.url}"\ntraces = "otlp"\ntraces_port = {service.port}\ntraces_late = 0.05\n{more}'
    (folder / "a.toml").write_text(f'{top}body = {{ query = "{{{{query}}}}" }}\n')


def test_spans_that_came_are_shown_with_what_is_read_of_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tracing_service() as service:
        traced(folder, service)
        assert main(["endpoint", "try", "a.toml", "lamp"]) == 0
    said = capsys.readouterr().out
    assert f"traceparent: {service.headers[0]['traceparent']}\n" in said
    spans = r"^spans -  +POST /query +7 ms\n +retriever +search +2 ms\n +llm +model +3 ms\n"
    assert re.search(spans, said, re.MULTILINE)
    assert re.search(
        r"^steps retrieve +search +1 documents\n +generate +model +gpt-4o-mini, 30 and 0 tokens$", said, re.MULTILINE
    )


def test_spans_that_cannot_be_read_or_do_not_come_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def silent(query: str, traceparent: str) -> list[SpanRecord]:
        return [
            replace(span, attributes={"openinference.span.kind": "RETRIEVER"}) if span.name == "search" else span
            for span in spans_of(query, traceparent)
        ]

    with tracing_service(spans=silent) as service:
        traced(folder, service)
        assert main(["endpoint", "try", "a.toml", "lamp"]) == 1
    assert "steps nothing: Span 'search' is one of a search" in capsys.readouterr().out
    with tracing_service(spans=lambda *_: []) as service:
        traced(folder, service, "traces_wait = 0.2\n")
        assert main(["endpoint", "try", "a.toml", "lamp"]) == 2
    said = capsys.readouterr()
    assert "came  200 application/json" in said.out
    assert "No span of this trial came to" in said.err
