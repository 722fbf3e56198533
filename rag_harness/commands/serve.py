"""``rag-harness serve``: the experiment that was evaluated, behind HTTP."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.errors import PrerequisiteError

if TYPE_CHECKING:
    from rag_harness.service.options import Options
    from rag_harness.settings import Settings

_SETTINGS = {
    "profile": "named set of models, as --rag-profile of a test run",
    "mode": "auto, replay, record or live; default: live",
    "chat_model": "chat model; default: the profile's",
    "chat_base_url": "OpenAI-compatible endpoint; default: the profile's",
    "embed_model": "embedding model; default: the profile's",
    "qdrant_url": "Qdrant server or cluster; default: an index in the state folder",
}
_OLDEST = (3, 11)


def serve_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what ``serve`` takes."""
    add = parser.add_argument
    add("--experiment", required=True, metavar="NAME", help="what answers: r1, e3, or one of your own")
    add("--kb", type=Path, metavar="DIR", help="documents to begin with; default: the experiment's own")
    add("--state", type=Path, default=Path(".rag_service"), metavar="DIR", help="folder of documents, keys and traces")
    add("--host", default="127.0.0.1", help="address to listen on; another than this machine's own needs a key")
    add("--port", type=int, default=8000, help="port to listen on; 0 is any that is free")
    add("--concurrency", type=_from(1), default=64, help="questions answered at once; as many again may wait")
    add("--seconds", type=_seconds, default=60.0, help="that an answer may take")
    add("--upload-limit", type=_from(1), default=32, metavar="MIB", help="most MiB of an uploaded file")
    add("--rate", default="600/minute", help="requests of a key that has no rate of its own")
    add("--trace-days", type=_from(0), default=30, help="that traces are kept; 0 keeps none")
    add("--trace-content", action="store_true", help="keep questions, answers and prompts in traces, too")
    add("--otlp", default="", metavar="URL", help="export traces to this OpenTelemetry collector")
    add("--log-format", choices=("json", "text"), default="json", help="of the log on stderr")
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info", help="of the log on stderr")
    for name, help_ in _SETTINGS.items():
        flag = name.replace("_", "-")
        add(f"--rag-{flag}", f"--{flag}", dest=name, help=help_)


def _from(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is none; name {least} or more")
        return int(text)

    return number


def _seconds(text: str) -> float:
    # NaN and infinity are floats, too.
    with suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is none; name more than 0")


def run_serve(chosen: argparse.Namespace) -> int:
    """Serve until somebody ends it.

    Raises:
        PrerequisiteError: Python is too old, a package is missing, or it would listen where it must not.
    """
    if sys.version_info < _OLDEST:
        raise PrerequisiteError("rag-harness serve needs Python 3.11 or newer: so does FastAPI, which it stands on.")
    try:
        from rag_harness.service.server import serve
    except ImportError as error:
        raise PrerequisiteError(
            f"rag-harness serve needs the package {error.name!r}. Install it: pip install 'rag-harness[service]'"
        ) from error
    return serve(options_of(chosen), settings_of(chosen), chosen.log_format, chosen.log_level)


def options_of(chosen: argparse.Namespace) -> Options:
    """Return what the command line says of the server."""
    from rag_harness.service.options import MIB, Options

    return Options(
        experiment=chosen.experiment,
        state=chosen.state,
        kb=chosen.kb,
        host=chosen.host,
        port=chosen.port,
        upload=chosen.upload_limit * MIB,
        concurrency=chosen.concurrency,
        seconds=chosen.seconds,
        rate=chosen.rate,
        trace_days=chosen.trace_days,
        trace_content=chosen.trace_content,
        otlp=chosen.otlp,
    )


def settings_of(chosen: argparse.Namespace) -> Settings:
    """Return the settings of the suite in this folder, with what the command line says otherwise."""
    from rag_harness.settings.ini_file import ini_values
    from rag_harness.settings.loading import load_settings

    given: dict[str, Any] = {name: said for name in _SETTINGS if (said := getattr(chosen, name)) is not None}
    here = Path.cwd()
    return load_settings({"mode": "live", **given}, ini_values(here), here)
