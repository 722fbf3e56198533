"""Exports to Langfuse, Phoenix and MLflow: the same ids each time, and what each API asks of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import types
import venv
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from rag_harness.core.errors import PrerequisiteError
from rag_harness.page.exports.servers import Posting
from rag_harness.page.exports.targets import metric_name
from tests.serving import running
from tests.unit.page.exports.conftest import Exporting
from tests.unit.page.exports.real_phoenix import installed_phoenix, phoenix_has, serving_phoenix
from tests.unit.page.exports.stub_server import StubServer, stub_server

# Traces and scores for Langfuse: the same ids each time, and what its API asks of them.

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
def langfuse_server(langfuse: Langfuse) -> Iterator[StubServer]:
    with stub_server(langfuse) as running:
        yield running


def test_trials_and_experiments_are_traces_with_scores(
    exporting: Exporting, langfuse: Langfuse, langfuse_server: StubServer
) -> None:
    status, said = exporting("langfuse", "--url", langfuse_server.url)
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
    assert all(asked.headers["Authorization"] == "Basic cGs6c2stc2VjcmV0" for asked in langfuse_server.asked)


def test_a_second_export_to_langfuse_changes_nothing(
    exporting: Exporting, langfuse: Langfuse, langfuse_server: StubServer
) -> None:
    exporting("langfuse", "--url", langfuse_server.url)
    before = json.dumps([langfuse.traces, langfuse.scores])
    exporting("langfuse", "--url", langfuse_server.url)
    assert json.dumps([langfuse.traces, langfuse.scores]) == before


def test_a_server_that_takes_no_lists_gets_scores_one_by_one(
    exporting: Exporting, langfuse: Langfuse, langfuse_server: StubServer
) -> None:
    langfuse.takes_lists = False
    status, said = exporting("langfuse", "--url", langfuse_server.url)
    assert status == 0
    assert f"with {len(langfuse.scores)} scores" in said


def test_what_is_refused_is_said(exporting: Exporting, langfuse: Langfuse, langfuse_server: StubServer) -> None:
    langfuse.rejects = 1
    status, said = exporting("langfuse", "--url", langfuse_server.url)
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
def test_types_of_the_real_client_take_it(exporting: Exporting, langfuse_server: StubServer, tmp_path: Path) -> None:
    exporting("langfuse", "--url", langfuse_server.url)
    (tmp_path / "asked.json").write_text(json.dumps([[each.path, each.body] for each in langfuse_server.asked]))
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "langfuse>=5"], check=True)
    said = subprocess.run([python, "-c", CHECK, tmp_path / "asked.json"], check=True, capture_output=True, text=True)
    assert said.stdout == "valid\n"


# Spans and annotations for Phoenix, against a stub with the rules of its API, and with ``-m long`` the real one.


class Phoenix:
    """What Phoenix keeps, and what it refuses: spans that are there, annotations of spans that are not."""

    def __init__(self) -> None:
        self.spans: dict[str, Any] = {}
        self.annotations: dict[tuple[Any, ...], Any] = {}
        self.late = 0

    def __call__(self, path: str, body: Any) -> tuple[int, Any]:
        if path.endswith("/spans"):
            return self._spans(body["data"])
        if self.late:
            self.late -= 1
            return 404, {"detail": "Spans with IDs … do not exist."}
        of_documents = path == "/v1/document_annotations?sync=true"
        assert of_documents or path == "/v1/span_annotations?sync=true"
        for each in body["data"]:
            assert each["annotator_kind"] == "CODE"
            assert set(each["result"]) <= {"score", "label", "explanation"}
            span = self.spans[each["span_id"]]
            if of_documents:
                assert "identifier" not in each
                documents = [
                    key for key in span["attributes"] if re.fullmatch(r"retrieval\.documents\.\d+\.document\.id", key)
                ]
                assert 0 <= each["document_position"] < len(documents)
            key = (each["name"], each["span_id"], each.get("identifier"), each.get("document_position"))
            self.annotations[key] = each["result"]
        return 200, {"data": []}

    def _spans(self, spans: list[Any]) -> tuple[int, Any]:
        there = [span["context"] for span in spans if span["context"]["span_id"] in self.spans]
        if there:
            return 400, {"error": "Request contains invalid or duplicate spans", "duplicate_spans": there}
        for span in spans:
            assert all(isinstance(value, str) for value in span["attributes"].values())
            assert re.fullmatch("[0-9a-f]{16}", span["context"]["span_id"])
            self.spans[span["context"]["span_id"]] = span
        return 202, {"total_queued": len(spans)}


@pytest.fixture
def phoenix() -> Phoenix:
    return Phoenix()


@pytest.fixture
def phoenix_server(phoenix: Phoenix) -> Iterator[StubServer]:
    with stub_server(phoenix) as running:
        yield running


def test_trials_are_spans_with_annotations(exporting: Exporting, phoenix: Phoenix, phoenix_server: StubServer) -> None:
    status, _ = exporting("phoenix", "--url", phoenix_server.url, "--project", "my shop")
    assert status == 0
    assert phoenix_server.asked[0].path == "/v1/projects/my%20shop/spans"
    trial = next(span for span in phoenix.spans.values() if span["name"] == "e3 q0" and not span.get("parent_id"))
    span_id = trial["context"]["span_id"]
    assert trial["attributes"]["input.value"] == "What?"
    assert phoenix.annotations["recall@5", span_id, "rag-harness", None]["score"] in (0.0, 1.0)
    whole = next(span for span in phoenix.spans.values() if span["name"] == "e3, all trials")["context"]["span_id"]
    assert "95 % interval" in phoenix.annotations["recall@5", whole, "rag-harness", None]["explanation"]
    assert phoenix.annotations["gate 02", whole, "rag-harness", None]["label"] == "FAILED"
    relevant = {key[3]: result["label"] for key, result in phoenix.annotations.items() if key[0] == "gold"}
    assert set(relevant.values()) == {"relevant", "irrelevant"}


def test_a_second_export_to_phoenix_changes_nothing(
    exporting: Exporting, phoenix: Phoenix, phoenix_server: StubServer
) -> None:
    exporting("phoenix", "--url", phoenix_server.url)
    before = json.dumps([phoenix.spans, [*phoenix.annotations.items()]])
    status, said = exporting("phoenix", "--url", phoenix_server.url)
    assert (status, "0 new spans" in said) == (0, True)
    assert json.dumps([phoenix.spans, [*phoenix.annotations.items()]]) == before


def test_an_export_to_phoenix_that_was_cut_off_is_completed(
    exporting: Exporting, phoenix: Phoenix, phoenix_server: StubServer
) -> None:
    exporting("phoenix", "--url", phoenix_server.url)
    count = len(phoenix.spans)
    for span_id in [*phoenix.spans][::3]:
        del phoenix.spans[span_id]
    phoenix.annotations.clear()
    assert exporting("phoenix", "--url", phoenix_server.url)[0] == 0
    assert len(phoenix.spans) == count
    assert phoenix.annotations


def test_spans_that_come_late_are_waited_for(
    exporting: Exporting, phoenix: Phoenix, phoenix_server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=waits.append)
    monkeypatch.setattr("rag_harness.page.exports.targets.time", clock)
    phoenix.late = 3
    assert exporting("phoenix", "--url", phoenix_server.url)[0] == 0
    assert waits == [0.2] * 3


def test_an_address_is_needed(exporting: Exporting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PHOENIX_COLLECTOR_ENDPOINT", raising=False)
    assert "Phoenix: the address of its server is not known. Name it: --url https://" in exporting("phoenix")[1]
    assert "'localhost' is not an address" in exporting("phoenix", "--url", "localhost")[1]


@pytest.mark.long
def test_the_real_phoenix(exporting: Exporting, tmp_path: Path) -> None:
    check_real_phoenix(installed_phoenix(tmp_path), exporting, tmp_path)


def check_real_phoenix(program: Path, exporting: Exporting, folder: Path) -> None:
    """Export twice into a server of Phoenix, and compare what it has."""
    with serving_phoenix(program, folder) as url:
        looked = []
        for _ in range(2):
            status, said = exporting("phoenix", "--url", url)
            assert status == 0, said
            looked.append(_kept(url))
        assert looked[0] == looked[1]
        assert any(name == "recall@5" for _, name, _ in looked[0])


def _kept(url: str) -> list[tuple[str, str, str]]:
    spans = phoenix_has(f"{url}/v1/projects/rag-harness/spans?limit=1000")
    asked = "&".join(f"span_ids={span['context']['span_id']}" for span in spans)
    found = phoenix_has(f"{url}/v1/projects/rag-harness/span_annotations?limit=10000&{asked}")
    assert len(found) > len(spans) > 20
    return sorted((each["span_id"], each["name"], json.dumps(each["result"], sort_keys=True)) for each in found)


# Runs in MLflow: names that it takes, a second export that changes nothing, one that was cut off.
#
# A stub with MLflow's own rules for names and sizes stands in for it; ``-m long`` exports into the real one.

ROOT = Path(__file__).parents[4]


class Metric(NamedTuple):
    key: str
    value: float
    timestamp: int
    step: int


class Param(NamedTuple):
    key: str
    value: str


class RefusedError(Exception):
    pass


class Server:
    """What MlflowClient is asked for, with what it refuses."""

    def __init__(self) -> None:
        self.experiments: dict[str, str] = {}
        self.runs: dict[str, Any] = {}
        self.calls: list[str] = []
        self.fails_at = ""

    def __call__(self, tracking_uri: str | None = None) -> Server:
        self.uri = tracking_uri
        return self

    def get_experiment_by_name(self, name: str) -> Any:
        return SimpleNamespace(experiment_id=self.experiments[name]) if name in self.experiments else None

    def create_experiment(self, name: str) -> str:
        self.experiments[name] = str(len(self.experiments) + 1)
        return self.experiments[name]

    def search_runs(self, ids: Sequence[str], filter_string: str) -> list[Any]:
        found = re.fullmatch(r"tags\.`([\w.]+)` = '([^']*)'", filter_string)
        assert found
        return [run for run in self.runs.values() if run.data.tags.get(found[1]) == found[2]]

    def create_run(self, experiment_id: str, start_time: int, tags: dict[str, str], run_name: str) -> Any:
        self._called("create_run")
        assert len(tags) <= 100
        assert all(isinstance(value, str) for value in tags.values())
        name = f"run{len(self.runs)}"
        data = SimpleNamespace(tags=dict(tags), metrics={}, params={}, files={}, status="RUNNING")
        self.runs[name] = SimpleNamespace(info=SimpleNamespace(run_id=name, run_name=run_name), data=data)
        return self.runs[name]

    def log_batch(self, run_id: str, metrics: Sequence[Metric] = (), params: Sequence[Param] = ()) -> None:
        self._called("log_batch")
        assert len(metrics) <= 1000
        assert len(params) <= 100
        for key in [each.key for each in metrics] + [each.key for each in params]:
            if not re.fullmatch(r"[\w.\- :/]{1,250}", key, re.ASCII):
                raise RefusedError(f"Invalid name {key!r}")
        self.runs[run_id].data.metrics |= {each.key: each.value for each in metrics}
        self.runs[run_id].data.params |= {each.key: each.value for each in params}

    def log_artifacts(self, run_id: str, local_dir: str) -> None:
        self._called("log_artifacts")
        self.runs[run_id].data.files |= {file.name: file.read_bytes() for file in Path(local_dir).iterdir()}

    def set_tag(self, run_id: str, key: str, value: str) -> None:
        self._called("set_tag")
        self.runs[run_id].data.tags[key] = value

    def set_terminated(self, run_id: str, status: str, end_time: int) -> None:
        self._called("set_terminated")
        self.runs[run_id].data.status = status

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name == self.fails_at:
            raise RefusedError("the server is gone")


@pytest.fixture
def mlflow_server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    modules: dict[str, dict[str, Any]] = {
        "mlflow": {"MlflowClient": made},
        "mlflow.exceptions": {"MlflowException": RefusedError},
        "mlflow.entities": {"Metric": Metric, "Param": Param},
    }
    for name, members in modules.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    return made


def test_an_experiment_is_a_run(exporting: Exporting, mlflow_server: Server) -> None:
    status, said = exporting("mlflow", "--url", "http://127.0.0.1:5000", "--project", "shop")
    assert status == 0
    assert mlflow_server.uri == "http://127.0.0.1:5000"
    assert list(mlflow_server.experiments) == ["shop"]
    assert len(mlflow_server.runs) == said.count(": run run") == 2
    data = mlflow_server.runs["run0"].data
    assert data.metrics["recall/5.low"] <= data.metrics["recall/5"] <= data.metrics["recall/5.high"]
    assert data.metrics["recall/5 direct"] == data.metrics["recall/5"]
    assert data.tags["gate.01"] == "passed: e3: recall@5 >= 0.4"
    assert data.tags["gate.02"] == "FAILED: e3[topic=t1]: token_f1 >= 0.9"
    assert data.tags["gates"] == "FAILED, passed"
    assert mlflow_server.runs["run1"].data.tags["gates"] == "passed"
    assert set(data.files) == {"scores.csv", "gates.csv", "trials.csv"}
    assert data.status == "FINISHED"


def test_a_second_export_to_mlflow_changes_nothing(exporting: Exporting, mlflow_server: Server) -> None:
    exporting("mlflow")
    calls = len(mlflow_server.calls)
    status, said = exporting("mlflow")
    assert (status, len(mlflow_server.calls)) == (0, calls)
    assert said.count("there already, as run") == 2


@pytest.mark.parametrize("call", ["create_run", "log_batch", "log_artifacts", "set_tag"])
def test_an_export_to_mlflow_that_was_cut_off_is_completed(
    exporting: Exporting, mlflow_server: Server, call: str
) -> None:
    mlflow_server.fails_at = call
    status, said = exporting("mlflow")
    assert status == 2
    assert "MLflow did not take the scores: the server is gone" in said
    mlflow_server.fails_at = ""
    assert exporting("mlflow")[0] == 0
    assert len(mlflow_server.runs) == 2
    assert all(run.data.status == "FINISHED" and run.data.metrics for run in mlflow_server.runs.values())


def test_without_mlflow_its_extra_is_named(exporting: Exporting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    status, said = exporting("mlflow")
    assert status == 2
    assert "The export to MLflow needs the package 'mlflow'" in said
    assert "[mlflow]" in said


@pytest.mark.parametrize(
    ("said", "name"), [("recall@5", "recall/5"), ("a=b@1 direct", "a_b/1 direct"), ("ä", "_"), ("p95 <= 3", "p95 __ 3")]
)
def test_names_are_those_that_mlflow_takes(said: str, name: str) -> None:
    assert metric_name(said) == name


LOOK = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(tracking_uri=sys.argv[1])
(kept,) = [each for each in client.search_experiments() if each.name == "rag-harness"]
found = {
    run.info.run_name.split()[0]: {
        "metrics": run.data.metrics, "tags": run.data.tags, "status": run.info.status,
        "history": [len(client.get_metric_history(run.info.run_id, name)) for name in run.data.metrics],
        "files": sorted(each.path for each in client.list_artifacts(run.info.run_id)),
    }
    for run in client.search_runs([kept.experiment_id])
}
print(json.dumps(found))
"""


