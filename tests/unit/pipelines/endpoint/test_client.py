"""Services asked over HTTP and MCP, and what becomes of their answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import (
    BudgetError,
    CriticalError,
    ModelCallError,
    ModelOutputError,
    PrerequisiteError,
    RagHarnessError,
    RecordingMissError,
    SettingsError,
)
from rag_harness.core.settings.endpoints import AnswerPaths, EndpointSpec
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Chunk, Hit, Query, Usage
from rag_harness.models.calls import asked_again
from rag_harness.models.throttling import Budget, Meter
from rag_harness.pipelines.endpoint.answer import AnswerReader, Context, ServiceAnswer, answer_of, finish_reason_of
from rag_harness.pipelines.endpoint.exchange import Exchange
from rag_harness.pipelines.user_pipelines import declined
from tests.unit.pipelines.endpoint.mcp_server import McpServer, text_result
from tests.unit.pipelines.endpoint.services import QUERY, Service
from tests.unit.server import Reply, as_json, refusal, serving

SAID = {
    "answer": "You can return a lamp within 45 days.",
    "contexts": [{"text": "You can return a lamp within 45 days of delivery.", "id": "17", "score": 0.5}],
    "usage": {"in": 12, "out": 3},
    "verdict": "pass",
    "sure": 0.75,
    "llm": "some/model",
}
READ = """
[read]
contexts = "contexts"
usage_prompt = "usage.in"
usage_completion = "usage.out"
decision = "verdict"
confidence = "sure"
model = "llm"
"""
CHAT = (
    b'data: {"model": "some/model", "choices": [{"delta": {"content": "45 "}}]}\n\n'
    b'data: {"choices": [{"delta": {"content": "days"}, "finish_reason": "stop"}]}\n\n'
    b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}\n\ndata: [DONE]\n\n'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "returns.md").write_text("# Returns\n\nYou can return a **lamp** within 45 days of delivery.\n")
    return tmp_path


def test_everything_that_was_said_is_in_the_output(folder: Path) -> None:
    with serving(as_json(SAID)) as server:
        output = Service(folder, f'url = "{server.url}/query"\n{READ}').ask()
    (call,), (stage,), (hit,) = output.calls, output.stages, output.context
    assert (output.answer.text, output.confidence, output.decisions[0].outcome) == (SAID["answer"], 0.75, "pass")
    assert (hit.chunk.chunk_id, hit.chunk.doc_id, hit.score) == ("returns.md#17", "returns.md", 0.5)
    assert (call.role, call.model, call.usage.prompt_tokens, call.usage.completion_tokens) == (
        "service",
        "some/model",
        12,
        3,
    )
    assert (stage.name, stage.detail) == ("ask", {"placed": {"text": 1}})
    assert stage.ms == call.ms > 0
    assert json.loads(call.messages[0].content)["body"] == {"query": QUERY.text}


def test_a_stream_has_the_time_of_its_first_token(folder: Path) -> None:
    with serving(Reply(body=CHAT, kind="text/event-stream", drip=0.0005)) as server:
        output = Service(folder, f'url = "{server.url}/chat/completions"\nkind = "openai"\nmodel = "m"').ask()
    (call,) = output.calls
    assert (output.answer.text, call.model, call.usage.prompt_tokens) == ("45 days", "some/model", 9)
    assert call.ttft_ms is not None
    assert 0 < call.ttft_ms < call.ms
    assert server.requests[0]["messages"] == [{"role": "user", "content": QUERY.text}]
    assert server.requests[0]["stream"] is True


def test_an_earlier_conversation_goes_before_the_question(folder: Path) -> None:
    history = [{"role": "user", "content": "Hi"}]
    with serving(Reply(body=CHAT, kind="text/event-stream")) as server:
        service = Service(folder, f'url = "{server.url}/chat/completions"\nkind = "openai"\nmodel = "m"')
        service.ask(Query("q", "And lamps?", {"history": history}))
    assert server.requests[0]["messages"] == [*history, {"role": "user", "content": "And lamps?"}]


def test_a_recording_is_replayed_wherever_the_service_ran(folder: Path) -> None:
    with serving(as_json(SAID)) as server:
        first = Service(folder, f'url = "{server.url}/query"\n{READ}', mode="record").ask()
    again = Service(folder, f'url = "https://production.example/v1/query"\n{READ}', mode="replay").ask()
    assert again.answer == first.answer
    assert again.calls[0].recorded
    assert again.calls[0].ms == pytest.approx(first.calls[0].ms, abs=0.001)
    assert [file.parent.name for file in (folder / "cassettes").rglob("*.yaml")] == ["my_service"]


def test_a_recorded_stream_is_replayed_with_its_times(folder: Path) -> None:
    spec = 'kind = "openai"\nmodel = "m"'
    with serving(Reply(body=CHAT, kind="text/event-stream")) as server:
        first = Service(folder, f'url = "{server.url}/chat"\n{spec}', mode="record").ask()
    again = Service(folder, f'url = "http://127.0.0.1:9/v1/chat"\n{spec}', mode="replay").ask()
    assert again.answer == first.answer
    assert again.calls[0].ttft_ms == pytest.approx(first.calls[0].ttft_ms, abs=0.001)


@pytest.mark.parametrize("mode", ["auto", "replay"])
def test_what_nobody_recorded_is_asked_of_nobody(folder: Path, mode: str) -> None:
    with serving(as_json(SAID)) as server, pytest.raises(CriticalError, match="Record it: --rag-mode=record; or ask"):
        Service(folder, f'url = "{server.url}/query"', mode=mode).ask()
    assert not server.requests


def test_one_of_many_that_nobody_recorded_is_no_end_of_the_run(folder: Path) -> None:
    with serving(as_json(SAID)) as server:
        spec = f'url = "{server.url}/query"'
        Service(folder, spec, mode="record").ask()
        with pytest.raises(RecordingMissError, match="Record it: --rag-mode=record"):
            Service(folder, f"{spec}\nbody = {{ other = '{{{{query}}}}' }}", mode="replay").ask()


def test_what_is_recorded_is_not_asked_again_unless_it_is_a_repeat(folder: Path) -> None:
    with serving(as_json(SAID)) as server:
        service = Service(folder, f'url = "{server.url}/query"', mode="record")
        service.ask_all(QUERY)
        service.ask_all(QUERY)
        assert len(server.requests) == 1
        with asked_again(1):
            service.ask_all(QUERY)
    assert len(server.requests) == 2
    assert len(list((folder / "cassettes").rglob("*.yaml"))) == 2


def test_an_answer_whose_path_is_wrong_is_kept_and_one_that_is_an_error_is_not(folder: Path) -> None:
    replies = as_json({"reply": "45 days"}), as_json({"error": "busy"})
    with serving(*replies) as server:
        service = Service(
            folder, f'url = "{server.url}/query"\n[read]\nerror = "error?"\nanswer = "answer"', mode="record"
        )
        for query in (QUERY, Query("q2", "other")):
            with pytest.raises(Exception, match="my_service"):
                service.ask(query)
    assert len(list((folder / "cassettes").rglob("*.yaml"))) == 1
    mended = f'url = "{server.url}/query"\n[read]\nanswer = "reply"'
    assert Service(folder, mended, mode="replay").ask().answer.text == "45 days"


def test_no_key_reaches_disk_row_or_message(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "planted-0123456789")
    (folder / ".env").write_text("MY_TENANT=tenant-0123456789\n")
    spec = '[headers]\nauthorization = "Bearer ${MY_KEY}"\nx-tenant = "${MY_TENANT}"\n'
    said = {"answer": "your key is planted-0123456789 of tenant-0123456789"}
    with serving(as_json(said)) as server:
        url = f'url = "{server.url}/query?api_key=${{MY_KEY}}"\n'
        output = Service(folder, url + spec, mode="record").ask()
    kept = "".join(file.read_text() for file in (folder / "cassettes").rglob("*.yaml"))
    assert kept.count("REDACTED") == 2
    shown = f"{kept} {output} {Service(folder, url + spec, mode='record').experiment.ingredients}"
    assert "planted" not in shown
    assert "tenant-0" not in shown
    monkeypatch.delenv("MY_KEY")
    assert "REDACTED" in Service(folder, url + spec, mode="replay").ask().answer.text


@pytest.mark.parametrize("value", ["planted-0123456789", "short"])
def test_a_replay_needs_no_variable_of_the_address(folder: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    with serving(as_json(SAID)) as server:
        monkeypatch.setenv("MY_BASE", f"{server.url}/api")
        monkeypatch.setenv("MY_CODE", value)
        url = 'url = "${MY_BASE}/query?code=${MY_CODE}"\n'
        first = Service(folder, url, mode="record").ask()
    monkeypatch.delenv("MY_BASE")
    monkeypatch.delenv("MY_CODE")
    assert Service(folder, url, mode="replay").ask().answer == first.answer
    assert value not in "".join(file.read_text() for file in (folder / "cassettes").rglob("*.yaml"))


def test_calls_in_flight_are_capped_and_charged(folder: Path) -> None:
    queries = [Query(f"q{n}", f"question {n}") for n in range(6)]
    with serving(Reply(body=json.dumps(SAID).encode(), delay=0.02)) as server:
        spec = f'url = "{server.url}/query"\nconcurrency = 2\nusd_per_call = 0.5\n'
        outputs = Service(folder, spec, budget=3.0).ask_all(*queries)
        assert server.most_in_flight == 2
        assert sum(output.calls[0].usd or 0.0 for output in outputs) == 3.0
        with pytest.raises(BudgetError):
            Service(folder, spec, budget=2.9).ask_all(*queries)


def test_a_chat_endpoint_is_charged_by_the_table_of_prices(folder: Path) -> None:
    (folder / "prices.toml").write_text('[models."m"]\ninput = 1000.0\noutput = 2000.0\n')
    with serving(Reply(body=CHAT, kind="text/event-stream")) as server:
        spec = f'url = "{server.url}/chat"\nkind = "openai"\nmodel = "m"\n'
        with pytest.raises(PrerequisiteError, match="max_tokens in its body"):
            Service(folder, spec, budget=1.0, prices="prices.toml")
        service = Service(folder, f"{spec}body = {{max_tokens = 100}}", budget=1.0, prices="prices.toml")
        assert service.ask().calls[0].usd == pytest.approx((9 * 1000 + 2 * 2000) / 1e6)


def test_a_chat_answer_that_breaks_off_is_charged_at_its_most(folder: Path) -> None:
    (folder / "prices.toml").write_text('[models."m"]\ninput = 0.0\noutput = 2000.0\n')
    half = Reply(body=CHAT.partition(b'"usage"')[0], kind="text/event-stream", length=5000, reset=True)
    with serving(half, Reply(body=CHAT, kind="text/event-stream")) as server:
        spec = f'url = "{server.url}/chat"\nkind = "openai"\nmodel = "m"\nbody = {{max_tokens = 100}}'
        service = Service(folder, spec, budget=1.0, prices="prices.toml")
        assert service.ask().calls[0].retries == 1
    money = service.parts.endpoints.meter.money
    assert money is not None
    assert isinstance(money.budget, Budget)
    assert money.budget.spent == pytest.approx((100 + 2) * 2000 / 1e6)


@pytest.mark.parametrize("body", ['{prompt = "{{query}}", max_tokens = 9}', '{model = "other", max_tokens = 9}'])
def test_a_budget_needs_a_call_that_is_charged_by_the_table(folder: Path, body: str) -> None:
    (folder / "prices.toml").write_text('[models."m"]\ninput = 1000.0\noutput = 2000.0\n')
    kind = "openai" if "other" in body else "json"
    spec = f'url = "http://127.0.0.1:9/"\nkind = "{kind}"\nmodel = "m"\nbody = {body}'
    with pytest.raises(PrerequisiteError, match="it is not known what a call"):
        Service(folder, spec, budget=1.0, prices="prices.toml")


def test_a_stream_that_is_whole_need_not_end(folder: Path) -> None:
    left_open = Reply(body=CHAT + b":" * 20_000, kind="text/event-stream", drip=0.001)
    with serving(left_open) as server:
        spec = f'url = "{server.url}/chat"\nkind = "openai"\nmodel = "m"\ntimeout = 1.5'
        assert Service(folder, spec).ask().answer.text == "45 days"


def test_servers_that_variables_name_have_limits_of_their_own(folder: Path) -> None:
    meter = Meter(load_settings(rootdir=folder))
    for url in ("${ONE}/query", "${OTHER}/query", "${OTHER}/query"):
        Exchange(EndpointSpec("a", url), meter, lambda _: Usage())
    assert len(meter._limiters) == 2


def test_data_that_nobody_named(folder: Path) -> None:
    with pytest.raises(SettingsError, match="Unknown data 'nowhere'"):
        Service(folder, 'url = "http://127.0.0.1:9/"\ndata = "nowhere"')


def test_the_fingerprint_changes_with_what_is_sent_and_read_and_not_with_its_limits(folder: Path) -> None:
    def ingredients(more: str) -> object:
        return Service(folder, f'url = "http://127.0.0.1:9/q"\n{more}').experiment.ingredients

    plain = ingredients("")
    assert plain == ingredients("rpm = 5\nconcurrency = 3\ntimeout = 9\nusd_per_call = 1\n")
    assert plain != ingredients('[read]\nanswer = "reply"')
    assert plain != ingredients('body = {q = "{{query}}"}')
    assert plain != ingredients('headers = {x-version = "2"}')


def test_a_get_quotes_the_question_in_the_address(folder: Path) -> None:
    service = Service(folder, 'url = "http://127.0.0.1:9/s?q={{query}}"\nmethod = "GET"')
    request = service.pipeline._requests.of(QUERY)
    assert (request.url, request.content) == ("http://127.0.0.1:9/s?q=How%20long%20can%20I%20return%20a%20lamp%3F", b"")


def test_the_retrieve_step_is_what_the_service_says_it_found(folder: Path) -> None:
    with serving(as_json({**SAID, "contexts": ["a", "b", "c"]})) as server:
        service = Service(folder, f'url = "{server.url}/query"\n{READ}')
        retriever, service.parts.loop = service.experiment.retriever, service.closing
        assert retriever is not None
        assert [hit.chunk.text for hit in retriever.retrieve("lamp", 2)] == ["a", "b"]


def test_a_run_without_documents_asks_all_the_same(tmp_path: Path) -> None:
    with serving(as_json(SAID)) as server:
        output = Service(tmp_path, f'url = "{server.url}/query"\n{READ}').ask()
    assert output.stages[0].detail == {"placed": {"nothing": 1}}


TOOL = 'kind = "mcp"\ntool = "ask"\n'
STRUCTURED = '[read]\nanswer = "structuredContent.answer"\ncontexts = "structuredContent.contexts"\n'


def asked(folder: Path, result: dict[str, Any], more: str = "", **about: Any) -> tuple[Any, list[dict[str, Any]]]:
    with serving() as server:
        server.__class__ = McpServer
        vars(server).update(result=result, **about)
        service = Service(folder, f'url = "{server.url}/mcp"\n{TOOL}{more}')
        try:
            return service.ask_all(QUERY, QUERY), server.requests
        except RagHarnessError as error:
            return error, server.requests


@pytest.mark.parametrize("streams", [False, True])
def test_a_tool_is_called_after_one_hello(tmp_path: Path, streams: bool) -> None:
    outputs, requests = asked(tmp_path, text_result("45 days"), streams=streams)
    assert [output.answer.text for output in outputs] == ["45 days", "45 days"]
    assert [each["method"] for each in requests][:2] == ["initialize", "notifications/initialized"]
    assert [each["method"] for each in requests].count("initialize") == 1
    assert requests[-1]["params"] == {"name": "ask", "arguments": {"query": QUERY.text}}


def test_structured_content_is_read_and_so_is_an_object_in_the_text(tmp_path: Path) -> None:
    said = {"answer": "45 days", "contexts": ["one"]}
    outputs, _ = asked(tmp_path, text_result("…", structuredContent=said), STRUCTURED)
    assert (outputs[0].answer.text, outputs[0].context[0].chunk.text) == ("45 days", "one")
    outputs, _ = asked(tmp_path, text_result('{"answer": "45 days", "contexts": []}'), STRUCTURED)
    assert outputs[0].answer.text == "45 days"


def test_a_session_that_was_forgotten_is_made_again(tmp_path: Path) -> None:
    outputs, requests = asked(tmp_path, text_result("45 days"), forgets=1)
    assert outputs[0].answer.text == "45 days"
    assert [each["method"] for each in requests].count("initialize") == 2


def test_calls_that_learn_at_once_that_the_session_is_over_go_on_in_a_new_one(tmp_path: Path) -> None:
    outputs, requests = asked(tmp_path, text_result("45 days"), forgets=2)
    assert [output.answer.text for output in outputs] == ["45 days", "45 days"]
    assert [each["method"] for each in requests].count("initialize") in (2, 3)


@pytest.mark.parametrize(
    ("result", "kind", "said"),
    [
        (text_result("no index", isError=True), ModelCallError, "the tool says that it failed: no index"),
        ({"error": {"code": -32602, "message": "Unknown tool"}}, ModelCallError, "refused: Unknown tool (code -32602)"),
        ({"result": []}, ModelOutputError, "no JSON-RPC result"),
        ({"result": {"content": "text"}}, ModelOutputError, "no result of a tool"),
        (text_result(""), ModelOutputError, "expected an answer"),
    ],
)
def test_what_goes_wrong_is_named(tmp_path: Path, result: dict[str, Any], kind: type[Exception], said: str) -> None:
    error, _ = asked(tmp_path, result)
    assert isinstance(error, kind)
    assert said in str(error)


def test_no_server_at_that_address_ends_the_run(tmp_path: Path) -> None:
    with serving(refusal(404, "nothing here")) as server, pytest.raises(CriticalError, match="404"):
        Service(tmp_path, f'url = "{server.url}/mcp"\n{TOOL}').ask()


SERVICE_ANSWER_SAID: Any = {
    "answer": "45 days",
    "contexts": [
        {"text": "one", "id": 7, "document": "returns.md", "score": 0.5},
        {"text": "two", "meta": {"source": "b.md"}},
        "three",
    ],
    "sure": 0.75,
    "verdict": "pass",
    "usage": {"in": 12, "out": 3},
    "none": None,
    "error": None,
}


def reader(**paths: str) -> AnswerReader:
    return AnswerReader(AnswerPaths(**paths), "my_service")


def test_everything_that_can_be_said_is_read() -> None:
    found = reader(
        contexts="contexts",
        document="document?",
        confidence="sure",
        decision="verdict",
        usage_prompt="usage.in",
        usage_completion="usage.out",
        error="error",
    ).read(SERVICE_ANSWER_SAID)
    first, second, third = found.contexts
    assert first == Context("one", "7", "returns.md", 0.5)
    assert (second, third) == (Context("two"), Context("three"))
    assert (found.answer, found.confidence, found.decision) == ("45 days", 0.75, "pass")
    assert (found.usage_prompt, found.usage_completion) == (12, 3)


def test_the_items_of_a_list_may_stand_apart() -> None:
    found = reader(contexts="$.contexts[0,1].text").read(SERVICE_ANSWER_SAID)
    assert [context.text for context in found.contexts] == ["one", "two"]
    assert reader(contexts="$.nowhere[*]?").read(SERVICE_ANSWER_SAID).contexts == ()
    groups = {"answer": "x", "groups": [{"hits": ["a", "b"]}, {"hits": ["c"]}]}
    assert [context.text for context in reader(contexts="$.groups[*].hits").read(groups).contexts] == ["a", "b", "c"]
    assert reader(contexts="none").read(SERVICE_ANSWER_SAID).contexts == ()


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (
            {"answer": "reply"},
            "read.answer = 'reply' finds nothing in the answer. At $ there is an object with 'answer'",
        ),
        (
            {"answer": "contexts"},
            "finds a list of 3, first an object with 'text', 'id', 'document', 'score'; expected text",
        ),
        ({"answer": "sure"}, "finds the number 0.75; expected text"),
        ({"answer": "none"}, "finds null; expected text"),
        ({"answer": "$.contexts[0,1].text"}, "expected one thing; the path finds several"),
        ({"contexts": "answer"}, "finds text: '45 days'; expected a list"),
        ({"contexts": "usage"}, "finds an object with 'in', 'out'; expected a list"),
        ({"contexts": "hits"}, "read.contexts = 'hits' finds nothing"),
        ({"contexts": "contexts", "text": "body"}, "context 1: read.text = 'body' finds nothing. At $ there is an"),
        ({"contexts": "contexts", "score": "text"}, "read.score = 'text' finds text: 'one'; expected a number"),
        ({"contexts": "$.usage.*"}, "context 1 is the number 12, and nothing is read of it: text = 'text?', id"),
        ({"confidence": "usage.in"}, "expected a number from 0 to 1"),
        ({"confidence": "verdict"}, "expected a number"),
        ({"decision": "sure"}, "expected text"),
        ({"usage_prompt": "sure"}, "expected a whole number"),
        ({"citations": "answer"}, "expected a list of places"),
        ({"citations": "contexts"}, "expected a list of places"),
        ({"abstained": "sure"}, "expected true or false"),
    ],
)
def test_what_is_missing_or_of_another_kind_is_named(paths: dict[str, str], said: str) -> None:
    with pytest.raises(ModelOutputError) as error:
        reader(**paths).read(SERVICE_ANSWER_SAID)
    assert said in str(error.value)
    assert error.value.raw.startswith('{"answer": "45 days"')


def test_an_empty_answer_is_none_unless_it_may_be() -> None:
    with pytest.raises(ModelOutputError, match=r"expected an answer. Where it may be empty: answer\?"):
        reader().read({"answer": " "})
    assert reader(answer="answer?").read({"answer": ""}).answer == ""
    assert reader(answer="answer?").read({}).answer == ""


def test_an_error_of_the_service_is_its_own() -> None:
    with pytest.raises(ModelCallError, match="my_service says that it failed: no index"):
        reader(error="error").read({"answer": "x", "error": {"message": "no index"}})
    with pytest.raises(ModelCallError, match="busy"):
        reader(error="error").read({"error": "busy"})
    assert reader(error="error").read({"answer": "x"}).answer == "x"


def test_fields_are_shown_one_by_one() -> None:
    fields = {field.name: field for field in reader(answer="reply", confidence="sure").fields(SERVICE_ANSWER_SAID)}
    assert "finds nothing" in fields["answer"].problem
    assert fields["confidence"].value == 0.75


def test_usage_never_fails() -> None:
    paths = reader(usage_prompt="usage.in", usage_completion="verdict")
    assert paths.usage(SERVICE_ANSWER_SAID) == Usage(12, 0, calls=1)
    assert reader(usage_prompt="nowhere").usage([]) == Usage(0, 0, calls=1)


def hits(*documents: str) -> list[Hit]:
    return [Hit(Chunk(f"{name}#{n}", name, "t"), 1.0, n) for n, name in enumerate(documents, 1)]


def test_citations_are_places_or_names() -> None:
    said = ServiceAnswer("x", (Context("a", "c1", "a.md"), Context("b", "c2", "b.md")), (2, "c1", "b.md", "x.md", 9))
    answer = answer_of(said, hits("a.md", "b.md"))
    assert (answer.citations, answer.invalid_citations) == ((2, 1), (3, 9))


def test_without_a_path_the_sources_that_the_text_names_are_cited() -> None:
    answer = answer_of(ServiceAnswer("so [Source 2], but [Source 5]"), hits("a.md", "b.md"))
    assert (answer.citations, answer.invalid_citations) == ((2,), (5,))


def test_abstaining_is_said_by_the_service_or_in_the_usual_words() -> None:
    assert declined(answer_of(ServiceAnswer("I don't know."), ()))
    assert not answer_of(ServiceAnswer("I don't know.", abstained=False), ()).abstained
    assert answer_of(ServiceAnswer("Sorry!", abstained=True), ()).abstained


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"choices": [{"finish_reason": "length"}]}, "length"),
        ({"stop_reason": "max_tokens"}, "max_tokens"),
        ({"choices": [], "finish_reason": None}, ""),
        ({"choices": "odd"}, ""),
        (["a list"], ""),
    ],
)
def test_why_a_model_stopped_is_read_as_the_usual_apis_say_it(document: Any, reason: str) -> None:
    assert finish_reason_of(document) == reason
