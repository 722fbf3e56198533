"""Runs in MLflow: names that it takes, a second export that changes nothing, one that was cut off.

A stub with MLflow's own rules for names and sizes stands in for it; ``-m long`` exports into the real one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import types
import venv
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from rag_harness.page.exports.targets import metric_name
from tests.unit.page.exports.conftest import Exporting

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
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
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


def test_an_experiment_is_a_run(exporting: Exporting, server: Server) -> None:
    status, said = exporting("mlflow", "--url", "http://127.0.0.1:5000", "--project", "shop")
    assert status == 0
    assert server.uri == "http://127.0.0.1:5000"
    assert list(server.experiments) == ["shop"]
    assert len(server.runs) == said.count(": run run") == 2
    data = server.runs["run0"].data
    assert data.metrics["recall/5.low"] <= data.metrics["recall/5"] <= data.metrics["recall/5.high"]
    assert data.metrics["recall/5 direct"] == data.metrics["recall/5"]
    assert data.tags["gate.01"] == "passed: e3: recall@5 >= 0.4"
    assert data.tags["gate.02"] == "FAILED: e3[topic=t1]: token_f1 >= 0.9"
    assert data.tags["gates"] == "FAILED, passed"
    assert server.runs["run1"].data.tags["gates"] == "passed"
    assert set(data.files) == {"scores.csv", "gates.csv", "trials.csv"}
    assert data.status == "FINISHED"


def test_a_second_export_changes_nothing(exporting: Exporting, server: Server) -> None:
    exporting("mlflow")
    calls = len(server.calls)
    status, said = exporting("mlflow")
    assert (status, len(server.calls)) == (0, calls)
    assert said.count("there already, as run") == 2


@pytest.mark.parametrize("call", ["create_run", "log_batch", "log_artifacts", "set_tag"])
def test_an_export_that_was_cut_off_is_completed(exporting: Exporting, server: Server, call: str) -> None:
    server.fails_at = call
    status, said = exporting("mlflow")
    assert status == 2
    assert "MLflow did not take the scores: the server is gone" in said
    server.fails_at = ""
    assert exporting("mlflow")[0] == 0
    assert len(server.runs) == 2
    assert all(run.data.status == "FINISHED" and run.data.metrics for run in server.runs.values())


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
    check_real(python, output, tmp_path)


def check_real(python: Path, output: Path, folder: Path) -> None:
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
