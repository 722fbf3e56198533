"""The table ``[session]`` of a service that keeps conversations itself, and what the rest of its spec must then be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.settings.endpoint_checks import body_text, check_no_secret, text
from rag_harness.settings.endpoint_spec import OpenRequest, SessionReading
from rag_harness.settings.profiles import check_table_keys

SESSION_TEXTS, SESSION_FLAGS = ("path", "id", "lost"), ("changes", "resumes")
SESSION_SENT = re.compile(r"\{\{\s{0,9}session\s{0,9}(\??)\s{0,9}\}\}")
"""Where the session stands in what is sent."""
_HISTORY = re.compile(r"\{\{\s{0,9}\*?\s{0,9}(history|messages)\b")


def read_session(table: Mapping[str, Any], where: str, url: str, headers: Sequence[str], body: str) -> SessionReading:
    """Return the table ``session`` of a service, whose other parts are given, as text.

    Raises:
        SettingsError: a key or value cannot be used, or does not go with the rest of the service.
    """
    if "session" not in table:
        return SessionReading()
    given, here = table["session"], f"{where}, [session]"
    if not isinstance(given, Mapping):
        raise SettingsError(f"{where}: session is {given!r}: expected a table, [session].")
    check_table_keys(here, given, {*SESSION_TEXTS, *SESSION_FLAGS, "open"})
    told: dict[str, Any] = {name: text(here, name, given[name]) for name in SESSION_TEXTS if name in given}
    told |= {name: _flag(here, name, given[name]) for name in SESSION_FLAGS if name in given}
    told |= {"open": _open(here, given["open"])} if "open" in given else {}
    found = SessionReading(**told)
    _check_id(found, here)
    _check_sent(found, where, url, [*headers, body, url])
    if "history" in table or (said := _HISTORY.search(body)):
        what = "[history]" if "history" in table else f"{{{{{said[1]}}}}} in its body"  # type: ignore[index]
        raise SettingsError(
            f"{where} has [session] and {what}: a service that keeps conversations itself is sent each question alone. "
            f"Leave one of them out."
        )
    return found


def _check_id(found: SessionReading, here: str) -> None:
    if bool(found.path) == bool(found.id):
        raise SettingsError(
            f"{here} has {'both path and id' if found.id else 'neither path nor id'}. Where the service chooses the "
            f'session, say where its reply has the id, path = "session_id"; where the client does, id = "{{{{uuid}}}}".'
        )
    if found.id and "{{uuid}}" not in found.id:
        raise SettingsError(
            f"{here}: id is {found.id!r}, without {{{{uuid}}}}: a later run, or a repeat, would go on in the sessions "
            f'of this one. Write id = "{found.id}-{{{{uuid}}}}".'
        )
    if found.id and (found.open or found.changes):
        name = "open" if found.open else "changes"
        raise SettingsError(f"{here} has both id and {name}: {name} is for sessions that the service chooses.")
    if found.open and found.changes:
        raise SettingsError(f"{here} has both open and changes: a session that is opened keeps its id.")


def _check_sent(found: SessionReading, where: str, url: str, sent: Sequence[str]) -> None:
    if not any(SESSION_SENT.search(each) for each in sent):
        raise SettingsError(
            f"{where} has [session], and the session is never sent. Put {{{{session}}}} where the service looks for "
            f"it: in body, headers or url."
        )
    if found.path and found.open is None and any(not mark for mark in SESSION_SENT.findall(url)):
        raise SettingsError(
            f"{where}: url holds {{{{session}}}}, and the first turn of a conversation has none yet. Say how one is "
            f"opened, session.open, or write {{{{session?}}}} where it may be missing."
        )


def _open(here: str, given: Any) -> OpenRequest:
    if not isinstance(given, Mapping):
        raise SettingsError(f'{here}: open is {given!r}: expected a table, open = {{ url = "/sessions" }}.')
    check_table_keys(f"{here}, open", given, ("url", "method", "body"))
    url, body = text(f"{here}, open", "url", given.get("url", "")), given.get("body", {})
    if not url:
        raise SettingsError(f'{here}, open has no url: name the address that opens a session, url = "/sessions".')
    check_no_secret(f"{here}, open", url)
    if not isinstance(body, (Mapping, list)):
        raise SettingsError(f"{here}, open: body is {body!r}: expected a table or a list.")
    sent = body_text(f"{here}, open", "body", body)
    method = text(f"{here}, open", "method", given.get("method", "POST")).upper()
    return OpenRequest(url, method, "" if method == "GET" else sent)


def _flag(here: str, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingsError(f"{here}: {name} is {value!r}: expected true or false.")
    return value
