"""``rag-harness serve``: puts the experiment that was evaluated behind HTTP."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands.with_settings import add_settings, settings_said
from rag_harness.errors import PrerequisiteError
from rag_harness.registry.installed import install
from rag_harness.service.options import MIB, Options

if TYPE_CHECKING:
    from rag_harness.settings import Settings

_SETTINGS = {
    "profile": "named set of models, as --rag-profile of a test run",
    "mode": "how models are asked: auto, replay, record or live; default: live",
    "chat_model": "chat model; default: the profile's",
    "chat_base_url": "OpenAI-compatible endpoint; default: the profile's",
    "embed_model": "embedding model; default: the profile's",
    "embed_base_url": "OpenAI-compatible endpoint of the embedding model; default: the profile's",
    "rerank_model": "reranker; default: the profile's",
    "config": "TOML file of a configuration, as rag-harness tune writes one: --experiment is its name",
    "qdrant_url": "Qdrant server or cluster; default: an index in the state folder",
}
_OLDEST = (3, 11)


def serve_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``serve``."""
    add, usual = parser.add_argument, Options("")
    add("--experiment", required=True, metavar="NAME", help="what answers: r1, e3, or one of your own")
    add("--kb", type=Path, metavar="DIR", help="documents to begin with; default: the experiment's own")
    add("--state", type=Path, default=usual.state, metavar="DIR", help="folder of documents, keys and traces")
    add("--host", default=usual.host, help="address to listen on; another than this machine's own needs a key")
    add("--port", type=int, default=usual.port, help="port to listen on; 0 is any that is free")
    add(
        "--concurrency",
        type=_from(1),
        default=usual.concurrency,
        help="questions answered at once; as many again may wait",
    )
    add("--seconds", type=_seconds, default=usual.seconds, help="seconds that an answer may take")
    add(
        "--upload-limit", type=_from(1), default=usual.upload // MIB, metavar="MIB", help="most MiB of an uploaded file"
    )
    add("--rate", default=usual.rate, help="requests of a key that has no rate of its own")
    add("--trace-days", type=_from(0), default=usual.trace_days, help="days that traces are kept; 0 keeps none")
    add("--trace-content", action="store_true", help="keep questions, answers and prompts in traces, too")
    add("--otlp", default=usual.otlp, metavar="URL", help="export traces to this OpenTelemetry collector")
    add("--log-format", choices=("json", "text"), default="json", help="format of the log on stderr")
    add(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="least level of the log on stderr",
    )
    add_settings(parser, _SETTINGS, ("rag-", ""))


def _from(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is none; name {least} or more")
        return int(text)

    return number


def _seconds(text: str) -> float:
    # NaN and infinity are floats, too, but no valid values.
    with suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is none; name more than 0")


def run_serve(chosen: argparse.Namespace) -> int:
    """Serve until the process is told to end.

    Raises:
        PrerequisiteError: Python is too old, a package is missing, or it must not listen at its address.
    """
    if sys.version_info < _OLDEST:
        raise PrerequisiteError("rag-harness serve needs Python 3.11 or newer: so does FastAPI, which it stands on.")
    try:
        from rag_harness.service.server import serve
    except ImportError as error:
        package = str(error.name).partition(".")[0]
        raise PrerequisiteError(
            f"rag-harness serve needs the package {package!r}. Install it: {install('service')}"
        ) from error
    return serve(options_of(chosen), settings_of(chosen), chosen.log_format, chosen.log_level)


def options_of(chosen: argparse.Namespace) -> Options:
    """Return the server's options from the command line."""
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
    """Return the settings of the suite in this folder, overridden by the command line."""
    from rag_harness.settings.ini_file import ini_values
    from rag_harness.settings.loading import load_settings

    here = Path.cwd()
    said = settings_said(chosen, _SETTINGS)
    if "config" in said:
        said["config"] = (said["config"],)
    return load_settings({"mode": "live", **said}, ini_values(here), here)
