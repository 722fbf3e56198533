"""Traces and scores for Langfuse: the same ids each time, and what its API asks of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.page.exports.conftest import Exporting
from tests.unit.page.exports.stub_server import StubServer, stub_server

SCORE: dict[str, Any] = {
    "id": str,
    "traceId": str,
    "name": str,
    "value": (str, float, int),
    "dataType": str,
    "comment": str,
}


class Langfuse:
    """What Langfuse keeps: by id, whatever is sent twice stands there once."""

    def __init__(self) -> None:
        self.traces: dict[str, Any] = {}
        self.scores: dict[str, Any] = {}
        self.takes_lists = True
        self.rejects = 0

    def __call__(self, path: str, body: Any) -> tuple[int, Any]:
        if path == "/api/public/otel/v1/traces":
            for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]:
                assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
                assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
                assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
                assert all(set(each["value"]) == {"stringValue"} for each in span["attributes"])
                self.traces[span["traceId"]] = span
            return 200, {}
        assert path == "/api/public/scores"
        if isinstance(body, list) and not self.takes_lists:
            return 400, {"message": "Invalid request data"}
        if self.rejects:
            return 207, {"accepted": len(body) - 1, "rejected": 1, "errors": [{"message": "name is too long"}]}
        for each in body if isinstance(body, list) else [body]:
            assert all(isinstance(value, SCORE[key]) for key, value in each.items())
            assert isinstance(each["value"], str) == (each["dataType"] == "CATEGORICAL")
            assert each["traceId"] in self.traces
            self.scores[each["id"]] = each
        return 202, {"message": "Accepted"}


@pytest.fixture
def langfuse(monkeypatch: pytest.MonkeyPatch) -> Langfuse:
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-secret")
    for name in ("LANGFUSE_HOST", "LANGFUSE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return Langfuse()


@pytest.fixture
def server(langfuse: Langfuse) -> Iterator[StubServer]:
    with stub_server(langfuse) as running:
        yield running


def test_trials_and_experiments_are_traces_with_scores(
    exporting: Exporting, langfuse: Langfuse, server: StubServer
) -> None:
    status, said = exporting("langfuse", "--url", server.url)
    assert status == 0
    assert f"{len(langfuse.traces)} traces with {len(langfuse.scores)} scores" in said
    by_name = {span["name"]: span["traceId"] for span in langfuse.traces.values()}
    assert {"e3 q0", "e3 failed", "e3 lost", "golden g1", "e3, all trials", "golden, all trials"} <= by_name.keys()
    mean = next(
        each
        for each in langfuse.scores.values()
        if each["traceId"] == by_name["e3, all trials"] and each["name"] == "recall@5"
    )
    assert re.fullmatch(r"95 % interval 0\.\d+ to 0\.\d+, n = \d+", mean["comment"])
    verdicts = {each["comment"]: each["value"] for each in langfuse.scores.values() if each["name"].startswith("gate ")}
    assert verdicts["e3: recall@5 >= 0.4"] == "passed"
    assert verdicts["e3[topic=t1]: token_f1 >= 0.9"] == "FAILED"
    assert all(asked.headers["Authorization"] == "Basic cGs6c2stc2VjcmV0" for asked in server.asked)


def test_a_second_export_changes_nothing(exporting: Exporting, langfuse: Langfuse, server: StubServer) -> None:
    exporting("langfuse", "--url", server.url)
    before = json.dumps([langfuse.traces, langfuse.scores])
    exporting("langfuse", "--url", server.url)
    assert json.dumps([langfuse.traces, langfuse.scores]) == before


def test_a_server_that_takes_no_lists_gets_scores_one_by_one(
    exporting: Exporting, langfuse: Langfuse, server: StubServer
) -> None:
    langfuse.takes_lists = False
    status, said = exporting("langfuse", "--url", server.url)
    assert status == 0
    assert f"with {len(langfuse.scores)} scores" in said


def test_what_is_refused_is_said(exporting: Exporting, langfuse: Langfuse, server: StubServer) -> None:
    langfuse.rejects = 1
    status, said = exporting("langfuse", "--url", server.url)
    assert status == 2
    assert "Langfuse refused 1 of 100 scores" in said
    assert "name is too long" in said


def test_without_keys_address_or_server(
    exporting: Exporting, langfuse: Langfuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Name it: --url https://" in exporting("langfuse")[1]
    status, said = exporting("langfuse", "--url", "http://127.0.0.1:9")
    assert (status, "does not answer" in said, "secret" in said) == (2, True, False)
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    assert "Set LANGFUSE_SECRET_KEY." in exporting("langfuse", "--url", "http://127.0.0.1:9")[1]


CHECK = """
import json, sys
from langfuse.api.scores.types import CreateScoreRequest
from langfuse.api.opentelemetry.types import OtelResourceSpan
for path, body in json.load(open(sys.argv[1])):
    if path.endswith("scores"):
        [CreateScoreRequest.model_validate(each) for each in body]
    else:
        [OtelResourceSpan.model_validate(each) for each in body["resourceSpans"]]
print("valid")
"""


@pytest.mark.long
def test_types_of_the_real_client_take_it(exporting: Exporting, server: StubServer, tmp_path: Path) -> None:
    exporting("langfuse", "--url", server.url)
    (tmp_path / "asked.json").write_text(json.dumps([[each.path, each.body] for each in server.asked]))
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "langfuse>=5"], check=True)
    said = subprocess.run([python, "-c", CHECK, tmp_path / "asked.json"], check=True, capture_output=True, text=True)
    assert said.stdout == "valid\n"
