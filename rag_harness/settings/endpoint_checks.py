"""Checks of the values in the description of a service, with errors that say what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from sys import float_info
from typing import Any
from urllib.parse import urlsplit

from rag_harness.errors import SettingsError
from rag_harness.settings.literal_keys import USER, VARIABLE, address_secret, field_secret
from rag_harness.settings.secret_names import SECRET_HEADER

EXPERIMENT_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,59}"
"""The pattern of a name that an experiment can have."""
_NAME = re.compile(EXPERIMENT_NAME)
_RESERVED = ("golden", "queries")
_PYTEST = ("filterwarnings", "parametrize", "rag_expect", "rag_experiment", "skip", "skipif", "usefixtures", "xfail")
"""Markers with a meaning. An experiment marks its tests with its name, so its name must be none of these."""
RESERVED_NAMES = (*_RESERVED, *_PYTEST)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SECRET_VALUE = re.compile(
    r"(?i)^(bearer|basic|token)\s|^(sk|pk|ghp|xox[a-z]|AKIA|eyJ)[-_A-Za-z0-9]{8}|[A-Za-z0-9+/_=-]{32}"
)
"""Values that look like a key, in a header of any name."""


def check_name(name: Any, where: str) -> None:
    """Refuse a name that an experiment cannot have.

    Raises:
        SettingsError: the name is not allowed; says which names are.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in RESERVED_NAMES:
        raise SettingsError(
            f"{where}: {name!r} is no name for an experiment: a letter, then letters, digits, _ and - (not golden, "
            f'queries or a marker of pytest). Say it in the file: name = "my_service".'
        )


def text(where: str, key: str, value: Any) -> str:
    """Return a string.

    Raises:
        SettingsError: the value is none.
    """
    if not isinstance(value, str):
        raise SettingsError(f"{where}: {key} is {value!r}: expected a string.")
    return value


def number(where: str, key: str, value: Any, whole: bool = False) -> float:
    """Return a number that is not negative.

    Raises:
        SettingsError: the value is none.
    """
    is_number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= float_info.max:
        raise SettingsError(f"{where}: {key} is {value!r}: expected a {'whole ' * whole}number, 0 or more.")
    found: float = value
    return found


def check_url(where: str, url: str) -> None:
    """Refuse an address that is no HTTP address, or that holds a secret.

    Raises:
        SettingsError: says what is wrong with it.
    """
    if not url:
        raise SettingsError(f'{where} has no url: name the address that is asked, url = "https://…".')
    check_no_secret(where, url)
    shown = VARIABLE.sub("1", url)
    try:
        parts = urlsplit(shown if not url.startswith("${") or "://" in shown else f"http://{shown}")
        parts.port  # noqa: B018 - it raises where the port is no number
    except ValueError as error:
        raise SettingsError(f"{where}: url is {url!r}: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"{where}: url is {url!r}: expected http://… or https://….")


def check_no_secret(where: str, url: str) -> None:
    """Refuse an address, or a path of one, in which a secret stands.

    Raises:
        SettingsError: names the part, and not the secret.
    """
    found = address_secret(url)
    if found == USER:
        raise SettingsError(f"{where}: url holds a user or a password. Put them into a header: Authorization.")
    if found:
        name = found.partition("'")[2].rstrip("'") or "my_key"
        raise SettingsError(f"{where}: url holds a secret, {found}. Name its variable there: {_named(name)}")


def check_filled(where: str, url: str, filled: str) -> None:
    """Refuse an address that is wrong after its variables are filled in, or that then holds a user or a password.

    Raises:
        SettingsError: says what is wrong, without the values of the variables.
    """
    try:
        parts = urlsplit(filled)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise SettingsError(
            f"{where}: url is {url!r}, and with its variables filled in it does not begin with http://HOST or "
            f"https://HOST."
        )
    if parts.username or parts.password:
        raise SettingsError(f"{where}: a variable of url {url!r} holds a user or a password. Put them into a header.")


def checked_headers(where: str, given: Any) -> tuple[tuple[str, str], ...]:
    """Return the headers of a table.

    Raises:
        SettingsError: this is no table of strings, or a header holds a secret instead of the name of a variable.
    """
    if not isinstance(given, Mapping):
        raise SettingsError(f"{where}: headers is {type(given).__name__}: expected a table of names and strings.")
    for name, value in given.items():
        if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
            raise SettingsError(f"{where}: header {name!r} is no string of one line of ASCII.")
        if not _HEADER.fullmatch(name):
            raise SettingsError(f"{where}: {name!r} is no name of a header: letters, digits and - make one.")
        literal = VARIABLE.sub("", value)
        if (SECRET_HEADER.search(name) and literal == value) or _SECRET_VALUE.search(literal.strip()):
            raise SettingsError(
                f"{where}: header {name!r} holds a secret. A key stands in the environment or in .env, and here its "
                f'name: "{name}" = {_named(name)}'
            )
    return tuple(given.items())


def body_text(where: str, key: str, body: Any) -> str:
    """Return a request body as JSON.

    Raises:
        SettingsError: it is no JSON, or holds ``${VARIABLE}``: recordings and rows store bodies.
    """
    try:
        _refuse_variables(where, key, body)
        if found := field_secret(body):
            raise SettingsError(
                f"{where}: {key} has a key in {found!r}, and bodies are kept in rows and recordings. Send it in a "
                f'header that names its variable: headers = {{ Authorization = "Bearer ${{MY_KEY}}" }}'
            )
        return json.dumps(body, allow_nan=False)
    except RecursionError:
        raise SettingsError(f"{where}: {key} is nested too deeply.") from None
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{where}: {key} is no JSON: {error}. Dates stand in quotes.") from None


def _refuse_variables(where: str, key: str, body: Any) -> None:
    for value in body.values() if isinstance(body, Mapping) else body if isinstance(body, list) else ():
        _refuse_variables(where, key, value)
    found = VARIABLE.search(body) if isinstance(body, str) else None
    if found:
        raise SettingsError(f"{where}: {key} holds {found[0]}, but it is kept in rows and recordings. Use a header.")


def _named(name: str) -> str:
    return '"${' + re.sub(r"\W+", "_", name).upper() + '}"'
