"""``rag-harness schema``: the JSON Schema of a file, for editors and other tools."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from rag_harness.shown.terminal import say, say_json

_MADE: Mapping[str, str] = {
    "queries": "rag_harness.dataset.query_schema:query_schema",
    "endpoint": "rag_harness.settings.endpoint_schema:endpoint_schema",
    "space": "rag_harness.derived.tuning.space_schema:space_schema",
    "result": "rag_harness.results.row_schema:row_schema",
}
"""What makes the schema of each kind of file. Its module is imported when it is named."""


def schema_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``schema``."""
    about = "queries: a line of queries.jsonl; endpoint: a service; space: what races; result: a row of results"
    parser.add_argument("kind", choices=[*_MADE], help=about)
    parser.add_argument("-o", dest="file", type=Path, metavar="FILE", help="write it there; default: print it")


def run_schema(chosen: argparse.Namespace) -> int:
    """Print or write a schema."""
    text = schema_text(chosen.kind)
    if chosen.file is None:
        say_json(text)
        return 0
    from rag_harness.files.atomic import write_atomically

    chosen.file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(chosen.file, text.encode())
    say(f"{chosen.file}: the schema of {chosen.kind}")
    return 0


def schema_text(kind: str) -> str:
    """Return a schema as the text of its file."""
    module, _, name = _MADE[kind].partition(":")
    made: Callable[[], dict[str, Any]] = getattr(import_module(module), name)
    return json.dumps(made(), indent=2, ensure_ascii=False) + "\n"
