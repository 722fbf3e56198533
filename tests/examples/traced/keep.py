"""Asks apps of real frameworks, and keeps their spans for tests without these.

``python -m tests.examples.traced.keep`` writes the files anew.
A line a shape: its name, what the app said and really did, and its spans as OTLP/JSON.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from rag_harness.pipelines.otel.in_process import end_root, new_provider, traced_trial
from rag_harness.pipelines.otel.spans import SpanRecord, request_of
from tests.examples.traced.did import Did

KEPT = Path(__file__).parents[2] / "unit" / "traces" / "kept"
FRAMEWORKS = {"langchain": "langchain_core", "llamaindex": "llama_index", "haystack": "haystack"}
_OF_A_MACHINE = re.compile(r'(?<=File \\")[^"]*?(?=site-packages/|tests/examples/traced/)')
"""What is before the path of a file in the repository or of a package, in a stack trace within JSON."""


@contextmanager
def instrumented(framework: str) -> Iterator[tuple[Any, Any]]:
    """Yield the apps of a framework and the provider that it is instrumented at."""
    provider, apps = new_provider(), import_module(f"tests.examples.traced.{framework}_apps")
    undo = apps.instrument(provider)
    try:
        yield apps, provider
    finally:
        undo()


def asked(app: Callable[[Did], str], provider: Any) -> tuple[Did, str, list[SpanRecord]]:
    """Ask an app, and return what it did, what it said, and its spans."""
    did = Did()
    with traced_trial(provider, "trial", {}) as trial:
        said = app(did)
        end_root(trial, said)
        return did, said, trial.so_far()


def keep(framework: str) -> None:
    """Write the spans of all shapes of a framework."""
    with instrumented(framework) as (apps, provider):
        lines = []
        for name, app in apps.SHAPES.items():
            did, said, spans = asked(app, provider)
            line = {"shape": name, "said": said, "did": did.as_json(), "spans": request_of(spans, framework)}
            lines.append(_OF_A_MACHINE.sub("", json.dumps(line, ensure_ascii=False)) + "\n")
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{framework}.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:] or FRAMEWORKS:
        keep(each)