@pytest.mark.long
def test_the_real_mlflow(output: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT, "mlflow"], check=True)
    check_real_mlflow(python, output, tmp_path)


def check_real_mlflow(python: Path, output: Path, folder: Path) -> None:
    """Export twice into a data base of MLflow, and look what it has."""
    url = f"sqlite:///{folder / 'mlflow.db'}"
    command: list[str | Path] = [
        python,
        "-m",
        "rag_harness",
        "results",
        "export",
        str(output),
        "--to",
        "mlflow",
        "--url",
        url,
    ]
    looked = []
    for _ in range(2):
        subprocess.run(command, check=True, cwd=folder)
        said = subprocess.run([python, "-c", LOOK, url], check=True, cwd=folder, capture_output=True, text=True).stdout
        looked.append(json.loads(said.splitlines()[-1]))
    first, second = looked
    assert first == second
    assert set(first) == {"e3", "golden"}
    found = first["e3"]
    assert found["metrics"]["recall/5.low"] <= found["metrics"]["recall/5"] <= found["metrics"]["recall/5.high"]
    assert set(found["history"]) == {1}
    assert found["files"] == ["gates.csv", "scores.csv", "trials.csv"]
    assert found["tags"]["gates"] == "FAILED, passed"
    assert found["status"] == "FINISHED"


# What is sent to the server of a tool, and what becomes of its replies.


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_with_the_key(status: int) -> None:
    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Location", f"{other.url}/login")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    with (
        stub_server(lambda *_: (200, {})) as other,
        running(ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)) as server,
    ):
        posting = Posting("Tool", f"http://127.0.0.1:{server.server_port}", {"Authorization": "Bearer sk-planted-77"})
        with pytest.raises(PrerequisiteError, match=f"refused /v1/traces: {status}") as error:
            posting.send("/v1/traces", {"a": 1})
    assert other.asked == []
    assert "sk-planted-77" not in str(error.value)
