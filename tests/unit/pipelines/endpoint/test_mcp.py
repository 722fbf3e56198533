from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import CriticalError, ModelCallError, ModelOutputError, RagHarnessError
from tests.unit.pipelines.endpoint.mcp_server import McpServer, text_result
from tests.unit.pipelines.endpoint.services import QUERY, Service
from tests.unit.server import refusal, serving

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
