"""traces-langchain.md: an app of LangChain with three more lines, from its questions to its scores."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.model_server import ModelServer

# MLflow's database warns of SQLAlchemy's changes.
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "traces-langchain.md").read_text(encoding="utf-8")
NEEDED = ("langchain_classic", "langchain_openai", "openinference.instrumentation.langchain", "mlflow")
WRONG = "The deposit is 80 euros. [Source 1]"
ITEMS = [
    ("cargo", "How much does a cargo bicycle cost a day?", "29 euros", "rental.md"),
    ("closed", "When is the shop closed?", "On Sunday and Monday", "opening-hours.md"),
    ("puncture", "How soon does a mechanic come after a puncture?", "within 40 minutes", "punctures.md"),
    ("deposit", "How high is the deposit for a bicycle?", "50 euros", "rental.md"),
]


class Model(BaseHTTPRequestHandler):
    """Says what the first source says; of the deposit, what no source says."""

    server: ModelServer

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = asked["messages"][-1]["content"]
        with self.server.lock:
            self.server.calls[prompt.splitlines()[-1]] += 1
        first = " ".join(prompt.partition("[Source 1]")[2].partition("[Source 2]")[0].split())
        said = WRONG if "deposit for" in prompt else f"{first} [Source 1]"
        usage = {"prompt_tokens": 200, "completion_tokens": 20, "total_tokens": 220}
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "small", "choices": [choice]}
        body = json.dumps({**reply, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said: Any) -> None:
        pass


@contextmanager
def model() -> Iterator[ModelServer]:
    with ModelServer(Model) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_app_of_langchain_from_its_questions_to_its_scores(tmp_path: Path) -> None:
    for package in NEEDED:
        if not is_installed(package):
            pytest.skip(
                f"{package} is not installed: pip install langchain-classic langchain-openai "
                f"openinference-instrumentation-langchain mlflow-skinny sqlalchemy alembic"
            )
    written(tmp_path)
    imported, record, replay, explain, export = commands()
    assert "4 questions: 4 with a ground truth, 4 with pages" in ran(imported, tmp_path)
    with model() as server:
        url, calls = server.url, server.calls
        said = ran(record, tmp_path, url)
    assert "4 passed" in said
    assert "1 gate passed" in said
    assert sorted(calls.values()) == [1, 1, 1, 1]
    recorded = rows(tmp_path)
    for row in recorded:
        assert [step["kind"] for step in row["stages"]] == ["retrieve", "rerank", "generate"]
        assert [len(step.get("hits", ())) for step in row["stages"]] == [4, 2, 0]
        assert len(row["retrieved_chunks"]) == 2
        assert (row["usage"]["prompt_tokens"], row["timings_recorded"], row["recorded_at"]) == (200, False, "")
    said = ran(replay, tmp_path, url)
    assert "4 passed" in said
    assert "1 gate passed" in said
    again = rows(tmp_path)
    assert [row["llm_answer"] for row in again] == [row["llm_answer"] for row in recorded]
    assert all(row["dry_run"] and row["timings_recorded"] and row["recorded_at"] for row in again)
    said = ran(explain, tmp_path, url)
    assert "shop-deposit" in said
    ran(export, tmp_path)
    check_scores(tmp_path)


def is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def commands() -> list[str]:
    found = re.search(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1].splitlines()


def written(folder: Path) -> None:
    """Write what a user has: pages, an app, its test, and what Langfuse has exported."""
    shutil.copytree(ROOT / "examples" / "kb", folder / "kb")
    (folder / "kb" / "queries.jsonl").unlink()
    for block in re.findall(r"```python-shop\n(.*?)```", PAGE, re.DOTALL):
        (folder / block.splitlines()[0].removeprefix("# ")).write_text(block)
    items = [
        {"id": name, "status": "ACTIVE", "input": asked, "expectedOutput": gold, "metadata": {"page": page}}
        | {"sourceTraceId": None, "datasetId": "d1", "datasetName": "shop"}
        for name, asked, gold, page in ITEMS
    ]
    (folder / "items.json").write_text(json.dumps(items))


def ran(command: str, folder: Path, url: str = "") -> str:
    program, *arguments = shlex.split(command)
    module = {"rag-harness": ["rag_harness"], "pytest": ["pytest", "-p", "no:cacheprovider"]}[program]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "PYTEST_"))}
    keys = {"MODEL_URL": url, "MODEL_KEY": "sk-planted-0123456789"}
    done = subprocess.run(
        [sys.executable, "-m", *module, *arguments],
        cwd=folder, env={**plain, **keys}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rows(folder: Path) -> list[Any]:
    lines = (folder / "output" / "shop.jsonl").read_text("utf-8").splitlines()
    return sorted(map(json.loads, lines), key=lambda row: str(row["query_id"]))


def check_scores(folder: Path) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("shop").experiment_id])
    assert run.data.metrics["recall/5"] == 1.0
    assert run.data.metrics["recall/5.n"] == len(ITEMS)
    assert run.data.tags["gates"] == "passed"
