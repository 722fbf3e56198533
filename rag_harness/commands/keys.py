"""``rag-harness keys``: makes, lists and revokes the keys of a service, also while its server runs."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands import FOUND
from rag_harness.errors import SettingsError
from rag_harness.service.access.principal import COLLECTION, SCOPES
from rag_harness.service.access.rates import parsed_rate
from rag_harness.service.options import Options
from rag_harness.service.unseen import unseen_fault
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.service.access.service_keys import KeyInfo
    from rag_harness.service.state.database import Database

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
    from rag_harness.service.access.service_keys import make

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
    from rag_harness.service.access.service_keys import listed

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
    from rag_harness.service.access.service_keys import revoke

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
            f"{chosen.collection!r} is no name of a collection: up to 63 of a-z, 0-9, - and _, the first a letter or "
            f"a digit."
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
    from rag_harness.service.state.database import Database
    from rag_harness.service.state.folder import DATABASE

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
