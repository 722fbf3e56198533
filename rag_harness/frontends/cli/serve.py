"""The commands rag-harness serve and keys: an experiment behind HTTP, and its keys."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.core.errors import PrerequisiteError, SettingsError
from rag_harness.core.escaping import say
from rag_harness.core.package import install
from rag_harness.frontends.cli import FOUND
from rag_harness.frontends.cli.options import add_settings, settings_said
from rag_harness.service.app_state import MIB, Options
from rag_harness.service.keys import COLLECTION, SCOPES
from rag_harness.service.problems import unseen_fault
from rag_harness.service.rate_limits import parsed_rate

if TYPE_CHECKING:
    from rag_harness.core.settings import Settings
    from rag_harness.service.database import Database
    from rag_harness.service.keys import KeyInfo


# ``rag-harness serve``: puts the experiment that was evaluated behind HTTP.

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
    from rag_harness.core.settings.loading import ini_values, load_settings

    here = Path.cwd()
    said = settings_said(chosen, _SETTINGS)
    if "config" in said:
        said["config"] = (said["config"],)
    return load_settings({"mode": "live", **said}, ini_values(here), here)


# ``rag-harness keys``: makes, lists and revokes the keys of a service, also while its server runs.

_COLUMNS = ("id", "name", "label", "scopes", "collection", "rate", "used", "created", "revoked")


def create_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``keys create``."""
    about = "what it may do: query asks, ingest adds and removes documents, admin is all of it; may be repeated"
    parser.add_argument("--scope", dest="scopes", action="append", choices=SCOPES, required=True, help=about)
    parser.add_argument("--collection", metavar="NAME", help="the only one that exists for it; default: any")
    parser.add_argument("--label", default="", help="what lists and traces call it")
    parser.add_argument("--rate", default="", help="requests it may send, as 60/minute; default: the server's")
    parser.add_argument("--quota", type=int, metavar="N", help="questions it may ask for good; default: no end")
    _state_argument(parser)


def run_create(chosen: argparse.Namespace) -> int:
    """Make a key, and show it for the only time."""
    from rag_harness.service.keys import make_key as make

    _check(chosen)
    chosen.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _database(chosen.state) as db:
        key = make(db, chosen.scopes, chosen.label, chosen.collection, chosen.rate, chosen.quota)
    say(key)
    say("It is shown this once and kept nowhere. Send it as Authorization: Bearer KEY.", to=sys.stderr)
    return 0


def list_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``keys list``."""
    _state_argument(parser)


def run_list(chosen: argparse.Namespace) -> int:
    """Print the details of each key, but not the keys themselves."""
    from rag_harness.service.keys import list_keys as listed

    with _database(chosen.state) as db:
        rows = [_COLUMNS, *(_row(each) for each in listed(db))]
    if len(rows) == 1:
        say("There are no keys: the server answers this machine alone. Make one: rag-harness keys create --scope query")
        return 0
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def revoke_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``keys revoke``."""
    parser.add_argument("key_id", type=int, metavar="ID", help="number of the key, as keys list shows it")
    _state_argument(parser)


def run_revoke(chosen: argparse.Namespace) -> int:
    """Revoke a key, with immediate effect."""
    from rag_harness.service.keys import revoke_key as revoke

    with _database(chosen.state) as db:
        revoked = revoke(db, chosen.key_id)
    if not revoked:
        say(f"No key {chosen.key_id} is in use: see rag-harness keys list.", to=sys.stderr)
        return FOUND
    say(f"Key {chosen.key_id} is revoked: the next request with it is refused.")
    return 0


def _state_argument(parser: argparse.ArgumentParser) -> None:
    folder = Options(experiment="").state
    parser.add_argument(
        "--state", type=Path, default=folder, metavar="DIR", help=f"state folder of the server; default: {folder}"
    )


def _check(chosen: argparse.Namespace) -> None:
    if chosen.collection is not None and not re.fullmatch(COLLECTION, chosen.collection):
        raise SettingsError(
            f"{chosen.collection!r} is not a name of a collection: up to 63 of a-z, 0-9, - and _, the first a letter "
            f"or a digit."
        )
    if chosen.quota is not None and not 0 < chosen.quota < 2**63:
        raise SettingsError(f"A quota of {chosen.quota} is none: name 1 or more, or leave --quota out.")
    if len(chosen.label) > 100:
        raise SettingsError("A label is up to 100 characters.")
    if chosen.label and (fault := unseen_fault(chosen.label)):
        raise SettingsError(f"The label {fault}. Name the key by words on one line.")
    if chosen.rate:
        parsed_rate(chosen.rate)


@contextmanager
def _database(folder: Path) -> Iterator[Database]:
    from rag_harness.service.database import DATABASE, Database

    if not folder.is_dir():
        raise SettingsError(f"There is no folder {folder}. Name the one that the server uses: --state DIR.")
    db = Database(folder / DATABASE)
    try:
        yield db
    finally:
        db.close()


def _row(key: KeyInfo) -> tuple[str, ...]:
    used = str(key.used) if key.quota is None else f"{key.used} of {key.quota}"
    shown = (key.key_id, key.name, key.label, " ".join(key.scopes), key.collection or "any", key.rate or "the server's")
    return (*map(str, shown), used, key.created, key.revoked or "")
