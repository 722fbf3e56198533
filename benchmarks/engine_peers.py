"""The same calls by promptfoo and inspect_ai: their own way to ask a model 600 questions and check each answer."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from side_by_side import Took, run

INSPECT = """
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

if __name__ == "__main__":
    samples = [Sample(input=f"Question: question {{n}}", target="30 days") for n in range({calls})]
    task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())
    model = get_model("openai-api/mock/mock", base_url="{url}", api_key="none")
    limits = dict(max_connections={in_flight}, max_samples={in_flight})
    [log] = eval(task, model=model, **limits, display="none", log_dir="logs")
    assert log.status == "success", log.error
"""


def find_promptfoo(path: str) -> str | None:
    """Return promptfoo's command, None where it is not installed."""
    return shutil.which(path)


def promptfoo(command: str, folder: Path, url: str, calls: int, in_flight: int) -> Took:
    provider = {"id": "openai:chat:mock", "config": {"apiBaseUrl": url, "apiKey": "none"}}
    check = [{"type": "contains", "value": "30 days"}]
    tests = [{"vars": {"question": f"question {n}"}, "assert": check} for n in range(calls)]
    config = {"providers": [provider], "prompts": ["Question: {{question}}"], "tests": tests}
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    quiet = ["--no-cache", "--no-write", "--no-table", "--no-progress-bar"]
    silent = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": str(folder)}
    # Its logger sometimes crashes at exit, when all answers are there.
    done = f"{calls} passed (100%)"
    return run([command, "eval", "-c", "config.json", "-j", str(in_flight), *quiet], folder, silent, done)


def has_inspect(python: str) -> bool:
    """Return whether the interpreter has inspect_ai and the SDK that it calls models with."""
    asked = subprocess.run([python, "-c", "import inspect_ai, openai"], capture_output=True, check=False)
    return not asked.returncode


def inspect(python: str, folder: Path, url: str, calls: int, in_flight: int) -> Took:
    folder.mkdir(exist_ok=True)
    (folder / "task.py").write_text(INSPECT.format(calls=calls, url=url, in_flight=in_flight))
    return run([python, "task.py"], folder)
